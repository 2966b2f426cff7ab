// SPDX-License-Identifier: Apache-2.0
//! How configurations, requests and answers are cut into the store's small values.

use crate::error::{Error, Result};
use crate::spec::Write;

/// Bytes of one value that the toolstack writes.
const PIECE: usize = 3900;
/// The longest request.
pub const MAX_REQUEST: usize = 1 << 20;
/// The longest answer's data, and its code.
const MAX_RESPONSE: usize = (256 << 10) + 4;
/// First byte of a piece: more follow.
const MORE: u8 = b'+';
/// First byte of a piece: it is the last.
const LAST: u8 = b'.';

/// A configuration's pieces.
pub fn config_pieces(config: &str) -> impl Iterator<Item = &[u8]> {
    config.as_bytes().chunks(PIECE)
}

/// A request's pieces, each with its mark.
pub fn request_pieces(request: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let last = request.len().div_ceil(PIECE - 1).max(1) - 1;
    (0..=last).map(move |n| {
        let start = n * (PIECE - 1);
        let end = request.len().min(start + PIECE - 1);
        let mark = if n == last { LAST } else { MORE };
        [&[mark], &request[start..end]].concat()
    })
}

/// A batch of writes as one request.
pub fn encode_writes(writes: &[Write]) -> Vec<u8> {
    let mut request = format!("writes {}\n", writes.len());
    for (name, value) in writes {
        request.push_str(&format!("{name} {}\n{value}\n", value.len()));
    }
    request.into_bytes()
}

/// An answer: a code of three digits and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub code: u16,
    pub data: Vec<u8>,
}

/// Puts an answer together from its pieces.
#[derive(Default)]
pub struct Collector {
    pieces: usize,
    bytes: Vec<u8>,
}

impl Collector {
    /// How many pieces were added; the number of the next one.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Adds the next piece; gives the answer when it was the last.
    pub fn add(&mut self, piece: &[u8]) -> Result<Option<Response>> {
        let (mark, data) = piece.split_first().ok_or_else(malformed)?;
        if data.is_empty() && *mark == MORE {
            return Err(malformed()); // Otherwise a guest could send pieces for ever.
        }
        if self.bytes.len() + data.len() > MAX_RESPONSE {
            return Err(Error::internal(
                "guest's answer",
                format!("above {MAX_RESPONSE} bytes"),
            ));
        }
        self.pieces += 1;
        self.bytes.extend_from_slice(data);
        match *mark {
            MORE => Ok(None),
            LAST => parse(&self.bytes).map(Some).ok_or_else(malformed),
            _ => Err(malformed()),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Response> {
    let (code, rest) = bytes.split_at_checked(3)?;
    if !code.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let code = std::str::from_utf8(code).ok()?.parse().ok()?;
    Some(Response {
        code,
        data: rest.strip_prefix(b" ")?.to_vec(),
    })
}

fn malformed() -> Error {
    Error::internal("guest's answer", "not of the protocol")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(pieces: &[&[u8]]) -> Result<Option<Response>> {
        let mut collector = Collector::default();
        let mut last = Ok(None);
        for piece in pieces {
            last = Ok(collector.add(piece)?);
        }
        last
    }

    #[test]
    fn requests_are_cut_and_marked() {
        let pieces = |len: usize| -> Vec<(u8, usize)> {
            let request = vec![b'x'; len];
            request_pieces(&request)
                .map(|p| (p[0], p.len() - 1))
                .collect()
        };
        assert_eq!(pieces(0), [(LAST, 0)]);
        assert_eq!(pieces(3899), [(LAST, 3899)]);
        assert_eq!(pieces(3900), [(MORE, 3899), (LAST, 1)]);
        assert_eq!(pieces(7798), [(MORE, 3899), (LAST, 3899)]);
    }

    #[test]
    fn a_batch_holds_any_value() {
        let writes = [
            ("a.b".to_owned(), "1 2\n3".to_owned()),
            ("c.d".to_owned(), String::new()),
        ];
        assert_eq!(
            encode_writes(&writes),
            b"writes 2\na.b 5\n1 2\n3\nc.d 0\n\n"
        );
    }

    #[test]
    fn answers_are_put_together() {
        assert_eq!(collected(&[b"+200 a", b"+b"]), Ok(None));
        let whole = collected(&[b"+20", b"+0 a", b".b"]).unwrap().unwrap();
        assert_eq!(
            whole,
            Response {
                code: 200,
                data: b"ab".into()
            }
        );
        assert_eq!(collected(&[b".200 "]).unwrap().unwrap().data, b"");
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bad in [
            &b""[..],
            b"+",
            b"x200 ",
            b".",
            b".20",
            b".200",
            b".abc d",
            b".\xff\xff\xff ",
        ] {
            assert!(collected(&[bad]).is_err(), "{bad:?}");
        }
        let big = [&b"+"[..], &[b'x'; 1899]].concat();
        assert!(collected(&vec![&big[..]; 200]).is_err());
    }
}
