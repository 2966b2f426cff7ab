// SPDX-License-Identifier: Apache-2.0
//! IPv6 elements stand whatever packets come; what is translated to IPv6 and back is as it was.

use click_core::{Progress, Router};
use click_wire::{ipv4, udp};
use proptest::prelude::*;

use crate::devices::{Memory, devices, environment};

/// A router with two devices.
fn router(config: &str) -> (Router, [Memory; 2]) {
    let devices = devices();
    let environment = environment(&devices);
    match Router::build("t", config, &click_elements::registry(), environment, 1) {
        Ok(router) => (router, devices),
        Err(errors) => panic!("{errors:#?}"),
    }
}

/// What leaves by device 1 when `packets` come in at device 0.
fn sent(config: &str, packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let (mut router, devices) = router(config);
    devices[0].borrow_mut().input.extend(packets);
    let mut slices = 0..10_000;
    while slices.next().is_some() {
        if let Progress::Idle { .. } = router.run(slices.start) {
            break;
        }
    }
    assert!(devices[0].borrow().input.is_empty());
    assert_eq!(router.packets_in_use(), 0);
    devices[1].borrow().output.clone()
}

const EVERYTHING: &str = "
    q :: Queue(100) -> ToDevice(1);
    FromDevice(0) -> t :: Tee(7);
    t[0] -> c :: CheckIP6Header(::1) -> GetIP6Address(24) -> r :: LookupIP6Route(::/1 0, 8000::/1 ::7 1) -> q;
    r[1] -> d :: DecIP6HLIM -> SetIP6DSCP(9) -> ping :: ICMP6PingResponder -> q; ping[1] -> IP6Mirror -> IP6Fragmenter(60) -> q;
    d[1] -> ICMP6Error(::2, 3, 0) -> q;
    c[1] -> MarkIP6Header(1) -> IP6Print(x, CONTENTS true) -> ICMP6Error(::2, 4, 0) -> q;
    t[1] -> MarkIP6Header(7) -> DecIP6HLIM -> IP6Mirror -> SetIP6DSCP(1) -> ICMP6Error(::2, 137, 0) -> q;
    t[2] -> ProtocolTranslator46 -> CheckIP6Header -> q;
    t[3] -> ProtocolTranslator64 -> CheckIPHeader -> q;
    t[4] -> SetIP6Address(::9) -> IP6Encap(4, ::1, DST_ANNO) -> UDPIP6Encap(::1, 2, ::3, 4) -> q;
    t[5] -> [0] at :: AddressTranslator(1, 0, ::1 ::2, 1, 1, 0, ::9 1 9) -> q;
    t[6] -> [1] at [1] -> q;
";

/// Bytes that look like a packet of one of the versions, more or less, with an ICMP error among them.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()];
    let protocol = prop_oneof![Just(1u8), Just(6), Just(17), Just(58), any::<u8>()];
    let rest = prop::collection::vec(prop_oneof![Just(0u8), Just(0x45), any::<u8>()], 0..140);
    (start, protocol, rest, 0u8..5, any::<bool>()).prop_map(
        |(start, protocol, mut bytes, kind, whole)| {
            let length = bytes.len();
            let mut put = |at: usize, value: u8| bytes.get_mut(at).map(|byte| *byte = value);
            put(0, start);
            let (protocol_at, length_at, length, header) = match start >> 4 {
                6 => (6, 5, length.saturating_sub(40), 40),
                _ => (9, 3, length, 20),
            };
            put(protocol_at, protocol);
            put(header, kind);
            if whole {
                put(length_at, u8::try_from(length).unwrap());
                put(length_at - 1, 0);
                for at in if header == 40 { 8..18 } else { 6..8 } {
                    put(at, 0);
                }
            }
            bytes
        },
    )
}

/// A UDP packet without options that may not be divided.
fn datagram(text: &[u8], ttl: u8, tos: u8) -> Vec<u8> {
    let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let mut bytes = vec![0; ipv4::HEADER + udp::HEADER];
    bytes.extend(text);
    let header = ipv4::Repr {
        tos,
        id: 0,
        fragment: ipv4::DONT_FRAGMENT,
        ttl,
        protocol: ipv4::UDP,
        source,
        destination,
        payload_len: u16::try_from(udp::HEADER + text.len()).unwrap(),
    };
    header.emit(&mut bytes);
    let ports = udp::Repr {
        source: 7,
        destination: 53,
    };
    ports.emit(&mut bytes[ipv4::HEADER..], source, destination);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn packets(packets in prop::collection::vec(packet(), 1..40)) {
        sent(EVERYTHING, packets);
    }

    #[test]
    fn there_and_back(text in prop::collection::vec(any::<u8>(), 0..60), ttl: u8, tos: u8) {
        let config = "FromDevice(0) -> ProtocolTranslator46 -> CheckIP6Header -> ProtocolTranslator64
            -> Queue -> ToDevice(1);";
        let packet = datagram(&text, ttl, tos);
        prop_assert_eq!(sent(config, vec![packet.clone()]), [packet]);
    }
}
