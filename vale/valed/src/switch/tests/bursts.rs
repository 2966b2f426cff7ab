// SPDX-License-Identifier: Apache-2.0
//! Mixed flows in bursts: they get what the same frames get one by one, and one in a burst.
//!
//! The guests have all features, their frames all flags, and their ports all policies together.
//! `VALE_SEED` and `VALE_SEEDS` make another or a longer run.
use rustix::io::{pread, pwrite};

use super::segments::{BUFFER, BUFFERS, RX, RX_HEAD, RX_TAIL, TX, TX_HEAD};
use super::vectors::{add_filter, frame_between, let_frames_go_alone, limits, next_frame};
use super::*;
use crate::dice::{Dice, seeds};
use crate::policy::offload_rules::OffloadTable;

/// Of the region, next to those of segments.rs.
const TX_TAIL: usize = 0x180;
/// Features and flags of the rings.
const CHECKSUMS: u32 = 1;
const SPANS: u32 = 6;
const LONG: u32 = 4;
const NEEDS_CSUM: u16 = 1;
/// Places of ports: four guests, two uplinks, one without an address, the pairs of two hops.
const SENDERS: usize = 7;
const UPLINKS: std::ops::Range<usize> = 4..7;
const HOPS: [(usize, usize); 2] = [(7, 8), (9, 10)];

/// The flags and the bytes of a frame.
type Flagged = (u16, Vec<u8>);

/// A guest that writes and reads its rings by hand.
struct Hand {
    name: PortName,
    fds: Vec<OwnedFd>,
    slots: usize,
    features: u32,
    head: usize,
    taken: usize,
}

impl Hand {
    fn new(bench: &mut Bench, name: &str, features: u32, extra: Value) -> Self {
        let add = add(name, extra);
        let (name, fds) = bench.add_agreed(&add, features);
        Self {
            name,
            fds,
            slots: add.slots as usize,
            features,
            head: 0,
            taken: 0,
        }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        pwrite(&self.fds[0], bytes, at as u64).unwrap();
    }

    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        pread(&self.fds[0], &mut word, at as u64).unwrap();
        u64::from_le_bytes(word)
    }

    fn describe(&self, slot: usize, offset: usize, len: usize, flags: u16) {
        let word = offset as u64 | (len as u64) << 32 | u64::from(flags) << 48;
        self.write(TX + slot * 8, &word.to_le_bytes());
    }

    fn has_spans(&self) -> bool {
        self.features & SPANS != 0
    }

    /// False if the ring is full.
    fn send(&mut self, (flags, frame): &Flagged) -> bool {
        let count = match self.has_spans() {
            true => frame.len().div_ceil(BUFFER),
            false => 1,
        };
        let left = self.slots - self.head;
        let passed = if count > left { left } else { 0 };
        let tail = self.word(TX_TAIL) as u32 as usize;
        if (tail + left) % self.slots < count + passed {
            return false;
        }
        if passed > 0 {
            self.describe(self.head, 0, 0, 0);
        }
        let slot = (self.head + passed) % self.slots;
        let offset = BUFFERS + slot * BUFFER;
        self.write(offset, &frame[..frame.len().min(count * BUFFER)]);
        self.describe(slot, offset, frame.len(), *flags);
        self.head = (slot + count) % self.slots;
        self.write(TX_HEAD, &(self.head as u32).to_le_bytes());
        true
    }

    fn received(&mut self) -> Vec<Flagged> {
        let tail = self.word(RX_TAIL) as u32 as usize;
        let mut frames = Vec::new();
        while self.taken != tail {
            let word = self.word(RX + self.taken * 8);
            let (offset, len) = (word & 0xffff_ffff, (word >> 32) as usize & 0xffff);
            if len == 0 {
                let next = (self.taken + 1) % self.slots;
                self.taken = if self.has_spans() { 0 } else { next };
                continue;
            }
            let mut frame = vec![0; len];
            pread(&self.fds[0], &mut frame, offset).unwrap();
            frames.push(((word >> 48) as u16, frame));
            self.taken = (self.taken + len.div_ceil(BUFFER)) % self.slots;
        }
        self.write(RX_HEAD, &(self.taken as u32).to_le_bytes());
        frames
    }

    /// Offers another buffer in a free slot, or none.
    fn offer_any(&self, dice: &mut Dice) {
        let slot = (self.taken + self.slots - 1) % self.slots;
        let own = BUFFERS + (self.slots + slot) * BUFFER;
        let word = dice.of(&[0, 1, own as u64, own as u64 + 1, 0xffff_ffff]);
        self.write(RX + slot * 8, &word.to_le_bytes());
    }
}

