// SPDX-License-Identifier: Apache-2.0
//! The bytes of a frame that completing its offload may change.
//!
//! The guard judges a frame before the switch or a kernel completes it. So a checksum may only go
//! where no judged byte lies: into the checksum field of TCP or UDP, or into what a tunnel carries.
use super::{Checksum, Offload};
use crate::headers::{Ethernet, IPV4, IPV6, be16};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv4 and IPv6 in IP (RFC 2003, RFC 2473, RFC 4213), GRE (RFC 2784).
const TUNNELS: [u8; 3] = [4, 41, 47];
const UDP_HEADER: usize = 8;
/// Checksum fields: RFC 9293, 3.1; RFC 768.
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;

/// True if completing the offload changes no byte that the guard judges.
pub fn keeps_judged_bytes(offload: &Offload, ethernet: &Ethernet, frame: &[u8]) -> bool {
    let Some(Checksum { start, offset }) = offload.checksum else {
        return offload.gso.is_none();
    };
    let (start, offset) = (usize::from(start), usize::from(offset));
    let Some((protocol, transport)) = transport(ethernet, frame) else {
        return false;
    };
    match protocol {
        TCP => (start, offset) == (transport, TCP_CHECKSUM),
        UDP if start < transport + UDP_HEADER => (start, offset) == (transport, UDP_CHECKSUM),
        UDP => offload.gso.is_none(),
        tunnel => TUNNELS.contains(&tunnel) && start >= transport && offload.gso.is_none(),
    }
}

/// The protocol of an unfragmented IP packet, and where its header begins. None for an IPv6 packet
/// with extension headers: senders complete such packets themselves.
fn transport(ethernet: &Ethernet, frame: &[u8]) -> Option<(u8, usize)> {
    let at = ethernet.payload;
    match ethernet.kind {
        IPV4 => {
            let header = usize::from(frame.get(at)? & 15) * 4;
            let is_whole = be16(frame, at + 6)? & 0x3fff == 0;
            (header >= 20 && is_whole).then_some((*frame.get(at + 9)?, at + header))
        }
        IPV6 => Some((*frame.get(at + 6)?, at + 40)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame with an IP packet of 64 bytes behind its header.
    fn frame(kind: u16, protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 64];
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        match kind {
            IPV4 => {
                frame[14] = 0x45;
                frame[23] = protocol;
            }
            _ => frame[20] = protocol,
        }
        frame
    }

    fn allowed(frame: &[u8]) -> Vec<(u16, u16)> {
        let ethernet = Ethernet::parse(frame).unwrap();
        let all =
            (0..frame.len() as u16).flat_map(|s| (0..frame.len() as u16).map(move |o| (s, o)));
        all.filter(|(start, offset)| {
            let offload = Offload {
                checksum: Some(Checksum {
                    start: *start,
                    offset: *offset,
                }),
                gso: None,
            };
            usize::from(start + offset) + 2 <= frame.len()
                && keeps_judged_bytes(&offload, &ethernet, frame)
        })
        .collect()
    }

    #[test]
    fn tcp_has_one_place() {
        assert_eq!(allowed(&frame(IPV4, TCP)), [(34, 16)]);
        assert_eq!(allowed(&frame(IPV6, TCP)), [(54, 16)]);
    }

    /// The attack: start 26 and offset 2 turn an IPv4 source address into another one.
    #[test]
    fn no_checksum_goes_into_a_judged_header() {
        for (kind, protocol, payload) in [
            (IPV4, UDP, 42),
            (IPV6, UDP, 62),
            (IPV4, 47, 34),
            (IPV4, 4, 34),
            (IPV6, 41, 54),
        ] {
            for (start, offset) in allowed(&frame(kind, protocol)) {
                let at = usize::from(start + offset);
                let field = protocol == UDP && at == payload - 2;
                assert!(
                    field || at >= payload,
                    "{kind:x} {protocol}: {start} + {offset}"
                );
            }
        }
    }

    #[test]
    fn other_frames_and_fragments_have_none() {
        let mut fragment = frame(IPV4, UDP);
        fragment[20] = 0x20;
        for none in [
            fragment,
            frame(IPV4, 1),
            frame(IPV6, 58),
            frame(IPV6, 0),
            frame(IPV6, 44),
            frame(0x0806, 0),
            frame(0x88b5, 0),
        ] {
            assert!(allowed(&none).is_empty());
        }
    }
}
