// SPDX-License-Identifier: Apache-2.0
//! Nothing a tenant or a packet says makes the engine panic or hang, and no buffer is lost.

use click_core::{Environment, Limits, Router};
use proptest::prelude::*;

use crate::devices::{self, Memory};

fn environment(limits: Limits) -> (Environment, [Memory; 2]) {
    let devices = devices::devices();
    let environment = Environment {
        limits,
        ..devices::environment(&devices)
    };
    (environment, devices)
}

/// Every element that reads packets, one behind the other and side by side.
const EVERYTHING: &str = "
    FromDevice(0) -> t :: Tee(12);
    FromDevice(1) -> Strip(14) -> t2 :: Tee(7);
    q :: Queue(8) -> Print(x, ACTIVE false) -> ToDevice(1);
    t[0] -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, 60000/00, -);
    arp :: ARPQuerier(10.0.0.1/24, vif0, CAPACITY 3, ENTRY_CAPACITY 4) -> q;
    c[0] -> r :: ARPResponder(0.0.0.0/0 vif0) -> q; r[1] -> q;
    c[1] -> [1] arp;
    c[2] -> Strip(14) -> chk :: CheckIPHeader(CHECKSUM false) -> f :: IPFilter(
        allow icmp type echo, deny tcp opt syn, allow src port 80) -> ttl :: DecIPTTL -> arp;
    c[3] -> Unstrip(20) -> EtherEncap(1, vif0, vif1) -> q;
    c[4] -> EtherMirror -> q;
    chk[1] -> MarkIPHeader -> ICMPError(10.0.0.1, 3) -> q;
    ttl[1] -> ICMPError(10.0.0.1, timeexceeded) -> q;
    t[1] -> MarkIPHeader -> ICMPError(10.0.0.1, parameterproblem, MTU 40) -> q;
    t[2] -> MarkIPHeader(14) -> DecIPTTL -> GetIPAddress(16) -> arp;
    t[3] -> [1] arp;
    t[4] -> EtherRewrite(vif0, vif1) -> Counter -> Paint(3) -> CheckPaint(3) -> q;
    wg :: WireGuard(0.0.0.0, 0, \"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE= 10.0.0.9:1 0.0.0.0/0\",
        PRIVATE_KEY AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=);
    t[7] -> Strip(14) -> [0] wg [0] -> q; t[8] -> Strip(14) -> [1] wg [1] -> q;
    pppoe :: PPPoEServer(02:00:00:00:00:00, 10.0.0.1, \"a 10.0.0.2\", PASSWORDS \"a b\",
        NETWORKS6 2001:db8::/48, SRC 10.0.0.1, RADIUS 10.0.0.9, SECRET key);
    t[9] -> [0] pppoe [0] -> q; t[10] -> Strip(14) -> [1] pppoe [1] -> q;
    t[11] -> Strip(14) -> [2] pppoe [2] -> q; pppoe[3] -> q;
    t[6] -> MarkIPHeader -> IPCompress(0) -> StoreData(9, \\<6c>) -> IPDecompress(3000) -> q;
    t2[0] -> MarkIPHeader -> cl :: IPClassifier(ip[0:4] & 0xff 3, tcp[12:2] > 7, icmp type 8, transp[0] 1,
        ip frag ? src port > 5 : dst host 1.2.3.4, ether host vif0, -);
    cl => [0-6] n :: { input[0-6] -> [0] output };
    n -> q;
    t2[3] -> CheckARPHeader -> ARPPrint(x, ETHER true) -> StoreEtherAddress(1:2:3:4:5:6, src) -> q;
    t2[4] -> CheckIPHeader2 -> sw :: ListenEtherSwitch -> q; sw[1] -> q;
    t2[1] -> CheckIPHeader -> DecIPTTL -> q;
    t[5] -> h :: HostEtherFilter(vif0, false, false) -> StripEtherVLANHeader -> MarkIPHeader -> ip :: Tee(9);
    ip[0] -> IPPrint(x, CONTENTS HEX) -> IPPrint(y, PAYLOAD ASCII) -> Discard;
    ip[1] -> SetIPChecksum -> SetUDPChecksum -> SetTCPChecksum(true) -> IPMirror -> q;
    ip[2] -> CheckTCPHeader -> CheckUDPHeader -> Discard;
    ip[3] -> CheckICMPHeader -> ICMPPingResponder -> q;
    ip[4] -> g :: IPGWOptions(1.2.3.4) -> fr :: IPFragmenter(28, false) -> StripIPHeader -> UnstripIPHeader -> q; g[1] -> q;
    rt :: RadixIPLookup(0.0.0.0/1 1.2.3.4 0, 10.0.0.0/8 1) -> q; rt[1] -> q;
    ip[5] -> oc :: IPOutputCombo(0, 1.2.3.4, 60) -> rt; oc[1] -> rt; oc[2] -> rt; oc[3] -> rt; oc[4] -> rt;
    ip[6] -> StoreIPAddress(1.2.3.4, src) -> StoreIPAddress(1.2.3.4, 30) -> SetIPDSCP(7) -> MarkIPCE(true) -> q;
    ip[7] -> TruncateIPPayload(3) -> EraseIPPayload -> EnsureEther -> VLANEncap(3) -> VLANDecap -> q;
    ip[8] -> ICMPPingEncap(1.0.0.1, 2.0.0.2) -> UDPIPEncap(1.0.0.1, 2, DST_ANNO, 4) -> IPEncap(4, 1.2.3.4, DST_ANNO) -> q;
    t2[2] -> Unstrip(14) -> Unstrip(300) -> Unstrip(9000) -> q;
    t2[6] -> MarkIPHeader -> th :: Tee(4) -> StripTCPHeader -> UnstripIPHeader -> StripIPHeader -> StripTCPHeader -> q;
    th[1] -> GTPDecap -> StripTCPHeader -> GTPEncap(0) -> GTPDecap -> rr :: PaintRR -> q; rr[1] -> q;
    th[2] -> NumberPacket(30) -> CheckNumberPacket(3, 40) -> rec :: RecordTimestamp(OFFSET 2, DYNAMIC true, N 9) -> q;
    th[3] -> rec2 :: RecordTimestamp(OFFSET 0) -> td :: TimestampDiff(rec2, OFFSET 1, N 3, TC_OFFSET 70) -> q; td[1] -> q;
    t2[5] -> MarkIPHeader -> IPRateMonitor(BYTES, 0.9, 1) -> cb :: CompareBlock(1, 1, 1) -> AggregateIP(payload[4:2])
        -> AggregateIP(tcp dport, INCREMENTAL true) -> AggregateLength(IP true)
        -> AggregateFirst(CAPACITY 4) -> AggregateFilter(allow 0-100) -> GetEtherAddress(20, src)
        -> SetEtherAddress(1:2:3:4:5:6, 26) -> SetTimestamp(FIRST true) -> Queue(4) -> CoDel -> Unqueue -> q; cb[1] -> q;
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn packets(frames in prop::collection::vec((0usize..2, frame()), 1..60)) {
        let limits = Limits { packet_buffers: 64, ..Limits::default() };
        let (environment, devices) = environment(limits);
        let config = EVERYTHING;
        let mut router = match Router::build("t", config, &click_elements::registry(), environment, 1) {
            Ok(router) => router,
            Err(errors) => panic!("{errors:#?}"),
        };
        for (device, frame) in frames {
            devices[device].borrow_mut().input.push_back(frame);
        }
        for slice in 0..50u64 {
            router.run(slice * 50_000_000);
        }
        prop_assert!(devices.iter().all(|d| d.borrow().input.is_empty()));
        let mut count = |handler| {
            let text = router.read_handler(handler, "", 1).unwrap();
            String::from_utf8(text).unwrap().parse::<usize>().unwrap()
        };
        let waiting = count("arp.length") + count("wg.waiting");
        prop_assert_eq!(router.packets_in_use(), waiting);
    }

    #[test]
    fn configurations(words in prop::collection::vec(word(), 0..60)) {
        let limits = Limits { elements: 50, connections: 100, config_bytes: 4000, ..Limits::default() };
        let _ = Router::build("t", &words.concat(), &click_elements::registry(), environment(limits).0, 1);
    }

    #[test]
    fn texts(text in "\\PC{0,200}") {
        let _ = Router::build("t", &text, &click_elements::registry(), environment(Limits::default()).0, 1);
    }

    #[test]
    fn patterns(words in prop::collection::vec(pattern_word(), 0..15)) {
        reads_back(&words.join(" "));
    }

    #[test]
    fn handlers(name in "[a-z/@.]{0,12}", value in any::<Vec<u8>>()) {
        let (environment, _) = environment(Limits::default());
        let mut router = Router::build("t", EVERYTHING, &click_elements::registry(), environment, 1).unwrap();
        let _ = router.write_handlers(&[(&name, &value)], 1);
        for info in router.handlers().into_iter().filter(|h| h.name != "stop") {
            let _ = router.write_handlers(&[(&info.name, &value)], 1);
            let _ = router.read_handler(&info.name, &String::from_utf8_lossy(&value), 1);
        }
        router.run(2);
    }
}

