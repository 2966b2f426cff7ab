// SPDX-License-Identifier: Apache-2.0
//! A valed in a network namespace of its own, namespaces attached to it, and guests.
use std::collections::HashSet;
use std::fs::File;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ring::{BUFFER_SIZE, GuestPort};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use vale_proto::{Counters, PortAdd, PortInfo, RingFds, ValeClient};

/// A uid without a role, and one that has `toolstack`.
pub const NOBODY: u32 = 65_534;
pub const TOOLSTACK: u32 = 64_003;

pub fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|e| panic!("{program}: {e}"))
}

pub fn ok(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The longest wait for anything in a test, on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(50);

/// Waits for `condition`.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program of another package of the switch, built if it is not yet. A test of a small package
/// gives it the features that it has among all tests.
pub fn tool(name: &str) -> PathBuf {
    // The packet generator without Linux has the name of one of ours.
    let all = ["--workspace", "--exclude", "clickos-guest"];
    build(
        name,
        &[&all[..], &["--bin", name, "--test", "memory"]].concat(),
    )
}

/// A library of another package of the switch.
pub fn library(name: &str) -> PathBuf {
    build(name, &["--package", name])
}

fn build(name: &str, what: &[&str]) -> PathBuf {
    let daemon = Path::new(env!("CARGO_BIN_EXE_valed"));
    let profile = daemon.parent().unwrap();
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--target-dir"])
        .arg(profile.parent().unwrap())
        .args(what);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().unwrap().success(), "cannot build {name}");
    profile.join(name)
}

/// A network namespace, removed when dropped.
pub struct Namespace(pub String);

impl Namespace {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "vt{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        ok("ip", &["netns", "add", &name]);
        ok("ip", &["-n", &name, "link", "set", "lo", "up"]);
        Self(name)
    }

    pub fn ip(&self, arguments: &str) {
        let all: Vec<_> = ["-n", &self.0]
            .into_iter()
            .chain(arguments.split(' '))
            .collect();
        ok("ip", &all);
    }

    pub fn exec(&self, command: &str) -> Output {
        let all: Vec<_> = ["netns", "exec", &self.0]
            .into_iter()
            .chain(command.split(' '))
            .collect();
        run("ip", &all)
    }

    /// Runs `work` on a thread in this namespace.
    pub fn thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let namespace = File::open(Path::new("/run/netns").join(&self.0)).unwrap();
        std::thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Sends `count` echo requests and expects an answer to each, however late.
    pub fn assert_answers(&self, address: &str, count: u32) {
        let lost = self.ping_loss(address, count, PATIENCE);
        assert_eq!(lost, 0, "{address}: of {count} requests");
    }

    /// Sends `count` echo requests and expects no answer within 3 s.
    pub fn assert_silence(&self, address: &str, count: u32) {
        let lost = self.ping_loss(address, count, Duration::from_secs(3));
        assert_eq!(lost, count, "{address}: of {count} requests");
    }

    /// How many of the first `count` echo requests have no answer. Continues until it has `count`
    /// answers: without a deadline ping takes a last answer for lost that is late by two round trips.
    fn ping_loss(&self, address: &str, count: u32, patience: Duration) -> u32 {
        let deadline_s = patience.as_secs();
        let output = self.exec(&format!(
            "ping -n -c {count} -i 0.02 -w {deadline_s} {address}"
        ));
        lost(&output, count)
    }
}

/// How many of the first `count` echo requests have no answer in what `ping` printed.
pub fn lost(output: &Output, count: u32) -> u32 {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains(" received"),
        "ping: {text}{:?}",
        output.stderr
    );
    let answered = text.lines().filter_map(|line| {
        let (_, after) = line.split_once(" icmp_seq=")?;
        after.contains(" time=").then(|| after.split(' ').next())?
    });
    let numbers = answered.filter_map(|n| n.parse().ok());
    let within: HashSet<u32> = numbers.filter(|n| *n <= count).collect();
    count - u32::try_from(within.len()).unwrap()
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &["netns", "del", &self.0]);
    }
}

/// A running valed; stopped when dropped.
pub struct Valed {
    pub dir: tempfile::TempDir,
    pub socket: PathBuf,
    pub namespace: Namespace,
    child: Child,
}

impl Valed {
    pub fn start() -> Self {
        Self::start_under(&[])
    }

    /// Starts valed under another program, such as strace.
    pub fn start_under(wrapper: &[&str]) -> Self {
        Self::start_with(workers(), wrapper)
    }

