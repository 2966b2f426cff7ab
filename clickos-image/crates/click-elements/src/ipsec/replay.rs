// SPDX-License-Identifier: Apache-2.0
//! The window of sequence numbers: each is accepted once, and none that is too old (RFC 2401, appendix C).

/// The numbers that came already.
#[derive(Clone, Copy)]
pub struct Window {
    size: u32,
    start: u32,
    last: u32,
    /// Bit n is `last - n`.
    seen: u128,
}

/// Why a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Numbers begin behind 0.
    Zero,
    TooOld,
    Seen,
}

impl core::fmt::Display for Replay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Zero => "sequence number 0",
            Self::TooOld => "replay: the packet is too old",
            Self::Seen => "replay: the packet was seen already",
        })
    }
}

impl Window {
    /// A window behind `start`; at most 128 numbers are remembered.
    pub fn new(start: u32, size: u8) -> Self {
        Self {
            size: u32::from(size).min(u128::BITS),
            start,
            last: start,
            seen: 0,
        }
    }

    /// Accepts a number.
    ///
    /// # Errors
    /// Why not.
    pub fn accept(&mut self, number: u32) -> Result<(), Replay> {
        if number == 0 {
            return Err(Replay::Zero);
        }
        // the sender began again
        if number == self.start && self.last != self.start {
            (self.last, self.seen) = (number, 0);
            return Ok(());
        }
        if number > self.last {
            let ahead = number - self.last;
            let moved = self.seen.checked_shl(ahead).filter(|_| ahead < self.size);
            (self.last, self.seen) = (number, moved.unwrap_or(0) | 1);
            return Ok(());
        }
        self.accept_late(self.last - number)
    }

    fn accept_late(&mut self, behind: u32) -> Result<(), Replay> {
        if behind >= self.size {
            return Err(Replay::TooOld);
        }
        if self.seen >> behind & 1 == 1 {
            return Err(Replay::Seen);
        }
        self.seen |= 1 << behind;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_once_and_none_too_late() {
        let mut window = Window::new(300, 64);
        for number in [300, 301, 305, 303] {
            assert_eq!(window.accept(number), Ok(()), "{number}");
        }
        assert_eq!(window.accept(303), Err(Replay::Seen));
        assert_eq!(window.accept(0), Err(Replay::Zero));
        assert_eq!(window.accept(1000), Ok(()));
        assert_eq!(window.accept(936), Err(Replay::TooOld));
        assert_eq!(window.accept(937), Ok(()));
        assert_eq!(window.accept(305), Err(Replay::TooOld));
        assert_eq!(window.accept(300), Ok(()), "the sender began anew");
        let mut largest = Window::new(1, 255);
        assert_eq!(largest.accept(u32::MAX), Ok(()));
        assert_eq!(largest.accept(u32::MAX - 127), Ok(()));
        assert_eq!(largest.accept(u32::MAX - 128), Err(Replay::TooOld));
    }
}