/// A frame: mostly something like ARP or IP, with any field wrong.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        Just(vec![
            2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1
        ]),
        Just(vec![
            2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2
        ]),
        Just(vec![
            2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9, 8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 2, 6
        ]),
        Just(vec![
            2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9, 8, 0, 0x4f, 0, 0xff, 0xff, 0, 0, 0, 0, 1, 1
        ]),
        Just(vec![
            2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9, 0x88, 0x63, 0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0
        ]),
        Just(vec![
            2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9, 0x88, 0x64, 0x11, 0, 0, 1, 0, 10, 0xc0, 0x21, 1, 1
        ]),
        Just(vec![]),
    ];
    let change = prop::option::of((0usize..40, any::<u8>()));
    (start, prop::collection::vec(any::<u8>(), 0..80), change).prop_map(
        |(mut frame, rest, change)| {
            frame.extend(rest);
            if let Some((at, value)) = change {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            frame
        },
    )
}

fn word() -> impl Strategy<Value = String> {
    let words = [
        "a",
        "b",
        " :: ",
        " -> ",
        " => ",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "0",
        "1",
        ",",
        ";",
        "||",
        "|",
        "...",
        "$x",
        "${",
        "elementclass ",
        "define(",
        "require(",
        "provide(",
        "input",
        "output",
        "Queue",
        "Tee",
        "Counter",
        "Idle",
        "IPFilter",
        "FromDevice(0)",
        "ToDevice(1)",
        "Discard",
        "\"",
        "'",
        "\\<",
        "//",
        "/*",
        "*/",
        "\n",
        "\n# 3 \"f\"\n",
        "allow ",
        "12/0800",
        "A",
        "__REST__ ",
        "-",
        "\u{fc}",
        "=",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_string)
}

