// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::frame::gso::TxOffload;

fn gso(kind: u8, size: u16) -> Gso {
    let mut header = [1, kind, 0, 0, 0, 0, 34, 0, 6, 0];
    header[4..6].copy_from_slice(&size.to_ne_bytes());
    TxOffload::parse(&header, 65_000).unwrap().gso.unwrap()
}

fn v4(protocol: u8, l4: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([
        0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, protocol, 0xab, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend(l4);
    frame
}

fn v6(protocol: u8, l4: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
    frame.extend([0x20; 16]);
    frame.extend([0x21; 16]);
    frame.extend(l4);
    frame
}

fn tcp(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![
        0, 80, 0x10, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x80, flags, 1, 0, 0, 0, 0, 0,
    ];
    header.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    header.extend(payload);
    header
}

fn udp(payload: &[u8]) -> Vec<u8> {
    [&[0, 53, 0x10, 0, 0, 0, 0, 0][..], payload].concat()
}

fn all(frame: &[u8], gso: Gso) -> Vec<Vec<u8>> {
    let mut segments = Segments::new(frame, gso).unwrap();
    let (mut out, mut found) = (Vec::new(), Vec::new());
    while segments.next_into(&mut out) {
        assert!(out.len() <= segments.longest());
        found.push(out.clone());
    }
    found
}

/// Sums as a receiver does: header, then pseudo header and the rest; both must give 0.
fn assert_sums(frame: &[u8]) {
    let is_v6 = frame[12] == 0x86;
    let (addresses, l4, protocol) = if is_v6 {
        (22..54, 54, frame[20])
    } else {
        (26..34, 34, frame[23])
    };
    if !is_v6 {
        assert_eq!(finish(add(0, &frame[14..34])), 0, "IPv4 header");
        assert_eq!(usize::from(be16(frame, 16).unwrap()), frame.len() - 14);
    } else {
        assert_eq!(usize::from(be16(frame, 18).unwrap()), frame.len() - 54);
    }
    let length = (frame.len() - l4) as u64;
    let sum = add(u64::from(protocol) + length, &frame[addresses]);
    assert_eq!(finish(add(sum, &frame[l4..])), 0, "protocol {protocol}");
}

#[test]
fn tcp_over_ipv4_and_ipv6() {
    let payload: Vec<u8> = (0..3001u32).map(|n| n as u8).collect();
    for (frame, kind) in [
        (v4(TCP, &tcp(0xd9, &payload)), 1),
        (v6(TCP, &tcp(0xd9, &payload)), 4),
    ] {
        let segments = all(&frame, gso(kind, 1448));
        let headers = frame.len() - payload.len();
        let sizes: Vec<_> = segments.iter().map(|s| s.len() - headers).collect();
        assert_eq!(sizes, [1448, 1448, 105]);
        let l4 = headers - 32;
        let sequences: Vec<_> = segments
            .iter()
            .map(|s| octets(s, l4 + 4).map(u32::from_be_bytes).unwrap())
            .collect();
        assert_eq!(
            sequences,
            [
                0xffff_fff0,
                0xffff_fff0u32.wrapping_add(1448),
                0xffff_fff0u32.wrapping_add(2896)
            ]
        );
        let flags: Vec<_> = segments.iter().map(|s| s[l4 + 13]).collect();
        assert_eq!(
            flags,
            [0xd0, 0x50, 0x59],
            "CWR first only, FIN and PSH last only"
        );
        segments.iter().for_each(|s| assert_sums(s));
        let joined: Vec<u8> = segments
            .iter()
            .flat_map(|s| s[headers..].to_vec())
            .collect();
        assert_eq!(joined, payload);
    }
}

#[test]
fn ipv4_identification_counts_up_and_wraps() {
    let segments = all(&v4(TCP, &tcp(0x10, &[7; 30])), gso(1, 10));
    let ids: Vec<_> = segments.iter().map(|s| be16(s, 18).unwrap()).collect();
    assert_eq!(ids, [0xffff, 0, 1]);
}

#[test]
fn udp_segments_are_datagrams() {
    for frame in [v4(UDP, &udp(&[5; 250])), v6(UDP, &udp(&[5; 250]))] {
        let l4 = frame.len() - 258;
        let lengths: Vec<_> = all(&frame, gso(5, 100))
            .iter()
            .inspect(|s| assert_sums(s))
            .map(|s| be16(s, l4 + 4).unwrap())
            .collect();
        assert_eq!(lengths, [108, 108, 58]);
    }
}

/// A segment made by hand and summed with another implementation (Python, RFC 1071).
#[test]
fn a_known_checksum() {
    let segments = all(&v4(UDP, &udp(b"abcdefgh")), gso(5, 4));
    assert_eq!(segments[0][24..26], [0x26, 0xcb]);
    assert_eq!(segments[0][40..42], [0x16, 0xd8]);
}

#[test]
fn headers_that_do_not_fit_are_refused() {
    let tcp4 = v4(TCP, &tcp(0x10, &[1; 100]));
    let edited = |at: usize, value: u8| {
        let mut frame = tcp4.clone();
        frame[at] = value;
        frame
    };
    for (frame, why) in [
        (edited(14, 0x44), "IPv4 header too short"),
        (edited(20, 0x20), "a fragment"),
        (edited(21, 1), "a later fragment"),
        (edited(23, UDP), "not TCP"),
        (edited(12, 0x86), "not IP"),
        (edited(46, 0x40), "TCP header too short"),
        (tcp4[..66].to_vec(), "no payload"),
        (tcp4[..40].to_vec(), "cut in the TCP header"),
        (tcp4[..20].to_vec(), "cut in the IP header"),
    ] {
        assert!(Segments::new(&frame, gso(1, 100)).is_none(), "{why}");
    }
    assert!(
        Segments::new(&tcp4, gso(4, 100)).is_none(),
        "IPv6 said, IPv4 found"
    );
    assert!(
        Segments::new(&tcp4, gso(5, 100)).is_none(),
        "UDP said, TCP found"
    );
}
