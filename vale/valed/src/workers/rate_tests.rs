// SPDX-License-Identifier: Apache-2.0
//! Figures of the switch: rates next to one core of traffic, of several workers, and the latency.
//!
//! `cargo test --release -p valed --lib -- --ignored --nocapture --test-threads 1 figure`
use std::sync::Barrier;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{pread, pwrite};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use vale_proto::Owner;

use super::*;
use crate::policy::offload_rules::OffloadTable;

/// Lengths of frames, the smallest and the usual largest one.
const LENGTHS: [usize; 2] = [64, 1500];
/// Offsets of the words of a region of version 1 (docs/rings.md).
const TX_HEAD: u64 = 0x100;
const TX_TAIL: u64 = 0x180;
const RX_HEAD: u64 = 0x200;
const RX_TAIL: u64 = 0x280;

/// The stages that judge a frame besides the MAC table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stages {
    /// Counters and fair turns only.
    None,
    /// Port security, and a filter at every second port: each frame passes one.
    Guarded,
    /// Also rates, budgets, a chain, a mirror and rules that decide, none of which selects a frame.
    All,
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Bench {
    /// Workers on processors of their own, from the first one on.
    fn pinned(workers: usize) -> Self {
        let bench = Self::new(workers);
        bench.handle.each(|n, _| pin(n)).unwrap();
        bench
    }

    /// Guests in pairs: the first two send to each other, and so on.
    fn pairs(&self, ports: u8, extra: Value, stages: Stages) -> Vec<Guest> {
        let guest = |n: u8| {
            let mut args = secure(n);
            for (key, value) in extra.as_object().unwrap() {
                args[key] = value.clone();
            }
            args["port_security"] = (stages != Stages::None).into();
            let guest = self.add(&format!("g{n}"), args);
            if stages != Stages::None && n % 2 == 0 {
                let filter = Filter::new(&["egress".parse().unwrap(), "ingress".parse().unwrap()]);
                let filter = Some(Box::new(filter));
                assert_eq!(self.handle.set_filter(&guest.id, filter), Some(true));
            }
            guest
        };
        let guests: Vec<_> = (1..=ports).map(guest).collect();
        if stages == Stages::All {
            self.arm(&guests);
        }
        guests
    }

    /// Arms all other stages.
    fn arm(&self, guests: &[Guest]) {
        let rates = json!({"packets_per_s": 1_000_000_000, "bits_per_s": 1_000_000_000_000u64});
        let limits = json!({"rx": rates, "tx": rates, "group_per_s": 1000});
        let segment = from_json(json!({"switch": "vale0", "segment": 1, "limits": limits}));
        assert_eq!(self.handle.set_segment_limits(&segment), Some(true));
        for guest in guests {
            let port = guest.id.port.as_str();
            let set: PortLimit =
                from_json(json!({"switch": "vale0", "port": port, "limits": limits}));
            assert_eq!(self.handle.set_limits(&set), Some(true));
            let rules = ["drop proto 6 dport 22".parse().unwrap()];
            let table = OffloadTable::new(1, &rules);
            self.handle
                .set_table(&guest.id, Owner::Guest, Some(table), None);
        }
        self.add("other", json!({"segment": 2, "mac": mac_text(250)}));
        let chain: ChainSet = from_json(json!({"switch": "vale0", "chain": "c", "segment": 1,
            "classifiers": [{"source": "192.0.2.1/32"}],
            "hops": [{"pairs": [{"ingress": "other", "egress": "other"}]}]}));
        assert_eq!(self.handle.set_chain(&chain), Some(Ok(true)));
        let mirror: MirrorSet = from_json(json!({"switch": "vale0", "mirror": "m",
            "segment": 2, "to_port": "other"}));
        assert_eq!(self.handle.set_mirror(&mirror, None), Some(Some(Ok(()))));
    }
}

/// The partner of guest `n`, from 1.
fn partner(n: u8) -> u8 {
    ((n - 1) ^ 1) + 1
}

/// A guest that only moves indices: its frames are in their slots, and it looks at none.
struct Mover {
    slots: u32,
    fds: Vec<OwnedFd>,
    /// The next slots to send and to receive.
    next: [u32; 2],
    received: u64,
}

impl Mover {
    /// Fills all slots and sends half of them.
    fn new(mut guest: Guest, n: u8, len: usize) -> Self {
        let frame = udp(n, partner(n), (7, 7), len);
        let slots = guest.ring.slots();
        while guest.ring.push(&frame).is_ok() {}
        let mut this = Self {
            slots,
            fds: guest.fds,
            next: [0, 0],
            received: 0,
        };
        this.write_last_slot();
        this
    }

    /// The slot that stayed empty gets the descriptor of the first one.
    fn write_last_slot(&mut self) {
        let mut word = [0; 8];
        pread(&self.fds[0], &mut word[..], 0x1000).unwrap();
        let at = 0x1000 + u64::from(self.slots - 1) * 8;
        pwrite(&self.fds[0], &word, at).unwrap();
    }

