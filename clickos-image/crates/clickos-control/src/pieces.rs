// SPDX-License-Identifier: Apache-2.0
//! Requests and answers longer than one store value: pieces that begin with `+` (more) or `.` (last).
use alloc::vec::Vec;

/// Data bytes of a piece written by the toolstack; for tests that play it.
#[cfg(any(test, feature = "simulator"))]
pub const TOOLSTACK_PIECE: usize = 3899;
/// Data bytes of a piece written by a guest, whose values are limited by its quota.
pub const GUEST_PIECE: usize = 1899;

/// Cuts `data` into node values with at most `piece` data bytes each; there is at least one.
pub fn split(data: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let count = data.len().div_ceil(piece).max(1);
    (0..count)
        .map(|i| {
            let part = &data[i * piece..data.len().min((i + 1) * piece)];
            let mark = if i + 1 == count { b'.' } else { b'+' };
            let mut value = Vec::with_capacity(1 + part.len());
            value.push(mark);
            value.extend_from_slice(part);
            value
        })
        .collect()
}

/// What came of adding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    More,
    Whole,
    /// A piece without a mark.
    Malformed,
    /// Longer than the limit.
    TooLong,
}

/// Puts pieces together again.
pub struct Joiner {
    data: Vec<u8>,
    limit: usize,
}

impl Joiner {
    /// Joins at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            data: Vec::new(),
            limit,
        }
    }

    /// Adds the next piece in order.
    pub fn add(&mut self, piece: &[u8]) -> Joined {
        let (last, part) = match piece.split_first() {
            Some((b'.', part)) => (true, part),
            Some((b'+', part)) => (false, part),
            _ => return Joined::Malformed,
        };
        if self.data.len() + part.len() > self.limit {
            return Joined::TooLong;
        }
        self.data.extend_from_slice(part);
        if last { Joined::Whole } else { Joined::More }
    }

    /// What was joined so far.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_is_one_piece() {
        assert_eq!(split(b"", 10), [b"."]);
    }

    #[test]
    fn malformed_and_too_long() {
        let mut joiner = Joiner::new(3);
        assert_eq!(joiner.add(b""), Joined::Malformed);
        assert_eq!(joiner.add(b"x"), Joined::Malformed);
        assert_eq!(joiner.add(b"+abc"), Joined::More);
        assert_eq!(joiner.add(b".d"), Joined::TooLong);
        assert_eq!(joiner.add(b"."), Joined::Whole);
    }

    proptest! {
        #[test]
        fn join_undoes_split(data in proptest::collection::vec(any::<u8>(), 0..500), n in 1usize..99) {
            let pieces = split(&data, n);
            let mut joiner = Joiner::new(500);
            for (i, piece) in pieces.iter().enumerate() {
                prop_assert!(piece.len() <= n + 1);
                let wanted = if i + 1 == pieces.len() { Joined::Whole } else { Joined::More };
                prop_assert_eq!(joiner.add(piece), wanted);
            }
            prop_assert_eq!(joiner.into_data(), data);
        }
    }
}
