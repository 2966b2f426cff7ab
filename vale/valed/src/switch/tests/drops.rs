// SPDX-License-Identifier: Apache-2.0
//! Frames that the switch drops: beyond a rate, against a filter, with a wrong address or form.
use super::*;

#[test]
fn rates_and_budgets_drop_with_a_reason() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let _uplink = bench.try_add("up", json!({})).unwrap();
    let few = |args: Value| PortLimits::new(&serde_json::from_value(args).unwrap());
    let send = |bench: &mut Bench, a: &mut Guest, b: &mut Guest, destination| {
        for _ in 0..4 {
            (0..32).for_each(|_| a.send(&frame(destination, mac(1), 60)));
            bench.round();
            b.received();
        }
    };
    let limits = few(json!({"group_per_s": 1, "unknown_per_s": 1}));
    assert!(bench.switch.set_limits(&a.name, limits));
    for (sent, destination) in [(1, Mac([255; 6])), (2, mac(9)), (2, mac(2))] {
        send(&mut bench, &mut a, &mut b, destination);
        assert_eq!(bench.counters(&a).dropped_flood, sent * 64);
    }
    assert!(
        bench
            .switch
            .set_limits(&a.name, few(json!({"rx": {"packets_per_s": 1}})))
    );
    assert!(
        bench
            .switch
            .set_limits(&b.name, few(json!({"tx": {"bits_per_s": 1}})))
    );
    send(&mut bench, &mut a, &mut b, mac(2));
    assert_eq!(bench.counters(&a).dropped_rate, 64);
    let same = few(json!({"rx": {"packets_per_s": 1}}));
    assert!(bench.switch.set_limits(&a.name, same));
    send(&mut bench, &mut a, &mut b, mac(2));
    assert_eq!(bench.counters(&a).dropped_rate, 192, "no new tokens");
    assert_eq!(bench.counters(&b).dropped_rate, 0);
    bench.scratch.now = 60_000_000_000;
    send(&mut bench, &mut a, &mut b, mac(2));
    assert_eq!(
        bench.counters(&a).dropped_rate,
        192 + 68,
        "a minute brought 60"
    );
}

/// All ports of a segment share its rates and budgets; other segments have their own.
#[test]
fn the_ports_of_a_segment_share_its_limits() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 2));
    let _others = (
        bench.guest(4, 1),
        bench.guest(5, 2),
        bench.try_add("up", json!({})).unwrap(),
    );
    let few = |args: Value| PortLimits::new(&serde_json::from_value(args).unwrap());
    let dropped = |bench: &Bench, of: fn(&Counters) -> u64| {
        bench.switch.infos().map(|p| of(&p.counters)).sum::<u64>()
    };
    for (limits, destination, counter) in [
        (
            json!({"group_per_s": 1}),
            BROADCAST,
            (|c| c.dropped_flood) as fn(&Counters) -> u64,
        ),
        (json!({"unknown_per_s": 1}), mac(9), |c| c.dropped_flood),
        (json!({"rx": {"packets_per_s": 1}}), mac(4), |c| {
            c.dropped_rate
        }),
        (json!({"tx": {"packets_per_s": 1}}), mac(4), |c| {
            c.dropped_rate
        }),
    ] {
        bench.switch.set_segment_limits(1, few(limits.clone()));
        let before = dropped(&bench, counter);
        for sender in [&mut a, &mut b, &mut c] {
            (0..50).for_each(|_| sender.send(&frame(destination, sender_mac(sender), 60)));
        }
        // Copies of flooded frames cost a port turns.
        (0..20).for_each(|_| bench.round());
        // A bucket holds 64 tokens, and the ports of segment 1 sent 100 frames.
        assert_eq!(dropped(&bench, counter) - before, 36, "{limits}");
        bench.switch.set_segment_limits(1, few(json!({})));
        for guest in [&mut a, &mut b, &mut c] {
            guest.received();
        }
    }
    assert_eq!(bench.switch.segment_limits().count(), 0);
}

