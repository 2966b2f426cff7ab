// SPDX-License-Identifier: Apache-2.0
//! Counters as text for Prometheus, by HTTP on a loopback address.
mod text;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kept::Kept;
use crate::workers::Handle;
use text::Snapshot;

/// Time for one request and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The counters are at most this old. More questions cost the forwarding thread nothing.
const SNAPSHOT_MAX_AGE: Duration = Duration::from_secs(1);
const MAX_REQUEST: usize = 4096;
const CHUNK: usize = 64 << 10;

/// The address of the endpoint, which only this host can reach.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(try_from = "SocketAddr")]
pub struct Loopback(SocketAddr);

impl TryFrom<SocketAddr> for Loopback {
    type Error = String;

    fn try_from(address: SocketAddr) -> Result<Self, String> {
        match address.ip().is_loopback() {
            true => Ok(Self(address)),
            false => Err(format!("metrics: {address} is not a loopback address")),
        }
    }
}

/// Answers on a thread of its own, one client at a time.
///
/// # Errors
/// The address is taken, or there is no further thread.
pub fn serve(address: Loopback, forwarder: Handle, kept: Arc<Kept>) -> io::Result<()> {
    let listener = TcpListener::bind(address.0)?;
    log::info!("metrics on http://{}/metrics", listener.local_addr()?);
    let answer = move || {
        let mut page = Page::default();
        for stream in listener.incoming().flatten() {
            // A client that fails or is too slow gets no more.
            let _ = page.answer(&stream, &forwarder, &kept);
        }
    };
    let thread = std::thread::Builder::new().name("metrics".to_owned());
    thread.spawn(answer).map(drop)
}

/// The last text.
#[derive(Default)]
struct Page(Option<(Instant, String)>);

impl Page {
    fn answer(&mut self, stream: &TcpStream, forwarder: &Handle, kept: &Kept) -> io::Result<()> {
        let end = Instant::now() + REQUEST_TIMEOUT;
        let request = read_request(stream, end)?;
        if !is_for_metrics(&request) {
            return write_all(stream, b"HTTP/1.0 404 Not Found\r\n\r\n", end);
        }
        let text = self.text(forwarder, kept).ok_or(ErrorKind::BrokenPipe)?;
        let head = format!(
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        write_all(stream, head.as_bytes(), end)?;
        write_all(stream, text.as_bytes(), end)
    }

    /// None if valed stops.
    fn text(&mut self, forwarder: &Handle, kept: &Kept) -> Option<&str> {
        let is_fresh = self
            .0
            .as_ref()
            .is_some_and(|(at, _)| at.elapsed() < SNAPSHOT_MAX_AGE);
        if !is_fresh {
            let snapshot = Snapshot {
                ports: forwarder.ports(None)?,
                chains: forwarder.chains(None)?,
                mirrors: forwarder.mirrors(None)?,
                workers: forwarder.loads()?,
                waiting: kept.waiting(),
            };
            self.0 = Some((Instant::now(), snapshot.text()));
        }
        self.0.as_ref().map(|(_, text)| text.as_str())
    }
}

fn is_for_metrics(request: &[u8]) -> bool {
    [&b"GET /metrics "[..], b"GET /metrics?", b"GET / "]
        .iter()
        .any(|start| request.starts_with(start))
}

fn read_request(mut stream: &TcpStream, end: Instant) -> io::Result<Vec<u8>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        stream.set_read_timeout(Some(rest(end)?))?;
        let count = stream.read(&mut buffer)?;
        if count == 0 || request.len() + count > MAX_REQUEST {
            return Err(ErrorKind::InvalidData.into());
        }
        request.extend_from_slice(&buffer[..count]);
    }
    Ok(request)
}

fn write_all(mut stream: &TcpStream, bytes: &[u8], end: Instant) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        stream.set_write_timeout(Some(rest(end)?))?;
        let count = stream.write(&left[..left.len().min(CHUNK)])?;
        left = &left[count..];
    }
    Ok(())
}

/// The time until `end`.
fn rest(end: Instant) -> io::Result<Duration> {
    let rest = end.saturating_duration_since(Instant::now());
    match rest.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(rest),
    }
}
