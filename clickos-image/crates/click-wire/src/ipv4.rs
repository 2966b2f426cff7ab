// SPDX-License-Identifier: Apache-2.0
//! IPv4 headers (RFC 791).
use core::net::Ipv4Addr;

use crate::field::{array_at, put, u16_at};
use crate::{Error, at_least, checksum};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// "Don't fragment" in the fragment field.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// "More fragments" in the fragment field.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// The offset in the fragment field.
pub const OFFSET: u16 = 0x1fff;

/// A header in bytes. Accessors of a checked view never panic.
pub struct View<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> View<T> {
    /// A view of bytes that begin with a header whose lengths are right: version 4,
    /// header of at least 20 bytes inside the packet, total length inside the bytes.
    /// The checksum is not looked at.
    ///
    /// # Errors
    /// What is wrong.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, Error> {
        let b = bytes.as_ref();
        at_least(b, HEADER)?;
        if b[0] >> 4 != 4 {
            return Err(Error::BadVersion);
        }
        let (header, total) = (usize::from(b[0] & 15) * 4, usize::from(u16_at(b, 2)));
        if header < HEADER || total < header {
            return Err(Error::BadLength);
        }
        at_least(b, total)?;
        Ok(Self { bytes })
    }

    /// A view of bytes the caller knows to be long enough.
    #[inline]
    pub fn new_unchecked(bytes: T) -> Self {
        Self { bytes }
    }

    #[inline]
    fn b(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Bytes of the header, options included.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.b()[0] & 15) * 4
    }

    /// Bytes of header and payload.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.b(), 2))
    }

    /// Type of service.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.b()[1]
    }

    /// Identification.
    #[inline]
    pub fn id(&self) -> u16 {
        u16_at(self.b(), 4)
    }

    /// Flags and fragment offset.
    #[inline]
    pub fn fragment(&self) -> u16 {
        u16_at(self.b(), 6)
    }

    /// True if this is the first fragment or not fragmented.
    #[inline]
    pub fn is_first(&self) -> bool {
        self.fragment() & OFFSET == 0
    }

    /// Time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.b()[8]
    }

    /// Protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.b()[9]
    }

    /// The checksum field.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.b(), 10)
    }

    /// Sender.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        array_at::<4>(self.b(), 12).into()
    }

    /// Receiver.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        array_at::<4>(self.b(), 16).into()
    }

    /// True if the checksum is right.
    #[inline]
    pub fn checksum_is_right(&self) -> bool {
        checksum::is_right(&self.b()[..self.header_len()])
    }

    /// What the packet carries.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.b()[self.header_len()..self.total_len()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the time to live and updates the checksum.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        let old = u16_at(self.b(), 8);
        // not read again, as that would wait for the byte to be written
        let new = u16::from(ttl) << 8 | old & 0xff;
        self.bytes.as_mut()[8] = ttl;
        self.set_checksum(checksum::update(self.checksum(), old, new));
    }

    /// Takes one off the time to live, which is not 0, and updates the checksum: the old word and the new one differ
    /// by a constant, so that neither has to be looked at (RFC 1624, equation 3; RFC 1071, section 2, for the order
    /// of bytes).
    #[inline]
    pub fn decrement_ttl(&mut self) {
        const CHANGE: u16 = u16::from_ne_bytes([0xfe, 0xff]);
        let bytes = self.bytes.as_mut();
        bytes[8] -= 1;
        let old = u16::from_ne_bytes(array_at(bytes, 10));
        let (sum, carry) = (!old).overflowing_add(CHANGE);
        put(bytes, 10, &(!(sum + u16::from(carry))).to_ne_bytes());
    }

    /// Sets the 16 bits at `at`, an even offset, and updates the checksum.
    #[inline]
    fn set_word(&mut self, at: usize, new: u16) {
        let old = u16_at(self.b(), at);
        put(self.bytes.as_mut(), at, &new.to_be_bytes());
        self.set_checksum(checksum::update(self.checksum(), old, new));
    }

    /// Sets the type of service and updates the checksum.
    #[inline]
    pub fn set_tos(&mut self, tos: u8) {
        self.set_word(0, u16::from_be_bytes([self.b()[0], tos]));
    }

    /// Sets flags and fragment offset and updates the checksum.
    #[inline]
    pub fn set_fragment(&mut self, fragment: u16) {
        self.set_word(6, fragment);
    }

    /// Sets the sender and updates the checksum.
    #[inline]
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.set_address(12, address);
    }

    /// Sets the receiver and updates the checksum.
    #[inline]
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.set_address(16, address);
    }

    #[inline]
    fn set_address(&mut self, at: usize, address: Ipv4Addr) {
        let [a, b, c, d] = address.octets();
        self.set_word(at, u16::from_be_bytes([a, b]));
        self.set_word(at + 2, u16::from_be_bytes([c, d]));
    }

    /// Sets the checksum field.
    #[inline]
    pub fn set_checksum(&mut self, value: u16) {
        put(self.bytes.as_mut(), 10, &value.to_be_bytes());
    }

    /// Computes the checksum field again.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let sum = checksum::of(&self.b()[..self.header_len()]);
        self.set_checksum(sum);
    }
}

