// SPDX-License-Identifier: Apache-2.0
//! Elements on real interfaces: a wire of the program `click` between two hosts, and interfaces
//! that it makes. Each has a network namespace of its own. Needs root, and fails without it.
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn ok(program: &str, arguments: &[&str]) {
    let output = run(program, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
}

/// The longest wait for anything, on a machine that does other things too.
const PATIENCE_S: &str = "50";

/// A network namespace, removed with its interfaces when dropped.
struct Namespace(String);

impl Namespace {
    fn new(role: &str) -> Self {
        let name = format!("click{}-{role}", std::process::id());
        ok("ip", &["netns", "add", &name]);
        Self(name)
    }

    fn ip(&self, arguments: &str) {
        let words = ["-n", &self.0].into_iter().chain(arguments.split(' '));
        ok("ip", &words.collect::<Vec<_>>());
    }

    fn exec(&self, command: &[&str]) -> Output {
        run("ip", &[&["netns", "exec", &self.0], command].concat())
    }

    /// A host with one address, on a link to interface `far` of `to`.
    fn host(role: &str, address: &str, to: &Self, far: &str) -> Self {
        let host = Self::new(role);
        let pair = format!("link add eth0 type veth peer name {far} netns {}", to.0);
        host.ip(&pair);
        host.ip(&format!("addr add {address}/24 dev eth0"));
        host.ip("link set dev eth0 up");
        to.ip(&format!("link set dev {far} up"));
        host
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &["netns", "del", &self.0]);
    }
}

/// A running `click`, killed when dropped.
struct Click(Child);

