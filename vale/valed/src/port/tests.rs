// SPDX-License-Identifier: Apache-2.0
//! Offloads and the guard: no frame that leaves may differ from a judged one in what counts.
use proptest::prelude::*;
use proptest::sample::select;
use ring::GuestPort;
use serde_json::json;
use vale_netdev::VNET_HEADER;
use vale_proto::Mac;

use super::*;
use crate::device::Burst;
use crate::device::fake_nic::FakeNic;
use crate::device::host_resources::HostResources;
use crate::frame::gso::TxOffload;
use crate::frame::headers::Ethernet;

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn port(name: &str, security: bool) -> (Port, GuestPort) {
    let add = json!({
        "switch": "vale0", "port": name, "kind": "process", "segment": 1, "slots": 256,
        "mtu": 1900, "port_security": security, "mac": Mac(OWN),
        "allowed": [{"ip": "10.9.0.5/32"}, {"ip": "2001:db8::5/128"}],
    });
    let (port, fds) = open(
        &serde_json::from_value(add).unwrap(),
        &HostResources::default(),
    )
    .unwrap();
    let ring = GuestPort::map(&fds[0]).unwrap();
    (port, ring)
}

fn frame(kind: [u8; 2], packet: &[&[u8]]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &OWN, &kind].concat();
    packet.iter().for_each(|part| frame.extend(*part));
    frame
}

fn ipv4(protocol: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let addresses = [10, 9, 0, 5, 10, 9, 0, 2];
    let header = [0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0];
    frame([8, 0], &[&header, &addresses, body])
}

fn ipv6(protocol: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (body.len() as u16).to_be_bytes();
    let own = "2001:db8::5".parse::<std::net::Ipv6Addr>().unwrap();
    let header = [0x60, 0, 0, 0, high, low, protocol, 255];
    frame([0x86, 0xdd], &[&header, &own.octets(), &[0xff; 16], body])
}

fn tcp() -> Vec<u8> {
    let mut segment = vec![
        0, 80, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
    ];
    segment.resize(3000, 7);
    segment
}

fn udp() -> Vec<u8> {
    let mut datagram = vec![0, 67, 0, 80, 0x0b, 0xb8, 0, 0];
    datagram.resize(3000, 7);
    datagram
}

fn advertisement() -> Vec<u8> {
    let target = "2001:db8::5".parse::<std::net::Ipv6Addr>().unwrap();
    [
        &[136, 0, 0, 0, 0x60, 0, 0, 0][..],
        &target.octets(),
        &[2, 1],
        &OWN,
    ]
    .concat()
}

fn arp() -> Vec<u8> {
    let fixed = [0, 1, 8, 0, 6, 4, 0, 2];
    frame(
        [8, 6],
        &[&fixed, &OWN, &[10, 9, 0, 5], &[0xff; 6], &[10, 9, 0, 2]],
    )
}

