// SPDX-License-Identifier: Apache-2.0
//! Requests and answers longer than one store value: pieces that begin with `+` (more) or `.` (last).
use alloc::vec::Vec;

/// Data bytes of a piece written by the toolstack: oxenstored takes values of 2048 from dom0, too.
pub const TOOLSTACK_PIECE: usize = 1999;
/// Data bytes of a piece written by a guest, whose values are limited by its quota.
pub const GUEST_PIECE: usize = 1899;

/// Cuts a configuration into values: without marks, and none if it is empty.
pub fn config_pieces(config: &[u8]) -> impl Iterator<Item = &[u8]> {
    config.chunks(TOOLSTACK_PIECE + 1)
}

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

/// The result of adding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    More,
    Whole,
    /// A piece without a mark, or one that brings nothing and says that more follow. Such
    /// pieces could keep the joiner busy for ever.
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
            Some((b'+', part)) if !part.is_empty() => (false, part),
            _ => return Joined::Malformed,
        };
        if self.data.len() + part.len() > self.limit {
            return Joined::TooLong;
        }
        self.data.extend_from_slice(part);
        if last { Joined::Whole } else { Joined::More }
    }

    /// The pieces joined so far.
    pub fn data(&self) -> &[u8] {
        &self.data
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
        assert_eq!(joiner.add(b"+"), Joined::Malformed);
        assert_eq!(joiner.add(b"+abc"), Joined::More);
        assert_eq!(joiner.add(b".d"), Joined::TooLong);
        assert_eq!(joiner.add(b"."), Joined::Whole);
    }

    #[test]
    fn configurations_and_requests_fill_the_same_values() {
        let long = [b'x'; 3998];
        let lengths = |pieces: Vec<Vec<u8>>| pieces.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(split(&long, TOOLSTACK_PIECE)), [2000, 2000]);
        let config = config_pieces(&long).map(<[u8]>::to_vec).collect();
        assert_eq!(lengths(config), [2000, 1998]);
        assert_eq!(config_pieces(b"").count(), 0);
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
            prop_assert_eq!(joiner.data(), data);
        }
    }
}