impl Click {
    /// Starts it; it runs once it has printed `ready`.
    fn start(namespace: &Namespace, config: &str) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace.0]);
        command.args([env!("CARGO_BIN_EXE_click"), "-e", config]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Click {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many of the first 50 echo requests have an answer in what ping printed.
fn answered(report: &str) -> usize {
    let reply = |number: &u32| report.contains(&format!(" icmp_seq={number} ttl="));
    (1..=50).filter(reply).count()
}

const WIRE: &str = "
FromDevice(one, PROMISC true, SNAPLEN 2000) -> there :: Counter -> Queue -> ToDevice(two);
FromDevice(two, PROMISC true, METHOD PCAP, OUTBOUND false) -> back :: Counter -> ToDevice(one);
Script(print 'ready')
";

/// Hosts on both sides of a wire.
fn world() -> [Namespace; 3] {
    let middle = Namespace::new("mid");
    let left = Namespace::host("left", "192.0.2.1", &middle, "one");
    let right = Namespace::host("right", "192.0.2.2", &middle, "two");
    [left, middle, right]
}

#[test]
fn a_wire_between_two_interfaces_carries_every_ping() {
    let [left, middle, _right] = world();
    let ping = |count: &str, seconds: &str| {
        let command = ["ping", "-n", "-i", "0.01", "-s", "1400", "192.0.2.2"];
        let limits = ["-c", count, "-w", seconds];
        let output = left.exec(&[&command[..], &limits].concat());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let click = Click::start(&middle, WIRE);
    let report = ping("50", PATIENCE_S);
    assert_eq!(answered(&report), 50, "{report}");
    drop(click);
    let report = ping("1", "2");
    assert!(report.contains(" 0 received"), "{report}");
}

#[test]
fn an_interface_that_is_missing_is_an_error() {
    let namespace = Namespace::new("none");
    let config = "FromDevice(nowhere) -> Discard;";
    let output = namespace.exec(&[env!("CARGO_BIN_EXE_click"), "-e", config]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(errors.contains("nowhere: No such device"), "{errors}");
}

/// Sends pings from where `click` with this configuration has made an interface.
fn ping_through(role: &str, config: &str, to: &str) -> String {
    let namespace = Namespace::new(role);
    let _click = Click::start(&namespace, config);
    let command = [
        "ping", "-n", "-i", "0.01", "-s", "1400", "-w", PATIENCE_S, "-c", "50", to,
    ];
    let output = namespace.exec(&command);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_machine_pings_through_a_tunnel_interface() {
    let config = "
        t :: KernelTun(10.9.0.1/24, 10.9.0.3, DEVNAME click0) -> ICMPPingResponder -> t;
        Script(print 'ready')";
    let near = ping_through("tun", config, "10.9.0.2");
    assert_eq!(answered(&near), 50, "{near}");
    // by the default route
    let far = ping_through("tun", config, "192.0.2.7");
    assert_eq!(answered(&far), 50, "{far}");
}

#[test]
fn the_machine_pings_through_an_ethernet_interface() {
    let config = "
        t :: KernelTap(10.9.0.1/24, BURST 8) -> c :: Classifier(12/0806, 12/0800);
        c[0] -> ARPResponder(10.9.0.2 02:00:00:00:00:02) -> out :: Queue -> t;
        c[1] -> CheckIPHeader(14) -> ICMPPingResponder -> EtherMirror -> out;
        Script(print 'ready')";
    let report = ping_through("tap", config, "10.9.0.2");
    assert_eq!(answered(&report), 50, "{report}");
}

#[test]
fn the_machine_pings_through_a_from_host_and_a_to_host() {
    let config = "
        FromHost(fake0, 10.9.0.1/24, ETHER 02:00:00:00:00:01) -> c :: Classifier(12/0806, 12/0800);
        c[0] -> ARPResponder(0.0.0.0/0 02:00:00:00:00:02) -> out :: ToHost(fake0);
        c[1] -> CheckIPHeader(14) -> ICMPPingResponder -> EtherMirror -> out;
        Script(print 'ready')";
    let report = ping_through("fake", config, "10.9.0.2");
    assert_eq!(answered(&report), 50, "{report}");
}

#[test]
fn names_of_interfaces_stand_for_their_addresses() {
    let middle = Namespace::new("names");
    let host = Namespace::host("named", "192.0.2.1", &middle, "one");
    host.ip("link set dev eth0 address 02:00:00:00:00:07");
    host.ip("route add default via 192.0.2.9 dev eth0");
    let config = "InfiniteSource(abcd, LIMIT 1, STOP true) -> IPEncap(99, eth0, eth0:gw) -> IPPrint(p, TIMESTAMP false)
        -> EtherEncap(0x0800, eth0:eth, eth0) -> Print(f, 14) -> Discard";
    let output = host.exec(&[env!("CARGO_BIN_EXE_click"), "-e", config]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("p: 192.0.2.1 > 192.0.2.9: ip-proto-99"),
        "{printed}"
    );
    let ethernet = "02000000 00070200 00000007 0800";
    assert!(printed.contains(ethernet), "{printed}");
}

/// A folder with a program `iptables` that writes down its arguments.
fn scribe() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("click-scribe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("iptables");
    let text = "#!/bin/sh\necho \"$@\" >> \"${0%/*}/asked\"\n";
    // A process of its own writes it: a child that another test forks would
    // keep our descriptor open, and the program's text busy.
    let status = Command::new("sh")
        .args([
            "-c",
            r#"printf %s "$1" >"$2" && chmod 755 "$2""#,
            "sh",
            text,
        ])
        .arg(&program)
        .status();
    assert!(status.unwrap().success());
    folder
}

#[test]
fn the_machine_is_kept_from_what_a_router_takes_alone() {
    let namespace = Namespace::new("alone");
    namespace.ip("link add one type veth peer name other");
    let folder = scribe();
    let config =
        "FromDevice(one, SNIFFER false) -> Discard; FromDevice(one) -> Discard; Script(stop)";
    let click = env!("CARGO_BIN_EXE_click");
    let path = format!("PATH={}:/usr/bin:/bin", folder.display());
    let done = namespace.exec(&["env", &path, click, "-e", config]);
    let asked = std::fs::read_to_string(folder.join("asked")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(
        asked,
        "-w -A INPUT -i one -j DROP\n-w -D INPUT -i one -j DROP\n"
    );
    let refused = namespace.exec(&["env", "PATH=/nowhere", click, "-e", config]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && errors.contains("iptables: No such file"),
        "{errors}"
    );
}