/// A header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Type of service.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Flags and fragment offset.
    pub fragment: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Sender.
    pub source: Ipv4Addr,
    /// Receiver.
    pub destination: Ipv4Addr,
    /// Bytes of payload, at most 65,515.
    pub payload_len: u16,
}

impl Repr {
    /// Reads a checked header; options are left out.
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        let payload_len = u16::try_from(view.total_len() - view.header_len()).unwrap_or(0);
        Self {
            tos: view.tos(),
            id: view.id(),
            fragment: view.fragment(),
            ttl: view.ttl(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            payload_len,
        }
    }

    /// Writes the header with its checksum; `b` must have room for 20 bytes.
    #[inline]
    pub fn emit(&self, b: &mut [u8]) {
        let total = u32::from(self.payload_len) + 20;
        let words = [
            0x45 << 24 | u32::from(self.tos) << 16 | total & 0xffff,
            u32::from(self.id) << 16 | u32::from(self.fragment),
            u32::from(self.ttl) << 24 | u32::from(self.protocol) << 16,
            self.source.into(),
            self.destination.into(),
        ];
        // of the numbers, not of the bytes just written, for which the processor would have to wait
        let sum = checksum::finish(words.into_iter().map(u64::from).sum());
        for (at, word) in (0..).step_by(4).zip(words) {
            put(b, at, &word.to_be_bytes());
        }
        put(b, 10, &sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> [u8; 24] {
        let mut bytes = [0; 24];
        let repr = Repr {
            tos: 3,
            id: 77,
            fragment: DONT_FRAGMENT,
            ttl: 9,
            protocol: UDP,
            source: Ipv4Addr::new(1, 2, 3, 4),
            destination: Ipv4Addr::new(5, 6, 7, 8),
            payload_len: 4,
        };
        repr.emit(&mut bytes);
        let view = View::new_checked(bytes).unwrap();
        assert_eq!(Repr::parse(&view), repr);
        bytes
    }

    #[test]
    fn one_less_is_the_same_as_setting_it() {
        for (checksum, ttl) in (0..=u16::MAX).flat_map(|sum| [1, 2, 64, 255].map(|ttl| (sum, ttl)))
        {
            let mut bytes = packet();
            let mut view = View::new_unchecked(&mut bytes);
            view.set_ttl(ttl);
            view.set_checksum(checksum);
            let mut other = bytes;
            View::new_unchecked(&mut bytes).decrement_ttl();
            View::new_unchecked(&mut other).set_ttl(ttl - 1);
            assert_eq!(bytes, other, "checksum {checksum}, ttl {ttl}");
        }
    }

    #[test]
    fn checksum_follows_the_ttl() {
        let mut bytes = packet();
        assert!(View::new_unchecked(&bytes).checksum_is_right());
        View::new_unchecked(&mut bytes).set_ttl(8);
        let view = View::new_checked(&bytes).unwrap();
        assert!(view.checksum_is_right());
        assert_eq!((view.ttl(), view.payload().len()), (8, 4));
    }

    #[test]
    fn checksum_follows_every_field() {
        let mut bytes = packet();
        let mut view = View::new_unchecked(&mut bytes);
        view.set_tos(0xb8);
        view.set_fragment(MORE_FRAGMENTS | 9);
        view.set_source(Ipv4Addr::new(200, 1, 2, 3));
        view.set_destination(Ipv4Addr::new(0, 255, 0, 255));
        let view = View::new_checked(&bytes).unwrap();
        assert!(view.checksum_is_right());
        assert_eq!((view.tos(), view.fragment()), (0xb8, MORE_FRAGMENTS | 9));
        assert_eq!(view.source(), Ipv4Addr::new(200, 1, 2, 3));
        assert_eq!(view.destination(), Ipv4Addr::new(0, 255, 0, 255));
    }

    #[test]
    fn lying_lengths_are_refused() {
        let good = packet();
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            View::new_checked(bytes).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(0, 0x44), Error::BadLength);
        assert_eq!(with(0, 0x4f), Error::BadLength);
        assert_eq!(with(0, 0x65), Error::BadVersion);
        assert_eq!(with(3, 25), Error::Truncated { got: 24, need: 25 });
        assert_eq!(with(3, 19), Error::BadLength);
        assert!(View::new_checked(&good[..19]).is_err());
    }
}
