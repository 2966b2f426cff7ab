// SPDX-License-Identifier: Apache-2.0
//! A clickos-process with its switch ports, played by the test.
use super::{Host, PATIENCE, eventually};
use clickos_protocol::{Answer, Command as Handler, Joined, Joiner, TOOLSTACK_PIECE};
use clickos_protocol::{config_pieces, split};
use command_fds::{CommandFdExt, FdMapping};
use ring::{Regions, Slot, SwitchPort};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs::File;
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xenstore::{Access, Perm, Tx};

/// The first user number of guests in these tests.
pub const FIRST_UID: u32 = 300_000;

/// The switch's side of a vif.
pub struct Port {
    pub switch: SwitchPort,
    pub memfd: OwnedFd,
    kick: OwnedFd,
    /// The guest's end of the pipe and the switch's.
    wake: (OwnedFd, OwnedFd),
}

impl Port {
    pub fn new() -> Self {
        Self::of(SwitchPort::create(256).unwrap())
    }

    /// A port of version 2, whose guest has other regions.
    pub fn in_place(regions: &Arc<Regions>) -> Self {
        Self::of(SwitchPort::create_in(regions, 256).unwrap())
    }

    fn of((switch, memfd): (SwitchPort, OwnedFd)) -> Self {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let pipe_flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        Self {
            switch,
            memfd,
            kick: eventfd(0, flags).unwrap(),
            wake: pipe_with(pipe_flags).unwrap(),
        }
    }

    /// Puts a frame into the guest's rx ring.
    pub fn send(&mut self, frame: &[u8]) {
        // a guest gives slots back at the end of a step
        eventually("the ring has room", || self.switch.push(frame).is_ok());
        if self.switch.publish() {
            self.wake();
        }
    }

    /// The descriptors for a guest: rings, kick, both ends of the wake pipe.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        let (reader, writer) = &self.wake;
        [&self.memfd, &self.kick, reader, writer].map(AsFd::as_fd)
    }

    pub fn wake(&self) {
        rustix::io::write(&self.wake.1, &1_u64.to_ne_bytes()).unwrap();
    }

    /// Takes the next frame of the guest; `None` after [`PATIENCE`].
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.receive_within(PATIENCE)
    }

    /// Takes the next frame of the guest if it is there.
    pub fn received(&mut self) -> Option<Vec<u8>> {
        self.receive_within(Duration::ZERO)
    }

    fn receive_within(&mut self, patience: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + patience;
        let mut buffer = [0; ring::BUFFER_SIZE];
        loop {
            let mut slot = [Slot::EMPTY];
            if self.switch.fetch(&mut slot) > 0 {
                let len = slot[0].len();
                self.switch.read(slot[0], &mut buffer);
                if self.switch.publish() {
                    self.wake();
                }
                return Some(buffer[..len].to_vec());
            }
            let left = end.checked_duration_since(Instant::now())?;
            if !self.switch.sleep_prepare() {
                let timeout = Timespec::try_from(left).unwrap();
                poll(
                    &mut [PollFd::new(&self.kick, PollFlags::IN)],
                    Some(&timeout),
                )
                .unwrap();
                let _ = rustix::io::read(&self.kick, &mut [0; 8]);
                self.switch.wake_done();
            }
        }
    }
}

/// A guest and the toolstack's ends of its resources.
pub struct Guest {
    pub domid: u16,
    pub child: Child,
    pub ports: Vec<Port>,
    /// The toolstack's end of the socket for vifs.
    plug: OwnedFd,
    generation: u64,
    seq: u32,
}

impl Guest {
    /// Makes a domain and starts a guest with this many vifs in it.
    pub fn start(host: &mut Host, domid: u16, vifs: usize) -> Self {
        let regions = Arc::new(Regions::default());
        let ports = (0..vifs).map(|_| Port::in_place(&regions)).collect();
        Self::start_with(host, domid, ports)
    }

    /// As [`Self::start`], with these ports.
    pub fn start_with(host: &mut Host, domid: u16, ports: Vec<Port>) -> Self {
        Self::start_as(host, domid, ports, |_| {})
    }

