// SPDX-License-Identifier: Apache-2.0
//! Several workers on threads of their own behave as one.
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ring::GuestPort;
use serde_json::{Value, json};
use vale_proto::{ChainSet, Counters, MirrorSet, PortAdd, PortInfo, PortLimit, SegmentLimit};

use super::*;
use crate::device::host_resources::HostResources;
use crate::policy::filter::Filter;
use crate::port;

#[path = "burst_tests.rs"]
mod bursts;
#[path = "load_tests.rs"]
mod load;
#[path = "mixed_tests.rs"]
mod mixed;
#[path = "move_tests.rs"]
mod moving;
#[path = "rate_tests.rs"]
mod rates;

const PATIENCE: Duration = Duration::from_secs(50);
/// Frames wait for longer than any test: a busy machine costs none.
const WAITS: Waits = Waits {
    frames: Patience(600_000_000_000),
    changes: PATIENCE,
};

/// Running workers.
struct Bench {
    handle: Handle,
    resources: HostResources,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

struct Guest {
    id: PortId,
    ring: GuestPort,
    fds: Vec<OwnedFd>,
}

impl Bench {
    fn new(workers: usize) -> Self {
        let (workers, handle) = make(workers, WAITS).unwrap();
        let threads = workers
            .into_iter()
            .map(|mut worker| std::thread::spawn(move || worker.run()));
        Self {
            handle,
            resources: HostResources::default(),
            threads: threads.collect(),
        }
    }

    /// Adds a port. The next one goes to the next worker.
    fn try_add(&self, name: &str, extra: Value) -> Result<Guest, crate::forwarder::AddFailure> {
        let mut args = json!({
            "switch": "vale0", "port": name, "kind": "process", "segment": 1, "slots": 256,
            "port_security": false,
        });
        for (key, value) in extra.as_object().unwrap() {
            args[key] = value.clone();
        }
        let add: PortAdd = serde_json::from_value(args).unwrap();
        add.check().unwrap();
        let (port, fds) = port::open(&add, &self.resources).unwrap();
        self.handle.add(&add.switch, Box::new(port)).unwrap()?;
        Ok(Guest {
            id: id(name),
            ring: GuestPort::map(&fds[0]).unwrap(),
            fds,
        })
    }

    fn add(&self, name: &str, extra: Value) -> Guest {
        self.try_add(name, extra).unwrap()
    }

    /// A guest with port security and the MAC address `last`.
    fn guest(&self, last: u8) -> Guest {
        self.add(&format!("g{last}"), secure(last))
    }

    fn port(&self, guest: &Guest) -> PortInfo {
        let ports = self.handle.ports(None).unwrap();
        ports.into_iter().find(|p| p.port == guest.id.port).unwrap()
    }

    /// Waits until the workers have taken and delivered this number of frames.
    fn settle(&self, taken: u64) {
        eventually("all frames are taken", || {
            let ports = self.handle.ports(None).unwrap();
            let sum: u64 = ports.iter().map(|p| p.counters.rx_packets).sum();
            (sum == taken).then_some(())
        });
        self.handle.each(|_, f| f.drain()).unwrap();
    }

    /// Waits until no frame is under way: the workers turn in step until one turn of all of them
    /// finds no work.
    fn settle_all(&self) {
        let workers = self.threads.len();
        let step = Arc::new((Barrier::new(workers), AtomicU32::new(0)));
        std::thread::scope(|scope| {
            for worker in 0..workers {
                let step = Arc::clone(&step);
                scope.spawn(move || self.handle.at(worker, move |f| turn_in_step(f, &step)));
            }
        });
    }

    /// All frames that are there for a guest or under way to it.
    fn rest(&self, guest: &mut Guest) -> Vec<Vec<u8>> {
        self.settle_all();
        guest.received()
    }