    /// Starts valed with a number of workers.
    pub fn start_with(workers: usize, wrapper: &[&str]) -> Self {
        assert_eq!(
            rustix::process::geteuid().as_raw(),
            0,
            "these tests need root for network namespaces"
        );
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(
            dir.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let (socket, config) = (dir.path().join("valed.sock"), dir.path().join("valed.toml"));
        let state = dir.path().join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(
            &config,
            format!(
                "socket = {socket:?}\nworkers = {}\ncapture_dir = {:?}\nstate_dir = {state:?}\nmetrics = \"127.0.0.1:9477\"\n[roles]\ntoolstack = [{TOOLSTACK}]\n",
                workers,
                dir.path()
            ),
        )
        .unwrap();
        let (namespace, log) = (
            Namespace::new(),
            File::create(dir.path().join("log")).unwrap(),
        );
        let child = spawn(&namespace, wrapper, &config, log);
        let valed = Self {
            dir,
            socket,
            namespace,
            child,
        };
        valed.await_socket();
        valed
    }

    fn await_socket(&self) {
        // A connection waits for a daemon that is not ready yet, an answer does not come from it.
        eventually("valed answers", || {
            ValeClient::connect(&self.socket).is_ok_and(|mut client| client.port_list(None).is_ok())
        });
    }

    /// Kills valed in mid-work and starts another in its place.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills valed in mid-work.
    pub fn kill(&mut self) {
        ok("kill", &["-KILL", &self.pid().to_string()]);
        self.child.wait().unwrap();
    }

    /// Starts another valed instead of a killed one.
    pub fn restart(&mut self) {
        let log = File::options()
            .append(true)
            .open(self.dir.path().join("log"));
        let config = self.dir.path().join("valed.toml");
        self.child = spawn(&self.namespace, &[], &config, log.unwrap());
        self.await_socket();
    }

    pub fn client(&self) -> ValeClient {
        ValeClient::connect(&self.socket).unwrap()
    }

    pub fn counters(&self, port: &str) -> Counters {
        self.info(port).counters
    }

    pub fn info(&self, port: &str) -> PortInfo {
        let ports = self.client().port_list(None).unwrap();
        ports
            .into_iter()
            .find(|p| p.port.as_str() == port)
            .unwrap_or_else(|| panic!("no port {port}"))
    }

    /// Adds a port. One with rings is there as long as what it returns.
    pub fn add(&self, port: &str, extra: Value) -> Option<RingFds> {
        self.client().port_add(&port_add(port, extra)).unwrap()
    }

    /// The process itself, below a wrapper too.
    pub fn pid(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        children
            .split_whitespace()
            .next()
            .map_or(self.child.id(), |pid| pid.parse().unwrap())
    }

    /// How often threads of valed wake up in the quietest of five half seconds. All sleep at both
    /// ends of each, however busy the machine is. Some poll now and then.
    pub fn wakeups_per_half_second(&self) -> f64 {
        let end = Instant::now() + PATIENCE;
        let mut quiet = Vec::new();
        while quiet.len() < 5 && !quiet.contains(&0) && Instant::now() < end {
            let before = self.sleeps();
            std::thread::sleep(Duration::from_millis(500));
            quiet.extend(
                before
                    .zip(self.sleeps())
                    .map(|(before, after)| after - before),
            );
        }
        quiet.iter().min().map_or(f64::INFINITY, |n| *n as f64)
    }

    /// If all threads sleep, how often one was put to sleep or to wait for a processor so far.
    fn sleeps(&self) -> Option<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let counts = tasks.map(|task| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).ok()?;
            let lines = status.lines().filter(|l| l.contains("ctxt_switches"));
            let count = |line: &str| line.split_whitespace().next_back()?.parse::<u64>().ok();
            status
                .contains("\nState:\tS")
                .then(|| lines.filter_map(count).sum::<u64>())
        });
        counts.sum()
    }

    /// Ends it as an administrator does; the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        ok("kill", &["-TERM", &self.pid().to_string()]);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("valed does not end");
    }

    /// A namespace attached through a veth pair: `eth0` in it, the other end a port.
    pub fn attach(
        &self,
        port: &str,
        last: u8,
        segment: u32,
        addresses: &[&str],
        extra: Value,
    ) -> Namespace {
        let namespace = Namespace::new();
        let mac = format!("02:00:00:00:00:{last:02x}");
        let pair = format!(
            "link add name {port} type veth peer name eth0 address {mac} netns {}",
            namespace.0
        );
        self.namespace.ip(&pair);
        self.namespace.ip(&format!("link set dev {port} up"));
        for address in addresses {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            namespace.ip(&format!("addr add {address} dev eth0{nodad}"));
        }
        namespace.ip("link set eth0 up");
        let allowed: Vec<_> = addresses
            .iter()
            .map(|a| json!({"ip": host_of(a)}))
            .collect();
        let mut args = json!({"kind": "veth", "ifname": port, "mac": mac, "segment": segment, "allowed": allowed});
        merge(&mut args, extra);
        self.add(port, args);
        namespace
    }
}

/// The number of valed's workers in all tests; `VALE_WORKERS` gives another one.
fn workers() -> usize {
    let set = std::env::var("VALE_WORKERS");
    set.map_or(2, |count| count.parse().unwrap())
}

fn spawn(namespace: &Namespace, wrapper: &[&str], config: &Path, log: File) -> Child {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", &namespace.0])
        .args(wrapper)
        .arg(env!("CARGO_BIN_EXE_valed"));
    command.arg("--config").arg(config);
    command.stderr(log).stdin(Stdio::null()).spawn().unwrap()
}

