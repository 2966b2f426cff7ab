// SPDX-License-Identifier: Apache-2.0
//! Rules decide packets on behalf of guests, and guests get all others.
use clickos_offload::View;
use vale_proto::Owner;

use super::*;
use crate::chain::Definition;
use crate::policy::offload_rules::OffloadTable;

fn table(rules: &[&str]) -> Option<OffloadTable> {
    let rules: Vec<_> = rules.iter().map(|r| r.parse().unwrap()).collect();
    Some(OffloadTable::new(1, &rules))
}

impl Bench {
    fn decide(&mut self, guest: &Guest, rules: &[&str]) {
        let (name, mut new) = (&guest.name, table(rules));
        assert!(self.switch.swap_offload_table(name, Owner::Guest, &mut new));
    }

    /// The hits of each rule of a port.
    fn hits(&self, guest: &Guest) -> Vec<u64> {
        let tables = self.switch.tables().filter(|t| t.port == guest.name);
        tables.flat_map(|t| t.rules).map(|rule| rule.hits).collect()
    }
}

/// A valid UDP packet between stations.
fn packet(from: u8, to: u8, port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    let frame = udp(from, to, [0, 7, high, low], 60);
    assert!(View::of(&frame, 60).unwrap().ip.is_some());
    frame
}

#[test]
fn a_dropped_packet_reaches_no_guest_and_is_counted() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1));
    bench.decide(&b, &["pass src 10.0.0.3", "drop proto 17 dport 53"]);
    for (from, port) in [(&mut a, 53), (&mut c, 53)] {
        let number = if from.name.as_str() == "p1-1" { 1 } else { 3 };
        from.send(&packet(number, 2, port));
        from.send(&packet(number, 2, 80));
        bench.round();
    }
    let got = b.received();
    assert_eq!(got, [packet(1, 2, 80), packet(3, 2, 53), packet(3, 2, 80)]);
    assert_eq!(bench.hits(&b), [2, 1]);
    let counters = bench.counters(&b);
    assert_eq!((counters.dropped_offload, counters.tx_packets), (1, 3));
    // Other ports are as before.
    a.send(&packet(1, 3, 53));
    bench.round();
    assert_eq!(c.received(), [packet(1, 3, 53)]);
}

/// A UDP packet of IPv6 between stations.
fn packet6(from: u8, to: u8, port: u16) -> Vec<u8> {
    let mut bytes = frame(mac(to), mac(from), 62);
    bytes[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    bytes[22..54].fill(0);
    (bytes[37], bytes[53]) = (from, to);
    bytes[54..60].copy_from_slice(&[0, 7, 0, port as u8, 0, 8]);
    bytes
}

#[test]
fn packets_of_ip6_are_decided_by_rules_of_ip6() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    bench.decide(&b, &["drop proto 17", "drop ip6 proto 17 dport 53"]);
    for port in [53, 80] {
        a.send(&packet6(1, 2, port));
        bench.round();
    }
    assert_eq!(b.received(), [packet6(1, 2, 80)]);
    assert_eq!(bench.hits(&b), [0, 1]);
}

#[test]
fn a_packet_of_a_wrong_header_stays_with_the_guest() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    bench.decide(&b, &["drop ip"]);
    let mut wrong = packet(1, 2, 53);
    wrong[24] ^= 1;
    let arp = frame(mac(2), mac(1), 60);
    for bytes in [&wrong, &packet(1, 2, 53), &arp] {
        a.send(bytes);
    }
    bench.round();
    assert_eq!(b.received(), [wrong, arp]);
    assert_eq!(bench.hits(&b), [1]);
}

#[test]
fn tables_change_between_two_packets_and_give_their_hits_back() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut sent = 0;
    let mut decided = 0;
    for n in 0..200u64 {
        let on = n % 2 == 0;
        let mut new = on.then(|| table(&["drop"]).unwrap());
        assert!(
            bench
                .switch
                .swap_offload_table(&b.name, Owner::Guest, &mut new)
        );
        let old = new.map(|t| t.info(&bench.switch.name, &b.name, Owner::Guest));
        decided += old.map_or(0, |old| old.rules[0].hits);
        for _ in 0..n % 7 {
            a.send(&packet(1, 2, 1));
            sent += 1;
        }
        bench.round();
        assert_eq!(b.received().is_empty(), on || n % 7 == 0);
    }
    let counters = bench.counters(&b);
    assert_eq!(counters.dropped_offload, decided);
    assert_eq!(counters.tx_packets + decided, sent);
    assert!(decided > 200, "{decided}");
}

