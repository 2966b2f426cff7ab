// SPDX-License-Identifier: Apache-2.0
//! A session: two keys, the numbers of the packets sent, and those that came (WireGuard's paper, section 5.4.6).
use super::crypto::{TAG, open, seal};
use super::handshake::{DATA, Keys};

/// Type, the receiver's number of the session, and the packet's number.
pub const HEADER: usize = 16;
/// Packets are padded to a multiple of this.
pub const PADDING: usize = 16;
/// Numbers that may come late.
const WINDOW: u64 = 1_024;
/// No packet has this number or a larger one.
const NUMBERS: u64 = u64::MAX - (1 << 13);

/// A session with a peer.
pub struct Session {
    /// Its number here.
    pub local: u32,
    /// Its number at the peer.
    pub remote: u32,
    /// When the handshake ended.
    pub born_ns: u64,
    /// True if the handshake was ours: then we renew it.
    pub is_ours: bool,
    keys: Keys,
    next: u64,
    window: Window,
}

impl Session {
    /// A session of a handshake's keys.
    pub fn new(keys: Keys, local: u32, remote: u32, born_ns: u64, is_ours: bool) -> Self {
        Self {
            local,
            remote,
            born_ns,
            is_ours,
            keys,
            next: 0,
            window: Window::default(),
        }
    }

    /// Encrypts a message whose packet lies between the header and room for a tag; false after the last number.
    pub fn seal(&mut self, message: &mut [u8]) -> bool {
        let (number, end) = (self.next, message.len() - TAG);
        if number >= NUMBERS {
            return false;
        }
        self.next += 1;
        let (header, rest) = message.split_at_mut(HEADER);
        header[..4].copy_from_slice(&[DATA, 0, 0, 0]);
        header[4..8].copy_from_slice(&self.remote.to_le_bytes());
        header[8..].copy_from_slice(&number.to_le_bytes());
        let (text, tag) = rest.split_at_mut(end - HEADER);
        tag.copy_from_slice(&seal(&self.keys.send, number, &[], text));
        true
    }

    /// Decrypts a message in place; the packet's bytes, or `None` if it is changed or came before.
    pub fn open<'m>(&mut self, message: &'m mut [u8]) -> Option<&'m mut [u8]> {
        let (header, rest) = message.split_first_chunk_mut::<HEADER>()?;
        let number = u64::from_le_bytes(*header.last_chunk()?);
        let (text, tag) = rest.split_last_chunk_mut::<TAG>()?;
        let fresh = number < NUMBERS && self.window.is_fresh(number);
        if !fresh || !open(&self.keys.receive, number, &[], text, tag) {
            return None;
        }
        self.window.note(number);
        Some(text)
    }
}

/// The numbers that came: the largest, and a bit for each of those before it.
struct Window {
    /// One behind the largest.
    end: u64,
    bits: [u64; WINDOW as usize / 64],
}

impl Default for Window {
    fn default() -> Self {
        Self {
            end: 0,
            bits: [0; WINDOW as usize / 64],
        }
    }
}

impl Window {
    fn place(number: u64) -> (usize, u64) {
        let bit = number % WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn is_fresh(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        number >= self.end || (self.end - number <= WINDOW && self.bits[word] & bit == 0)
    }

    /// Notes a fresh number.
    fn note(&mut self, number: u64) {
        if number >= self.end {
            // the places of the numbers between were those of older ones
            let skipped = (number - self.end).min(WINDOW);
            for between in number - skipped..number {
                let (word, bit) = Self::place(between);
                self.bits[word] &= !bit;
            }
            self.end = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.bits[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_once_and_none_too_late() {
        let mut window = Window::default();
        let mut accept = |number| {
            let fresh = window.is_fresh(number);
            if fresh {
                window.note(number);
            }
            fresh
        };
        for number in [0, 1, 5, 3, 2_000, 1_999, 977] {
            assert!(accept(number), "{number}");
        }
        for number in [0, 3, 5, 2_000, 1_999, 977, 976] {
            assert!(!accept(number), "{number}");
        }
        assert!(accept(1_500) && accept(1_000_000) && !accept(1_500));
        assert!(accept(999_999) && !accept(1_000_000));
    }

    #[test]
    fn a_packet_is_read_once() {
        let keys = |send: u8, receive: u8| Keys {
            send: [send; 32],
            receive: [receive; 32],
        };
        let mut one = Session::new(keys(1, 2), 10, 20, 0, true);
        let mut other = Session::new(keys(2, 1), 20, 10, 0, false);
        let mut message = [7; HEADER + 16 + TAG];
        assert!(one.seal(&mut message));
        assert_eq!(message[4..8], 20u32.to_le_bytes());
        let mut copy = message;
        assert_eq!(
            other.open(&mut message).map(|t| t.to_vec()),
            Some([7; 16].to_vec())
        );
        assert!(other.open(&mut copy).is_none(), "it came before");
        assert!(
            other.open(&mut [0; HEADER + TAG - 1]).is_none(),
            "too short"
        );
    }
}
