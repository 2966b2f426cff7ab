// SPDX-License-Identifier: Apache-2.0
//! Rewriters and flow elements stand whatever packets come, hold no more flows than they may, and undo what they did.

use click_core::{Environment, Progress, Router};
use proptest::prelude::*;

use crate::devices::{Memory, devices, environment};

fn router(config: &str) -> (Router, [Memory; 2]) {
    let devices = devices();
    let environment = Environment {
        entropy: click_core::Entropy::new(&[7; 32]),
        ..environment(&devices)
    };
    match Router::build("t", config, &click_elements::registry(), environment, 1) {
        Ok(router) => (router, devices),
        Err(errors) => panic!("{errors:#?}"),
    }
}

/// Bytes that look like an IP packet, more or less.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![Just(1u8), Just(6), Just(17), any::<u8>()];
    let hosts = (0u8..4, 0u8..4);
    (
        prop::collection::vec(any::<u8>(), 0..120),
        kind,
        hosts,
        0u8..4,
        any::<bool>(),
    )
        .prop_map(|(mut bytes, kind, hosts, port, plain)| {
            if let Some(header) = bytes.get_mut(..20) {
                header[0] = if plain { 0x45 } else { header[0] };
                header[6] &= if plain { 0 } else { 0x3f };
                header[7] &= if plain { 0 } else { 0xff };
                header[9] = kind;
                header[12..16].copy_from_slice(&[10, 0, 0, hosts.0]);
                header[16..20].copy_from_slice(&[10, 0, 0, hosts.1]);
            }
            if let Some(ports) = bytes.get_mut(20..24) {
                ports.copy_from_slice(&[0, port, 0, hosts.0]);
            }
            bytes
        })
}