#[test]
fn a_filtered_port_is_closed_from_the_start_and_keeps_a_filter_it_has() {
    let mut bench = Bench::new();
    let closed = json!({"mac": mac(1), "filtered": true});
    let mut a = bench.try_add("a", closed).unwrap();
    let mut b = bench.guest(2, 1);
    let packet = udp(1, 2, [0, 7, 0, 7], 60);
    let send = |bench: &mut Bench, a: &mut Guest, b: &mut Guest| {
        a.send(&packet);
        bench.round();
        b.received().len()
    };
    assert_eq!(send(&mut bench, &mut a, &mut b), 0);
    assert_eq!(bench.counters(&a).dropped_filter, 1);
    let rules = ["egress".parse().unwrap()];
    let mut filter = Some(Box::new(Filter::new(&rules)));
    assert!(bench.switch.set_filter(&a.name, &mut filter));
    assert_eq!(send(&mut bench, &mut a, &mut b), 1);
    let mut same = Some(Box::new(Filter::new(&rules)));
    assert!(bench.switch.set_filter(&a.name, &mut same));
    b.send(&udp(2, 1, [0, 7, 0, 7], 60));
    bench.round();
    assert_eq!(a.received().len(), 1, "the connection is known still");
    let info = bench.switch.infos().next().unwrap().filter.unwrap();
    let counts = (info.ingress_rules, info.egress_rules, info.connections);
    assert_eq!(counts, (0, 1, 1));
}

#[test]
fn a_filter_admits_answers_only_and_judges_long_frames_too() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let rules = ["egress,udp,53".parse().unwrap()];
    let mut filter = Some(Box::new(Filter::new(&rules)));
    assert!(bench.switch.set_filter(&a.name, &mut filter));
    for len in [60, 1500] {
        let dropped = bench.counters(&a).dropped_filter;
        let high = if len == 60 { 1 } else { 2 };
        b.send(&udp(2, 1, [0, 53, high, 0], len));
        bench.round();
        assert!(a.received().is_empty(), "not asked for");
        a.send(&udp(1, 2, [high, 0, 0, 53], len));
        a.send(&udp(1, 2, [high, 0, 0, 54], len));
        bench.round();
        assert_eq!(b.received().len(), 1);
        b.send(&udp(2, 1, [0, 53, high, 0], len));
        b.send(&udp(2, 1, [0, 53, high, 1], len));
        bench.round();
        assert_eq!(a.received(), [udp(2, 1, [0, 53, high, 0], len)]);
        assert_eq!(bench.counters(&a).dropped_filter - dropped, 3);
    }
    assert!(bench.switch.set_filter(&a.name, &mut None));
    b.send(&udp(2, 1, [0, 1, 0, 1], 60));
    bench.round();
    assert_eq!(a.received().len(), 1);
}

#[test]
fn an_open_port_cannot_take_over_an_address() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut open = bench.open_guest(3, 1);
    open.send(&frame(mac(2), mac(1), 60));
    open.send(&frame(mac(2), mac(9), 60));
    bench.round();
    assert_eq!(b.received(), [frame(mac(2), mac(9), 60)]);
    assert_eq!(bench.counters(&open).dropped_loop, 1);
    b.send(&frame(mac(1), mac(2), 60));
    bench.round();
    assert_eq!(a.received().len(), 1);
    assert!(
        open.received().is_empty(),
        "known addresses are not its own"
    );
}

#[test]
fn spoofed_frames_are_dropped_and_counted() {
    let mut bench = Bench::new();
    let security =
        json!({"mac": mac(1), "port_security": true, "allowed": [{"ip": "10.0.0.1/32"}]});
    let mut a = bench.try_add("a", security).unwrap();
    let mut b = bench.guest(2, 1);
    a.send(&frame(mac(2), mac(9), 60));
    let mut wrong_ip = frame(mac(2), mac(1), 60);
    wrong_ip[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6]);
    a.send(&wrong_ip);
    let mut right = wrong_ip.clone();
    right[26..30].copy_from_slice(&[10, 0, 0, 1]);
    a.send(&right);
    bench.round();
    assert_eq!(b.received(), [right]);
    let counters = bench.counters(&a);
    assert_eq!((counters.dropped_spoof, counters.rx_packets), (2, 3));
}

