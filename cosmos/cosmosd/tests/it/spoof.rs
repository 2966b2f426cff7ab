// SPDX-License-Identifier: Apache-2.0
//! A hostile guest cannot send with addresses that are not its own. Needs root and NOXEN_PREFIX.

use cosmos_testbed::{GuestSpec, PATIENCE, TestPort, Testbed, eventually, uuid};
use serde_json::json;
use vale_proto::Counters;

/// Frames that the guest sends of each kind.
const FRAMES: u64 = 50;
/// Kinds of forged frames, by the name of their source.
const FORGED: [&str; 4] = ["mac", "ip", "arp", "tagged"];
/// The guest may use 02:00:00:01:01:00 with 10.0.0.1; the test's port is 02:00:00:00:00:01, and
/// 10.0.0.99 and 02:00:00:00:00:63 are somebody else's.
const CONFIG: &str = r"
define($ME 02:00:00:01:01:00, $OTHER 02:00:00:00:00:63, $TO 02:00:00:00:00:01);

mac :: InfiniteSource(LIMIT 50, ACTIVE false) -> EtherEncap(0x88b5, $OTHER, $TO) -> out :: Queue(1000);
ip :: InfiniteSource(LIMIT 50, ACTIVE false,
    DATA \<4500001c 00010000 40110000 0a000063 0a000002 00350035 00080000>)
    -> EtherEncap(0x0800, $ME, $TO) -> out;
arp :: InfiniteSource(LIMIT 50, ACTIVE false,
    DATA \<0001 0800 0604 0002 020000010100 0a000063 020000000001 0a000002>)
    -> EtherEncap(0x0806, $ME, $TO) -> out;
tagged :: InfiniteSource(LIMIT 50, ACTIVE false,
    DATA \<0005 0800 4500001c 00010000 40110000 0a000063 0a000002 00350035 00080000>)
    -> EtherEncap(0x8100, $ME, $TO) -> out;
honest :: InfiniteSource(LIMIT 50, ACTIVE false,
    DATA \<4500001c 00010000 40110000 0a000001 0a000002 00350035 00080000>)
    -> EtherEncap(0x0800, $ME, $TO) -> out;

out -> ToDevice(0);
FromDevice(0) -> Discard;
";

fn counters(bed: &Testbed, port: &str) -> Counters {
    let ports = bed.vale().port_list(None).expect("valed answers");
    let port = ports.into_iter().find(|p| p.port.as_str() == port);
    port.expect("the port is listed").counters
}

fn send(bed: &Testbed, source: &str) {
    let writes = json!([[format!("{source}.active"), "true"]]);
    let args = json!({"uuid": uuid(1), "rid": 0, "writes": writes, "timeout_ms": 50_000});
    bed.call("handler-write", args)
        .expect("the source is switched on");
}

#[test]
fn forged_source_addresses_are_dropped_and_counted() {
    let bed = Testbed::start();
    let mut victim = TestPort::add(&mut bed.vale(), 1, 1);
    let spec = GuestSpec::new(1, &bed.engine_sha256(), CONFIG).secure_vif(1, "10.0.0.1/32");
    bed.call("create", spec.args()).unwrap();
    let mut forged = 0;
    for source in FORGED {
        send(&bed, source);
        forged += FRAMES;
        eventually(&format!("{source}: all {forged} are judged"), || {
            let seen = counters(&bed, "g1-0");
            (seen.rx_packets >= forged).then_some(())
        });
        let dropped = counters(&bed, "g1-0");
        let by_reason = dropped.dropped_spoof + dropped.dropped_type;
        assert_eq!(by_reason, forged, "{source}");
        assert_eq!(counters(&bed, "t1").tx_packets, 0, "{source}");
    }
    // The same guest with its own addresses: the switch does not merely drop everything.
    send(&bed, "honest");
    for _ in 0..FRAMES {
        let packet = victim.receive(PATIENCE).expect("an honest frame");
        assert_eq!(packet[12..16], [10, 0, 0, 1]);
    }
    assert_eq!(counters(&bed, "t1").tx_packets, FRAMES);
    assert_eq!(counters(&bed, "g1-0").dropped_type, FRAMES, "the tagged");
    assert_eq!(counters(&bed, "g1-0").dropped_spoof, forged - FRAMES);
}