    fn counters(&self, guest: &Guest) -> Counters {
        self.port(guest).counters
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.handle.stop();
        for thread in self.threads.drain(..) {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Guest {
    fn publish(&mut self) {
        if self.ring.publish() {
            rustix::io::write(&self.fds[1], &1u64.to_ne_bytes()).unwrap();
        }
    }

    fn send(&mut self, frame: &[u8]) {
        self.ring.push(frame).unwrap();
        self.publish();
    }

    fn try_receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; ring::BUFFER_SIZE];
        let len = self.ring.pop(&mut buffer)?;
        self.publish();
        Some(buffer[..len].to_vec())
    }

    fn receive(&mut self) -> Vec<u8> {
        eventually("a frame", || self.try_receive())
    }

    /// The frames that are there.
    fn received(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.try_receive()).collect()
    }
}

/// The part of one worker in [`Bench::settle_all`].
fn turn_in_step(forwarder: &mut Forwarder, step: &(Barrier, AtomicU32)) {
    let ((barrier, turns_with_work), mut before) = (step, 0);
    barrier.wait();
    loop {
        if forwarder.turn().unwrap() {
            turns_with_work.fetch_add(1, Ordering::SeqCst);
        }
        barrier.wait();
        let now = turns_with_work.load(Ordering::SeqCst);
        barrier.wait();
        if now == before {
            return;
        }
        before = now;
    }
}

fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::yield_now();
    }
}

fn id(port: &str) -> PortId {
    PortId {
        switch: "vale0".parse().unwrap(),
        port: port.parse().unwrap(),
    }
}

fn mac(last: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, last]
}

fn mac_text(last: u8) -> String {
    format!("02:00:00:00:00:{last:02x}")
}

fn secure(last: u8) -> Value {
    json!({"mac": mac_text(last), "port_security": true,
        "allowed": [{"ip": format!("10.0.0.{last}/32")}]})
}

const BROADCAST: [u8; 6] = [0xff; 6];

/// A packet of UDP.
fn udp(from: u8, to: u8, ports: (u16, u16), len: usize) -> Vec<u8> {
    let mut frame = [mac(to), mac(from)].concat();
    let [high, low] = (len as u16 - 14).to_be_bytes();
    frame.extend([8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, from, 10, 0, 0, to]);
    frame.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    frame.resize(len, 0x5a);
    frame
}