const EVERYTHING: &str = r"
    FromDevice(0) -> MarkIPHeader -> t :: Tee(8);
    FromDevice(1) -> MarkIPHeader -> t2 :: Tee(8);
    q :: Queue(8) -> ToDevice(1);
    ip :: IPRewriter(pattern 9.0.0.1 1-9 - - 0 1, pass 1, MAPPING_CAPACITY 5, GUARANTEE 0, REPLY_ANNO PAINT);
    pb :: PortBlockMapper(10.0.0.0/29, 9.0.0.8/31, BLOCK 2, FIRST_PORT 1, LAST_PORT 9);
    tcp :: TCPRewriter(keep 0 1, pattern 9.0.0.1 1-9? 9.0.0.2 7 0 1, pb, MAPPING_CAPACITY ip);
    udp :: UDPRewriter(rr, sh, sp, pb, MAPPING_CAPACITY 5, GUARANTEE 0);
    rr :: RoundRobinIPMapper(9.0.0.3 1-2# - - 0 1, - - 9.0.0.4 - 1 0);
    sh :: SourceIPHashMapper(5 5, - - 9.0.0.4 - 0 1 1, - - 9.0.0.5 - 1 0 2);
    sp :: ServerPool(10.0.0.3, 10.0.0.1, 10.0.0.2, PORT 1, INTERVAL 0.01) -> q;
    addr :: IPAddrRewriter(pattern 9.0.0.1-9.0.0.3 - 0 1, drop, CAPACITY 3, GUARANTEE 0);
    pair :: IPAddrPairRewriter(pattern 9.0.0.1-9.0.0.3 - 0 1, drop, CAPACITY 3, GUARANTEE 0);
    ping :: ICMPPingRewriter(pattern 9.0.0.1 - 0-5 0 1, drop, CAPACITY 3, GUARANTEE 0);
    t[0] -> [0] ip -> q; ip[1] -> q;
    t[1] -> FTPPortMapper(tcp, udp, 0) -> [0] tcp -> q; tcp[1] -> q;
    t[2] -> [0] udp -> q; udp[1] -> q;
    t[3] -> [0] addr -> q; addr[1] -> q;
    t[4] -> [0] pair -> q; pair[1] -> q;
    t[5] -> [0] ping -> q; ping[1] -> q;
    t[6] -> er :: ICMPRewriter(ip tcp udp addr pair ping) -> q; er[1] -> q;
    t[7] -> x :: IPFIXExporter(CAPACITY 4) -> af :: AggregateIPFlows(CAPACITY 4, ICMP true) -> ac :: AggregateCounter(CAPACITY 2, BYTES true, IP_BYTES true) -> q; af[1] -> q; x[1] -> q;
    t2[0] -> [1] ip; t2[1] -> [1] tcp; t2[2] -> [1] udp; t2[3] -> t3 :: Tee(3); t2[4] -> sp; t2[5] -> [2] udp; t2[6] -> [2] tcp; t2[7] -> [3] udp;
    t3[0] -> [1] addr; t3[1] -> [1] pair; t3[2] -> [1] ping;
";

/// Runs until nothing is left to do.
fn run(router: &mut Router, from_ns: u64) {
    for slice in 0..100 {
        if let Progress::Idle { .. } = router.run(from_ns + slice) {
            return;
        }
    }
}

fn number(router: &mut Router, handler: &str) -> usize {
    let value = router.read_handler(handler, "", 1).unwrap();
    String::from_utf8(value).unwrap().trim().parse().unwrap()
}

/// A packet with right checksums.
fn whole(kind: u8, source: [u8; 4], sport: u16, text: &[u8]) -> Vec<u8> {
    use click_wire::{checksum, ipv4, udp};
    let (header, at) = if kind == 6 { (20, 16) } else { (8, 6) };
    let mut bytes = vec![0; 20 + header];
    bytes.extend(text);
    let length = u16::try_from(header + text.len()).unwrap();
    let ip = ipv4::Repr {
        tos: 0,
        id: 9,
        fragment: 0,
        ttl: 64,
        protocol: kind,
        source: source.into(),
        destination: [8, 8, 8, 8].into(),
        payload_len: length,
    };
    ip.emit(&mut bytes);
    let (from, to) = (ip.source, ip.destination);
    if kind == 17 {
        let ports = udp::Repr {
            source: sport,
            destination: 53,
        };
        ports.emit(&mut bytes[20..], from, to);
        return bytes;
    }
    bytes[20..24].copy_from_slice(&[(sport >> 8) as u8, sport as u8, 0, 53]);
    bytes[32] = 0x50;
    let sum = checksum::add(checksum::pseudo(from, to, kind, length), &bytes[20..]);
    bytes[20 + at..22 + at].copy_from_slice(&checksum::finish(sum).to_be_bytes());
    bytes
}

/// The packet that answers this one: addresses and ports change places, which no checksum notices.
fn answer(packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    bytes[12..20].rotate_left(4);
    bytes[20..24].rotate_left(2);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn packets(packets in prop::collection::vec((0usize..2, packet()), 1..60)) {
        let (mut router, devices) = router(EVERYTHING);
        for (n, (device, packet)) in packets.into_iter().enumerate() {
            devices[device].borrow_mut().input.push_back(packet);
            run(&mut router, n as u64 * 1_000_000_000);
            for name in ["ip", "tcp", "udp", "addr", "pair", "ping"] {
                let size = number(&mut router, &format!("{name}.size"));
                prop_assert!(size <= number(&mut router, &format!("{name}.capacity")), "{name}");
            }
            prop_assert!(number(&mut router, "af.size") <= 4);
        }
        router.write_handlers(&[("af.clear", b"")], u64::MAX / 2).unwrap();
        run(&mut router, u64::MAX / 2);
        prop_assert_eq!(router.packets_in_use(), 0);
    }

    #[test]
    fn there_and_back(
        tcp in any::<bool>(),
        source in any::<[u8; 4]>(),
        sport in any::<u16>(),
        text in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let (mut router, devices) = router(
            "rw :: IPRewriter(pattern 203.0.113.1 1024-65535? - - 0 1, drop);
             FromDevice(0) -> CheckIPHeader -> [0] rw [0] -> Queue -> ToDevice(1);
             FromDevice(1) -> CheckIPHeader -> [1] rw [1] -> Queue -> ToDevice(0);",
        );
        prop_assume!(source[0] != 255 && source != [0; 4]);
        let sent = whole(if tcp { 6 } else { 17 }, source, sport, &text);
        devices[0].borrow_mut().input.push_back(sent.clone());
        run(&mut router, 0);
        let out = devices[1].borrow_mut().output.pop().unwrap();
        prop_assert_eq!(&out[12..16], &[203, 0, 113, 1]);
        devices[1].borrow_mut().input.push_back(answer(&out));
        run(&mut router, 100);
        let back = devices[0].borrow_mut().output.pop().unwrap();
        prop_assert_eq!(back, answer(&sent));
    }

    /// A flow that was opened on one host is answered on another one, after a time.
    #[test]
    fn a_flow_goes_on_elsewhere(
        tcp in any::<bool>(),
        source in any::<[u8; 4]>(),
        sport in any::<u16>(),
        away_s in 0u64..250,
    ) {
        prop_assume!(source[0] != 255 && source != [0; 4]);
        let (mut before, devices) = router(NAT);
        let sent = whole(if tcp { 6 } else { 17 }, source, sport, b"text");
        devices[0].borrow_mut().input.push_back(sent.clone());
        run(&mut before, HOUR_NS);
        let out = devices[1].borrow_mut().output.pop().unwrap();
        let state = before.read_handler("rw.state", "", HOUR_NS).unwrap();
        // As it is read: writing that changes nothing.
        let pattern = before.read_handler("rw.pattern0", "", HOUR_NS).unwrap();
        // The other host's clock is another one.
        let (mut after, devices) = router(NAT);
        let writes = [("rw.state", state.as_slice()), ("rw.pattern0", &pattern)];
        after.write_handlers(&writes, 3 * HOUR_NS).unwrap();
        let now_ns = 3 * HOUR_NS + away_s * 1_000_000_000;
        devices[1].borrow_mut().input.push_back(answer(&out));
        run(&mut after, now_ns);
        let back = devices[0].borrow_mut().output.pop().unwrap();
        prop_assert_eq!(back, answer(&sent));
    }

    /// A second router has what a first one has learned, however it came about.
    #[test]
    fn state_is_carried_whole(packets in prop::collection::vec((0usize..2, packet()), 1..60)) {
        let (mut before, devices) = router(EVERYTHING);
        for (n, (device, packet)) in packets.into_iter().enumerate() {
            devices[device].borrow_mut().input.push_back(packet);
            run(&mut before, HOUR_NS + n as u64 * 1_000_000);
        }
        let now_ns = HOUR_NS + 1_000_000_000;
        let (mut after, _) = router(EVERYTHING);
        for name in STATES {
            let state = before.read_handler(name, "", now_ns).unwrap();
            after.write_handlers(&[(name, &state)], now_ns).unwrap();
            let same = after.read_handler(name, "", now_ns).unwrap();
            prop_assert_eq!(
                String::from_utf8(same).unwrap(), String::from_utf8(state).unwrap(), "{}", name);
        }
    }

    /// A stranger's text is refused or taken, and changes nothing else.
    #[test]
    fn strangers_texts(lines in prop::collection::vec(line(), 0..8), head in 0usize..4) {
        let (mut router, devices) = router(EVERYTHING);
        for (name, kind) in STATES.into_iter().zip(KINDS) {
            let head = [kind, "ip-rewriter 2", "", "arp 1"][head];
            let text = format!("{head}\n{}", lines.join("\n"));
            let taken = router.write_handlers(&[(name, text.as_bytes())], HOUR_NS).is_ok();
            prop_assert!(!taken || head == kind, "{name}: {text}");
            let size = number(&mut router, &name.replace("state", "size"));
            let most = number(&mut router, &name.replace("state", "capacity"));
            prop_assert!(size <= most, "{name}");
            let merge = name.replace("state", "merge");
            let before = router.read_handler(name, "", HOUR_NS).unwrap();
            router.write_handlers(&[(merge.as_str(), before.as_slice())], HOUR_NS).unwrap();
            let lost = name.replace("state", "merge_lost");
            prop_assert_eq!(number(&mut router, &lost), 0, "the same flows again");
            prop_assert_eq!(before, router.read_handler(name, "", HOUR_NS).unwrap());
            // The text may have two flows for one address and port, so some of them may be lost.
            let merged = router.write_handlers(&[(merge.as_str(), text.as_bytes())], HOUR_NS).is_ok();
            prop_assert_eq!(merged, taken, "{}: {}", name, text);
            prop_assert!(number(&mut router, &name.replace("state", "size")) <= most, "{name}");
        }
        devices[0].borrow_mut().input.push_back(whole(6, [10, 0, 0, 1], 7, b""));
        run(&mut router, HOUR_NS);
    }
}

const HOUR_NS: u64 = 3_600_000_000_000;
const NAT: &str = "rw :: IPRewriter(pattern 203.0.113.1 1024-65535? - - 0 1, drop);
    FromDevice(0) -> CheckIPHeader -> [0] rw [0] -> Queue -> ToDevice(1);
    FromDevice(1) -> CheckIPHeader -> [1] rw [1] -> Queue -> ToDevice(0);";
const STATES: [&str; 6] = [
    "ip.state",
    "tcp.state",
    "udp.state",
    "addr.state",
    "pair.state",
    "ping.state",
];
const KINDS: [&str; 6] = [
    "ip-rewriter 1",
    "tcp-rewriter 1",
    "udp-rewriter 1",
    "address-rewriter 1",
    "pair-rewriter 1",
    "ping-rewriter 1",
];

/// A line that is nearly a flow.
fn line() -> impl Strategy<Value = String> {
    let number = prop_oneof![0u64..4, Just(6), Just(17), Just(65_536), any::<u64>()];
    let word = prop_oneof![
        8 => number.prop_map(|n| n.to_string()),
        4 => (0u8..3).prop_map(|n| format!("10.0.0.{n}")),
        1 => Just("-1".to_string()),
        1 => Just("0/1:2".to_string()),
        1 => "[ -~]{0,8}",
    ];
    let address = (0u8..3).prop_map(|n| format!("10.0.0.{n}"));
    let ids = prop::collection::vec((address, 0u16..4), 4);
    let proper = (
        0u8..3,
        prop_oneof![Just(6u8), Just(17), Just(0), Just(1)],
        ids,
    )
        .prop_map(|(input, protocol, ids)| {
            let ids: Vec<String> = ids
                .iter()
                .map(|(ip, port)| format!("{ip} {port}"))
                .collect();
            format!("{input} {protocol} 255 0 0 1 5 {}", ids.join(" "))
        });
    let garbage = prop::collection::vec(word, 0..18).prop_map(|words| words.join(" "));
    prop_oneof![proper, garbage]
}