#[test]
fn each_refusal_has_its_counter() {
    let mut bench = Bench::new();
    let security =
        json!({"mac": mac(1), "port_security": true, "allowed": [{"ip": "10.0.0.1/32"}]});
    let mut a = bench.try_add("a", security).unwrap();
    let mut b = bench.guest(2, 1);
    a.send(&frame(mac(2), mac(1), 60));
    let mut packet = frame(mac(2), mac(1), 60);
    packet[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 1]);
    packet[26..30].copy_from_slice(&[10, 0, 0, 1]);
    let changed = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        packet
    };
    for (at, value) in [(17, 47), (34, 5), (21, 1), (29, 9)] {
        a.send(&changed(at, value));
    }
    bench.round();
    assert!(b.received().is_empty());
    let expected = Counters {
        rx_packets: 5,
        rx_bytes: 300,
        bursts: 1,
        dropped_type: 1,
        dropped_malformed: 1,
        dropped_rogue: 1,
        dropped_hidden: 1,
        dropped_spoof: 1,
        ..Counters::default()
    };
    assert_eq!(bench.counters(&a), expected.with_earlier_names());
    a.send(&changed(34, 8));
    bench.round();
    assert_eq!(b.received(), [changed(34, 8)]);
}

/// 01:80:c2:00:00:00 to 0f, and MAC control and slow protocols to any address.
#[test]
fn link_control_enters_by_no_port() {
    let mut bench = Bench::new();
    let mut b = bench.guest(2, 1);
    let mut uplink = bench.try_add("uplink", json!({})).unwrap();
    for (name, security) in [("open", false), ("secure", true)] {
        let mut a = bench
            .try_add(name, json!({"mac": mac(1), "port_security": security}))
            .unwrap();
        let mut sent = 0;
        for last in 0..16 {
            a.send(&frame(Mac([1, 0x80, 0xc2, 0, 0, last]), mac(1), 60));
            sent += 1;
        }
        for (destination, header) in [
            (mac(2), [0x88, 0x08, 0, 1, 0xff, 0xff]),
            (Mac([0xff; 6]), [0x88, 0x09, 1, 1, 0, 0]),
            (mac(2), [0x81, 0, 0, 5, 0x88, 0x08]),
        ] {
            let mut control = frame(destination, mac(1), 60);
            control[12..18].copy_from_slice(&header);
            a.send(&control);
            sent += 1;
        }
        bench.round();
        assert_eq!(bench.counters(&a).dropped_link_control, sent, "{name}");
        assert!(b.received().is_empty() && uplink.received().is_empty());
        bench.switch.remove(&a.name);
    }
    let bridged = frame(Mac([1, 0x80, 0xc2, 0, 0, 0x10]), mac(2), 60);
    b.send(&bridged);
    bench.round();
    assert_eq!(
        uplink.received(),
        [bridged],
        "only the first 16 are reserved"
    );
}

#[test]
fn malformed_frames_and_descriptors_are_counted() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    a.send(&[1; 13]);
    a.send(&frame(mac(2), Mac([3, 0, 0, 0, 0, 0]), 60));
    bench.round();
    assert_eq!(
        bench.counters(&a).dropped_malformed,
        2,
        "short, group source"
    );
    a.ring.push(&[0; 60]).unwrap();
    rustix::io::pwrite(&a.fds[0], &[0xff; 8], 0x1000 + 2 * 8).unwrap();
    let _ = a.ring.publish();
    bench.round();
    let counters = bench.counters(&a);
    assert_eq!((counters.dropped_malformed, counters.rx_packets), (3, 2));
    assert_eq!(a.ring.space(), 63, "the bad slot was given back");
}
