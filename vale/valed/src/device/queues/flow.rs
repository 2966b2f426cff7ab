// SPDX-License-Identifier: Apache-2.0
//! The flow of a frame, which chooses the receiver's queue.
//!
//! The ports of TCP and UDP belong to a flow. The parts of a fragmented datagram have no ports in
//! common, so a fragment's flow has the addresses only. Other protocols have the addresses only, too.
use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::frame::gso::Transport;
use crate::frame::headers::{IPV4, IPV6, be16};

/// Bytes of two ports.
const PORTS: usize = 4;

/// A hash of the flow of a frame, whose IP packet begins at `payload`. None if it is no IP.
/// `head` is the frame, or its start.
pub fn hash(head: &[u8], payload: usize) -> Option<u64> {
    let kind = be16(head, payload.checked_sub(2)?)?;
    let packet = head.get(payload..)?;
    let addresses = match kind {
        IPV4 => packet.get(12..20)?,
        IPV6 => packet.get(8..40)?,
        _ => return None,
    };
    let transport = Transport::parse(head).map(|transport| transport.l4);
    let ports = transport.and_then(|l4| head.get(l4..l4 + PORTS));
    let mut hasher = FxHasher::default();
    hasher.write(addresses);
    hasher.write(ports.unwrap_or_default());
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const ARP: u16 = 0x0806;
    const FRAGMENT: u8 = 44;

    fn frame(kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), packet].concat()
    }

    /// A frame of IPv4 from 10.0.0.`from` with a header of 24 bytes, if it `has_option`.
    fn v4(protocol: u8, from: u8, fragment: u16, port: u16, has_option: bool) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let first = if has_option { 0x46 } else { 0x45 };
        let mut packet = vec![first, 0, 0, 28, 0, 0, high, low, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, from, 10, 0, 0, 9]);
        packet.extend(vec![1; if has_option { 4 } else { 0 }]);
        packet.extend([&port.to_be_bytes()[..], &[0, 80, 0, 8, 0, 0]].concat());
        frame(IPV4, &packet)
    }

    fn v6(protocol: u8, from: u8, port: u16) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, protocol, 64];
        packet.extend([[from; 16], [9; 16]].concat());
        packet.extend([&port.to_be_bytes()[..], &[0, 80, 0, 8, 0, 0]].concat());
        frame(IPV6, &packet)
    }

    fn different(frames: impl IntoIterator<Item = Vec<u8>>) -> usize {
        let hashes = frames.into_iter().map(|frame| hash(&frame, 14).unwrap());
        hashes.collect::<HashSet<_>>().len()
    }

    #[test]
    fn ports_of_tcp_and_udp_and_all_addresses_make_flows() {
        for protocol in [TCP, UDP] {
            assert_eq!(different((0..50).map(|n| v4(protocol, 1, 0, n, false))), 50);
            assert_eq!(different((0..50).map(|n| v4(protocol, 1, 0, n, true))), 50);
            assert_eq!(different((0..50).map(|n| v6(protocol, 1, n))), 50);
        }
        for protocol in [TCP, UDP, 1, FRAGMENT] {
            assert_eq!(different((0..50).map(|n| v4(protocol, n, 0, 7, false))), 50);
            assert_eq!(different((0..50).map(|n| v6(protocol, n, 7))), 50);
        }
    }

    /// Their bytes at the place of the ports are no ports.
    #[test]
    fn parts_of_a_datagram_and_messages_without_ports_are_one_flow() {
        let parts = [0x2000, 0x2003, 6].into_iter().enumerate();
        let parts = parts.map(|(n, part)| v4(UDP, 1, part, n as u16, false));
        assert_eq!(different(parts), 1);
        assert_eq!(different((0..9).map(|n| v4(1, 1, 0x4000, n, false))), 1);
        assert_eq!(different((0..9).map(|n| v6(FRAGMENT, 1, n))), 1);
        assert_eq!(different((0..9).map(|n| v6(58, 1, n))), 1);
    }

    #[test]
    fn a_tag_changes_no_flow() {
        let plain = v4(TCP, 1, 0, 7, false);
        let tagged = [&[2; 12][..], &[0x81, 0, 0, 5], &plain[12..]].concat();
        assert_eq!(hash(&plain, 14), hash(&tagged, 18));
        assert!(hash(&plain, 14).is_some());
    }

    #[test]
    fn other_frames_have_no_flow_and_short_ones_harm_nothing() {
        assert_eq!(hash(&frame(ARP, &[0; 40]), 14), None);
        for whole in [v4(TCP, 1, 0, 7, true), v6(TCP, 1, 7)] {
            for end in 0..whole.len() {
                for payload in [0, 1, 14, 18, 99, usize::MAX] {
                    hash(&whole[..end], payload);
                }
            }
            assert_eq!(hash(&whole[..30], 14), None, "no addresses");
        }
    }

    /// Neighbouring numbers reach all queues.
    #[test]
    fn neighbouring_flows_lie_in_all_queues() {
        for queues in 2..=super::super::MAX as u64 {
            let mut counts = vec![0; queues as usize];
            for port in 40_000..40_256 {
                let found = hash(&v4(TCP, 1, 0, port, false), 14).unwrap();
                counts[(found % queues) as usize] += 1;
            }
            let least = 256 / queues / 2;
            assert!(counts.iter().all(|count| *count > least), "{counts:?}");
        }
    }
}
