// SPDX-License-Identifier: Apache-2.0
//! One direction of a TCP connection, as its receiver reads it.
//!
//! Bytes that the receiver has not acknowledged are kept: whatever is sent again has to be the same. So a segment that
//! never arrived, by its time to live for one, cannot stand for another one.
use click_core::memory::{RESERVE, has_room};

use super::prefilter::Position;
use super::verify::Credit;
use crate::prelude::*;

/// The place of a stream's first byte: places before it are old.
pub const FIRST: u64 = 1 << 32;
/// Pieces that came before those in front of them.
const MAX_PIECES: usize = 64;
/// The part of the kept bytes that is forgotten at least.
const MIN_PART: usize = 4;
/// Bytes that come out of the reserve.
const SMALL: usize = 8 << 10;
/// Bytes that a vector may have beyond what it needs.
const SLACK: usize = 512;

/// Which bytes count where a sender sends others again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Those that came first.
    First,
    /// Those that came last, unless they are read already.
    Last,
}

/// Bytes that wait for those in front of them.
#[derive(Clone, Debug)]
struct Piece {
    at: u64,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

/// A rule whose text is there, and which may yet hold.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub rule: u16,
    /// The part that failed last.
    pub failed: u8,
    /// From where places of contents count, besides the start of the stream.
    pub origin: u64,
    /// The text ends here.
    pub hit: u64,
}

/// A direction.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The number of the first byte; none before it is known.
    first: Option<u32>,
    /// The bytes before `next`.
    kept: Vec<u8>,
    /// Up to here they are read, and up to here they have arrived.
    pub next: u64,
    acked: u64,
    pieces: Vec<Piece>,
    pub position: Option<Position>,
    pub pending: Vec<Pending>,
    pub credit: Credit,
}

/// What a segment does to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Fits,
    /// Bytes were others before.
    Differs,
    /// There is no room for it.
    TooMuch,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            first: None,
            kept: Vec::new(),
            next: FIRST,
            acked: FIRST,
            pieces: Vec::new(),
            position: None,
            pending: Vec::new(),
            credit: Credit::full(),
        }
    }
}

impl Stream {
    /// Begins with a number.
    pub fn begin(&mut self, first: u32) {
        self.first = Some(first);
    }

    pub fn first(&self) -> Option<u32> {
        self.first
    }

    /// The place of a number near the next one.
    pub fn place(&self, seq: u32) -> Option<u64> {
        let next = self.first?.wrapping_add(self.next as u32);
        let ahead = i64::from(seq.wrapping_sub(next) as i32);
        Some(self.next.saturating_add_signed(ahead))
    }

    /// True if the receiver may wait for a number: it has what it acknowledged, and at most what was sent in order.
    pub fn awaits(&self, seq: u32) -> bool {
        // the end of a stream has a number, too
        let known = self.acked..=self.next + 1;
        self.place(seq).is_some_and(|place| known.contains(&place))
    }

