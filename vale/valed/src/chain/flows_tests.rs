// SPDX-License-Identifier: Apache-2.0
//! Flows of pairs that come, go and come back, of several workers, and more than the table holds.
use std::thread;

use super::*;

const UDP: u8 = 17;

fn pair(name: &str) -> Pair {
    let port = |side| format!("{name}-{side}").parse().unwrap();
    Pair {
        ingress: port("in"),
        egress: port("out"),
        weight: 1,
        host: None,
    }
}

/// A flow by number.
fn flow(number: u32, protocol: u8) -> Flow {
    let [a, b, high, low] = number.to_be_bytes();
    Flow {
        source: [10, 0, a, b].into(),
        destination: [10, 1, 0, 1].into(),
        protocol,
        ports: Some((u16::from_be_bytes([high, low]), 80)),
        begins: false,
        accepts: false,
        is_error: false,
        quoted: None,
        evades: false,
    }
}

fn begin(number: u32) -> Flow {
    Flow {
        begins: true,
        ..flow(number, TCP)
    }
}

/// A hop as a worker sees it, at a time.
struct Worker<'a> {
    flows: &'a Flows,
    names: Vec<&'static str>,
    slots: Vec<u8>,
    winner: usize,
    now_s: u32,
}

impl<'a> Worker<'a> {
    fn new(flows: &'a Flows) -> Self {
        let (names, slots) = (Vec::new(), Vec::new());
        let (winner, now_s) = (0, 0);
        Self {
            flows,
            names,
            slots,
            winner,
            now_s,
        }
    }

    /// One pair had packets in all buckets, and another one came.
    fn moving(flows: &'a Flows) -> Self {
        let mut this = Self::new(flows);
        this.renew(&["a"]);
        (0..10_000).for_each(|n| assert_eq!(this.send(flow(n, UDP)), "a"));
        this.renew(&["a", "b"]);
        this
    }

    /// These pairs live; the last one wins all buckets.
    fn renew(&mut self, names: &[&'static str]) {
        let pairs: Vec<_> = names.iter().map(|name| pair(name)).collect();
        let winners = vec![names.len().saturating_sub(1); BUCKETS];
        let winners = if names.is_empty() { &[] } else { &winners[..] };
        let live: Vec<_> = pairs.iter().collect();
        self.slots = self.flows.renew(&live, winners, self.now_s);
        self.names = names.to_vec();
        self.winner = names.len().saturating_sub(1);
    }

    /// The pair that a packet goes to.
    fn send(&self, flow: Flow) -> &'static str {
        let wanted = self.slots[self.winner];
        let slot = self.flows.slot_at(flow, flow.key(), wanted, || self.now_s);
        let place = self.slots.iter().position(|each| *each == slot);
        self.names[place.expect("the slot of a live pair")]
    }
}

#[test]
fn connections_stay_and_those_that_begin_go_to_the_new_pair() {
    let flows = Flows::default();
    let mut worker = Worker::moving(&flows);
    for number in 0..1000 {
        assert_eq!(worker.send(flow(number, TCP)), "a");
    }
    for number in 1000..2000 {
        assert_eq!(worker.send(begin(number)), "b");
        assert_eq!(worker.send(flow(number, TCP).reversed()), "b");
    }
    // A connection that began before the third pair came keeps the second one.
    worker.renew(&["a", "b", "c"]);
    for number in 2000..3000 {
        assert_eq!(worker.send(begin(number)), "c");
    }
    for (numbers, name) in [(0..1000, "a"), (1000..2000, "b"), (2000..3000, "c")] {
        for number in numbers {
            assert_eq!(worker.send(flow(number, TCP)), name, "flow {number}");
        }
    }
}

#[test]
fn a_bucket_without_packets_moves_at_once() {
    let flows = Flows::default();
    let mut worker = Worker::new(&flows);
    worker.renew(&["a"]);
    worker.renew(&["a", "b"]);
    assert_eq!(worker.send(flow(1, TCP)), "b");
    worker.renew(&["b", "c"]);
    assert_eq!(worker.send(flow(1, TCP)), "b");
}

#[test]
fn flows_that_are_not_known_after_a_while_begin() {
    let flows = Flows::default();
    let mut worker = Worker::moving(&flows);
    assert_eq!(worker.send(flow(1, TCP)), "a");
    assert_eq!(worker.send(flow(1, UDP)), "a");
    worker.now_s = SHORT_PAUSE_S;
    assert_eq!(worker.send(flow(2, UDP)), "b");
    assert_eq!(worker.send(flow(2, TCP)), "a");
    worker.now_s = PAUSE_S;
    assert_eq!(worker.send(flow(3, TCP)), "b");
    for (number, protocol, name) in [(1, TCP, "a"), (1, UDP, "a"), (2, UDP, "b"), (2, TCP, "a")] {
        assert_eq!(worker.send(flow(number, protocol)), name);
    }
    // A pair that comes now changes none of them.
    worker.renew(&["a", "b", "c"]);
    for (number, name) in [(1, "a"), (2, "a"), (3, "b")] {
        assert_eq!(worker.send(flow(number, TCP)), name);
    }
    assert_eq!(worker.send(begin(4)), "c");
}

