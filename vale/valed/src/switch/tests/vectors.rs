// SPDX-License-Identifier: Apache-2.0
//! The stages of a burst decide as those of a single frame do.
use super::*;
use crate::dice::Dice;

pub fn limits(text: &Value) -> PortLimits {
    PortLimits::new(&serde_json::from_value(text.clone()).unwrap())
}

fn ipv4(dice: &mut Dice, ends: [u8; 2], protocol: u8, body: &[u8]) -> Vec<u8> {
    let header = 20 + 4 * dice.of(&[0, 0, 0, 1, 10]);
    let fragment = dice.of(&[0, 0, 0, 0, 0x20, 1]);
    ipv4_with(header, fragment, ends, protocol, body)
}

fn ipv4_with(header: usize, fragment: u8, ends: [u8; 2], protocol: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = ((header + body.len()) as u16).to_be_bytes();
    let mut packet = vec![0x40 | (header as u8 / 4), 0, high, low, 0, 1, fragment, 0];
    packet.extend([64, protocol, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
    packet.resize(header, 1);
    packet.extend(body);
    packet
}

fn ipv6(dice: &mut Dice, ends: [u8; 2], protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    let mut next = protocol;
    for _ in 0..dice.of(&[0, 0, 1, 9]) {
        rest.splice(0..0, [next, 0, 1, 4, 0, 0, 0, 0]);
        next = 60;
    }
    rest.extend(body);
    let [high, low] = (rest.len() as u16).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, high, low, next, 64];
    for end in ends {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    packet.extend(rest);
    packet
}

fn body(dice: &mut Dice, protocol: u8) -> Vec<u8> {
    let mut body = match protocol {
        1 => vec![dice.of(&[0, 3, 8, 11]), 0, 0, 0, 0, 7, 0, 0],
        58 => vec![dice.of(&[1, 2, 128, 129]), 0, 0, 0, 0, 7, 0, 0],
        _ => vec![0, dice.of(&[7, 53]), 0, dice.of(&[7, 53]), 0, 20, 0, 0],
    };
    if matches!(protocol, 1 | 58) && dice.below(2) == 0 {
        let ports = [0, dice.of(&[7, 53]), 0, dice.of(&[7, 53]), 0, 8, 0, 0];
        let ends = dice.of(&[[2, 1], [1, 2], [9, 1]]);
        body.extend(match protocol {
            1 => ipv4(dice, ends, 17, &ports),
            _ => ipv6(dice, ends, 17, &ports),
        });
    }
    body.resize(body.len() + dice.of(&[0, 1, 50, 200]), 3);
    body
}

/// A frame of the guest 1.
fn any_frame(dice: &mut Dice) -> Vec<u8> {
    let to = [mac(2), mac(2), mac(2), mac(3), mac(1), mac(7), BROADCAST];
    let from = [mac(1), mac(1), mac(1), mac(1), mac(1), mac(1), mac(9)];
    frame_between(dice, &from, &to)
}

/// Often a later frame of the same flow.
pub fn next_frame(
    dice: &mut Dice,
    before: &mut Vec<u8>,
    new: impl Fn(&mut Dice) -> Vec<u8>,
) -> Vec<u8> {
    if before.is_empty() || dice.below(2) == 0 {
        *before = new(dice);
        return before.clone();
    }
    let mut frame = before.clone();
    if dice.below(2) == 0 {
        let at = dice.below(frame.len().min(60));
        // The addresses of the frame stay: a port notes no more stations than the test has.
        let at = if at < 12 { 15 } else { at };
        frame[at] = dice.of(&[0, 1, 2, 8, 0x12, 0x40, 0xff]);
    }
    frame
}

pub fn frame_between(dice: &mut Dice, from: &[Mac], to: &[Mac]) -> Vec<u8> {
    let (to, from) = (dice.of(to), dice.of(from));
    let ends = [dice.of(&[1, 1, 1, 1, 9]), dice.of(&[2, 2, 3])];
    let protocol = dice.of(&[1, 6, 17, 58, 132]);
    let inner = body(dice, protocol);
    let (kind, packet) = match dice.below(8) {
        0 => ([0x88, 0xb5], inner),
        1 => ([8, 6], inner),
        2..5 => ([8, 0], ipv4(dice, ends, protocol, &inner)),
        _ => ([0x86, 0xdd], ipv6(dice, ends, protocol, &inner)),
    };
    let mut frame = [to.0, from.0].concat();
    if dice.below(8) == 0 {
        frame.extend([0x81, 0, 0, 0]);
    }
    frame.extend(kind);
    frame.extend(packet);
    frame.truncate(frame.len() - dice.of(&[0, 0, 0, 0, 1, 9]));
    frame.resize(frame.len().max(20), 0);
    frame
}

/// A mirror that copies nothing: the frames of the segment go one by one.
pub fn let_frames_go_alone(bench: &mut Bench) {
    let set = json!({"switch": "vale0", "mirror": "all", "segment": 1, "to_port": "nowhere"});
    let set: vale_proto::MirrorSet = serde_json::from_value(set).unwrap();
    let budget = crate::mirror::budget(&set);
    bench.switch.set_mirror(set, None, budget).unwrap();
}

/// Gives a port a filter of two random rules.
pub fn add_filter(bench: &mut Bench, port: &PortName, dice: &mut Dice) {
    const RULES: [&str; 7] = [
        "egress",
        "ingress",
        "ingress,udp,53",
        "egress,tcp",
        "ingress,icmp,3",
        "egress,ipv6",
        "egress,udp",
    ];
    let chosen = (0..2).map(|_| dice.of(&RULES).parse().unwrap());
    let mut filter = Some(Box::new(Filter::new(&chosen.collect::<Vec<_>>())));
    assert!(bench.switch.set_filter(port, &mut filter));
}

/// Three guests with random policies.
fn guests(bench: &mut Bench, dice: &mut Dice) -> Vec<Guest> {
    let secure = dice.below(2) == 0;
    let mut guests = Vec::new();
    for last in 1..=3 {
        let allowed =
            json!([{"ip": format!("10.0.0.{last}/32")}, {"ip": format!("2001:db8::{last}/128")}]);
        let allowed = if secure { allowed } else { json!([]) };
        let values = json!({"mac": mac(last), "port_security": secure, "allowed": allowed,
            "slots": 256, "mtu": dice.of(&[1500, 1500, 150])});
        let guest = bench.try_add(&format!("g{last}"), values).unwrap();
        if dice.below(2) == 0 {
            add_filter(bench, &guest.name, dice);
        }
        let rates = dice.of(&[0, 0, 1, 2]);
        let rates = &[
            json!({}),
            json!({"dscp": 46}),
            json!({"rx": {"packets_per_s": 100}, "tx": {"packets_per_s": 90}}),
        ][rates];
        assert!(bench.switch.set_limits(&guest.name, limits(rates)));
        guests.push(guest);
    }
    guests
}

/// What the ports of a policy got and counted.
fn outcome(seed: u64, is_alone: bool) -> (Vec<Vec<Vec<u8>>>, Vec<Counters>) {
    let mut dice = Dice(seed);
    let mut bench = Bench::new();
    let mut guests = guests(&mut bench, &mut dice);
    if is_alone {
        let_frames_go_alone(&mut bench);
    }
    let mut received = vec![Vec::new(); 3];
    let mut before = Vec::new();
    for _ in 0..4 {
        for _ in 0..50 {
            let sent = next_frame(&mut dice, &mut before, any_frame);
            guests[0].send(&sent);
        }
        bench.round();
        // Answers, so that there are connections.
        guests[1].send(&any_frame(&mut dice));
        bench.round();
        for (guest, received) in guests.iter_mut().zip(&mut received) {
            received.extend(guest.received());
        }
    }
    let counters = guests.iter().map(|guest| bench.counters(guest));
    (received, counters.collect())
}

#[test]
fn a_burst_is_decided_as_single_frames_are() {
    let mut passed = 0;
    for seed in 0..400 {
        let (burst, single) = (outcome(seed, false), outcome(seed, true));
        assert_eq!(burst.0, single.0, "seed {seed}");
        assert_eq!(burst.1, single.1, "seed {seed}");
        passed += burst.0.iter().map(Vec::len).sum::<usize>();
    }
    assert!(passed > 10_000, "{passed}");
}

/// A guest that passes frames on, as a hop.
fn pass_on(ends: &mut [Guest; 2]) {
    let [left, right] = ends.each_mut().map(|end| end.received());
    for (frames, to) in [(left, 1), (right, 0)] {
        for frame in frames {
            // A full ring loses frames.
            let _ = ends[to].ring.push(&frame);
        }
        let _ = ends[to].ring.publish();
    }
}

/// What the ports of guests, uplinks and a hop got and counted, and the chain.
fn steered(seed: u64, is_alone: bool) -> (Vec<Vec<Vec<u8>>>, Vec<Counters>, String) {
    let mut dice = Dice(seed);
    let mut bench = Bench::new();
    let mut ports = guests(&mut bench, &mut dice);
    for name in ["up", "other"] {
        ports.push(uplinks::uplink(&mut bench, name, json!({"slots": 256})));
    }
    // A port without an address, which learns nothing.
    ports.push(bench.try_add("bare", json!({"slots": 256})).unwrap());
    let secure = dice.below(2) == 0;
    let mut hop = [10, 11].map(|last| {
        let values = json!({"mac": mac(last), "slots": 256, "port_security": secure,
            "allowed": if secure { json!([{"ip": "0.0.0.0/0"}]) } else { json!([]) }});
        bench.try_add(&format!("h{last}"), values).unwrap()
    });
    let classifier = dice.below(5);
    let classifiers = json!([
        {"source_port": "g1"},
        {"source": "10.0.0.0/24"},
        {"source_port": "up", "protocol": 17},
        {"source_port": "g2", "destination_port": "g1"},
        {"source": "192.0.2.0/24"},
    ]);
    let set = json!({"switch": "vale0", "chain": "web", "segment": 1,
        "classifiers": [classifiers[classifier]], "symmetric": dice.below(2) == 0,
        "hops": [{"pairs": [{"ingress": "h10", "egress": "h11"}],
            "transparent": dice.below(2) == 0, "copies": dice.of(&[1, 2])}]});
    let set: ChainSet = serde_json::from_value(set).unwrap();
    set.check().unwrap();
    bench
        .switch
        .set_chain(crate::chain::Definition::new(set, None))
        .unwrap();
    if dice.below(3) == 0 {
        let rates = json!({"rx": {"packets_per_s": 5000}, "tx": {"packets_per_s": 1_000_000}});
        bench.switch.set_segment_limits(1, limits(&rates));
    }
    if dice.below(3) == 0 {
        let rules = ["drop proto 17 dport 53".parse().unwrap()];
        let table = crate::policy::offload_rules::OffloadTable::new(1, &rules);
        let (name, owner) = (&ports[1].name, vale_proto::Owner::Operator);
        assert!(
            bench
                .switch
                .swap_offload_table(name, owner, &mut Some(table))
        );
    }
    if is_alone {
        let_frames_go_alone(&mut bench);
    }
    let stations: Vec<_> = (50..54).map(mac).collect();
    let mut received = vec![Vec::new(); ports.len()];
    for now in 0..6 {
        bench.scratch.now = now * 1_000_000;
        for (n, port) in ports.iter_mut().enumerate() {
            let own = [mac(n as u8 + 1); 8];
            let from = if n < 3 { &own[..] } else { &stations[..] };
            let guests = [1, 1, 2, 2, 3].map(mac);
            let to = [&guests[..], &stations[..], &[BROADCAST][..]].concat();
            let mut before = Vec::new();
            for _ in 0..30 {
                let new = |dice: &mut Dice| frame_between(dice, from, &to);
                let sent = next_frame(&mut dice, &mut before, new);
                port.send(&sent);
            }
        }
        for _ in 0..3 {
            bench.round();
            pass_on(&mut hop);
            for (port, received) in ports.iter_mut().zip(&mut received) {
                received.extend(port.received());
            }
        }
    }
    let counters = ports.iter().chain(&hop).map(|port| bench.counters(port));
    let chain = bench.switch.chains().next().unwrap();
    let counted = format!("{:?} {:?}", chain.counters, chain.hop_counters);
    (received, counters.collect(), counted)
}

#[test]
fn a_burst_takes_the_steps_that_single_frames_take() {
    let (mut passed, mut entered) = (0, 0);
    for seed in 0..200 {
        let (burst, single) = (steered(seed, false), steered(seed, true));
        assert_eq!(burst.0, single.0, "seed {seed}");
        assert_eq!(burst.1, single.1, "seed {seed}");
        assert_eq!(burst.2, single.2, "seed {seed}");
        passed += burst.0.iter().map(Vec::len).sum::<usize>();
        entered += usize::from(!burst.2.starts_with("ChainCounters { packets: 0,"));
    }
    assert!(passed > 50_000 && entered > 50, "{passed} {entered}");
}

/// The head of the next frame lies behind that of a long one.
#[test]
fn a_verdict_rests_on_no_bytes_of_another_frame() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut filter = Some(Box::new(Filter::new(&["egress".parse().unwrap()])));
    assert!(bench.switch.set_filter(&b.name, &mut filter));
    let ports = |to: u8| [0, 7, 0, to, 0, 8, 0, 0];
    let framed = |to: u8, from: u8, packet: &[u8]| {
        let head = [&mac(to).0[..], &mac(from).0, &[8, 0]].concat();
        [&head, packet].concat()
    };
    b.send(&framed(1, 2, &ipv4_with(20, 0, [2, 1], 17, &ports(53))));
    bench.round();
    for (quoted, next, passes) in [(54, 53, 0), (53, 54, 1)] {
        let quote = ipv4_with(60, 0, [2, 1], 17, &ports(quoted));
        let error = [&[3, 1, 0, 0, 0, 0, 0, 0], &quote[..]].concat();
        let sent = framed(2, 1, &ipv4_with(60, 0, [1, 2], 1, &error));
        a.ring.push(&sent).unwrap();
        let mut other = frame(mac(2), mac(1), 60);
        other[14..22].copy_from_slice(&ports(next));
        a.send(&other);
        bench.round();
        assert_eq!(b.received().len(), passes, "ports of the quote: {quoted}");
    }
}
