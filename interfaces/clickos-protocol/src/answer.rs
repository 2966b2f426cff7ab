// SPDX-License-Identifier: Apache-2.0
//! Answers to requests: a code of three digits, a space, data.
use crate::pieces::{GUEST_PIECE, split};
use alloc::format;
use alloc::vec::Vec;

/// Bytes before an answer's data.
const HEAD: usize = 4;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200, or what went wrong.
    pub code: u16,
    pub data: Vec<u8>,
}

/// The bytes are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Answer {
    /// Bytes of the longest answer.
    pub const MAX: usize = HEAD + crate::ANSWER_MAX;

    /// The store values a guest writes.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        let bytes = [format!("{:03} ", self.code).as_bytes(), &self.data].concat();
        split(&bytes, GUEST_PIECE)
    }

    /// Reads what the pieces held together.
    ///
    /// # Errors
    /// It does not begin with three digits and a space.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [a, b, c, b' ', data @ ..] if [a, b, c].iter().all(|d| d.is_ascii_digit()) => {
                let digits = [a, b, c].map(|digit| u16::from(digit - b'0'));
                let code = digits.iter().fold(0, |code, digit| code * 10 + digit);
                let data = data.to_vec();
                Ok(Self { code, data })
            }
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, data: &[u8]) -> Answer {
        let data = data.to_vec();
        Answer { code, data }
    }

    #[test]
    fn code_and_data() {
        assert_eq!(Answer::parse(b"200 "), Ok(answer(200, b"")));
        assert_eq!(Answer::parse(b"520 a\n b"), Ok(answer(520, b"a\n b")));
        assert_eq!(answer(520, b"a\n b").encode(), [b".520 a\n b"]);
        let pieces = answer(200, &[b'x'; GUEST_PIECE]).encode();
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [1900, 5]);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bad in [
            &b""[..],
            b"20",
            b"200",
            b"abc d",
            b"\xff\xff\xff ",
            b"2000 ",
        ] {
            assert_eq!(Answer::parse(bad), Err(Malformed), "{bad:?}");
        }
    }
}