impl Drop for Valed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "{}",
                std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
            );
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            run("kill", &["-KILL", &self.pid().to_string()]);
            let _ = (self.child.kill(), self.child.wait());
        }
    }
}

/// `10.0.0.1/24` as `10.0.0.1/32`.
fn host_of(address: &str) -> String {
    let ip: IpAddr = address.split('/').next().unwrap().parse().unwrap();
    format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 })
}

fn merge(args: &mut Value, extra: Value) {
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
}

pub fn port_add(port: &str, extra: Value) -> PortAdd {
    let mut args = json!({"switch": "vale0", "port": port, "kind": "process", "segment": 1, "port_security": true});
    merge(&mut args, extra);
    serde_json::from_value(args).unwrap()
}

/// A guest's port in this process.
pub struct Guest {
    pub ring: GuestPort,
    pub memfd: OwnedFd,
    pub kick: OwnedFd,
    pub wake: OwnedFd,
}

impl Guest {
    pub fn new(valed: &Valed, port: &str, extra: Value) -> Self {
        let fds = valed.add(port, extra).unwrap();
        Self {
            ring: GuestPort::map(&fds.memfd).unwrap(),
            memfd: fds.memfd,
            kick: fds.kick,
            wake: fds.wake,
        }
    }

    /// Its descriptors, for the next valed.
    pub fn fds(&self) -> RingFds {
        RingFds {
            memfd: self.memfd.try_clone().unwrap(),
            kick: self.kick.try_clone().unwrap(),
            wake: self.wake.try_clone().unwrap(),
        }
    }

    pub fn publish(&mut self) {
        if self.ring.publish() {
            rustix::io::write(&self.kick, &1u64.to_ne_bytes()).unwrap();
        }
    }

    pub fn send(&mut self, frame: &[u8]) {
        self.ring.push(frame).unwrap();
        self.publish();
    }

    /// Sleeps at most 20 ms.
    pub fn sleep(ports: &mut [Self]) {
        let mut busy = false;
        for port in &mut *ports {
            busy |= port.ring.sleep_prepare();
        }
        if !busy {
            let mut fds: Vec<_> = ports
                .iter()
                .map(|p| PollFd::new(&p.wake, PollFlags::IN))
                .collect();
            let _ = poll(
                &mut fds,
                Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: 20_000_000,
                }),
            );
        }
        for port in ports {
            let _ = rustix::io::read(&port.wake, &mut [0; 64]);
            port.ring.wake_done();
        }
    }

    /// The next frame; `None` after [`PATIENCE`].
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; ring::LONGEST];
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(len) = self.ring.pop(&mut buffer) {
                self.publish();
                return Some(buffer[..len].to_vec());
            }
            Self::sleep(std::slice::from_mut(self));
        }
        None
    }
}

/// A guest with two ports that passes every frame from one to the other.
pub struct Wire {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    pub fn new(mut ports: [Guest; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                let [a, b] = &mut ports;
                if !(pass(a, b) | pass(b, a)) {
                    Guest::sleep(&mut ports);
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Moves a burst, as much as there is room for; true if it was not empty.
fn pass(from: &mut Guest, to: &mut Guest) -> bool {
    let mut buffer = [0; BUFFER_SIZE];
    let mut moved = false;
    for _ in 0..to.ring.space().min(64) {
        let Some(len) = from.ring.pop(&mut buffer) else {
            break;
        };
        to.ring.push(&buffer[..len]).unwrap();
        moved = true;
    }
    from.publish();
    to.publish();
    moved
}

/// Sends `bytes` by TCP from one namespace to the other and back, checks every byte, and returns
/// the seconds it took.
pub fn tcp_echo(client: &Namespace, server: &Namespace, address: &str, bytes: usize) -> f64 {
    let address: IpAddr = address.parse().unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let serving = server.thread(move || {
        let listener = TcpListener::bind((address, 5001)).unwrap();
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut back = stream.try_clone().unwrap();
        std::io::copy(&mut stream, &mut back).unwrap();
        back.shutdown(std::net::Shutdown::Write).unwrap();
    });
    is_ready.recv().unwrap();
    let begin = Instant::now();
    let calling = client.thread(move || {
        let stream = TcpStream::connect_timeout(&(address, 5001).into(), PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut sending = stream.try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            let data: Vec<u8> = pattern(bytes).collect();
            std::io::Write::write_all(&mut sending, &data).unwrap();
            sending.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut echoed = Vec::new();
        std::io::Read::read_to_end(&mut &stream, &mut echoed).unwrap();
        sender.join().unwrap();
        assert!(
            echoed.iter().copied().eq(pattern(bytes)),
            "the bytes that came back are others"
        );
    });
    calling.join().unwrap();
    serving.join().unwrap();
    begin.elapsed().as_secs_f64()
}

fn pattern(bytes: usize) -> impl Iterator<Item = u8> {
    (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
}