#[test]
fn a_bucket_has_moved_after_a_pause_of_its_old_flows() {
    let flows = Flows::default();
    let mut worker = Worker::moving(&flows);
    assert_eq!(worker.send(flow(1, TCP)), "a");
    let other = (2..).find(|n| bucket_of(flow(*n, TCP).key()) == bucket_of(flow(1, TCP).key()));
    let bucket = &flows.buckets[bucket_of(flow(1, TCP).key())];
    for now_s in [PAUSE_S - 1, 2 * PAUSE_S - 2] {
        worker.now_s = now_s;
        assert_eq!(worker.send(flow(1, TCP)), "a");
        worker.send(begin(other.unwrap()));
        assert!(bucket.is_moving());
    }
    worker.now_s = 3 * PAUSE_S;
    assert_eq!(worker.send(begin(other.unwrap())), "b");
    assert!(!bucket.is_moving());
    assert_eq!(worker.send(flow(1, TCP)), "b");
    // Nothing remains of the move.
    worker.renew(&["b", "a"]);
    assert_eq!(worker.send(flow(1, TCP)), "b");
}

#[test]
fn the_flows_of_a_pair_that_goes_move_at_once_and_no_others() {
    let flows = Flows::default();
    let mut worker = Worker::moving(&flows);
    assert_eq!(worker.send(flow(1, TCP)), "a");
    assert_eq!(worker.send(begin(2)), "b");
    worker.renew(&["a"]);
    assert_eq!(worker.send(flow(1, TCP)), "a");
    assert_eq!(worker.send(flow(2, TCP)), "a");
    // Its number goes to another pair, its flows do not.
    worker.renew(&["a", "c"]);
    assert_eq!(worker.send(flow(2, TCP)), "a");
    worker.renew(&["c"]);
    assert_eq!(worker.send(flow(1, TCP)), "c");
    worker.renew(&[]);
    worker.renew(&["b"]);
    assert_eq!(worker.send(flow(1, TCP)), "b");
}

#[test]
fn sixteen_pairs_can_all_be_replaced() {
    const NAMES: [&str; 2 * MAX_PAIRS] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x", "y", "z", "0", "1", "2", "3", "4", "5",
    ];
    let flows = Flows::default();
    let mut worker = Worker::new(&flows);
    for first in 0..=MAX_PAIRS {
        worker.renew(&NAMES[first..first + MAX_PAIRS]);
        let mut slots = worker.slots.clone();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), MAX_PAIRS);
        worker.send(begin(1));
    }
}

#[test]
fn more_flows_than_the_table_holds_find_a_live_pair() {
    let flows = Flows::default();
    let worker = Worker::moving(&flows);
    let all = 4 * (SETS * WAYS) as u32;
    let began = (0..all).filter(|n| worker.send(begin(*n)) == "b").count();
    assert!(began > SETS * WAYS * 9 / 10 && began <= SETS * WAYS);
    // Each stays where it began, with the pair of before if the table was full.
    let still = (0..all).filter(|n| worker.send(flow(*n, TCP)) == "b");
    assert_eq!(still.count(), began);
}

#[test]
fn workers_agree_about_flows_that_begin_at_once() {
    let flows = Flows::default();
    let mut workers = [Worker::new(&flows), Worker::new(&flows)];
    workers.iter_mut().for_each(|worker| worker.renew(&["a"]));
    let [first, second] = &mut workers;
    (0..10_000).for_each(|n| assert_eq!(first.send(flow(n, UDP)), "a"));
    first.renew(&["a", "b"]);
    // The second worker does not know the new pair yet.
    assert_eq!(second.send(begin(1)), "a");
    second.renew(&["a", "b"]);
    assert_eq!(first.send(flow(1, TCP)), "a");
    let sent = |worker: &Worker<'_>| -> Vec<_> {
        let flows = (2..20_000).map(|n| if n % 2 == 0 { begin(n) } else { flow(n, TCP) });
        flows.map(|flow| worker.send(flow)).collect()
    };
    let (one, other) = thread::scope(|scope| {
        let [one, other] = [first, second].map(|worker| {
            let sent = &sent;
            scope.spawn(move || sent(worker))
        });
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_eq!(one, other);
    assert!(one.contains(&"a") && one.contains(&"b"));
}
