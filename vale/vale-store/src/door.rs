// SPDX-License-Identifier: Apache-2.0
//! The socket of the switch: a connection to the store for each of its own.
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use log::Level;
use xenstore::{Client, Header, Kind, PAYLOAD_MAX, Tx};

use crate::rules::{self, Verdict};

/// valed has one connection; another one may begin before its last one has ended.
const MOST: usize = 4;
const HEADER: usize = 16;
const REFUSAL: &[u8] = b"EACCES\0";
/// Log lines in a minute: the switch can ask and connect without end.
const LINES: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// The first lines of a minute.
struct Lines(Option<(Instant, u32)>);

impl Lines {
    /// True if one more line may be written.
    fn allows(&mut self, now: Instant) -> bool {
        let (since, count) = match self.0 {
            Some((since, count)) if now - since < MINUTE => (since, count),
            _ => (now, 0),
        };
        self.0 = Some((since, count + u32::from(count <= LINES)));
        count < LINES
    }
}

/// Writes a line about a client to the log.
fn note(level: Level, text: std::fmt::Arguments<'_>) {
    static WRITTEN: Mutex<Lines> = Mutex::new(Lines(None));
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
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let (client, _) = listener.accept()?;
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            let text = format_args!("more than {MOST} connections: one is refused");
            note(Level::Warn, text);
            continue;
        }
        let (store, open) = (store.to_owned(), Arc::clone(&open));
        std::thread::spawn(move || {
            match connect(client, &store) {
                Ok(()) => note(Level::Info, format_args!("a client has gone")),
                Err(e) => note(Level::Warn, format_args!("a client has gone: {e}")),
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Serves a client until it or the store closes.
fn connect(client: UnixStream, store: &Path) -> io::Result<()> {
    let upstream = UnixStream::connect(store)?;
    let (mut answers, mut back) = (upstream.try_clone()?, client.try_clone()?);
    let writer = Arc::new(Mutex::new(client.try_clone()?));
    let shared = Arc::clone(&writer);
    let pump = std::thread::spawn(move || {
        let result = bring(&mut answers, &shared);
        // So that the other thread ends, too.
        let _ = back.shutdown(Shutdown::Both);
        let _ = back.flush();
        result
    });
    let mut link = Link {
        requests: client,
        upstream,
        answers: writer,
        store: store.to_owned(),
        own: None,
    };
    let result = link.run();
    let _ = link.upstream.shutdown(Shutdown::Both);
    let _ = link.requests.shutdown(Shutdown::Both);
    let brought = pump.join().unwrap_or(Ok(()));
    ended(result).and(ended(brought))
}

/// A connection that closes between two messages has ended well.
fn ended(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        other => other,
    }
}

/// Brings answers and events from the store, each whole.
fn bring(store: &mut UnixStream, client: &Mutex<UnixStream>) -> io::Result<()> {
    loop {
        let (header, payload) = message(store)?;
        send(client, header, &payload)?;
    }
}

/// Reads a message.
///
/// # Errors
/// Also for a payload beyond the protocol's bound: no request of the switch has such an answer.
fn message(stream: &mut UnixStream) -> io::Result<(Header, Vec<u8>)> {
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

fn send(stream: &Mutex<UnixStream>, header: Header, payload: &[u8]) -> io::Result<()> {
    let whole = [&header.to_bytes()[..], payload].concat();
    let mut stream = stream.lock().unwrap_or_else(|e| e.into_inner());
    stream.write_all(&whole)
}

/// The way of requests.
struct Link {
    requests: UnixStream,
    upstream: UnixStream,
    answers: Arc<Mutex<UnixStream>>,
    store: PathBuf,
    /// For the door's own questions.
    own: Option<Client>,
}

impl Link {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let (header, payload) = message(&mut self.requests)?;
            if self.passes(header.kind, &payload) {
                let whole = [&header.to_bytes()[..], &payload].concat();
                self.upstream.write_all(&whole)?;
            } else {
                self.refuse(header)?;
            }
        }
    }

    fn refuse(&self, header: Header) -> io::Result<()> {
        let text = format_args!("a request of type {} is refused", header.kind);
        note(Level::Warn, text);
        let answer = Header {
            kind: Kind::Error as u32,
            len: REFUSAL.len() as u32,
            ..header
        };
        send(&self.answers, answer, REFUSAL)
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
            self.own = Client::connect(&self.store).ok();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_lines_and_no_more() {
        let (mut lines, start) = (Lines(None), Instant::now());
        for minute in 0..3 {
            let now = start + minute * MINUTE;
            let written = (0..1000).filter(|_| lines.allows(now)).count();
            assert_eq!(written, LINES as usize);
        }
    }
}