    /// As [`Self::start`], with some vifs, and 8 MiB for each VCPU.
    pub fn start_on(host: &mut Host, domid: u16, vifs: usize, vcpus: u8) -> Self {
        let regions = Arc::new(Regions::default());
        let ports = (0..vifs).map(|_| Port::in_place(&regions)).collect();
        Self::start_as(host, domid, ports, |line| {
            line["vcpus"] = vcpus.into();
            line["memory_mib"] = (8 * u64::from(vcpus)).into();
        })
    }

    /// As [`Self::start_with`], with a changed argument line.
    pub fn start_as(
        host: &mut Host,
        domid: u16,
        ports: Vec<Port>,
        change: impl Fn(&mut serde_json::Value),
    ) -> Self {
        host.make_domain(domid);
        let (mut child, mut argument, line) = Self::spawn(host, domid, &ports, change);
        let plug = toolstack_end(&child);
        argument.write_all(format!("{line}\n").as_bytes()).unwrap();
        drop(argument);
        assert!(child.try_wait().unwrap().is_none());
        let guest = Self {
            domid,
            child,
            ports,
            plug,
            generation: 0,
            seq: 0,
        };
        let version = guest.node("version");
        host.wait("version", |client| {
            client.read_opt(Tx::NONE, &version).unwrap()
        });
        guest
    }

    /// Starts the process, which waits for its line on the pipe that is returned.
    pub fn spawn(
        host: &Host,
        domid: u16,
        ports: &[Port],
        change: impl Fn(&mut serde_json::Value),
    ) -> (Child, File, serde_json::Value) {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let root = host.path("empty");
        std::fs::create_dir_all(&root).unwrap();
        let mut fds: Vec<OwnedFd> = vec![reader];
        fds.extend(host.link(domid).map(OwnedFd::from));
        fds.push(File::open(&root).unwrap().into());
        let (guest, toolstack) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        fds.extend([guest, toolstack]);
        let mut vifs = Vec::new();
        for (devid, port) in ports.iter().enumerate() {
            let at = 3 + fds.len();
            vifs.push(serde_json::json!({
                "devid": devid, "mac": format!("02:00:00:00:00:{devid:02x}"), "mtu": 1500,
                "memfd": at, "kick": at + 1, "wake": at + 2,
            }));
            fds.extend([&port.memfd, &port.kick, &port.wake.0].map(|fd| fd.try_clone().unwrap()));
        }
        let mut line = serde_json::json!({
            "domid": domid, "uid": FIRST_UID + u32::from(domid), "memory_mib": 8,
            "seed": "5a".repeat(32), "store": {"ring": 4, "to_store": 5, "from_store": 6},
            "vifs": vifs, "root": 7, "plug": {"guest": 8, "toolstack": 9},
        });
        change(&mut line);
        (Self::run(host, domid, fds), writer.into(), line)
    }