    fn word(&self, at: u64) -> u32 {
        let mut word = [0; 4];
        pread(&self.fds[0], &mut word[..], at).unwrap();
        u32::from_le_bytes(word)
    }

    fn kick_if_asked(&self, line: u64) {
        if self.word(line + 8) != 0 {
            rustix::io::write(&self.fds[1], &1u64.to_ne_bytes()).unwrap();
        }
    }

    fn turn(&mut self) {
        self.receive();
        self.send(256);
    }

    /// Sends into all free slots, up to a burst.
    fn send(&mut self, most: u32) {
        let tail = self.word(TX_TAIL);
        let free = tail.wrapping_sub(self.next[0]) & (self.slots - 1);
        if free == 0 {
            return;
        }
        self.next[0] = self.next[0].wrapping_add(free.min(most)) & (self.slots - 1);
        pwrite(&self.fds[0], &self.next[0].to_le_bytes(), TX_HEAD).unwrap();
        self.kick_if_asked(TX_TAIL);
    }

    /// Gives all received slots back.
    fn receive(&mut self) {
        let tail = self.word(RX_TAIL);
        let came = tail.wrapping_sub(self.next[1]) & (self.slots - 1);
        if came > 0 {
            self.received += u64::from(came);
            self.next[1] = tail;
            pwrite(&self.fds[0], &tail.to_le_bytes(), RX_HEAD).unwrap();
        }
    }
}

/// One worker next to a core that only moves indices. Medians of short windows: the frames per
/// microsecond, and the nanoseconds of processor time for each.
fn rate(ports: u8, slots: u32, len: usize, stages: Stages) -> (f64, f64) {
    let bench = Bench::pinned(1);
    let guests = bench.pairs(ports, json!({"slots": slots}), stages);
    let movers = guests
        .into_iter()
        .zip(1..)
        .map(|(g, n)| Mover::new(g, n, len));
    let mut movers: Vec<_> = movers.collect();
    let handle = bench.handle.clone();
    let spent = move || handle.at(0, |_| cpu_time()).unwrap().as_nanos() as f64;
    let traffic = std::thread::spawn(move || {
        pin(1);
        // The first frames touch the pages of all slots.
        let is_warm = |mover: &Mover| mover.received > 2 * u64::from(slots);
        while !movers.iter().all(is_warm) {
            movers.iter_mut().for_each(Mover::turn);
        }
        let windows = (0..25).map(|_| {
            let received = |all: &[Mover]| all.iter().map(|m| m.received).sum::<u64>();
            let (before, spent_before) = (received(&movers), spent());
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(20) {
                movers.iter_mut().for_each(Mover::turn);
            }
            let (us, frames) = (
                begin.elapsed().as_secs_f64() * 1e6,
                received(&movers) - before,
            );
            let frames = frames as f64;
            (frames / us, (spent() - spent_before) / frames)
        });
        windows.unzip()
    });
    let (rates, times) = traffic.join().unwrap();
    (median(rates), median(times))
}

#[test]
#[ignore = "prints figures: see the head of this file"]
fn figure_of_rates() {
    let cases = [
        (2, 2048, Stages::None),
        (2, 2048, Stages::Guarded),
        (2, 2048, Stages::All),
        (2, 256, Stages::Guarded),
        (16, 256, Stages::Guarded),
        (16, 2048, Stages::Guarded),
        (64, 256, Stages::Guarded),
        (64, 2048, Stages::Guarded),
    ];
    for (len, (ports, slots, stages)) in LENGTHS.iter().flat_map(|l| cases.map(|c| (*l, c))) {
        let (rate, ns) = rate(ports, slots, len, stages);
        let gbps = rate * len as f64 * 8.0 / 1e3;
        println!(
            "{len} bytes, {ports} ports, {slots} slots, stages {stages:?}: {rate:.2} Mpps, \
             {gbps:.1} Gb/s, {ns:.0} ns of processor time for each"
        );
    }
}

/// Guests of some workers, whose rings are filled and emptied.
struct Filled {
    bench: Bench,
    guests: Vec<Guest>,
    workers: usize,
}

impl Filled {
    const PORTS: u8 = 16;

    /// With `cross`, all frames go to the port of another worker.
    fn new(workers: usize, cross: bool) -> Self {
        let bench = Bench::pinned(workers);
        let extra = json!({"slots": 2048, "backpressure": cross});
        let guests = bench.pairs(Self::PORTS, extra, Stages::Guarded);
        for (n, guest) in guests.iter().enumerate() {
            let worker = if cross { n } else { n / 2 } % workers;
            assert_eq!(bench.handle.move_port(&guest.id, worker), Some(Ok(())));
        }
        Self {
            bench,
            guests,
            workers,
        }
    }