#[test]
fn the_operator_judges_first_and_can_disable_a_guests_rules() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    bench.decide(&b, &["drop"]);
    let mut send = |bench: &mut Bench| {
        a.send(&packet(1, 2, 1));
        bench.round();
        b.received().len()
    };
    let name = "p1-2".parse().unwrap();
    assert_eq!(send(&mut bench), 0);
    let mut operators = table(&["pass proto 17"]);
    assert!(
        bench
            .switch
            .swap_offload_table(&name, Owner::Operator, &mut operators)
    );
    assert_eq!(send(&mut bench), 1);
    assert!(
        bench
            .switch
            .swap_offload_table(&name, Owner::Operator, &mut None)
    );
    assert_eq!(send(&mut bench), 0);
    assert!(
        bench
            .switch
            .enable_offload_table(&name, Owner::Guest, false)
    );
    assert_eq!(send(&mut bench), 1);
    let mut again = table(&["drop proto 17"]);
    assert!(
        bench
            .switch
            .swap_offload_table(&name, Owner::Guest, &mut again)
    );
    assert_eq!(send(&mut bench), 1, "the next table is disabled, too");
    assert!(bench.switch.enable_offload_table(&name, Owner::Guest, true));
    assert_eq!(send(&mut bench), 0);
    assert!(
        !bench
            .switch
            .enable_offload_table(&name, Owner::Operator, true)
    );
}

#[test]
fn a_filter_drops_before_a_rule_decides() {
    let mut bench = Bench::new();
    let (mut a, b) = (bench.guest(1, 1), bench.guest(2, 1));
    bench.decide(&b, &["drop"]);
    let mut filter = Some(Box::new(Filter::new(&["ingress,udp,80".parse().unwrap()])));
    assert!(bench.switch.set_filter(&b.name, &mut filter));
    a.send(&packet(1, 2, 53));
    a.send(&packet(1, 2, 80));
    bench.round();
    let counters = bench.counters(&b);
    assert_eq!((counters.dropped_filter, counters.dropped_offload), (1, 1));
    assert_eq!(bench.hits(&b), [1]);
}

#[test]
fn a_redirected_packet_comes_from_the_balancer() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1));
    bench.decide(&b, &["redirect 02:00:00:00:00:03 to 10.0.0.3 src 10.0.0.1"]);
    a.send(&packet(1, 2, 80));
    bench.round();
    assert!(b.received().is_empty());
    let mut expected = packet(1, 3, 80);
    expected[6..12].copy_from_slice(&mac(2).0);
    let got = c.received();
    assert_eq!(got[0][..14], expected[..14]);
    let seen = |frame: &[u8]| View::of(frame, frame.len()).unwrap().ip.unwrap();
    assert_eq!(seen(&got[0]), seen(&expected));
    assert_eq!(bench.hits(&b), [1]);
    let counters = bench.counters(&b);
    assert_eq!((counters.dropped_offload, counters.tx_packets), (0, 0));
}

#[test]
fn without_its_target_the_guest_gets_the_packet_unchanged() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let (mut c, _elsewhere) = (bench.guest(3, 1), bench.guest(4, 2));
    let cases = [
        "redirect 02:00:00:00:00:04 to 10.0.0.4", // Another segment.
        "redirect 02:00:00:00:00:02 to 10.0.0.2", // Itself.
        "redirect 02:00:00:00:00:09 to 10.0.0.9", // No station.
    ];
    for rule in cases {
        bench.decide(&b, &[rule]);
        a.send(&packet(1, 2, 80));
        bench.round();
        assert_eq!(b.received(), [packet(1, 2, 80)], "{rule}");
        assert_eq!(bench.hits(&b), [0], "{rule}");
    }
    bench.decide(&b, &["redirect 02:00:00:00:00:03"]);
    bench.switch.port_mut(&c.name).unwrap().face.link_up = false;
    a.send(&packet(1, 2, 80));
    bench.round();
    assert_eq!(b.received(), [packet(1, 2, 80)]);
    assert!(c.received().is_empty());
}