    /// Where the kept bytes begin.
    pub fn start(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    /// The kept bytes.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// The memory that it takes.
    pub fn cost(&self) -> usize {
        let pieces = self
            .pieces
            .iter()
            .map(|piece| piece.bytes.capacity())
            .sum::<usize>();
        let lists = self.pieces.capacity() * size_of::<Piece>()
            + self.pending.capacity() * size_of::<Pending>();
        self.kept.capacity() + pieces + lists
    }

    /// The receiver has everything before a place; what is neither new nor looked back at is forgotten.
    pub fn acknowledge(&mut self, place: u64, lookback: usize) {
        self.acked = place.clamp(self.acked, self.next);
        let needed = self.acked.min(self.next.saturating_sub(lookback as u64));
        let unneeded = needed.saturating_sub(self.start()) as usize;
        // what is moved has to be worth it
        let is_all = self.acked == self.next;
        if unneeded == 0 || unneeded * MIN_PART < self.kept.len() && !is_all {
            return;
        }
        self.kept.drain(..unneeded.min(self.kept.len()));
        if is_all && self.kept.capacity() > self.kept.len() + SLACK {
            self.kept.shrink_to(self.kept.len());
        }
    }

    /// Continues at a place in front of which bytes were not seen.
    pub fn skip_to(&mut self, place: u64) {
        self.kept.clear();
        self.pieces.retain(|piece| piece.at >= place);
        (self.next, self.acked) = (place, place);
        self.position = None;
        self.pending.clear();
        self.read_pieces();
    }

    /// The next bytes are looked at by other rules.
    pub fn forget_rules(&mut self) {
        self.position = None;
        self.pending.clear();
    }

    /// True if the receiver has everything before a place.
    pub fn is_old(&self, end: u64) -> bool {
        end <= self.acked
    }

    /// Whether a segment fits, of a stream of which `most` bytes may wait to be acknowledged.
    pub fn fit(&self, at: u64, bytes: &[u8], most: usize) -> Fit {
        if self.differs(at, bytes) {
            return Fit::Differs;
        }
        let end = at + bytes.len() as u64;
        let span = end.saturating_sub(self.acked) as usize;
        let is_ahead = at > self.next;
        let held = self.pieces.len();
        // a hole may be filled whatever waits behind it, and a piece may grow
        let grows = || self.pieces.iter().any(|piece| piece.end() == at);
        let has_place = !is_ahead || held < MAX_PIECES || grows();
        if has_place && span <= most {
            Fit::Fits
        } else {
            Fit::TooMuch
        }
    }

    /// True if a byte was another one before.
    fn differs(&self, at: u64, bytes: &[u8]) -> bool {
        let start = self.start();
        let cut = self.acked.max(start).saturating_sub(at) as usize;
        let Some(bytes) = bytes.get(cut..) else {
            return false;
        };
        let at = at + cut as u64;
        let known = self
            .kept
            .get(at.saturating_sub(start) as usize..)
            .unwrap_or_default();
        if at < self.next && known.iter().zip(bytes).any(|(a, b)| a != b) {
            return true;
        }
        self.pieces
            .iter()
            .any(|piece| overlap(piece, at, bytes).is_some_and(|(a, b)| a != b))
    }

    /// Makes room for a segment; false if there is no memory.
    pub fn reserve(&mut self, at: u64, bytes: usize) -> bool {
        if at <= self.next {
            let waiting: usize = self.pieces.iter().map(|piece| piece.bytes.len()).sum();
            return grow(&mut self.kept, bytes + waiting);
        }
        let mut pieces = self.pieces.iter_mut();
        match pieces.find(|piece| piece.end() == at) {
            Some(piece) => grow(&mut piece.bytes, bytes),
            None => true,
        }
    }

    /// Takes a segment that fits, or differs and is taken by the policy; the new bytes, which are in order, are behind the
    /// former `next`.
    pub fn take(&mut self, at: u64, bytes: &[u8], policy: Policy) {
        let end = at + bytes.len() as u64;
        if policy == Policy::Last {
            self.overwrite(at, bytes);
        }
        if at <= self.next {
            let new = bytes.get((self.next - at) as usize..).unwrap_or_default();
            self.append(new);
            self.read_pieces();
        } else if end > self.next {
            self.insert(at, bytes);
        }
    }

    /// Appends bytes in order; where pieces have them already, the pieces' bytes count.
    fn append(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(piece) = self.pieces.first() {
            let free = piece.at.saturating_sub(self.next) as usize;
            if free >= rest.len() {
                break;
            }
            let (fresh, _) = rest.split_at(free);
            self.kept.extend_from_slice(fresh);
            self.next += free as u64;
            let before = self.next;
            self.read_pieces();
            rest = rest
                .get(free + (self.next - before) as usize..)
                .unwrap_or_default();
        }
        self.kept.extend_from_slice(rest);
        self.next += rest.len() as u64;
    }

    /// Reads the pieces that are next.
    fn read_pieces(&mut self) {
        while self
            .pieces
            .first()
            .is_some_and(|piece| piece.at <= self.next)
        {
            let piece = self.pieces.remove(0);
            let known = (self.next - piece.at) as usize;
            if let Some(new) = piece.bytes.get(known..) {
                self.kept.extend_from_slice(new);
                self.next += new.len() as u64;
            }
        }
        if self.pieces.is_empty() {
            self.pieces = Vec::new();
        }
    }

    /// Puts bytes between the pieces, where there are no bytes yet.
    fn insert(&mut self, mut at: u64, mut bytes: &[u8]) {
        let mut place = 0;
        while !bytes.is_empty() && self.pieces.len() <= MAX_PIECES {
            let Some(piece) = self.pieces.get(place) else {
                self.put(place, at, bytes);
                return;
            };
            let free = piece.at.saturating_sub(at).min(bytes.len() as u64) as usize;
            let end = piece.end();
            if free > 0 {
                place += self.put(place, at, &bytes[..free]);
            }
            let behind = end.saturating_sub(at).min(bytes.len() as u64) as usize;
            bytes = &bytes[behind.max(free)..];
            at += behind.max(free) as u64;
            place += 1;
        }
    }

    /// Puts bytes in front of a piece; returns how many pieces there are more.
    fn put(&mut self, place: usize, at: u64, bytes: &[u8]) -> usize {
        let before = place.checked_sub(1).map(|before| &mut self.pieces[before]);
        // a row of segments after a hole is one piece
        if let Some(before) = before.filter(|before| before.end() == at) {
            before.bytes.extend_from_slice(bytes);
            return 0;
        }
        let bytes = bytes.to_vec();
        self.pieces.insert(place, Piece { at, bytes });
        1
    }

    /// Lets later bytes count in pieces.
    fn overwrite(&mut self, at: u64, bytes: &[u8]) {
        for piece in &mut self.pieces {
            let start = piece.at.max(at);
            let end = piece.end().min(at + bytes.len() as u64);
            if start < end {
                let new = &bytes[(start - at) as usize..(end - at) as usize];
                let old = (start - piece.at) as usize;
                piece.bytes[old..old + new.len()].copy_from_slice(new);
            }
        }
    }
}

/// Makes room for more bytes; false if there is no memory. It grows by a quarter, and leaves the reserve.
fn grow(bytes: &mut Vec<u8>, more: usize) -> bool {
    let needed = bytes.len() + more;
    if needed <= bytes.capacity() {
        return true;
    }
    let wanted = needed + needed / 4;
    let has_memory = wanted <= SMALL || has_room(wanted + RESERVE);
    has_memory && bytes.try_reserve_exact(wanted - bytes.len()).is_ok()
}

/// The bytes of a piece and those of a segment in the same places.
fn overlap<'a>(piece: &'a Piece, at: u64, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (start, end) = (piece.at.max(at), piece.end().min(at + bytes.len() as u64));
    let part = |from: u64| (start.wrapping_sub(from)) as usize..(end.wrapping_sub(from)) as usize;
    (start < end).then(|| Some((piece.bytes.get(part(piece.at))?, bytes.get(part(at))?)))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream() -> Stream {
        let mut stream = Stream::default();
        stream.begin(u32::MAX - 3);
        stream
    }