fn header(kind: u8, size: u16, start: u16, offset: u16) -> [u8; VNET_HEADER] {
    let mut header = [1, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    for (at, value) in [(4, size), (6, start), (8, offset)] {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }
    header
}

/// The frames that a guest behind another port gets.
fn delivered(security: bool, frame: &[u8], header: &[u8; VNET_HEADER]) -> Vec<Vec<u8>> {
    let Some(offload) = TxOffload::parse(header, frame.len()) else {
        return Vec::new();
    };
    let (sender, _) = port("from", security);
    let (mut receiver, mut ring) = port("to", false);
    let sent = FakeNic(offload, frame.to_vec());
    let mut burst = Burst::default();
    burst.heads[..frame.len()].copy_from_slice(frame);
    let taken = sent.taken(&mut burst, 0).unwrap();
    let judged = Ethernet::parse(taken.bytes)
        .and_then(|e| Some((e, sender.face.judge(&e, taken.bytes, None).ok()?)));
    let out = judged.and_then(|(e, checked_len)| TxFrame::new(taken, e.payload, checked_len));
    if let Some(mut out) = out {
        receiver.deliver(&mut out, &mut Buffers::default());
    }
    receiver.flush();
    let mut buffer = [0; ring::BUFFER_SIZE];
    std::iter::from_fn(|| ring.pop(&mut buffer).map(|len| buffer[..len].to_vec())).collect()
}

/// The source 10.9.0.5 would become 10.9.0.254 if the sum of what follows says so.
#[test]
fn no_checksum_lands_in_what_was_judged() {
    for frame in [
        ipv4(17, &udp()[..26]),
        ipv6(17, &udp()[..26]),
        arp(),
        ipv6(58, &advertisement()),
    ] {
        for start in 0..frame.len() as u16 {
            for offset in [0, 2, 6, 16] {
                let header = header(0, 0, start, offset);
                let checked_len = match frame[13] {
                    6 => frame.len(),
                    0 => 38,
                    _ if frame[20] == 58 => frame.len(),
                    _ => 58,
                };
                let field = usize::from(start + offset);
                let fits = field + 2 <= frame.len();
                let found = delivered(true, &frame, &header).len();
                assert_eq!(found == 1, field >= checked_len && fits, "{start}+{offset}");
                let found = delivered(false, &frame, &header).len();
                assert_eq!(found == 1, field >= 14 && fits, "{start}+{offset}");
            }
        }
    }
}

/// The kernel finds the transport header of a frame to be segmented by its checksum.
#[test]
fn a_segmented_frames_checksum_is_the_transports() {
    for (frame, kind, start, offset) in [
        (ipv4(6, &tcp()), 1, 34, 16),
        (ipv6(6, &tcp()), 4, 54, 16),
        (ipv4(17, &udp()), 5, 34, 6),
        (ipv6(17, &udp()), 5, 54, 6),
    ] {
        let count =
            |start, offset| delivered(true, &frame, &header(kind, 1000, start, offset)).len();
        assert_eq!(count(start, offset), 3);
        for (start, offset) in [
            (start - 1, offset + 1),
            (start, offset + 2),
            (start + 4, offset),
        ] {
            assert_eq!(count(start, offset), 0, "{kind}: {start}+{offset}");
        }
    }
}

proptest! {
    /// The guard admits each frame that comes out, for any virtio header.
    #[test]
    fn what_leaves_would_be_admitted_again(
        base in select(vec![ipv4(6, &tcp()), ipv4(17, &udp()), ipv6(6, &tcp()), ipv6(17, &udp()), ipv6(58, &advertisement()), arp()]),
        changes in prop::collection::vec((12usize..80, any::<u8>()), 0..3),
        kind in select(vec![0u8, 0, 1, 4, 5, 0x81]),
        size in select(vec![1u16, 8, 536, 1448, 65_535]),
        start in 0u16..80,
        offset in select(vec![0u16, 2, 6, 16, 20]),
    ) {
        let mut bytes = base;
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let (sender, _) = port("again", true);
        for start in [start, 34, 54] {
            for frame in delivered(true, &bytes, &header(kind, size, start, offset)) {
                let ethernet = Ethernet::parse(&frame).unwrap();
                prop_assert!(sender.face.guard.judge(&ethernet, &frame).is_ok());
            }
        }
    }

    /// The switch judges a long frame by its head. The bytes after those on which a verdict rests
    /// cannot change it.
    #[test]
    fn bytes_behind_the_judged_ones_change_no_verdict(
        base in select(vec![ipv4(6, &tcp()), ipv4(17, &udp()), ipv6(6, &tcp()), ipv6(58, &advertisement()), ipv6(0, &[6, 3, 1, 4, 0, 0, 0, 0, 1, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), arp()]),
        changes in prop::collection::vec((12usize..80, any::<u8>()), 0..3),
        filler in any::<u8>(),
    ) {
        let mut bytes = base;
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let (sender, _) = port("head", true);
        let Some(ethernet) = Ethernet::parse(&bytes) else {
            return Ok(());
        };
        if let Ok(judged) = sender.face.guard.judge(&ethernet, &bytes) {
            bytes[judged..].fill(filler);
            prop_assert_eq!(sender.face.guard.judge(&ethernet, &bytes), Ok(judged));
        }
    }
}
