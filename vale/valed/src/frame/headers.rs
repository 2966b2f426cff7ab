// SPDX-License-Identifier: Apache-2.0
//! The Ethernet header of the private copy of a frame.
use vale_proto::Mac;

/// Ethernet header without tags, in bytes.
pub const ETHERNET: usize = 14;
/// Most VLAN tags of a frame. With more, a frame could hide its addresses behind them.
const MAX_TAGS: usize = 2;

pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;
/// MAC control (PAUSE) and slow protocols (LACP, OAM).
const LINK_CONTROL: [u16; 2] = [0x8808, 0x8809];
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The Ethernet header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    pub destination: Mac,
    pub source: Mac,
    /// Type after the tags.
    pub kind: u16,
    /// Offset of the payload.
    pub payload: usize,
}

impl Ethernet {
    /// None if the frame is too short, has more than [`MAX_TAGS`] tags, or has a group address as
    /// its source.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (destination, source) = (octets(frame, 0)?, octets(frame, 6)?);
        let mut payload = ETHERNET;
        while TAGS.contains(&be16(frame, payload - 2)?) {
            payload += 4;
            if payload > ETHERNET + 4 * MAX_TAGS {
                return None;
            }
        }
        let kind = be16(frame, payload - 2)?;
        let this = Self {
            destination: Mac(destination),
            source: Mac(source),
            kind,
            payload,
        };
        (!this.source.is_multicast()).then_some(this)
    }

    /// True if the frame is meant for the other end of a cable: no bridge forwards it (IEEE
    /// 802.1Q, table 8-1: 01:80:c2:00:00:00 to 0f).
    pub fn is_link_control(&self) -> bool {
        let [prefix @ .., last] = self.destination.0;
        prefix == [1, 0x80, 0xc2, 0, 0] && last < 16 || LINK_CONTROL.contains(&self.kind)
    }
}

/// N octets at `at`, if they are there.
pub fn octets<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    octets(bytes, at).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(types: &[u16]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
        for (n, kind) in types.iter().enumerate() {
            frame.extend(kind.to_be_bytes());
            if n + 1 < types.len() {
                frame.extend([0, 5]);
            }
        }
        frame
    }

    #[test]
    fn tags_are_looked_through_up_to_two() {
        for (types, payload) in [
            (&[IPV4][..], 14),
            (&[0x8100, IPV4], 18),
            (&[0x88a8, 0x8100, ARP], 22),
        ] {
            let parsed = Ethernet::parse(&frame(types)).unwrap();
            assert_eq!(
                (parsed.kind, parsed.payload),
                (*types.last().unwrap(), payload)
            );
            assert_eq!(parsed.source, Mac([2, 0, 0, 0, 0, 1]));
        }
        assert!(Ethernet::parse(&frame(&[0x8100, 0x8100, 0x8100, IPV4])).is_none());
    }

    #[test]
    fn short_frames_and_group_sources_are_refused() {
        let good = frame(&[0x8100, IPV4]);
        for len in 0..good.len() {
            assert!(Ethernet::parse(&good[..len]).is_none(), "{len}");
        }
        let mut group = frame(&[IPV4]);
        group[6] |= 1;
        assert!(Ethernet::parse(&group).is_none());
    }
}