    fn add(stream: &mut Stream, at: u64, bytes: &[u8]) -> Fit {
        let fit = stream.fit(FIRST + at, bytes, 1000);
        if fit == Fit::Fits {
            stream.take(FIRST + at, bytes, Policy::First);
        }
        fit
    }

    #[test]
    fn segments_in_any_order_are_one_text() {
        let mut stream = stream();
        for (at, bytes) in [
            (8, "ijkl"),
            (2, "cd"),
            (3, "defg"),
            (6, "ghijklm"),
            (1, "bc"),
        ] {
            assert_eq!(add(&mut stream, at, bytes.as_bytes()), Fit::Fits);
            assert_eq!(stream.kept(), b"");
        }
        assert_eq!(add(&mut stream, 0, b"a"), Fit::Fits);
        assert_eq!(stream.kept(), b"abcdefghijklm");
        assert!(stream.pieces.is_empty());
        assert_eq!(stream.place(u32::MAX - 3), Some(FIRST));
        assert_eq!(stream.place(5), Some(FIRST + 9));
    }

    #[test]
    fn other_bytes_in_the_same_place_differ_until_they_are_acknowledged() {
        let mut stream = stream();
        assert_eq!(add(&mut stream, 0, b"abcd"), Fit::Fits);
        assert_eq!(add(&mut stream, 6, b"gh"), Fit::Fits);
        for (at, bytes) in [(0, "x"), (3, "xe"), (4, "efx"), (6, "gx"), (7, "x")] {
            assert_eq!(add(&mut stream, at, bytes.as_bytes()), Fit::Differs, "{at}");
        }
        stream.acknowledge(FIRST + 2, 0);
        assert_eq!(stream.kept(), b"cd");
        assert_eq!(add(&mut stream, 0, b"xx"), Fit::Fits);
        assert_eq!(add(&mut stream, 0, b"xxcX"), Fit::Differs);
        assert!(stream.is_old(FIRST + 2) && !stream.is_old(FIRST + 3));
    }