/// A frame for all stations.
fn group(from: u8) -> Vec<u8> {
    let mut frame = udp(from, 255, (7, 7), 60);
    frame[..6].copy_from_slice(&BROADCAST);
    frame
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn frames_of_all_lengths_pass_between_all_workers() {
    for workers in 1..=4 {
        let bench = Bench::new(workers);
        let mut guests: Vec<_> = (1..=5).map(|n| bench.guest(n)).collect();
        for (from, to) in (1..=5).flat_map(|a| (1..=5).map(move |b| (a, b))) {
            if from == to {
                continue;
            }
            for len in [60, 128, 129, 1514] {
                let sent = udp(from, to, (7, 7), len);
                guests[usize::from(from) - 1].send(&sent);
                assert_eq!(guests[usize::from(to) - 1].receive(), sent, "{workers}");
            }
        }
        for guest in &mut guests {
            assert_eq!(bench.rest(guest).len(), 0);
            let counters = bench.counters(guest);
            assert_eq!((counters.rx_packets, counters.tx_packets), (16, 16));
        }
    }
}

#[test]
fn a_group_frame_reaches_each_port_of_its_segment_once() {
    let bench = Bench::new(3);
    let mut guests: Vec<_> = (1..=9).map(|n| bench.guest(n)).collect();
    let mut other = bench.add("other", json!({"segment": 2}));
    guests[0].send(&group(1));
    for guest in &mut guests[1..] {
        assert_eq!(bench.rest(guest), [group(1)], "{:?}", guest.id);
    }
    assert!(bench.rest(&mut guests[0]).is_empty() && other.received().is_empty());
}

#[test]
fn unknown_unicast_and_learned_stations_cross_workers() {
    let bench = Bench::new(2);
    let (mut a, mut up) = (bench.guest(1), bench.add("up", json!({})));
    let (mut monitor, pipe) = (
        bench.add("monitor", json!({})),
        json!({"kind": "pipe", "pipe": "p"}),
    );
    a.send(&udp(1, 9, (7, 7), 60));
    assert_eq!(bench.rest(&mut up).len(), 1);
    assert_eq!(monitor.received().len(), 1);
    // The pipe's ends are at different workers, and both learn.
    let mut add: PortAdd = from_json(json!({"switch": "vale0", "port": "one", "segment": 1,
        "port_security": false, "kind": "pipe", "pipe": "p"}));
    assert_eq!(json!(add.kind), pipe["kind"]);
    for (name, segment) in [("one", 1), ("two", 2)] {
        (add.port, add.segment) = (name.parse().unwrap(), segment);
        let (port, _) = port::open(&add, &bench.resources).unwrap();
        bench
            .handle
            .add(&add.switch, Box::new(port))
            .unwrap()
            .unwrap();
    }
    let mut far = bench.add("far", json!({"segment": 2, "mac": mac_text(9)}));
    far.send(&udp(9, 1, (7, 7), 60));
    assert_eq!(a.receive(), udp(9, 1, (7, 7), 60));
    bench.rest(&mut monitor);
    for _ in 0..100 {
        a.send(&udp(1, 9, (7, 7), 60));
        assert_eq!(far.receive(), udp(1, 9, (7, 7), 60));
    }
    assert_eq!(bench.rest(&mut monitor).len(), 0, "the station is known");
}

#[test]
fn filters_of_both_ends_judge() {
    let bench = Bench::new(2);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    let filter = |rules: &[&str]| {
        let rules: Vec<_> = rules.iter().map(|r| r.parse().unwrap()).collect();
        Some(Box::new(Filter::new(&rules)))
    };
    let set = |guest: &Guest, rules: &[&str]| {
        assert_eq!(
            bench.handle.set_filter(&guest.id, filter(rules)),
            Some(true)
        );
    };
    set(&a, &["egress,udp,53"]);
    set(&b, &["ingress,udp,53"]);
    b.send(&udp(2, 1, (53, 9), 60));
    assert!(bench.rest(&mut a).is_empty(), "not asked for");
    a.send(&udp(1, 2, (9, 54), 60));
    a.send(&udp(1, 2, (9, 53), 60));
    assert_eq!(b.receive(), udp(1, 2, (9, 53), 60));
    b.send(&udp(2, 1, (53, 9), 60));
    assert_eq!(a.receive(), udp(2, 1, (53, 9), 60));
    // The filter of a receiver at another worker needs the packet's addresses too.
    assert_eq!(bench.handle.set_filter(&a.id, None), Some(true));
    a.send(&udp(1, 2, (9, 54), 60));
    assert!(bench.rest(&mut b).is_empty());
    assert_eq!(bench.counters(&b).dropped_filter, 2);
    assert_eq!(bench.port(&b).filter.unwrap().connections, 1);
    assert_eq!(bench.handle.set_filter(&b.id, None), Some(true));
    a.send(&udp(1, 2, (9, 54), 60));
    assert_eq!(bench.rest(&mut b).len(), 1);
}

#[test]
fn all_workers_share_the_rates_of_a_segment() {
    let bench = Bench::new(4);
    let mut guests: Vec<_> = (1..=8).map(|n| bench.guest(n)).collect();
    let budget = |limits: Value| {
        let set: SegmentLimit =
            from_json(json!({"switch": "vale0", "segment": 1, "limits": limits}));
        assert_eq!(bench.handle.set_segment_limits(&set), Some(true));
    };
    let dropped = |of: fn(&Counters) -> u64| {
        let ports = bench.handle.ports(None).unwrap();
        ports.iter().map(|p| of(&p.counters)).sum::<u64>()
    };
    budget(json!({"rx": {"packets_per_s": 1}}));
    let begin = Instant::now();
    for (guest, n) in guests.iter_mut().zip(1..) {
        (0..50).for_each(|_| guest.send(&udp(n, n % 8 + 1, (7, 7), 60)));
    }
    bench.settle(400);
    // A bucket holds 64 tokens, and gets one in a second. The clock of a worker may lag behind that of
    // another one, which costs a part of a token.
    let most = |begin: Instant| 65 + begin.elapsed().as_secs() as usize;
    let received: usize = guests.iter_mut().map(|guest| bench.rest(guest).len()).sum();
    assert!((63..=most(begin)).contains(&received), "{received}");
    assert_eq!(dropped(|c| c.dropped_rate), 400 - received as u64);
    budget(json!({"group_per_s": 1}));
    let begin = Instant::now();
    for (guest, n) in guests.iter_mut().zip(1..) {
        (0..10).for_each(|_| guest.send(&group(n)));
    }
    bench.settle(480);
    let received: usize = guests.iter_mut().map(|guest| bench.rest(guest).len()).sum();
    assert!((63 * 7..=most(begin) * 7).contains(&received), "{received}");
    let shown = bench.handle.segments(None).unwrap();
    assert_eq!(shown.len(), 1);
}

#[test]
fn the_rates_of_a_port_hold_for_frames_from_other_workers() {
    let bench = Bench::new(2);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    let limit: PortLimit = from_json(json!({"switch": "vale0", "port": "g2",
        "limits": {"tx": {"packets_per_s": 1}}}));
    let begin = Instant::now();
    assert_eq!(bench.handle.set_limits(&limit), Some(true));
    (0..100).for_each(|_| a.send(&udp(1, 2, (7, 7), 60)));
    bench.settle(100);
    let received = bench.rest(&mut b).len() as u64;
    let most = 65 + begin.elapsed().as_secs();
    assert!((63..=most).contains(&received), "{received}");
    assert_eq!(bench.counters(&b).dropped_rate, 100 - received);
}

#[test]
fn a_chain_leads_through_hops_of_all_workers() {
    for workers in 2..=4 {
        let bench = Bench::new(workers);
        let (mut a, mut b) = (bench.guest(1), bench.guest(2));
        let mut hops: Vec<_> = (0..3)
            .map(|n| {
                bench.add(
                    &format!("h{n}"),
                    json!({"segment": 9, "mac": mac_text(20 + n)}),
                )
            })
            .collect();
        let pairs = (0..3)
            .map(|n| json!({"pairs": [{"ingress": format!("h{n}"), "egress": format!("h{n}")}]}));
        let chain: ChainSet = from_json(json!({"switch": "vale0", "chain": "c", "segment": 1,
            "classifiers": [{"source": "10.0.0.1/32", "protocol": 17}],
            "hops": pairs.collect::<Vec<_>>()}));
        chain.check().unwrap();
        assert_eq!(bench.handle.set_chain(&chain), Some(Ok(true)));
        for _ in 0..10 {
            let mut sent = udp(1, 2, (7, 7), 200);
            a.send(&sent);
            for (hop, n) in hops.iter_mut().zip(20..) {
                sent[..6].copy_from_slice(&mac(n));
                assert_eq!(hop.receive(), sent);
                sent[..6].copy_from_slice(&mac(2));
                hop.send(&sent);
            }
            assert_eq!(b.receive(), sent);
        }
        let shown = &bench.handle.chains(None).unwrap()[0];
        assert_eq!(shown.counters.packets, 10);
        assert!(shown.hop_counters.iter().all(|hop| hop.packets == 10));
        assert_eq!(shown.live_pairs, [1, 1, 1]);
        assert_eq!(bench.handle.set_link(&hops[1].id, false), Some(true));
        a.send(&udp(1, 2, (7, 7), 200));
        bench.settle_all();
        // Its second hop is down, so it goes no further.
        assert_eq!(hops[0].received().len(), 1);
        assert!(b.received().is_empty());
        assert_eq!(bench.handle.chains(None).unwrap()[0].live_pairs, [1, 0, 1]);
    }
}

#[test]
fn mirrors_copy_to_ports_of_other_workers_within_one_rate() {
    let bench = Bench::new(3);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    let mut monitor = bench.add("monitor", json!({"segment": 5, "slots": 512}));
    let mirror = |extra: Value| {
        let mut args = json!({"switch": "vale0", "mirror": "m", "to_port": "monitor"});
        for (key, value) in extra.as_object().unwrap() {
            args[key] = value.clone();
        }
        let set: MirrorSet = from_json(args);
        assert_eq!(bench.handle.set_mirror(&set, None), Some(Some(Ok(()))));
    };
    for (source, copies) in [
        (json!({"port": "g1", "side": "rx"}), 1),
        (json!({"port": "g1", "side": "both"}), 2),
        (json!({"segment": 1}), 2),
    ] {
        mirror(source.clone());
        a.send(&udp(1, 2, (7, 7), 60));
        assert_eq!(b.receive(), udp(1, 2, (7, 7), 60));
        b.send(&udp(2, 1, (7, 7), 1500));
        assert_eq!(a.receive(), udp(2, 1, (7, 7), 1500));
        assert_eq!(bench.rest(&mut monitor).len(), copies, "{source}");
        let counters = bench.handle.mirrors(None).unwrap()[0].counters;
        assert_eq!(counters.packets, copies as u64, "{source}");
    }
    let begin = Instant::now();
    mirror(json!({"segment": 1, "packets_per_s": 1}));
    for _ in 0..50 {
        a.send(&udp(1, 2, (7, 7), 60));
        b.send(&udp(2, 1, (7, 7), 60));
        a.receive();
        b.receive();
    }
    let copies = bench.rest(&mut monitor).len();
    let most = 65 + begin.elapsed().as_secs() as usize;
    assert!((63..=most).contains(&copies), "{copies}");
    let counters = bench.handle.mirrors(None).unwrap()[0].counters;
    assert_eq!(counters.packets + counters.over_rate, 100);
    assert_eq!(bench.port(&monitor).mirrors.len(), 1);
}

#[test]
fn a_trace_tells_the_stages_of_all_workers() {
    let bench = Bench::new(3);
    let guests: Vec<_> = (1..=4).map(|n| bench.guest(n)).collect();
    let rules = ["ingress,udp,7".parse().unwrap()];
    let filter = Some(Box::new(Filter::new(&rules)));
    assert_eq!(bench.handle.set_filter(&guests[1].id, filter), Some(true));
    let trace = |frame: &[u8]| {
        let trace = bench.handle.trace(&guests[0].id, frame.to_vec());
        trace.unwrap().unwrap()
    };
    let outputs = |trace: &vale_proto::Trace| {
        let mut names: Vec<_> = trace.outputs.iter().map(|p| p.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(outputs(&trace(&udp(1, 2, (7, 7), 60))), ["g2"]);
    let dropped = trace(&udp(1, 2, (7, 8), 60));
    assert!(dropped.outputs.is_empty());
    let last = dropped.stages.last().unwrap();
    assert_eq!(last.counter.as_deref(), Some("dropped_filter"));
    let flooded = trace(&group(1));
    assert_eq!(outputs(&flooded), ["g2", "g3", "g4"]);
    let ports: Vec<_> = flooded.stages.iter().map(|s| s.port.to_string()).collect();
    assert_eq!(ports[2..], ["g2", "g2", "g3", "g4"], "{:?}", flooded.stages);
}

#[test]
fn names_and_addresses_are_taken_once_at_all_workers() {
    let bench = Bench::new(3);
    let a = bench.guest(1);
    for _ in 0..4 {
        assert!(bench.try_add("g1", json!({})).is_err());
        assert!(bench.try_add("x", json!({"mac": mac_text(1)})).is_err());
    }
    assert_eq!(bench.handle.remove(&a.id), Some(()));
    assert_eq!(bench.handle.ports(None).unwrap().len(), 0);
    let again = bench.guest(1);
    // Its worker may have looked at it meanwhile.
    let counters = Counters {
        polls_empty: 0,
        ..bench.counters(&again)
    };
    assert_eq!(counters, Counters::default());
    assert_eq!(bench.handle.set_link(&id("none"), true), Some(false));
}

#[test]
fn sleeping_workers_wake_each_other() {
    let bench = Bench::new(2);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    for n in 0..50u32 {
        std::thread::sleep(Duration::from_millis(u64::from(n % 3)));
        a.send(&udp(1, 2, (7, 7), 60));
        b.receive();
    }
    let handoffs: u64 = bench
        .handle
        .loads()
        .unwrap()
        .iter()
        .map(|l| l.handoffs)
        .sum();
    assert_eq!(handoffs, 50);
}