/// How frames come to the switch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Burst,
    /// In bursts, whose frames have no stage in common.
    Alone,
    /// One in a burst.
    Single,
}

struct World {
    bench: Bench,
    ports: Vec<Hand>,
    received: Vec<Vec<Flagged>>,
    mode: Mode,
    /// Receivers seldom look at their rings, and offer bad buffers.
    is_slow: bool,
    /// Frames of several ports meet at one that a rule or a mirror chose.
    has_no_order: bool,
}

impl World {
    fn new(dice: &mut Dice, mode: Mode, is_slow: bool) -> Self {
        let mut world = Self {
            bench: Bench::new(),
            ports: Vec::new(),
            received: Vec::new(),
            mode,
            is_slow,
            has_no_order: false,
        };
        world.add_ports(dice);
        if !dice.one_in(3) {
            world.add_chain(dice);
        }
        world.add_rules(dice);
        if dice.one_in(4) {
            world.add_mirror(dice);
        }
        if dice.one_in(4) {
            let rates = json!({"rx": {"packets_per_s": 5000}, "tx": {"packets_per_s": 1_000_000}});
            world.bench.switch.set_segment_limits(1, limits(&rates));
        }
        if mode == Mode::Alone {
            let_frames_go_alone(&mut world.bench);
        }
        world.received = vec![Vec::new(); world.ports.len()];
        world
    }

    /// Adds a port with random features, filter and rates.
    fn add(&mut self, dice: &mut Dice, name: &str, mut extra: Value) {
        let rates = [
            json!({}),
            json!({}),
            json!({"dscp": 46}),
            json!({"rx": {"packets_per_s": 100}, "tx": {"packets_per_s": 90}}),
            json!({"rx": {"bits_per_s": 100_000}, "dscp": 8}),
        ];
        extra["slots"] = dice.of(&[64, 128, 256]).into();
        let hand = Hand::new(&mut self.bench, name, dice.of(&[0, 0, 1, 3, 7]), extra);
        if dice.one_in(3) {
            add_filter(&mut self.bench, &hand.name, dice);
        }
        let rates = limits(&rates[dice.below(rates.len())]);
        assert!(self.bench.switch.set_limits(&hand.name, rates));
        self.ports.push(hand);
    }

    fn add_ports(&mut self, dice: &mut Dice) {
        let secure = dice.one_in(2);
        for last in 1..=4 {
            let own = json!([{"ip": format!("10.0.0.{last}/32")},
                {"ip": format!("2001:db8::{last}/128")}]);
            let extra = json!({"mac": mac(last), "port_security": secure,
                "allowed": if secure { own } else { json!([]) },
                "vlan_tags": secure && dice.one_in(3), "mtu": dice.of(&[1500, 1500, 150, 1800]),
                "backpressure": self.is_slow && dice.one_in(2)});
            self.add(dice, &format!("g{last}"), extra);
        }
        for name in ["up", "other"] {
            let extra = json!({"kind": "veth", "ifname": name, "vlan_tags": dice.one_in(2)});
            self.add(dice, name, extra);
        }
        self.add(dice, "bare", json!({}));
        let secure = dice.one_in(2);
        for last in 10..14 {
            let allowed = if secure {
                json!([{"ip": "0.0.0.0/0"}])
            } else {
                json!([])
            };
            let extra = json!({"mac": mac(last), "port_security": secure, "allowed": allowed});
            self.add(dice, &format!("h{last}"), extra);
        }
    }

    fn add_chain(&mut self, dice: &mut Dice) {
        let classifiers = json!([
            {"source_port": "g1"},
            {"source": "10.0.0.0/24"},
            {"source_port": "up", "protocol": 17},
            {"source_port": "g2", "destination_port": "g1"},
            {"source": "192.0.2.0/24"},
        ]);
        let classifier = &classifiers[dice.below(5)];
        let hop = |dice: &mut Dice, (ingress, egress): (&str, &str)| {
            json!({"pairs": [{"ingress": ingress, "egress": egress}],
                "transparent": dice.one_in(2), "copies": dice.of(&[1, 2])})
        };
        let mut hops = vec![hop(dice, ("h10", "h11"))];
        if dice.one_in(2) {
            hops.push(hop(dice, ("h12", "h13")));
        }
        let set = json!({"switch": "vale0", "chain": "web", "segment": 1, "hops": hops,
            "classifiers": [classifier], "symmetric": dice.one_in(2)});
        let set: ChainSet = serde_json::from_value(set).unwrap();
        set.check().unwrap();
        let definition = crate::chain::Definition::new(set, None);
        self.bench.switch.set_chain(definition).unwrap();
    }

