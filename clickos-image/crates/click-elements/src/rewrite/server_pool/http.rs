// SPDX-License-Identifier: Apache-2.0
//! What a server is asked by HTTP (RFC 9112), and which answers are good.
use core::net::IpAddr;

use click_core::Surroundings;

use super::servers::Outcome;
use crate::prelude::*;

/// Bytes of a path: the request fits into a packet of any link.
const MOST: usize = 255;
/// Bytes of `HTTP/1.1 200`.
const STATUS_LINE: usize = 12;

/// A request; none with an empty path.
pub struct Http {
    pub path: Path,
    pub expected: Expected,
}

/// The path of a request.
#[derive(Clone, Default)]
pub struct Path(pub String);

impl FromArg for Path {
    fn from_arg(text: &str, _: Surroundings<'_>) -> Result<Self, String> {
        let text = text.trim();
        let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
        match text.len() {
            0 => Ok(Self::default()),
            1..=MOST if is_path => Ok(Self(text.into())),
            1..=MOST => Err(format!(
                "expected a path that begins with /, got \"{}\"",
                text.escape_debug()
            )),
            length => Err(format!("{length} bytes, the most is {MOST}")),
        }
    }
}

/// The first and last status that is good.
#[derive(Clone, Copy)]
pub struct Expected(pub u16, pub u16);

impl FromArg for Expected {
    fn from_arg(text: &str, _: Surroundings<'_>) -> Result<Self, String> {
        let text = text.trim();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let status = |text: &str| text.parse().ok().filter(|n| (100..600).contains(n));
        match (status(first), status(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first, last)),
            _ => Err(format!(
                "expected a status such as 200 or 200-299, got \"{}\"",
                text.escape_debug()
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
        let line = words.get(..STATUS_LINE)?;
        let status = match line {
            [
                b'H',
                b'T',
                b'T',
                b'P',
                b'/',
                b'1',
                b'.',
                _,
                b' ',
                digits @ ..,
            ] => core::str::from_utf8(digits).ok()?.parse().unwrap_or(0),
            _ => 0,
        };
        let Expected(first, last) = self.expected;
        Some(match status {
            good if (first..=last).contains(&good) => Outcome::Answered,
            other => Outcome::Status(other),
        })
    }
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
