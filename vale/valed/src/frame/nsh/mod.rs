// SPDX-License-Identifier: Apache-2.0
//! The headers of a chain's packets between hosts. VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe) holds the
//! network service header (NSH, RFC 8300). Its context headers have a fixed length (MD type 1).
mod link;

use crate::frame::headers::octets;
pub use link::{Heard, Link};

/// VXLAN-GPE header, in bytes.
const GPE: usize = 8;
/// Network service header with four context words, in bytes.
pub const NSH: usize = 24;
/// Both headers.
pub const HEADERS: usize = GPE + NSH;

/// Flags of VXLAN-GPE: a network number and a next protocol, nothing else.
const FLAGS: u8 = 0x0c;
/// Version, flags and reserved bits that change the meaning of a VXLAN-GPE header.
const FLAGS_MASK: u8 = 0x3f;
const NEXT_NSH: u8 = 4;
/// Words of the network service header.
const WORDS: u8 = 6;
const MD_TYPE: u8 = 1;
const NEXT_ETHERNET: u8 = 3;
/// Experiment 1 (RFC 8300, 9.1.6): the state of a host.
const NEXT_STATE: u8 = 0xfe;
const OAM: u16 = 1 << 13;
/// The service index of a packet before its first hop.
pub const FIRST_INDEX: u8 = 255;
/// Initial time to live (RFC 8300, 2.2).
pub const TTL: u8 = 63;

/// The place of a packet on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The path's number; the service path identifier is its double, and one more for answers.
    pub number: u32,
    pub reverse: bool,
    /// [`FIRST_INDEX`] less the hops that the packet has passed.
    pub index: u8,
    /// Hosts that may still forward the packet.
    pub ttl: u8,
    /// The version of the chain that counts its hops.
    pub version: u64,
}

/// The content behind a network service header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Frame,
    State,
}

/// Both headers.
pub fn headers(label: &Label, content: Content) -> [u8; HEADERS] {
    let mut bytes = [0; HEADERS];
    let [_, a, b, c] = label.number.to_be_bytes();
    bytes[..GPE].copy_from_slice(&[FLAGS, 0, 0, NEXT_NSH, a, b, c, 0]);
    let (oam, next) = match content {
        Content::Frame => (0, NEXT_ETHERNET),
        Content::State => (OAM, NEXT_STATE),
    };
    let base = oam | u16::from(label.ttl & 63) << 6 | u16::from(WORDS);
    bytes[GPE..GPE + 2].copy_from_slice(&base.to_be_bytes());
    bytes[GPE + 2..GPE + 4].copy_from_slice(&[MD_TYPE, next]);
    let path = (label.number << 1 | u32::from(label.reverse)) << 8 | u32::from(label.index);
    bytes[GPE + 4..GPE + 8].copy_from_slice(&path.to_be_bytes());
    bytes[GPE + 8..GPE + 16].copy_from_slice(&label.version.to_be_bytes());
    bytes
}

#[cfg(test)]
pub fn frame_headers(label: &Label) -> [u8; HEADERS] {
    headers(label, Content::Frame)
}

/// The path's number and the network service header of a datagram.
pub fn parse_gpe(datagram: &[u8]) -> Option<(u32, &[u8])> {
    let [flags, _, _, next, a, b, c, _] = octets(datagram, 0)?;
    let number = u32::from_be_bytes([0, a, b, c]);
    (flags & FLAGS_MASK == FLAGS && next == NEXT_NSH).then_some((number, &datagram[GPE..]))
}

/// The label of a network service header that arrived, and what follows it. The time to live is
/// one less than on the wire; None if it has ended.
pub fn parse_nsh(bytes: &[u8]) -> Option<(Label, Content)> {
    let header: [u8; NSH] = octets(bytes, 0)?;
    let base = u16::from_be_bytes([header[0], header[1]]);
    let content = match (base & OAM != 0, header[3]) {
        (false, NEXT_ETHERNET) => Content::Frame,
        (true, NEXT_STATE) => Content::State,
        _ => return None,
    };
    let known = base >> 14 == 0 && base & 63 == u16::from(WORDS) && header[2] & 15 == MD_TYPE;
    let ttl = (base >> 6) as u8 & 63;
    // RFC 8300, 2.2: below 0 follows 63.
    let ttl = ttl.checked_sub(1).unwrap_or(TTL);
    let path = u32::from_be_bytes(octets(&header, 4)?);
    let label = Label {
        number: path >> 9,
        reverse: path & 256 != 0,
        index: path as u8,
        ttl,
        version: u64::from_be_bytes(octets(&header, 8)?),
    };
    (known && ttl > 0).then_some((label, content))
}

/// A host's part of a chain, as it announces it to the others of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub version: u64,
    /// Packets enter the chain by this version.
    pub in_force: bool,
    /// The host has received the states of all others for this version.
    pub is_informed: bool,
    /// Bit n of a hop's word: the host has the hop's pair n, and it is live.
    pub live: Vec<u16>,
}

/// First byte of a state.
const STATE_FORM: u8 = 1;
/// Bits of its second byte.
const IN_FORCE: u8 = 1;
const INFORMED: u8 = 2;