#[test]
fn flows_go_to_the_stations_of_a_rule_that_are_there() {
    let mut bench = Bench::new();
    let (mut a, b) = (bench.guest(1, 1), bench.guest(2, 1));
    let (mut c, mut d) = (bench.guest(3, 1), bench.guest(4, 1));
    bench.decide(&b, &["redirect 02:00:00:00:00:03 or 02:00:00:00:00:04"]);
    let mut spread = |bench: &mut Bench| {
        for port in 0..40 {
            a.send(&packet(1, 2, port));
        }
        bench.round();
        (c.received().len(), d.received().len())
    };
    let (to_c, to_d) = spread(&mut bench);
    assert_eq!(to_c + to_d, 40);
    assert!(to_c >= 10 && to_d >= 10, "{to_c} {to_d}");
    bench
        .switch
        .port_mut(&"p1-4".parse().unwrap())
        .unwrap()
        .face
        .link_up = false;
    assert_eq!(spread(&mut bench), (40, 0));
}

#[test]
fn two_balancers_make_no_circle() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1));
    bench.decide(&b, &["redirect 02:00:00:00:00:03"]);
    bench.decide(&c, &["redirect 02:00:00:00:00:02"]);
    a.send(&packet(1, 2, 80));
    bench.round();
    assert_eq!((b.received().len(), c.received().len()), (0, 1));
    assert_eq!((bench.hits(&b), bench.hits(&c)), (vec![1], vec![0]));
}

/// A guest reaches by a rule only what it reaches by sending.
#[test]
fn port_security_and_the_filter_of_the_balancer_judge_redirected_packets() {
    let mut bench = Bench::new();
    let (mut a, mut c) = (bench.guest(1, 1), bench.guest(3, 1));
    let secure =
        |allowed: &str| json!({"mac": mac(2), "port_security": true, "allowed": [{"ip": allowed}]});
    let b = bench.try_add("b", secure("10.0.0.2/32")).unwrap();
    bench.decide(&b, &["redirect 02:00:00:00:00:03"]);
    a.send(&packet(1, 2, 80));
    bench.round();
    assert!(c.received().is_empty());
    assert_eq!(bench.counters(&b).dropped_spoof, 1);
    bench.switch.remove(&b.name);
    let b = bench.try_add("b", secure("10.0.0.0/8")).unwrap();
    bench.decide(&b, &["redirect 02:00:00:00:00:03"]);
    let mut filter = Some(Box::new(Filter::new(&[
        "ingress,udp".parse().unwrap(),
        "egress,tcp".parse().unwrap(),
    ])));
    a.send(&packet(1, 2, 80));
    bench.round();
    assert_eq!(c.received().len(), 1);
    assert!(bench.switch.set_filter(&b.name, &mut filter));
    a.send(&packet(4, 2, 81));
    bench.round();
    let _ = c.received();
    assert_eq!(
        bench.counters(&b).dropped_filter,
        0,
        "an answer of a permitted flow"
    );
    let mut filter = Some(Box::new(Filter::new(&["ingress,tcp".parse().unwrap()])));
    assert!(bench.switch.set_filter(&b.name, &mut filter));
    a.send(&packet(1, 2, 82));
    bench.round();
    assert!(c.received().is_empty());
    assert_eq!(bench.counters(&b).dropped_filter, 1);
}

#[test]
fn a_guest_of_a_chain_is_spared_the_packets_of_its_hop() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut hop = bench
        .try_add("h1", json!({"segment": 2, "mac": mac(8)}))
        .unwrap();
    let _egress = bench
        .try_add("h2", json!({"segment": 2, "mac": mac(9)}))
        .unwrap();
    let chain = json!({"switch": "vale0", "chain": "web", "segment": 1,
        "classifiers": [{"source": "10.0.0.1/32"}],
        "hops": [{"pairs": [{"ingress": "h1", "egress": "h2"}]}]});
    bench
        .switch
        .set_chain(Definition::new(
            serde_json::from_value(chain).unwrap(),
            None,
        ))
        .unwrap();
    bench.decide(
        &hop,
        &["drop proto 17 dport 53 ether-dst 02:00:00:00:00:08"],
    );
    let trace = |bench: &Bench, frame: &[u8]| {
        let trace = bench
            .switch
            .trace(&"p1-1".parse().unwrap(), frame, 0)
            .unwrap()
            .trace;
        (
            trace.outputs.len(),
            trace.stages.last().unwrap().counter.clone(),
        )
    };
    let dropped = Some("dropped_offload".to_owned());
    assert_eq!(trace(&bench, &packet(1, 2, 53)), (0, dropped));
    assert_eq!(trace(&bench, &packet(1, 2, 80)).0, 1);
    a.send(&packet(1, 2, 53));
    a.send(&packet(1, 2, 80));
    bench.round();
    assert_eq!((hop.received().len(), b.received().len()), (1, 0));
    assert_eq!(bench.hits(&hop), [1]);
}
