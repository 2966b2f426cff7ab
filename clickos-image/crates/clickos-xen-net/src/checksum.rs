// SPDX-License-Identifier: Apache-2.0
//! Checksums the sender left to do, as a Linux host does for frames that never touch a wire.
use click_wire::checksum::{add, finish};

const VLAN: [u8; 2] = [0x81, 0x00];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Fills in the TCP or UDP checksum of a frame; false if it has none or is no such frame.
pub(crate) fn complete(frame: &mut [u8]) -> bool {
    complete_at(frame, 12).is_some()
}

fn complete_at(frame: &mut [u8], at: usize) -> Option<()> {
    let kind: [u8; 2] = frame.get(at..at + 2)?.try_into().ok()?;
    let packet = frame.get_mut(at + 2..)?;
    match kind {
        VLAN if at == 12 => complete_at(frame, 16),
        IPV4 => complete_ipv4(packet),
        IPV6 => complete_ipv6(packet),
        _ => None,
    }
}

fn complete_ipv4(packet: &mut [u8]) -> Option<()> {
    let header = usize::from(*packet.first()? & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    let fragment = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?);
    if header < 20 || fragment & 0x3fff != 0 {
        return None; // a fragment has a part of the sum only
    }
    let protocol = *packet.get(9)?;
    let addresses = add(0, packet.get(12..20)?);
    fill(packet.get_mut(header..total)?, protocol, addresses)
}

/// Without extension headers: a sender with those does its sums itself.
fn complete_ipv6(packet: &mut [u8]) -> Option<()> {
    let length = usize::from(u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?));
    let protocol = *packet.get(6)?;
    let addresses = add(0, packet.get(8..40)?);
    fill(packet.get_mut(40..40 + length)?, protocol, addresses)
}

fn fill(segment: &mut [u8], protocol: u8, addresses: u64) -> Option<()> {
    let at = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    segment.get_mut(at..at + 2)?.fill(0);
    let pseudo = addresses + u64::from(protocol) + segment.len() as u64;
    let sum = finish(add(pseudo, segment));
    // 0 means "no checksum" to UDP, and 0xffff is equal to it in ones' complement.
    let sum = if sum == 0 { 0xffff } else { sum };
    segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    fn udp4(payload: &[u8], vlan: bool) -> Vec<u8> {
        let mut frame = [[2; 6], [4; 6]].concat();
        if vlan {
            frame.extend([0x81, 0x00, 0x00, 0x05]);
        }
        frame.extend([0x08, 0x00]);
        let length = (28 + payload.len()) as u16;
        let mut ip = [0u8; 20];
        (ip[0], ip[8], ip[9]) = (0x45, 64, UDP);
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(ip);
        frame.extend([0, 53, 0, 54]);
        frame.extend((length - 20).to_be_bytes());
        frame.extend([0xab, 0xcd]); // what the sender left there
        frame.extend(payload);
        frame
    }

    #[test]
    fn a_udp_datagram_gets_a_sum_that_click_wire_takes() {
        for vlan in [false, true] {
            let mut frame = udp4(b"odd", vlan);
            frame.extend([0; 18]); // padding is not summed
            assert!(complete(&mut frame));
            let at = if vlan { 38 } else { 34 };
            let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            click_wire::udp::Repr::parse(&frame[at..at + 11], from, to).unwrap();
        }
    }

    #[test]
    fn ipv6_tcp_is_summed_with_its_addresses() {
        let mut frame = [[2; 6], [4; 6]].concat();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 21, TCP, 64]);
        frame.extend([[0x11; 16], [0x22; 16]].concat());
        frame.extend([7; 21]);
        assert!(complete(&mut frame));
        let pseudo = add(0, &frame[22..54]) + u64::from(TCP) + 21;
        assert_eq!(finish(add(pseudo, &frame[54..])), 0);
    }

    #[test]
    fn fragments_and_other_protocols_are_left_alone() {
        let mut fragment = udp4(b"x", false);
        fragment[20] = 0x20;
        let mut icmp = udp4(b"x", false);
        icmp[23] = 1;
        for mut frame in [fragment, icmp] {
            let before = frame.clone();
            assert!(!complete(&mut frame));
            assert_eq!(frame, before);
        }
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..120), kind in 0..3usize) {
            if let Some(at) = frame.get_mut(12..14) {
                at.copy_from_slice(&[IPV4, IPV6, VLAN][kind]);
            }
            let length = frame.len();
            complete(&mut frame);
            prop_assert_eq!(frame.len(), length);
        }

        #[test]
        fn a_lying_length_never_reaches_beyond_the_frame(cut in 0..60usize, lie in any::<u16>()) {
            let mut frame = udp4(&[7; 20], false);
            frame[16..18].copy_from_slice(&lie.to_be_bytes());
            frame.truncate(cut);
            complete(&mut frame);
        }
    }
}