/// A filter's own listing means the same when it is read again.
fn reads_back(pattern: &str) {
    let config = format!("FromDevice(0) -> f :: IPFilter(allow {pattern}) -> Discard");
    let (environment, _) = environment(Limits::default());
    let Ok(mut router) = Router::build("t", &config, &click_elements::registry(), environment, 1)
    else {
        return;
    };
    let rules = |router: &mut Router| {
        String::from_utf8(router.read_handler("f.rules", "", 1).unwrap()).unwrap()
    };
    let first = rules(&mut router);
    let shown = first.trim().rsplit('\t').next().unwrap();
    let rule = format!("allow {shown}");
    router
        .write_handlers(&[("f.config", rule.as_bytes())], 1)
        .unwrap_or_else(|e| panic!("{pattern}: {e}: {shown}"));
    assert_eq!(first, rules(&mut router), "{pattern}");
}

#[test]
fn what_is_always_or_never_true_is_read_back() {
    for pattern in [
        "ect < 80",
        "ect >= 80",
        "ip proto < 0",
        "src tcp port >= 0",
        "ip tos > 255",
        "not ip ttl <= 255",
        "transp tos 80",
        "tcpudp ttl 1",
    ] {
        reads_back(pattern);
    }
}

fn pattern_word() -> impl Strategy<Value = String> {
    let words = [
        "src",
        "dst",
        "and",
        "or",
        "not",
        "(",
        ")",
        "host",
        "net",
        "port",
        "tcp",
        "udp",
        "icmp",
        "type",
        "ip",
        "ether",
        "proto",
        "tos",
        "ttl",
        "frag",
        "unfrag",
        "ect",
        "ce",
        "vers",
        "hl",
        "len",
        "id",
        "dscp",
        "opt",
        "win",
        "syn",
        "www",
        "echo",
        "10.0.0.1",
        "10.0.0.0/8",
        "1:2:3:4:5:6",
        "80",
        "0",
        "255",
        "0x10",
        "==",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        "&",
        "[",
        "]",
        "0:2",
        "?",
        ":",
        "true",
        "false",
        "mask",
        "255.0.0.0",
        "transp",
        "tcpudp",
        "-",
        "all",
        "dccp",
        "igmp",
        "47",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_string)
}