    /// Fills all rings and empties them. Nanoseconds of the slowest worker for a frame: of processor
    /// time, then of the clock.
    fn round(&mut self, len: usize) -> [f64; 2] {
        for (guest, n) in self.guests.iter_mut().zip(1..) {
            let frame = udp(n, partner(n), (7, 7), len);
            while guest.ring.push(&frame).is_ok() {}
        }
        let barrier = Arc::new(Barrier::new(self.workers + 1));
        let threads = (0..self.workers).map(|n| {
            let (handle, barrier) = (self.bench.handle.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || handle.at(n, move |f| empty(f, &barrier)).unwrap())
        });
        let threads: Vec<_> = threads.collect();
        self.guests.iter_mut().for_each(Guest::publish);
        barrier.wait();
        let spent: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let frames = u64::from(Self::PORTS) * 2047;
        let received: usize = self
            .guests
            .iter_mut()
            .map(|guest| guest.received().len())
            .sum();
        assert_eq!(received as u64, frames);
        [0, 1].map(|n| {
            let slowest = spent.iter().map(|times| times[n].as_nanos()).max();
            slowest.unwrap() as f64 / frames as f64
        })
    }
}

/// Forwards until there is nothing for a while. The times of the processor and of the clock until the
/// last frame.
fn empty(forwarder: &mut Forwarder, barrier: &Barrier) -> [Duration; 2] {
    const WHILE: Duration = Duration::from_millis(20);
    barrier.wait();
    let (cpu, clock) = (cpu_time(), Instant::now());
    let mut spent = [Duration::ZERO; 2];
    while clock.elapsed() < spent[1] + WHILE {
        if forwarder.round() {
            spent = [cpu_time() - cpu, clock.elapsed()];
        }
    }
    spent
}

#[test]
#[ignore = "prints figures: see the head of this file"]
fn figure_of_workers() {
    let most = std::thread::available_parallelism().unwrap().get();
    for (len, cross) in LENGTHS.iter().flat_map(|len| [(*len, false), (*len, true)]) {
        let counts = (0..5).map(|n| 1 << n).filter(|n| *n <= most);
        let mut benches: Vec<_> = counts.map(|count| Filled::new(count, cross)).collect();
        // The first round touches the pages. The numbers of workers take turns.
        for bench in &mut benches {
            bench.round(len);
        }
        let mut times = vec![[Vec::new(), Vec::new()]; benches.len()];
        for _ in 0..15 {
            for (bench, times) in benches.iter_mut().zip(&mut times) {
                let spent = bench.round(len);
                times
                    .iter_mut()
                    .zip(spent)
                    .for_each(|(all, one)| all.push(one));
            }
        }
        let medians: Vec<_> = times.into_iter().map(|both| both.map(median)).collect();
        for (bench, [cpu, clock]) in benches.iter().zip(&medians) {
            let [one_cpu, one_clock] = medians[0];
            println!(
                "{len} bytes, {} to other workers, {} workers: {cpu:.1} ns of processor time a frame \
                 ({:.2} times one worker), {clock:.1} ns of the clock ({:.2})",
                if cross { "all" } else { "none" },
                bench.workers,
                one_cpu / cpu,
                one_clock / clock
            );
        }
    }
}

/// Microseconds from the publishing of a frame until its receiver has it: half of the frames, and 99
/// of 100. With `sleeps`, valed and the receiver sleep before each.
fn latency(len: usize, sleeps: bool, count: usize) -> [f64; 2] {
    let bench = Bench::pinned(1);
    let mut guests = bench
        .pairs(2, json!({"slots": 256}), Stages::Guarded)
        .into_iter();
    let (mut a, mut b) = (guests.next().unwrap(), guests.next().unwrap());
    pin(1);
    let frame = udp(1, 2, (7, 7), len);
    let mut times: Vec<_> = (0..count)
        .map(|_| {
            if sleeps {
                std::thread::sleep(Duration::from_micros(300));
                assert!(!b.ring.sleep_prepare());
            }
            let begin = Instant::now();
            a.send(&frame);
            if sleeps {
                let mut fds = [PollFd::new(&b.fds[2], PollFlags::IN)];
                poll(
                    &mut fds,
                    Some(&Timespec {
                        tv_sec: 2,
                        tv_nsec: 0,
                    }),
                )
                .unwrap();
                let _ = rustix::io::read(&b.fds[2], &mut [0; 64]);
                b.ring.wake_done();
            }
            let mut buffer = [0; ring::BUFFER_SIZE];
            while b.ring.pop(&mut buffer).is_none() {
                std::hint::spin_loop();
            }
            let spent = begin.elapsed().as_nanos() as f64 / 1e3;
            b.publish();
            spent
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[count / 2], times[count * 99 / 100]]
}

#[test]
#[ignore = "prints figures: see the head of this file"]
fn figure_of_latency() {
    for len in LENGTHS {
        for (sleeps, how, count) in [(false, "polling", 50_000), (true, "notification", 2_000)] {
            let [half, most] = latency(len, sleeps, count);
            println!("{len} bytes, by {how}: half within {half:.2} us, 99 % within {most:.2} us");
        }
    }
}
