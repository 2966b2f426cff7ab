// SPDX-License-Identifier: Apache-2.0
//! What hostile lines make a daemon allocate at its peak, through a real socket. A program of
//! its own: its allocator counts what any test takes.
#![cfg(test)]
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bounds::memory::{Counting, peak_of};
use control_socket::{
    Access, ApiError, Limits, MAX_LINE, Peer, Roles, Server, Service, Size, Stopper, Typed, Verb,
};
use cosmos_proto::{ImageAdd, Install, MigrateFinish, NoArgs, Spec, Writes, verb};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The tests share one count of bytes.
static ONE_TEST: Mutex<()> = Mutex::new(());

/// The large verbs of cosmosd and two small ones, with its types and nothing behind them.
struct Sink;

impl Sink {
    fn take<A>(&self, _: &Peer, _: A) -> Result<Value, ApiError> {
        Ok(json!({}))
    }
}

impl Service for Sink {
    fn verbs() -> &'static [Verb<Self>] {
        const VERBS: &[Verb<Sink>] = &[
            Verb::of::<verb::List>(&Typed(Sink::take::<NoArgs>)),
            Verb::new(
                "migrate-finish",
                Access::Any,
                Size::Small,
                &Typed(Sink::take::<MigrateFinish>),
            ),
            Verb::of::<verb::Create>(&Typed(Sink::take::<Spec>)),
            Verb::of::<verb::InstallRouter>(&Typed(Sink::take::<Install>)),
            Verb::of::<verb::WriteHandlers>(&Typed(Sink::take::<Writes>)),
            Verb::of::<verb::AddImage>(&Typed(Sink::take::<ImageAdd>)),
        ];
        VERBS
    }
}

struct Running {
    path: PathBuf,
    stopper: Stopper,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn new(name: &str) -> Self {
        let name = format!("cosmos-proto-{name}-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let limits = Limits {
            line: Duration::from_secs(300),
            ..Limits::default()
        };
        let server = Server::bind(&path, Roles::default()).unwrap();
        let server = server.with_limits(limits);
        let stopper = server.stopper();
        let serve = move || server.serve(Arc::new(Sink)).unwrap();
        let thread = Some(std::thread::spawn(serve));
        Self {
            path,
            stopper,
            thread,
        }
    }

    /// The code of the answer to a line.
    fn code(&self, line: &[u8]) -> String {
        let mut socket = UnixStream::connect(&self.path).unwrap();
        let _ = socket.write_all(line);
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).unwrap();
        assert!(answer.len() < 2500, "{} bytes", answer.len());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["error"]["code"].as_str().unwrap_or("ok").to_owned()
    }

    /// Bytes allocated at the peak of `work`, beyond those of its begin.
    fn peak(&self, work: impl FnOnce()) -> usize {
        peak_of(work).0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A line of nearly [`MAX_LINE`] bytes with `piece` again and again at its `@`.
fn line(verb: &str, args: &str, piece: &str) -> Vec<u8> {
    let (head, tail) = args.split_once('@').unwrap();
    let head = format!("{{\"v\":1,\"id\":1,\"verb\":\"{verb}\",\"args\":{head}");
    let times = (MAX_LINE - head.len() - tail.len() - 3) / piece.len();
    let mut line = head.into_bytes();
    line.reserve_exact(MAX_LINE);
    line.extend_from_slice(piece.repeat(times).as_bytes());
    line.extend_from_slice(tail.as_bytes());
    line.extend(b"}\n");
    line
}

const UUID: &str = "\"uuid\":\"00000000-0000-4000-8000-000000000001\"";

#[test]
fn a_hostile_line_costs_little_more_than_its_bytes() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Running::new("line");
    let writes = format!("{{{UUID},\"rid\":0,\"timeout_ms\":1,\"writes\":[@[\"a\",\"\"]]}}");
    let vifs = "{\"vifs\":[@0]}";
    for (verb, args, piece, code) in [
        ("create", "{@\"a\":0}", "\"\":0,", "bad-request"),
        ("create", "{\"vifs\":@0}", "[", "bad-request"),
        (
            "create",
            "{\"vifs\":[{\"allowed\":[@0]}]}",
            "{\"ip\":\"10.0.0.1/32\"},",
            "bad-request",
        ),
        ("create", vifs, "{},", "bad-request"),
        ("create", vifs, "[[[[[[[[]]]]]]]],", "bad-request"),
        (
            "create",
            "{\"nics\":[@0]}",
            "{\"\":{\"\":0}},",
            "bad-request",
        ),
        ("create", "{\"writes\":[@0]}", "[\"\",\"\"],", "bad-request"),
        ("create", "{\"@\":0}", "k", "bad-request"),
        ("create", "{\"@\":0}", "\\u0001", "bad-request"),
        ("create", "{\"memory_mib\":@0}", "1", "bad-request"),
        ("create", "{\"memory_mib\":\"@\"}", "\u{7f}", "bad-request"),
        ("handler-write", &writes, "[\"a\",\"\"],", "bad-request"),
        (
            "router-install",
            "{\"rid\":\"@\"}",
            "\\u007f",
            "bad-request",
        ),
        ("image-add", "{\"data\":\"@\"}", "\\u0041", "bad-request"),
        ("migrate-finish", "{\"routers\":[@0]}", "0,", "too-long"),
        ("list", "{@\"a\":0}", "\"\":0,", "too-long"),
        ("@", "@0", "[", "bad-request"),
    ] {
        let line = line(verb, args, piece);
        let peak = server.peak(|| assert_eq!(server.code(&line), code, "{verb} {args} {piece}"));
        // A parser's error quotes a string with up to 6 bytes for each of its own.
        assert!(peak < 64 << 20, "{verb} {args} {piece}: {peak} bytes");
        if !piece.ends_with(['f', '\u{7f}']) {
            assert!(peak < 5 * MAX_LINE, "{verb} {args} {piece}: {peak} bytes");
        }
    }
}

#[test]
fn a_large_request_costs_less_than_three_times_its_bytes() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Running::new("request");
    let sum = "0".repeat(64);
    let args = format!("{{\"sha256\":\"{sum}\",\"size\":1,\"offset\":0,\"data\":\"@\"}}");
    let line = line("image-add", &args, "x");
    let peak = server.peak(|| assert_eq!(server.code(&line), "ok"));
    assert!(peak < 3 * MAX_LINE, "{peak} bytes");
}

#[test]
fn many_connections_share_one_budget() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Running::new("budget");
    let line = line("create", "{\"vifs\":[@0]}", "{},");
    // 16 of them with their arguments are longer in all than the budget of 96 MiB.
    let peak = server.peak(|| {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| server.code(&line)))
                .collect();
            for client in clients {
                assert_eq!(client.join().unwrap(), "bad-request");
            }
        });
    });
    assert!(peak < 96 << 20, "{peak} bytes");
}