impl State {
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let flags = u8::from(self.in_force) * IN_FORCE + u8::from(self.is_informed) * INFORMED;
        bytes.extend([STATE_FORM, flags]);
        bytes.extend(self.live.iter().flat_map(|word| word.to_be_bytes()));
    }

    /// Reads what follows a network service header. The words of further hops are ignored.
    pub fn parse(version: u64, bytes: &[u8]) -> Option<Self> {
        let [form, flags, words @ ..] = bytes else {
            return None;
        };
        let words = words.chunks_exact(2).take(vale_proto::MAX_HOPS);
        let live = words.map(|w| u16::from_be_bytes([w[0], w[1]])).collect();
        (*form == STATE_FORM).then_some(Self {
            version,
            in_force: flags & IN_FORCE != 0,
            is_informed: flags & INFORMED != 0,
            live,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABEL: Label = Label {
        number: 7,
        reverse: true,
        index: 253,
        ttl: 63,
        version: 0x0102_0304_0506_0708,
    };

    /// The bytes as RFC 8300, figures 2 to 5, and the draft's figure 1 draw them.
    #[test]
    fn the_headers_have_the_form_of_their_standards() {
        let expected = [
            [0x0c, 0, 0, 4, 0, 0, 7, 0],
            [0x0f, 0xc6, 1, 3, 0, 0, 15, 253],
            [1, 2, 3, 4, 5, 6, 7, 8],
            [0; 8],
        ];
        assert_eq!(headers(&LABEL, Content::Frame), expected.concat()[..]);
        let state = headers(&LABEL, Content::State);
        assert_eq!(state[8..12], [0x2f, 0xc6, 1, 0xfe]);
    }

    #[test]
    fn the_time_to_live_falls_and_ends() {
        for (sent, found) in [(63, Some(62)), (2, Some(1)), (1, None), (0, Some(63))] {
            let bytes = headers(&Label { ttl: sent, ..LABEL }, Content::Frame);
            let label = parse_nsh(&bytes[8..]).map(|(label, _)| label.ttl);
            assert_eq!(label, found, "{sent}");
        }
    }

    #[test]
    fn other_headers_are_refused() {
        let good = headers(&LABEL, Content::Frame);
        for (at, value) in [
            (0, 0x08), // no next protocol
            (0, 0x0d), // operations of VXLAN-GPE
            (0, 0x1c), // another version
            (3, 3),    // Ethernet without NSH
        ] {
            let mut bytes = good;
            bytes[at] = value;
            assert_eq!(parse_gpe(&bytes), None, "byte {at}: {value}");
        }
        for (at, value) in [
            (8, 0x4f),  // version 1
            (8, 0x2f),  // an operation that is no state
            (9, 0xc2),  // two words
            (10, 2),    // context of variable length
            (11, 1),    // IPv4
            (11, 0xfe), // a state that is no operation
        ] {
            let mut bytes = good;
            bytes[at] = value;
            assert_eq!(parse_nsh(&bytes[8..]), None, "byte {at}: {value}");
        }
        for len in 0..HEADERS {
            let found = parse_gpe(&good[..len]).and_then(|(_, nsh)| parse_nsh(nsh));
            assert_eq!(found, None, "{len} bytes");
        }
    }

    proptest! {
        /// Any bytes: an accepted header is, but for the time to live and reserved bits, the one
        /// that its label makes.
        #[test]
        fn accepted_headers_mean_their_label(mut bytes in prop::collection::vec(any::<u8>(), 0..64), fix: bool) {
            if fix && bytes.len() >= HEADERS {
                bytes[..4].copy_from_slice(&[0x0c, 0, 0, 4]);
                bytes[9] = bytes[9] & 0xc0 | 6;
                bytes[8] &= 0x1f;
                bytes[10..12].copy_from_slice(&[1, 3]);
            }
            let found = parse_gpe(&bytes).and_then(|(n, nsh)| Some((n, parse_nsh(nsh)?)));
            if let Some((number, (label, content))) = found {
                let again = headers(&Label { number, ..label }, content);
                prop_assert_eq!(&again[4..7], &bytes[4..7]);
                prop_assert_eq!(again[11], bytes[11]);
                let spi = u32::from_be_bytes([0, bytes[12], bytes[13], bytes[14]]);
                prop_assert_eq!(label.number * 2 + u32::from(label.reverse), spi);
                prop_assert_eq!((label.index, &label.version.to_be_bytes()[..]), (bytes[15], &bytes[16..24]));
                let wire = u16::from_be_bytes([bytes[8], bytes[9]]) / 64 % 64;
                prop_assert!(wire != 1 && u16::from(label.ttl) == (wire + 63) % 64);
            } else if fix && bytes.len() >= HEADERS {
                let wire = u16::from_be_bytes([bytes[8], bytes[9]]) / 64 % 64;
                prop_assert_eq!(wire, 1, "only an ended time to live is refused here");
            }
        }

        #[test]
        fn states_keep_their_words(version: u64, in_force: bool, is_informed: bool, live in prop::collection::vec(any::<u16>(), 0..40)) {
            let state = State { version, in_force, is_informed, live };
            let mut bytes = Vec::new();
            state.write(&mut bytes);
            let read = State::parse(version, &bytes).unwrap();
            let kept = state.live.len().min(20);
            prop_assert_eq!((read.version, read.in_force, read.is_informed), (version, in_force, is_informed));
            prop_assert_eq!(&read.live[..], &state.live[..kept]);
        }
    }
}
