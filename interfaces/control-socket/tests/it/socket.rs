// SPDX-License-Identifier: Apache-2.0
//! A server and its clients over real sockets.
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control_socket::{
    Access, ApiError, Client, ClientError, EventHub, Limits, MAX_LINE, Peer, Roles, Server,
    Service, Size, Stopper, Subscribing, Typed, TypedWithFds, Verb,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest wait for anything, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(50);

#[derive(Default)]
struct Echo {
    hub: EventHub,
    closed: Mutex<Vec<u64>>,
    /// The other ends of the descriptors given away.
    ends: Mutex<Vec<UnixStream>>,
}

type Answer = Result<Value, ApiError>;

impl Echo {
    fn echo(&self, _: &Peer, args: Anything) -> Answer {
        Ok(args.0)
    }

    fn fds(
        &self,
        _: &Peer,
        _: Anything,
        _: Vec<OwnedFd>,
    ) -> Result<(Value, Vec<OwnedFd>), ApiError> {
        let (end, other) = UnixStream::pair().unwrap();
        self.ends.lock().unwrap().push(other);
        Ok((json!(1), vec![end.into()]))
    }

    fn fail(&self, _: &Peer, _: Anything) -> Answer {
        Err(ApiError::new("exists", "it exists"))
    }

    fn pid(&self, peer: &Peer, _: Anything) -> Answer {
        Ok(json!(peer.pid))
    }

    fn connection(&self, peer: &Peer, _: Anything) -> Answer {
        Ok(json!(peer.connection))
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Anything(Value);

impl Service for Echo {
    fn verbs() -> &'static [Verb<Self>] {
        const NOVA: Access = Access::Only(&["nova"]);
        const VERBS: &[Verb<Echo>] = &[
            Verb::new("echo", Access::Any, Size::Large, &Typed(Echo::echo)),
            Verb::new("fds", NOVA, Size::Small, &TypedWithFds(Echo::fds)),
            Verb::new(
                "events",
                Access::Any,
                Size::Small,
                &Subscribing(|echo: &Echo| echo.hub.subscribe()),
            ),
            Verb::new("fail", Access::Any, Size::Small, &Typed(Echo::fail)),
            Verb::new(
                "connection",
                Access::Any,
                Size::Small,
                &Typed(Echo::connection),
            ),
            Verb::new("pid", Access::Any, Size::Small, &Typed(Echo::pid)),
        ];
        VERBS
    }

    fn closed(&self, peer: &Peer) {
        self.closed.lock().unwrap().push(peer.connection);
    }
}

struct Running {
    path: PathBuf,
    echo: Arc<Echo>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Running {
    fn new(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // The peer with another uid has to reach the socket.
        std::fs::set_permissions(
            dir.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let path = dir.path().join("echo.sock");
        let server = Server::bind(&path, Roles::default())
            .unwrap()
            .with_limits(limits);
        let (stopper, echo) = (server.stopper(), Arc::new(Echo::default()));
        let service = echo.clone();
        let thread = Some(std::thread::spawn(move || server.serve(service).unwrap()));
        Self {
            path,
            echo,
            stopper,
            thread,
            _dir: dir,
        }
    }

    fn client(&self) -> Client {
        let mut client = Client::connect(&self.path).unwrap();
        client.set_timeout(PATIENCE);
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
        assert!(!self.path.exists(), "the socket file stays behind");
    }
}

fn raw_line(path: &Path, bytes: &[u8]) -> Value {
    let mut socket = UnixStream::connect(path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = socket.write_all(bytes);
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

#[test]
fn calls_errors_and_descriptors() {
    let server = Running::new(Limits::default());
    let mut client = server.client();
    assert_eq!(
        client.call("echo", json!({"a": 1})).unwrap(),
        json!({"a": 1})
    );
    assert_eq!(
        client.call("fail", json!({})).unwrap_err().code(),
        Some("exists")
    );
    assert_eq!(
        client.call("nothing", json!({})).unwrap_err().code(),
        Some("bad-request")
    );
    let (count, fds) = client.call_with_fds("fds", json!({}), &[]).unwrap();
    assert_eq!((count, fds.len()), (json!(1), 1));
    UnixStream::from(fds.into_iter().next().unwrap())
        .write_all(b"hi")
        .unwrap();
    let mut ours = server.echo.ends.lock().unwrap().pop().unwrap();
    let mut text = String::new();
    ours.read_to_string(&mut text).unwrap();
    assert_eq!(
        text, "hi",
        "the descriptor that came is the one sent, and no copy stays open"
    );
}

#[test]
fn descriptors_that_come_with_a_request_are_closed() {
    let server = Running::new(Limits::default());
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut client = server.client();
    client
        .call_with_fds("echo", json!({}), &[theirs.as_fd()])
        .unwrap();
    drop(theirs);
    assert_eq!(ours.read(&mut [0]).unwrap(), 0);
}

#[test]
fn events_reach_subscribers_and_slow_ones_are_cut_off() {
    // The queue of the slow one fills up before its line ends.
    let server = Running::new(Limits {
        line: PATIENCE,
        ..Limits::default()
    });
    let mut events = server.client().events().unwrap();
    let slow = server.client().events().unwrap();
    for n in 0..3000 {
        server
            .echo
            .hub
            .publish("tick", json!({"n": n, "pad": "x".repeat(1000)}));
        assert_eq!(events.next_event().unwrap().data["n"], n);
    }
    let mut slow = slow;
    let seen = std::iter::from_fn(|| slow.next_event().ok()).count();
    assert!(seen < 3000, "the slow reader got everything");
}

#[test]
fn bad_lines_are_answered() {
    let server = Running::new(Limits::default());
    for bad in [
        "\n",
        "{\n",
        "[1]\n",
        "{\"v\":9,\"id\":1,\"verb\":\"echo\"}\n",
        "\u{0}\n",
    ] {
        assert_eq!(
            raw_line(&server.path, bad.as_bytes())["error"]["code"],
            "bad-request",
            "{bad:?}"
        );
    }
    let nested = format!(
        "{{\"v\":1,\"id\":1,\"verb\":\"echo\",\"args\":{}\n",
        "[".repeat(100_000)
    );
    assert_eq!(
        raw_line(&server.path, nested.as_bytes())["error"]["code"],
        "bad-request"
    );
    // The line that ends too late never ends, so the limit may be short.
    let hasty = Running::new(Limits {
        line: Duration::from_millis(100),
        ..Limits::default()
    });
    assert_eq!(
        raw_line(&hasty.path, b"{\"v\":1")["error"]["code"],
        "timeout"
    );
    let long = vec![b' '; MAX_LINE + 100];
    assert_eq!(raw_line(&server.path, &long)["error"]["code"], "too-long");
    let mut largest = br#"{"v":1,"id":1,"verb":"echo"}"#.to_vec();
    largest.resize(MAX_LINE, b' ');
    largest.push(b'\n');
    assert_eq!(raw_line(&server.path, &largest)["id"], 1);
}

#[test]
fn connections_are_bounded() {
    let server = Running::new(Limits {
        connections: 2,
        ..Limits::default()
    });
    let mut held = [server.client(), server.client()];
    for client in &mut held {
        client.call("echo", json!({"n": 1})).unwrap();
    }
    assert_eq!(
        server
            .client()
            .call("echo", json!({"n": 1}))
            .unwrap_err()
            .code(),
        Some("too-many")
    );
    drop(held);
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = server.client().call("echo", json!({"n": 1})) {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_socket_in_use_is_not_taken_and_a_stale_one_is() {
    let server = Running::new(Limits::default());
    let taken = Server::bind(&server.path, Roles::default())
        .map(drop)
        .unwrap_err();
    assert!(taken.to_string().contains("another daemon"), "{taken}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(Server::bind(&path, Roles::default()).unwrap());
    std::fs::write(&path, "text").unwrap();
    assert!(Server::bind(&path, Roles::default()).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"text");
}

#[test]
fn a_predecessor_that_is_still_ending_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ending.sock");
    let old = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // It ends when it was found alive.
    let end = std::thread::spawn(move || drop(old.accept().unwrap()));
    drop(Server::bind(&path, Roles::default()).unwrap());
    end.join().unwrap();
}

#[test]
fn the_end_of_a_connection_is_told_with_its_number() {
    let running = Running::new(Limits::default());
    let [mut first, mut second, third] = [(); 3].map(|()| running.client());
    let number = |client: &mut Client| client.call("connection", json!({})).unwrap();
    let (one, two) = (number(&mut first), number(&mut second));
    assert_ne!(one, two);
    let events = third.events().unwrap();
    let closed = || running.echo.closed.lock().unwrap().clone();
    assert_eq!(closed(), Vec::<u64>::new());
    drop(first);
    let deadline = Instant::now() + PATIENCE;
    while closed().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(json!(closed()), json!([one]));
    // One that carries events ends, too.
    drop(events);
    while closed().len() < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(closed().len(), 2);
}

#[test]
fn subscriptions_that_ended_leave_nothing_while_no_event_occurs() {
    let running = Running::new(Limits::default());
    for round in 1..=3 {
        let subscribed: Vec<_> = (0..100)
            .map(|_| running.client().events().unwrap())
            .collect();
        assert!(running.echo.hub.subscribers() >= 100);
        drop(subscribed);
        let deadline = Instant::now() + PATIENCE;
        let ended = || running.echo.closed.lock().unwrap().len();
        while ended() < round * 100 || running.echo.hub.subscribers() > 0 {
            assert!(Instant::now() < deadline, "{} of {round}00", ended());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The kernel shows pid 0 for a peer whose pid the daemon's namespace cannot name. Needs root.
#[test]
fn a_peer_of_another_pid_namespace_is_served() {
    const SERVE_AT: &str = "CONTROL_SOCKET_TEST_SERVE_AT";
    if let Some(path) = std::env::var_os(SERVE_AT) {
        // The daemon, a process of the test's own making in a namespace below.
        let server = Server::bind(Path::new(&path), Roles::default()).unwrap();
        return server.serve(Arc::new(Echo::default())).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("below.sock");
    let mut daemon = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "socket::a_peer_of_another_pid_namespace_is_served",
        ])
        .env(SERVE_AT, &path)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut client = loop {
        match Client::connect(&path) {
            Ok(client) => break client,
            Err(e) => assert!(Instant::now() < deadline, "{e}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let pid = client.call("pid", json!({}));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(pid.unwrap(), 0);
}

#[test]
fn an_absent_daemon_is_named() {
    match Client::connect("/nonexistent/d.sock").map(drop) {
        Err(ClientError::Connection(text)) => {
            assert!(text.contains("/nonexistent/d.sock"), "{text}")
        }
        other => panic!("{other:?}"),
    }
}