    fn run(host: &Host, domid: u16, fds: Vec<OwnedFd>) -> Child {
        let log = File::options()
            .append(true)
            .create(true)
            .open(host.path(&format!("console{domid}")))
            .unwrap();
        let mappings = (3..).zip(fds).map(|(child_fd, parent_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_clickos-process"));
        command.env_clear().stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.fd_mappings(mappings.collect()).unwrap();
        command.spawn().unwrap()
    }

    /// Gives the guest a link to a store that lost it, and waits until it has announced itself.
    pub fn relink(&self, host: &mut Host) {
        let link = host.relink(self.domid);
        self.send(r#"{"store":{}}"#, &link.each_ref().map(AsFd::as_fd));
        let version = self.node("version");
        host.wait("version", |client| {
            client.read_opt(Tx::NONE, &version).unwrap()
        });
    }

    /// Sends a message about vifs; gives the guest's answer.
    pub fn plug(&self, message: &str, fds: &[BorrowedFd<'_>]) -> serde_json::Value {
        self.send(message, fds);
        let timeout = Timespec::try_from(PATIENCE).unwrap();
        let mut ready = [PollFd::new(&self.plug, PollFlags::IN)];
        assert_eq!(poll(&mut ready, Some(&timeout)), Ok(1), "no answer");
        let mut answer = [0; 1024];
        let len = rustix::io::read(&self.plug, &mut answer).unwrap();
        serde_json::from_slice(&answer[..len]).unwrap()
    }

    pub fn send(&self, message: &str, fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let parts = [IoSlice::new(message.as_bytes())];
        sendmsg(&self.plug, &parts, &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// The address space that the guest uses or reserves.
    pub fn mapped_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmSize:"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    pub fn console(&self, host: &Host) -> String {
        console(host, self.domid)
    }

    /// A path below the guest's root.
    pub fn node(&self, what: &str) -> String {
        format!("/local/domain/{}/data/clickos/{what}", self.domid)
    }

    fn wish_perms(&self) -> [Perm; 2] {
        [
            Perm::new(Access::None, 0),
            Perm::new(Access::Read, self.domid),
        ]
    }

    /// Installs a configuration; gives the guest's answer: the state's word and the error.
    pub fn install(&mut self, host: &mut Host, rid: u8, config: &str) -> (String, String) {
        self.request_router(host, rid, config, "Running")
    }

    pub fn request_router(
        &mut self,
        host: &mut Host,
        rid: u8,
        config: &str,
        status: &str,
    ) -> (String, String) {
        self.generation += 1;
        let perms = self.wish_perms();
        let root = self.node(&rid.to_string());
        let mut nodes: Vec<(String, Vec<u8>)> = vec![(format!("{root}/config"), Vec::new())];
        let pieces = config_pieces(config.as_bytes()).enumerate();
        nodes.extend(pieces.map(|(n, piece)| (format!("{root}/config/{n}"), piece.to_vec())));
        nodes.push((format!("{root}/config_name"), b"test.click".to_vec()));
        nodes.push((format!("{root}/status"), status.into()));
        nodes.push((
            format!("{root}/generation"),
            self.generation.to_string().into(),
        ));
        let written = host.client.transaction(|tx| {
            tx.rm(&format!("{root}/config"))?;
            nodes.iter().try_for_each(|(path, value)| {
                tx.write(path, value)?;
                tx.set_perms(path, &perms)
            })
        });
        written.unwrap();
        self.answer(host, rid)
    }

    fn answer(&mut self, host: &mut Host, rid: u8) -> (String, String) {
        let (state, error) = (
            self.node(&format!("{rid}/state")),
            self.node(&format!("{rid}/error")),
        );
        let wanted = format!(" {}", self.generation);
        let word = host.wait("state", |client| {
            let state = client.read_opt(Tx::NONE, &state).unwrap()?;
            String::from_utf8(state)
                .unwrap()
                .strip_suffix(&wanted)
                .map(String::from)
        });
        host.client
            .rm(Tx::NONE, &self.node(&format!("{rid}/config")))
            .unwrap();
        (word, host.text(&error).unwrap_or_default())
    }

    /// Sends a handler request; gives code and data of the answer.
    pub fn request(&mut self, host: &mut Host, rid: u8, request: &[u8]) -> (u16, Vec<u8>) {
        let (request_root, response_root) = self.ask(host, rid, request);
        let answer = host.wait("response", |client| whole(client, &response_root));
        host.client.rm(Tx::NONE, &response_root).unwrap();
        host.client.rm(Tx::NONE, &request_root).unwrap();
        let answer = Answer::parse(&answer).unwrap();
        (answer.code, answer.data)
    }

    /// Sends a handler request; gives its node, and that of its answer.
    pub fn ask(&mut self, host: &mut Host, rid: u8, request: &[u8]) -> (String, String) {
        self.seq += 1;
        let (request_root, response_root) = (
            self.node(&format!("{rid}/request/{}", self.seq)),
            self.node(&format!("{rid}/response/{}", self.seq)),
        );
        let perms = self.wish_perms();
        let written = host.client.transaction(|tx| {
            tx.write(&request_root, b"")?;
            tx.set_perms(&request_root, &perms)?;
            split(request, TOOLSTACK_PIECE)
                .iter()
                .enumerate()
                .try_for_each(|(n, piece)| {
                    tx.write(&format!("{request_root}/{n}"), piece)?;
                    tx.set_perms(&format!("{request_root}/{n}"), &perms)
                })
        });
        written.unwrap();
        (request_root, response_root)
    }

    /// Reads a handler that must be readable.
    pub fn read(&mut self, host: &mut Host, rid: u8, name: &str) -> String {
        let request = Handler::Read { name, param: "" }.encode();
        let (code, data) = self.request(host, rid, &request);
        let text = String::from_utf8(data).unwrap();
        assert_eq!(code, 200, "{name}: {text}");
        text
    }

    /// Writes handlers, all or none.
    pub fn write(&mut self, host: &mut Host, rid: u8, writes: &[(&str, &str)]) -> (u16, String) {
        let writes = writes
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        let (code, data) = self.request(host, rid, &Handler::Write(writes).encode());
        (code, String::from_utf8(data).unwrap())
    }

    /// Lines of /proc/<pid>/<name>.
    pub fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap()
    }

    /// How often the guest wakes up in the quietest of five seconds in which it sleeps at both ends,
    /// however busy the machine is.
    pub fn wakeups_per_second(&self) -> f64 {
        let end = Instant::now() + PATIENCE;
        let mut quiet = Vec::new();
        while quiet.len() < 5 && !quiet.contains(&0) && Instant::now() < end {
            let before = self.sleeps();
            std::thread::sleep(Duration::from_secs(1));
            quiet.extend(
                before
                    .zip(self.sleeps())
                    .map(|(before, after)| after - before),
            );
        }
        quiet.iter().min().map_or(f64::INFINITY, |n| *n as f64)
    }

    /// If the process sleeps, how often it was put to sleep or to wait for a processor so far.
    fn sleeps(&self) -> Option<u64> {
        let status = self.proc("status");
        let counts = status
            .lines()
            .filter(|line| line.contains("ctxt_switches"))
            .filter_map(|line| line.split_whitespace().next_back()?.parse::<u64>().ok());
        status.contains("\nState:\tS").then(|| counts.sum())
    }

    pub fn assert_alive(&mut self) {
        let status = self.child.try_wait().unwrap();
        assert!(status.is_none(), "the guest ended: {status:?}");
    }
}

/// Takes the toolstack's end of the socket for vifs out of a guest, as cosmosd does.
fn toolstack_end(child: &Child) -> OwnedFd {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    pidfd_getfd(&pidfd, 9, PidfdGetfdFlags::empty()).unwrap()
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whole(client: &mut xenstore::Client, root: &str) -> Option<Vec<u8>> {
    let mut joiner = Joiner::new(1 << 20);
    for piece in 0.. {
        let value = client
            .read_opt(Tx::NONE, &format!("{root}/{piece}"))
            .unwrap()?;
        match joiner.add(&value) {
            Joined::More => {}
            Joined::Whole => break,
            other => panic!("{root}/{piece}: {other:?}"),
        }
    }
    Some(joiner.data().to_vec())
}

pub fn console(host: &Host, domid: u16) -> String {
    std::fs::read_to_string(host.path(&format!("console{domid}"))).unwrap()
}

/// Waits for the end of a process, and kills it when it does not end.
pub fn end_of(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    panic!("the process did not end by itself: {:?}", child.wait());
}

/// Waits until a process reads its argument line: the dynamic linker has finished then.
pub fn wait_for_its_read(pid: u32) {
    let reads = |text: String| text.starts_with("0 0x3 "); // read(2), descriptor 3
    let call = || std::fs::read_to_string(format!("/proc/{pid}/syscall"));
    eventually("the guest reads its line", || call().is_ok_and(reads));
}

/// The signal that ended it, if one did.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Rounds after which the memory of a guest has to be steady.
const ROUNDS: usize = 30;
/// Growth of the heap in steps of the allocator, in KiB.
const STEP_KIB: u64 = 128;

/// Repeats rounds of up to three kinds, each of which returns the KiB that a guest has mapped after it, until each of the
/// last three has no more than the one of its kind before.
///
/// Packets need most where one thread makes them while the buffers of others lie in their lists, and keep that memory.
/// When that happens first is by chance, so no single round tells of a leak. What is left behind by each swap grows in all.
///
/// # Panics
/// The memory still grows.
pub fn until_memory_is_steady(mut round: impl FnMut(usize) -> u64) {
    let mut mapped: Vec<u64> = Vec::new();
    for n in 0..ROUNDS {
        mapped.push(round(n));
        let is_steady = |at: usize| mapped[at] <= mapped[at - 3] + STEP_KIB;
        if n >= 5 && (n - 2..=n).all(is_steady) {
            return;
        }
    }
    panic!("each round grows: {mapped:?} KiB");
}
