// SPDX-License-Identifier: Apache-2.0
//! The program while it runs: control sockets, hot swap, signals.
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for anything, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(50);

/// A running `click` with a control socket; ends with the test.
struct Click {
    child: Child,
    socket: PathBuf,
}

const CONFIG: &str = "f :: Idle -> c :: Counter -> Discard; s :: Script(TYPE PASSIVE, return $1);
    Idle -> sw :: Switch(0) -> Idle; sw [1] -> Idle";

impl Click {
    fn start(name: &str, args: &[&str]) -> Self {
        let own = format!("click-control-{}-{name}", std::process::id());
        let socket = std::env::temp_dir().join(own);
        let child = Command::new(env!("CARGO_BIN_EXE_click"))
            .args(["-e", CONFIG, "-u"])
            .arg(&socket)
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, socket }
    }

    /// Connects and reads the greeting.
    fn connect(&self) -> BufReader<UnixStream> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut peer = BufReader::new(stream);
                assert_eq!(line(&mut peer), "Click::ControlSocket/1.3");
                return peer;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no control socket");
    }
}

impl Drop for Click {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn line(peer: &mut BufReader<UnixStream>) -> String {
    let mut text = String::new();
    peer.read_line(&mut text).unwrap();
    text.trim_end().to_string()
}

/// Sends a command; returns the first line of its answer.
fn ask(peer: &mut BufReader<UnixStream>, command: &str) -> String {
    peer.get_mut().write_all(command.as_bytes()).unwrap();
    line(peer)
}

/// Reads the value behind an answer.
fn value(peer: &mut BufReader<UnixStream>) -> String {
    let header = line(peer);
    let size: usize = header.strip_prefix("DATA ").unwrap().parse().unwrap();
    let mut bytes = vec![0; size];
    peer.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn handlers_are_called_over_a_control_socket() {
    let click = Click::start("calls", &[]);
    let mut peer = click.connect();
    assert_eq!(
        ask(&mut peer, "READ c.count\r\n"),
        "200 Read handler 'c.count' OK"
    );
    assert_eq!(value(&mut peer), "0");
    assert_eq!(
        ask(&mut peer, "READDATA s.run 3\nx y"),
        "200 Read handler 's.run' OK"
    );
    assert_eq!(value(&mut peer), "x");
    assert_eq!(
        ask(&mut peer, "WRITE c.reset\n"),
        "200 Write handler 'c.reset' OK"
    );
    assert_eq!(
        ask(&mut peer, "WRITEDATA s.set 3\nv w"),
        "200 Write handler 's.set' OK"
    );
    assert_eq!(
        ask(&mut peer, "CHECKWRITE c.rate\n"),
        "511 Handler 'c.rate' not writable"
    );
    assert_eq!(ask(&mut peer, "read x.y\n"), "510 No element named 'x'");
    assert_eq!(
        ask(&mut peer, "read s.cat /etc/hostname\n"),
        "511 No handler named 's.cat'"
    );
    assert_eq!(
        ask(&mut peer, "write hotconfig Idle\n"),
        "511 No handler named 'hotconfig'"
    );
    assert!(ask(&mut peer, "NONSENSE\n").starts_with("501 "));
    assert!(ask(&mut peer, "WRITEDATA c.reset 99999999\n").starts_with("521 "));
    assert_eq!(line(&mut peer), "", "the connection is closed");
}

#[test]
fn endless_lines_and_many_peers_do_not_hurt() {
    let click = Click::start("hostile", &[]);
    let mut peer = click.connect();
    let _ = peer.get_mut().write_all(&[b'x'; 200_000]);
    assert!(line(&mut peer).starts_with("500 "));
    let crowd: Vec<_> = (0..64)
        .filter_map(|_| UnixStream::connect(&click.socket).ok())
        .collect();
    drop(crowd);
    let mut again = None;
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let mut peer = BufReader::new(UnixStream::connect(&click.socket).unwrap());
        if line(&mut peer).starts_with("Click::") {
            again = Some(peer);
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(ask(&mut again.unwrap(), "QUIT\n").starts_with("200 "));
}

#[test]
fn the_configuration_is_replaced_while_it_runs() {
    let click = Click::start("swap", &["-R"]);
    let mut peer = click.connect();
    assert!(ask(&mut peer, "READ handlers\n").starts_with("200"));
    assert!(value(&mut peer).ends_with("timewarp\trw\nhotconfig\tw\n"));
    assert_eq!(
        ask(&mut peer, "WRITE hotconfig Idle -> Nonsense\n"),
        "520-Write handler 'hotconfig' error:"
    );
    let wrong = "520 hotconfig:1:9: undeclared element or unknown class 'Nonsense'";
    assert_eq!(line(&mut peer), wrong);
    assert!(ask(&mut peer, "READ c.count\n").starts_with("200"));
    assert_eq!(value(&mut peer), "0");
    assert_eq!(
        ask(&mut peer, "WRITE hotconfig d :: Idle\n"),
        "200 Write handler 'hotconfig' OK"
    );
    assert_eq!(ask(&mut peer, "READ c.count\n"), "510 No element named 'c'");
    assert!(ask(&mut peer, "WRITE stop\n").starts_with("200"));
}

#[test]
fn a_signal_ends_the_run_and_handlers_are_printed() {
    for signal in ["INT", "TERM"] {
        let mut click = Click::start(signal, &["-h", "*.byte_count", "-j", "2"]);
        drop(click.connect());
        let pid = click.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let mut out = String::new();
        click
            .child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        assert_eq!(out, "c.byte_count:\n0\n\n");
        assert!(click.child.wait().unwrap().success());
        assert!(!click.socket.exists(), "the socket is removed");
    }
}

#[test]
fn the_rest_of_the_protocol() {
    let click = Click::start("rest", &[]);
    let mut peer = click.connect();
    assert!(ask(&mut peer, "WRITEUNTIL s.set END\nv one\ntwo\nEND\n").starts_with("200"));
    assert!(ask(&mut peer, "READUNTIL s.get\nv\n\n").starts_with("200"));
    assert_eq!(value(&mut peer), "one\ntwo");
    assert!(ask(&mut peer, "LLRPC sw#80044006 4\n\x01\0\0\0").starts_with("200 LLRPC"));
    assert_eq!(value(&mut peer), "");
    assert!(ask(&mut peer, "LLRPC sw#4004C005\n").starts_with("200 LLRPC"));
    assert_eq!(value(&mut peer).as_bytes(), 1i32.to_ne_bytes());
    assert!(ask(&mut peer, "READ 6.name\n").starts_with("200"));
    assert_eq!(value(&mut peer), "sw");
    assert_eq!(
        ask(&mut peer, "READ 99.name\n"),
        "510 No element named '99'"
    );
    assert!(ask(&mut peer, "LLRPC sw#zz\n").starts_with("500 "));
    assert!(ask(&mut peer, "LLRPC sw#1\n").starts_with("501 "));
    assert!(ask(&mut peer, "READ click_driver@@ControlSocket.filename\n").starts_with("200"));
    assert_eq!(value(&mut peer), click.socket.display().to_string());
}

#[test]
fn a_socket_the_program_was_started_with_is_answered_on() {
    let (own, given) = UnixStream::pair().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_click"))
        .args(["-e", CONFIG, "--socket", "0"])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(given)))
        .spawn()
        .unwrap();
    own.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut peer = BufReader::new(own);
    assert_eq!(line(&mut peer), "Click::ControlSocket/1.3");
    assert_eq!(
        ask(&mut peer, "WRITE c.reset\n"),
        "200 Write handler 'c.reset' OK"
    );
    assert_eq!(ask(&mut peer, "QUIT\n"), "200 Goodbye!");
    // it is closed although the program runs on
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_descriptor_that_is_no_connection_is_refused() {
    for number in ["2", "999"] {
        let output = Command::new(env!("CARGO_BIN_EXE_click"))
            .args(["-e", CONFIG, "--socket", number])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(
            errors.contains(&format!("descriptor {number}: ")),
            "{errors}"
        );
    }
}

/// Asks for a configuration that tells peers at `path` a line whenever `i.active` is written.
fn chatter_config(path: &std::path::Path, keywords: &str) -> String {
    let path = path.display();
    format!(
        "WRITE hotconfig ch :: ChatterSocket(UNIX, {path}{keywords}); \
         i :: InfiniteSource(LIMIT 1, ACTIVE false) -> Print(told, 0) -> Discard\n"
    )
}

#[test]
fn peers_of_a_chatter_socket_are_told_what_is_printed() {
    let click = Click::start("chatter", &["-R"]);
    let mut peer = click.connect();
    let path = click.socket.with_extension("told");
    assert!(ask(&mut peer, &chatter_config(&path, "")).starts_with("200"));
    let mut told = BufReader::new(UnixStream::connect(&path).unwrap());
    told.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(line(&mut told), "Click::ChatterSocket/1.0");
    told.get_mut().write_all(b"nobody listens\n").unwrap();
    assert!(ask(&mut peer, "WRITE i.active true\n").starts_with("200"));
    assert_eq!(line(&mut told), "told:   69");
    // the same socket continues after a hot swap
    assert!(ask(&mut peer, &chatter_config(&path, "")).starts_with("200"));
    assert!(ask(&mut peer, "WRITE i.active true\n").starts_with("200"));
    assert_eq!(line(&mut told), "told:   69");
    assert!(ask(&mut peer, "WRITE hotconfig Idle\n").starts_with("200"));
    assert_eq!(line(&mut told), "", "the connection is closed");
    assert!(!path.exists(), "the socket is removed");
}

#[test]
fn a_chatter_socket_of_another_channel_tells_nothing() {
    let click = Click::start("quiet", &["-R"]);
    let mut peer = click.connect();
    let path = click.socket.with_extension("told");
    let keywords = ", CHANNEL other, GREETING false";
    assert!(ask(&mut peer, &chatter_config(&path, keywords)).starts_with("200"));
    let mut told = BufReader::new(UnixStream::connect(&path).unwrap());
    assert!(ask(&mut peer, "WRITE i.active true\n").starts_with("200"));
    assert!(ask(&mut peer, "WRITE hotconfig Idle\n").starts_with("200"));
    assert_eq!(line(&mut told), "", "the end comes first");
}
