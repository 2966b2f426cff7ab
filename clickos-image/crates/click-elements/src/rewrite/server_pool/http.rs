// SPDX-License-Identifier: Apache-2.0
//! What a server is asked by HTTP (RFC 9112), and which answers are good.
use core::net::IpAddr;

use click_core::ArgContext;

use super::servers::Outcome;
use crate::prelude::*;

/// Bytes of a path: the request fits into a packet of any link.
const MAX: usize = 255;
/// Bytes of `HTTP/1.1 200`.
const STATUS_LINE: usize = 12;

/// The status codes of hints, and what ends each.
const HINTS: core::ops::Range<u16> = 100..200;
const END: &[u8] = b"\r\n\r\n";

/// A request; none with an empty path.
pub struct Http {
    pub path: Path,
    pub expected: Expected,
}

/// The path of a request.
#[derive(Clone, Default)]
pub struct Path(pub String);

impl FromArg for Path {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let text = text.trim();
        let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
        match text.len() {
            0 => Ok(Self::default()),
            1..=MAX if is_path => Ok(Self(text.into())),
            1..=MAX => Err(format!(
                "expected a path that begins with /, got \"{}\"",
                text.shown()
            )),
            length => Err(format!("{length} bytes, the most is {MAX}")),
        }
    }
}

/// The first and last status that is good.
#[derive(Clone, Copy)]
pub struct Expected(pub u16, pub u16);

impl FromArg for Expected {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let text = text.trim();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let status = |text: &str| text.parse().ok().filter(|n| (100..600).contains(n));
        match (status(first), status(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first, last)),
            _ => Err(format!(
                "expected a status such as 200 or 200-299, got \"{}\"",
                text.shown()
            )),
        }
    }
}

impl core::fmt::Display for Expected {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl Http {
    /// Asks for a path; each status of success is good.
    pub fn new(path: &str) -> Self {
        Self {
            path: Path(path.into()),
            expected: Expected(200, 299),
        }
    }

    pub fn is_used(&self) -> bool {
        !self.path.0.is_empty()
    }

    /// The request for a server.
    pub fn request(&self, server: IpAddr, port: u16) -> String {
        if !self.is_used() {
            return String::new();
        }
        let path = &self.path.0;
        let host = match server {
            IpAddr::V4(four) => four.to_string(),
            IpAddr::V6(six) => format!("[{six}]"),
        };
        let port = match port {
            80 => String::new(),
            other => format!(":{other}"),
        };
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}{port}\r\nUser-Agent: ClickOS\r\nConnection: close\r\n\r\n"
        )
    }

    /// Judges the first bytes of an answer; `None` if they are too few.
    pub fn judge(&self, words: &[u8]) -> Option<Outcome> {
        let Expected(first, last) = self.expected;
        Some(match final_status(words)? {
            good if (first..=last).contains(&good) => Outcome::Answered,
            other => Outcome::Status(other),
        })
    }
}

/// The status after those of hints, which come first (RFC 9110, section 15.2).
fn final_status(mut words: &[u8]) -> Option<u16> {
    loop {
        let status = status(words)?;
        if !HINTS.contains(&status) {
            return Some(status);
        }
        let end = words.windows(END.len()).position(|bytes| bytes == END)?;
        words = &words[end + END.len()..];
    }
}

/// The status of a first line; 0 if it is not of HTTP.
fn status(words: &[u8]) -> Option<u16> {
    let line = words.get(..STATUS_LINE)?;
    let digits = match line.strip_prefix(b"HTTP/1.") {
        Some([minor, b' ', digits @ ..]) if minor.is_ascii_digit() => digits,
        _ => return Some(0),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Some(0);
    }
    let number = |sum, digit: &u8| sum * 10 + u16::from(digit - b'0');
    Some(match words.get(STATUS_LINE)? {
        b' ' | b'\r' | b'\n' => digits.iter().fold(0, number),
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_ipv6_has_brackets() {
        let request = Http::new("/").request(IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]), 8080);
        assert!(request.contains("\r\nHost: [::1]:8080\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\n"));
    }

    #[test]
    fn a_status_has_three_digits() {
        let http = Http::new("/");
        for line in [
            &b"HTTP/1.1 2000 OK"[..],
            b"HTTP/1.1 +20 OK\r\n",
            b"HTTP/1.1 \xff\xff\xff\r\n",
            b"HTTP/1.x 200 OK",
        ] {
            let judged = http.judge(line);
            assert!(judged == Some(Outcome::Status(0)), "{judged:?}: {line:?}");
        }
    }

    #[test]
    fn an_early_hint_is_no_answer_yet() {
        let http = Http::new("/");
        let text = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        let judged = http.judge(text);
        assert!(judged == Some(Outcome::Answered), "{judged:?}");
        let judged = http.judge(b"HTTP/1.1 100 Continue\r\n\r\n");
        assert!(judged.is_none(), "{judged:?}: the answer comes");
    }

    #[test]
    fn other_answers_are_judged() {
        let http = Http {
            expected: Expected(302, 302),
            ..Http::new("/")
        };
        for (line, outcome) in [
            ("HTTP/1.0 302 Found", Some(Outcome::Answered)),
            ("HTTP/1.1 200 OK", Some(Outcome::Status(200))),
            ("SSH-2.0-OpenSSH", Some(Outcome::Status(0))),
            ("HTTP/1.1 xyz", Some(Outcome::Status(0))),
            ("HTTP/1.1 20", None),
        ] {
            assert!(http.judge(line.as_bytes()) == outcome, "{line}");
        }
    }
}