    fn add_rules(&mut self, dice: &mut Dice) {
        const RULES: [&str; 4] = [
            "drop proto 17 dport 53",
            "redirect 02:00:00:00:00:03",
            "redirect 02:00:00:00:00:04 to 10.0.0.4",
            "pass proto 6",
        ];
        for port in &self.ports[1..3] {
            if dice.one_in(4) {
                let rule = dice.of(&RULES);
                self.has_no_order |= rule.starts_with("redirect");
                let mut table = Some(OffloadTable::new(1, &[rule.parse().unwrap()]));
                let (switch, owner) = (&mut self.bench.switch, vale_proto::Owner::Operator);
                assert!(switch.swap_offload_table(&port.name, owner, &mut table));
            }
        }
    }

    fn add_mirror(&mut self, dice: &mut Dice) {
        let set = json!({"switch": "vale0", "mirror": "m", "to_port": "bare",
            "port": dice.of(&["g2", "g3", "up"]), "side": dice.of(&["rx", "tx", "both"])});
        let set: vale_proto::MirrorSet = serde_json::from_value(set).unwrap();
        let budget = crate::mirror::budget(&set);
        self.bench.switch.set_mirror(set, None, budget).unwrap();
        self.has_no_order = true;
    }

    /// Sends frames from a port, as many at a time as its ring takes.
    fn send(&mut self, from: usize, frames: &[Flagged]) {
        for frame in frames {
            if !self.ports[from].send(frame) {
                self.bench.round();
                self.ports[from].send(frame);
            }
            if self.mode == Mode::Single {
                self.bench.round();
            }
        }
        (0..3).for_each(|_| self.bench.round());
    }

    /// Takes what has arrived, and adds it to the frames that hops have to pass on.
    fn receive(&mut self, dice: &mut Dice, held: &mut [Vec<Flagged>]) {
        for (n, port) in self.ports.iter_mut().enumerate() {
            if self.is_slow && !port.has_spans() && dice.one_in(4) {
                port.offer_any(dice);
            }
            if self.is_slow && !dice.one_in(400) {
                continue;
            }
            let frames = port.received();
            held[n].extend(frames.iter().cloned());
            self.received[n].extend(frames);
        }
    }

    /// Lets the hops pass frames on, in one direction after the other, until none is left.
    fn settle(&mut self, dice: &mut Dice) {
        let mut held = vec![Vec::new(); self.ports.len()];
        self.receive(dice, &mut held);
        for _ in 0..6 {
            for (one, other) in HOPS {
                for (from, to) in [(one, other), (other, one)] {
                    let has_flags = self.ports[to].features & CHECKSUMS != 0;
                    let mut frames = std::mem::take(&mut held[from]);
                    if !has_flags {
                        frames.iter_mut().for_each(|(flags, _)| *flags = 0);
                    }
                    self.send(to, &frames);
                    self.receive(dice, &mut held);
                }
            }
        }
    }

    /// What the ports got and counted, and the counts of the chain and of the rules.
    fn outcome(mut self) -> Outcome {
        if self.has_no_order {
            self.received.iter_mut().for_each(|frames| frames.sort());
        }
        let infos: Vec<_> = self.bench.switch.infos().collect();
        let counters = |port: &Hand| Counters {
            polls_empty: 0,
            bursts: 0,
            kicks: 0,
            kicks_received: 0,
            ..infos
                .iter()
                .find(|info| info.port == port.name)
                .unwrap()
                .counters
        };
        let chains = self.bench.switch.chains();
        let chains: Vec<_> = chains.map(|c| (c.counters, c.hop_counters)).collect();
        let tables: Vec<_> = self
            .bench
            .switch
            .tables()
            .map(|table| table.rules)
            .collect();
        Outcome {
            counters: self.ports.iter().map(counters).collect(),
            received: self.received,
            rest: format!("{chains:?} {tables:?}"),
        }
    }
}

struct Outcome {
    received: Vec<Vec<Flagged>>,
    counters: Vec<Counters>,
    rest: String,
}

