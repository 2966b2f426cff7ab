// SPDX-License-Identifier: Apache-2.0
//! The socket of the switch: a connection to the store for each of its own.
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::Builder;
use std::time::Instant;

use control_socket::EventLimit;
use log::Level;
use xenstore::{Client, Code, Header, Kind, PAYLOAD_MAX, Tx};

use crate::account::Account;
use crate::outbox::Outbox;
use crate::rules::{self, Verdict};

/// valed has one connection; another one may begin before its last one has ended.
const MAX: usize = 4;
const HEADER: usize = 16;
/// Log lines in a minute: the switch can ask and connect without end.
const LOG_LINES_PER_MINUTE: u32 = 60;
/// Writes a line about a client to the log.
fn note(level: Level, text: std::fmt::Arguments<'_>) {
    static WRITTEN: LazyLock<Mutex<EventLimit>> =
        LazyLock::new(|| Mutex::new(EventLimit::new(LOG_LINES_PER_MINUTE)));
    let mut written = WRITTEN.lock().unwrap_or_else(|e| e.into_inner());
    if written.allows(Instant::now()) {
        log::log!(level, "{text}");
    }
}

/// Accepts clients of `listener` until it fails.
///
/// # Errors
/// Those of the listener; a client's error ends its connection alone.
pub fn serve(listener: &UnixListener, store: &Path) -> io::Result<()> {
    // Each connection has one more reference, which goes with it however it ends.
    let open = Arc::new(());
    loop {
        let (client, _) = listener.accept()?;
        if Arc::strong_count(&open) > MAX {
            let text = format_args!("more than {MAX} connections: one is refused");
            note(Level::Warn, text);
            continue;
        }
        let (store, place) = (store.to_owned(), Arc::clone(&open));
        let serve = move || {
            let _place = place;
            match connect(&client, &store) {
                Ok(()) => note(Level::Info, format_args!("a client has gone")),
                Err(e) => note(Level::Warn, format_args!("a client has gone: {e}")),
            }
        };
        if let Err(e) = control_socket::spawn(Builder::new(), serve) {
            note(Level::Warn, format_args!("a client is refused: {e}"));
        }
    }
}

/// Serves a client until it or the store closes.
fn connect(client: &UnixStream, store: &Path) -> io::Result<()> {
    let upstream = &UnixStream::connect(store)?;
    let (account, outbox) = (&Mutex::default(), &Outbox::default());
    let mut link = Link {
        requests: client,
        upstream,
        account,
        outbox,
        store,
        own: None,
    };
    // The first of the three threads that ends, or does not start, takes the others with it.
    let last = |result| {
        outbox.end();
        let _ = client.shutdown(Shutdown::Both);
        let _ = upstream.shutdown(Shutdown::Both);
        ended(result)
    };
    std::thread::scope(|scope| {
        let thread = Builder::new();
        let brought = thread.spawn_scoped(scope, || last(bring(upstream, account, outbox)));
        let thread = Builder::new();
        let handed = thread.spawn_scoped(scope, || last(hand_out(outbox, client)));
        let all_run = brought.is_ok() && handed.is_ok();
        let asked = last(if all_run { link.run() } else { Ok(()) });
        let [brought, handed] =
            [brought, handed].map(|thread| thread.and_then(|it| it.join().unwrap_or(Ok(()))));
        brought.and(asked).and(handed)
    })
}

/// A connection that closes between two messages has ended well.
fn ended(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        other => other,
    }
}

/// Brings answers and events from the store, each whole.
fn bring(mut store: &UnixStream, account: &Mutex<Account>, outbox: &Outbox) -> io::Result<()> {
    loop {
        let (header, payload) = message(&mut store)?;
        let whole = [&header.to_bytes()[..], &payload].concat();
        if header.kind == Kind::WatchEvent as u32 {
            outbox.push_event(whole)?;
            continue;
        }
        let mut account = account.lock().unwrap_or_else(|e| e.into_inner());
        account.answered(header.kind, &payload);
        outbox.push(whole)?;
    }
}

/// Writes the client's messages to it.
fn hand_out(outbox: &Outbox, mut client: &UnixStream) -> io::Result<()> {
    while let Some(message) = outbox.next() {
        client.write_all(&message)?;
    }
    Ok(())
}

/// Reads a message.
///
/// # Errors
/// Also for a payload beyond the protocol's bound: no request of the switch has such an answer.
fn message(stream: &mut impl Read) -> io::Result<(Header, Vec<u8>)> {
    let mut bytes = [0; HEADER];
    stream.read_exact(&mut bytes)?;
    let header = Header::from_bytes(&bytes);
    let len = header.len as usize;
    if len > PAYLOAD_MAX {
        let text = format!("a message of {len} bytes, at most {PAYLOAD_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload)?;
    Ok((header, payload))
}

/// The way of requests.
struct Link<'a> {
    requests: &'a UnixStream,
    upstream: &'a UnixStream,
    account: &'a Mutex<Account>,
    outbox: &'a Outbox,
    store: &'a Path,
    /// For the door's own questions.
    own: Option<Client>,
}

impl Link<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let (header, payload) = message(&mut self.requests)?;
            match self.judge(header, &payload) {
                Ok(()) => {
                    let whole = [&header.to_bytes()[..], &payload].concat();
                    self.upstream.write_all(&whole)?;
                }
                Err(code) => self.refuse(header, code)?,
            }
        }
    }

    fn judge(&mut self, header: Header, payload: &[u8]) -> Result<(), Code> {
        if !self.passes(header.kind, payload) {
            return Err(Code::Access);
        }
        let mut account = self.account.lock().unwrap_or_else(|e| e.into_inner());
        account.ask(header)
    }

    fn refuse(&self, header: Header, code: Code) -> io::Result<()> {
        let (kind, name) = (header.kind, code.name());
        let text = format_args!("a request of type {kind} is refused: {name}");
        note(Level::Warn, text);
        let payload = [name.as_bytes(), b"\0"].concat();
        let answer = Header {
            kind: Kind::Error as u32,
            len: payload.len() as u32,
            ..header
        };
        self.outbox
            .push([&answer.to_bytes()[..], &payload].concat())
    }

    fn passes(&mut self, kind: u32, payload: &[u8]) -> bool {
        match rules::judge(kind, payload) {
            Verdict::Pass => true,
            Verdict::PassWith(node) => self.exists(&node),
            Verdict::Refuse => false,
        }
    }

    /// Asks the store for a node, by a connection of its own: the client's may have many requests on the way.
    fn exists(&mut self, node: &str) -> bool {
        if self.own.is_none() {
            self.own = Client::connect(self.store).ok();
        }
        let Some(own) = &mut self.own else {
            return false;
        };
        match own.read_opt(Tx::NONE, node) {
            Ok(value) => value.is_some(),
            Err(e) => {
                note(Level::Warn, format_args!("{node}: {e}"));
                self.own = None;
                false
            }
        }
    }
}
