// SPDX-License-Identifier: Apache-2.0
//! Bursts of many flows between guests of all policies: several workers decide as one does.
//!
//! `VALE_SEED` and `VALE_SEEDS` make another or a longer run.
use super::*;
use crate::dice::{Dice, seeds};
use crate::policy::offload_rules::OffloadTable;

const GUESTS: u8 = 5;
const RULES: [&str; 6] = [
    "egress",
    "ingress",
    "ingress,udp,53",
    "egress,tcp",
    "egress,udp",
    "ingress,tcp",
];

/// A guest at a random worker, with random policies.
fn any_guest(bench: &Bench, dice: &mut Dice, n: u8, is_secure: bool) -> Guest {
    let mut args = match is_secure {
        true => secure(n),
        false => json!({"mac": mac_text(n)}),
    };
    args["vlan_tags"] = (is_secure && dice.one_in(2)).into();
    args["mtu"] = dice.of(&[1500, 1500, 1490, 200]).into();
    args["backpressure"] = dice.one_in(3).into();
    let guest = bench.add(&format!("g{n}"), args);
    let worker = dice.below(3) % bench.threads.len();
    assert_eq!(bench.handle.move_port(&guest.id, worker), Some(Ok(())));
    if dice.one_in(2) {
        let chosen: Vec<_> = (0..2).map(|_| dice.of(&RULES).parse().unwrap()).collect();
        let filter = Some(Box::new(Filter::new(&chosen)));
        assert_eq!(bench.handle.set_filter(&guest.id, filter), Some(true));
    }
    if dice.one_in(2) {
        let set = json!({"switch": "vale0", "port": guest.id.port, "limits": {"dscp": 46}});
        assert_eq!(bench.handle.set_limits(&from_json(set)), Some(true));
    }
    if dice.one_in(4) {
        let table = OffloadTable::new(1, &["drop proto 17 dport 53".parse().unwrap()]);
        let owner = vale_proto::Owner::Guest;
        let set = bench.handle.set_table(&guest.id, owner, Some(table), None);
        assert!(matches!(set, Some(Ok(_))));
    }
    guest
}

fn new_frame(dice: &mut Dice, from: u8) -> Vec<u8> {
    let to = 1 + dice.below(GUESTS.into()) as u8;
    let len = dice.of(&[60, 61, 127, 128, 129, 300, 1500, 1514]);
    let ports = (dice.of(&[7, 53]), dice.of(&[7, 53, 68]));
    let mut frame = udp(from, to, ports, len);
    (frame[23], frame[47]) = (dice.of(&[17, 17, 6, 1]), dice.of(&[2, 16, 18]));
    if dice.one_in(6) {
        frame.splice(12..12, [0x81, 0, 0, dice.of(&[0, 5])]);
    }
    if dice.one_in(12) {
        frame[..6].copy_from_slice(&BROADCAST);
    }
    frame
}

/// Often a later frame of the same flow, or one that has other bytes.
fn next_frame(dice: &mut Dice, from: u8, before: &mut Vec<u8>) -> Vec<u8> {
    if before.is_empty() || dice.one_in(3) {
        *before = new_frame(dice, from);
    }
    let mut frame = before.clone();
    if dice.one_in(3) {
        let at = 12 + dice.below(46);
        frame[at] = dice.of(&[0, 1, 2, 8, 0x12, 0x40, 0xff]);
    }
    if dice.one_in(8) {
        frame.truncate(dice.of(&[14, 20, 33, 42, 47, 48, 50]));
    }
    frame
}

/// What the guests got after each burst, and what their ports counted.
fn outcome(seed: u64, workers: usize) -> (Vec<Vec<Vec<u8>>>, Vec<Counters>) {
    let (mut dice, bench) = (Dice(seed), Bench::new(workers));
    let is_secure = dice.one_in(2);
    let guests = (1..=GUESTS).map(|n| any_guest(&bench, &mut dice, n, is_secure));
    let mut guests: Vec<_> = guests.collect();
    let mut received = Vec::new();
    for from in (0..guests.len()).cycle().take(2 * guests.len()) {
        let mut before = [Vec::new(), Vec::new()];
        for _ in 0..50 {
            let before = &mut before[dice.below(2)];
            let frame = next_frame(&mut dice, from as u8 + 1, before);
            guests[from].ring.push(&frame).unwrap();
        }
        guests[from].publish();
        bench.settle_all();
        received.extend(guests.iter_mut().map(Guest::received));
    }
    let counters = guests.iter().map(|guest| Counters {
        polls_empty: 0,
        bursts: 0,
        kicks: 0,
        kicks_received: 0,
        ..bench.counters(guest)
    });
    let counters = counters.collect();
    (received, counters)
}

#[test]
fn mixed_bursts_between_workers_are_decided_as_at_one_worker() {
    let mut passed = 0;
    for seed in seeds(20) {
        let one = outcome(seed, 1);
        passed += one.0.iter().map(Vec::len).sum::<usize>();
        for workers in [2, 3] {
            let other = outcome(seed, workers);
            assert_eq!(one.1, other.1, "seed {seed}, {workers} workers");
            let differs = (0..one.0.len()).find(|n| one.0[*n] != other.0[*n]);
            assert_eq!(differs, None, "seed {seed}, {workers} workers");
        }
    }
    assert!(passed > 500, "{passed}");
}
