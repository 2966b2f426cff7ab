// SPDX-License-Identifier: Apache-2.0
//! Tables that a guest takes along to another host (docs/adr/0070).

use click_core::Router;

use crate::devices::{devices, environment};

const CONFIG: &str = "
    FromDevice(0) -> [0] sw :: EtherSwitch -> Queue -> ToDevice(0);
    FromDevice(1) -> [1] sw [1] -> Queue -> ToDevice(1);
    arp :: ARPQuerier(10.0.0.1, 02:00:00:00:00:01) -> Discard;
    Idle -> arp; Idle -> [1] arp;
    table :: ARPTable;
";
const SECOND_NS: u64 = 1_000_000_000;

fn router() -> Router {
    let environment = environment(&devices::<2>());
    Router::build("t", CONFIG, &click_elements::registry(), environment, 1).unwrap()
}

fn read(router: &mut Router, name: &str, now_s: u64) -> String {
    let value = router.read_handler(name, "", now_s * SECOND_NS).unwrap();
    String::from_utf8(value).unwrap()
}

#[test]
fn addresses_keep_their_age() {
    for (name, state, table) in [
        (
            "sw",
            "switch 1\n02-00-00-00-00-09 1 4000\n02-00-00-00-00-08 0 1000\n",
            "-09 1\n",
        ),
        (
            "arp",
            "arp 1\n10.0.0.9 02-00-00-00-00-09 4000\n",
            " 1 02-00-00-00-00-09 4.000000",
        ),
        (
            "table",
            "arp 1\n10.0.0.9 02-00-00-00-00-09 4000\n",
            " 1 02-00-00-00-00-09 4.000000",
        ),
    ] {
        let (mut router, handler) = (router(), format!("{name}.state"));
        let writes = [(handler.as_str(), state.as_bytes())];
        router.write_handlers(&writes, 1000 * SECOND_NS).unwrap();
        assert_eq!(read(&mut router, &handler, 1000), state);
        let text = read(&mut router, &format!("{name}.table"), 1000);
        assert!(text.contains(table), "{text}");
        assert!(read(&mut router, &handler, 1002).contains(" 6000\n"));
    }
}

#[test]
fn what_is_no_state_changes_nothing() {
    let mut router = router();
    for (handler, text) in [
        ("sw.state", ""),
        ("sw.state", "switch 2\n"),
        ("sw.state", "switch 1\n02-00-00-00-00-09 2 0\n"),
        ("sw.state", "switch 1\n02-00-00-00-00 1 0\n"),
        ("sw.state", "switch 1\n02-00-00-00-00-09 1 -1\n"),
        ("arp.state", "arp 1\n10.0.0.999 02-00-00-00-00-09 0\n"),
        ("arp.state", "arp 1\n10.0.0.9 02-00-00-00-00-+9 0\n"),
        ("table.state", "switch 1\n"),
    ] {
        let writes = [(handler, text.as_bytes())];
        let refused = router.write_handlers(&writes, SECOND_NS).unwrap_err();
        assert!(refused.to_string().contains("line "), "{text}: {refused}");
        let table = handler.replace("state", "table");
        assert_eq!(read(&mut router, &table, 1), "", "{text}");
    }
}

/// What an element reads as its state is a state that it takes, also with each number as long as it can be.
#[test]
fn the_largest_entry_of_each_kind_is_taken() {
    const CONFIG: &str = "
        Idle -> ip :: IPRewriter(drop) -> Discard; Idle -> tcp :: TCPRewriter(drop) -> Discard;
        Idle -> udp :: UDPRewriter(drop) -> Discard; Idle -> ping :: ICMPPingRewriter(drop) -> Discard;
        Idle -> one :: IPAddrRewriter(drop) -> Discard; Idle -> pair :: IPAddrPairRewriter(drop) -> Discard;
        Idle -> [0] g :: FlowGuard -> Discard; Idle -> [1] g [1] -> Discard; Idle -> [2] g [2] -> Discard;
        pool :: ServerPool(10.0.2.1, 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff, SRC6 2001:db8:2::1); Idle -> pool;
        Idle -> b :: IP6Balancer(2001:db8:7777:7777:7777:7777:7777:7777, pool); Idle -> [1] b;
        b [0] -> Discard; b [1] -> Discard; b [2] -> Discard;
        Idle -> s :: PPPoEServer(02:00:00:00:00:01, 10.0.0.1, NETWORKS6 2001:db8:9::/56, NETWORK 255.0.0.0/8);
        s [0] -> Discard; Idle -> [1] s; s [1] -> Discard; Idle -> [2] s; s [2] -> Discard; s [3] -> Discard;
    ";
    let long = "255.255.255.255 65535 255.255.255.254 65534";
    let steps = "/4294967295:-2147483648".repeat(16);
    let shift = format!("-2147483648{steps}");
    let age = u64::from(u32::MAX);
    let flow = |protocol: u8, ids: &str| format!("0 {protocol} 255 255 0 0 {age} {ids}");
    let six =
        "2001:db8:1111:1111:1111:1111:1111:1111 65535 2001:db8:7777:7777:7777:7777:7777:7777 80";
    let side = "15/4294967295/4294967295/4294967295/14";
    let guarded = format!("6 {six} out {age} 11 {side} {side}");
    let grant = format!("0,0,4294967295,4294967295,4294967295{}", ",ff".repeat(4));
    let session = format!(
        "100 FE-FF-FF-FF-FF-FE eve 255.255.255.254 4294967295 1492 {age} 9 9 9 9 9 9 9 - {grant}"
    );
    let ping = "255.255.255.255 65533 255.255.255.254 65534";
    for (handler, head, entry) in [
        (
            "ip",
            "ip-rewriter",
            format!("{} {long} {shift} {shift}", flow(6, long)),
        ),
        (
            "tcp",
            "tcp-rewriter",
            format!("{} {long} {shift} {shift}", flow(6, long)),
        ),
        ("udp", "udp-rewriter", flow(33, &format!("{long} {long}"))),
        ("ping", "ping-rewriter", flow(1, &format!("{ping} {ping}"))),
        (
            "one",
            "address-rewriter",
            flow(0, "255.255.255.255 0 0.0.0.0 0 255.255.255.254 0 0.0.0.0 0"),
        ),
        (
            "pair",
            "pair-rewriter",
            flow(
                0,
                "255.255.255.255 0 255.255.255.254 0 255.255.255.253 0 255.255.255.252 0",
            ),
        ),
        ("g", "flowguard", guarded.clone()),
        ("s", "pppoe", session),
        (
            "b",
            "balancer",
            format!("{guarded} 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ),
    ] {
        let environment = environment(&devices::<1>());
        let mut router =
            Router::build("t", CONFIG, &click_elements::registry(), environment, 1).unwrap();
        let (handler, text) = (format!("{handler}.state"), format!("{head} 1\n{entry}\n"));
        let now_s = u64::from(u32::MAX);
        for text in [text.clone(), text] {
            let writes = [(handler.as_str(), text.as_bytes())];
            router.write_handlers(&writes, now_s * SECOND_NS).unwrap();
            assert_eq!(read(&mut router, &handler, now_s), text);
        }
    }
}