/// A packet of TCP or UDP from a guest's own address, or from a station's.
fn honest(dice: &mut Dice, from: &[Mac], to: &[Mac]) -> Vec<u8> {
    let (from, to) = (dice.of(from), dice.of(to));
    let len = dice.of(&[60, 60, 62, 127, 128, 129, 300, 1514]);
    let [high, low] = (len as u16 - 14).to_be_bytes();
    let mut frame = [to.0, from.0].concat();
    frame.extend([
        8,
        0,
        0x45,
        0,
        high,
        low,
        0,
        1,
        0x40,
        0,
        64,
        dice.of(&[6, 17]),
        0,
        0,
    ]);
    frame.extend([10, 0, 0, from.0[5], 10, 0, 0, to.0[5]]);
    frame.extend([0, dice.of(&[7, 53]), 0, dice.of(&[7, 53, 68]), 0, 20, 0, 0]);
    frame.extend([0, 0, 0, 0, 0x50, dice.of(&[2, 16, 18])]);
    frame.resize(len, 0x5a);
    frame
}

/// The frame with random flags, and at times longer than its packet or than a buffer.
fn flagged(dice: &mut Dice, mut frame: Vec<u8>, features: u32) -> Flagged {
    let cut = |size: u16| NEEDS_CSUM | size << 1;
    let flags = match features {
        0 => dice.of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, NEEDS_CSUM]),
        CHECKSUMS => dice.of(&[0, 0, 0, NEEDS_CSUM, NEEDS_CSUM, 2, 3]),
        _ => dice.of(&[
            0,
            0,
            0,
            NEEDS_CSUM,
            NEEDS_CSUM,
            cut(300),
            cut(1400),
            2,
            cut(3),
        ]),
    };
    let longest = match features & LONG != 0 && dice.one_in(4) {
        true => 9000,
        false if flags > 3 => 4000,
        false => 1514,
    };
    if dice.one_in(6) && frame.len() < longest {
        frame.resize(frame.len() + dice.below(longest - frame.len()), 0x33);
        if dice.one_in(2) {
            let total = frame.len() as u16 - 14;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
        }
    }
    (flags, frame)
}

/// Frames of three flows that take turns, with others of each that have other bytes.
fn frames(dice: &mut Dice, port: usize, features: u32) -> Vec<Flagged> {
    let stations: Vec<_> = (50..54).map(mac).collect();
    let from = match UPLINKS.contains(&port) {
        true => stations.clone(),
        false => vec![mac(port as u8 + 1)],
    };
    let guests = [1, 1, 2, 2, 3, 4].map(mac);
    let any = [&guests[..], &stations[..], &[BROADCAST][..]].concat();
    let mut before = [Vec::new(), Vec::new(), Vec::new()];
    let frame = |_| {
        let before = &mut before[dice.below(3)];
        let frame = next_frame(dice, before, |dice| match dice.below(3) {
            0 => frame_between(dice, &from, &any),
            _ => honest(dice, &from, &guests),
        });
        flagged(dice, frame, features)
    };
    (0..40).map(frame).collect()
}

fn outcome(seed: u64, mode: Mode) -> Outcome {
    let mut dice = Dice(seed);
    let mut world = World::new(&mut dice, mode, seed % 2 == 1);
    for now in 0..4 {
        world.bench.scratch.now = now * 1_000_000;
        for port in 0..SENDERS {
            let sent = frames(&mut dice, port, world.ports[port].features);
            world.send(port, &sent);
            world.settle(&mut dice);
        }
    }
    world.outcome()
}

#[test]
fn mixed_bursts_are_decided_as_single_frames_are() {
    let (mut passed, mut full) = (0, 0);
    for seed in seeds(16) {
        let burst = outcome(seed, Mode::Burst);
        passed += burst.received.iter().map(Vec::len).sum::<usize>();
        full += burst.counters.iter().map(|c| c.dropped_full).sum::<u64>();
        // Bursts of one find other room at a slow receiver.
        let modes: &[_] = match seed % 2 {
            0 => &[Mode::Alone, Mode::Single],
            _ => &[Mode::Alone],
        };
        for mode in modes {
            let other = outcome(seed, *mode);
            for n in 0..burst.received.len() {
                let place = format!("seed {seed}, {mode:?}, port {n}");
                assert_eq!(burst.counters[n], other.counters[n], "{place}");
                assert!(
                    burst.received[n] == other.received[n],
                    "{place}: other frames"
                );
            }
            assert_eq!(burst.rest, other.rest, "seed {seed}, {mode:?}");
        }
    }
    assert!(passed > 1000 && full > 0, "{passed} {full}");
}
