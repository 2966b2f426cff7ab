// SPDX-License-Identifier: Apache-2.0
//! The header of GTP-U version 1 (3GPP TS 29.281, section 5.1): flags, message type, length, tunnel endpoint.

/// Bytes of a header without optional fields.
pub const HEADER: usize = 8;
/// Bytes of the optional fields: sequence number, N-PDU number, type of the first extension header.
const OPTIONAL: usize = 4;
/// Version 1, protocol type GTP.
const VERSION: u8 = 0x30;
const VERSION_MASK: u8 = 0xf0;
/// Any of the flags E, S and PN: the optional fields exist.
const ANY_OPTIONAL: u8 = 0x07;
/// The flag E: extension headers follow.
const EXTENSION: u8 = 0x04;
/// The message that carries a packet.
const G_PDU: u8 = 255;

/// The header that carries a packet of `payload` bytes to a tunnel endpoint; `None` for too long ones.
pub fn header(teid: u32, payload: usize) -> Option<[u8; HEADER]> {
    let [high, low] = u16::try_from(payload).ok()?.to_be_bytes();
    let [a, b, c, d] = teid.to_be_bytes();
    Some([VERSION, G_PDU, high, low, a, b, c, d])
}

/// The parts of a packet in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The tunnel endpoint.
    pub teid: u32,
    /// Where the carried packet begins and ends.
    pub begin: usize,
    pub end: usize,
}

impl Carried {
    /// Finds the carried packet. `None` if the bytes are no whole message of this kind.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        let [flags, kind, high, low, teid @ ..] = bytes.first_chunk::<HEADER>()?;
        let end = HEADER + usize::from(u16::from_be_bytes([*high, *low]));
        let is_data = flags & VERSION_MASK == VERSION & VERSION_MASK && *kind == G_PDU;
        let message = bytes.get(..end).filter(|_| is_data)?;
        let begin = match flags & ANY_OPTIONAL {
            0 => HEADER,
            _ => HEADER + OPTIONAL,
        };
        let begin = match flags & EXTENSION {
            0 => begin,
            _ => behind_extensions(message, begin)?,
        };
        let teid = u32::from_be_bytes(*teid);
        (begin <= end).then_some(Self { teid, begin, end })
    }
}

/// Skips extension headers: each begins with its length in words of 4 bytes and ends with the next one's type.
fn behind_extensions(message: &[u8], mut at: usize) -> Option<usize> {
    while *message.get(at - 1)? != 0 {
        let words = usize::from(*message.get(at)?);
        if words == 0 {
            return None;
        }
        at += words * 4;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_again() {
        let mut bytes = header(0x0102_0304, 3).unwrap().to_vec();
        bytes.extend(b"abc??");
        let found = Carried::find(&bytes).unwrap();
        assert_eq!((found.teid, found.begin, found.end), (0x0102_0304, 8, 11));
        assert_eq!(header(1, 65_536), None);
    }

    #[test]
    fn optional_fields_and_extensions_are_skipped() {
        let optional = [0x32, 255, 0, 5, 0, 0, 0, 9, 0, 1, 0, 0, b'x'];
        assert_eq!(Carried::find(&optional).unwrap().begin, 12);
        let extended = [
            0x34, 255, 0, 17, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 7, 7, 0x40, 2, 1, 2, 3, 4, 5, 6, 0,
            b'x',
        ];
        assert_eq!(Carried::find(&extended).unwrap().begin, 24);
    }

    #[test]
    fn what_is_cut_or_lies_is_none() {
        let right = [0x34, 255, 0, 9, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 7, 7, 0, b'x'];
        assert!(Carried::find(&right).is_some());
        for length in 0..right.len() {
            assert_eq!(Carried::find(&right[..length]), None, "{length}");
        }
        for (at, value) in [
            (0, 0x54),
            (0, 0x24),
            (1, 1),
            (3, 10),
            (3, 3),
            (12, 0),
            (12, 2),
            (15, 9),
        ] {
            let mut wrong = right;
            wrong[at] = value;
            assert_eq!(Carried::find(&wrong), None, "{at}: {value}");
        }
    }
}