    #[test]
    fn the_last_bytes_count_where_they_are_not_read_yet() {
        let mut stream = stream();
        stream.take(FIRST + 2, b"cdef", Policy::Last);
        stream.take(FIRST + 3, b"XY", Policy::Last);
        stream.take(FIRST, b"abZ", Policy::Last);
        stream.take(FIRST + 1, b"QQ", Policy::Last);
        assert_eq!(stream.kept(), b"abZXYf");
        let mut first = Stream::default();
        first.begin(0);
        first.take(FIRST + 2, b"cd", Policy::First);
        first.take(FIRST, b"abXXe", Policy::First);
        assert_eq!(first.kept(), b"abcde");
    }

    #[test]
    fn memory_is_bounded() {
        let mut stream = stream();
        assert_eq!(add(&mut stream, 999, b"ab"), Fit::TooMuch);
        for n in 0..MAX_PIECES as u64 {
            assert_eq!(add(&mut stream, 2 * n + 1, b"x"), Fit::Fits);
        }
        assert_eq!(add(&mut stream, 500, b"x"), Fit::TooMuch);
        assert_eq!(add(&mut stream, 0, b"x"), Fit::Fits, "the hole");
        assert_eq!(stream.kept(), b"xx");
        stream.acknowledge(FIRST + 2, 1);
        assert_eq!(stream.kept(), b"x");
    }

    proptest! {
        #[test]
        fn any_cut_of_a_text_is_read_as_the_text(
            text in prop::collection::vec(any::<u8>(), 1..80),
            cuts in prop::collection::vec((0usize..80, 1usize..30, 0usize..100, any::<bool>()), 1..60),
        ) {
            let mut stream = stream();
            for (at, length, ack, last) in cuts {
                let at = at.min(text.len() - 1);
                let end = (at + length).min(text.len());
                let policy = if last { Policy::Last } else { Policy::First };
                if stream.fit(FIRST + at as u64, &text[at..end], 1000) == Fit::Fits {
                    stream.take(FIRST + at as u64, &text[at..end], policy);
                }
                stream.acknowledge(FIRST + ack as u64, 5);
                let (from, to) = ((stream.start() - FIRST) as usize, (stream.next - FIRST) as usize);
                prop_assert_eq!(stream.kept(), &text[from..to]);
            }
            stream.take(FIRST, &text, Policy::First);
            prop_assert_eq!(stream.next, FIRST + text.len() as u64);
        }
    }
}
