// SPDX-License-Identifier: Apache-2.0
//! Guests that lie in their rings, by design or at random, next to honest ones.
//!
//! The honest ones lose no frame and get none altered. `HOSTILE_SECONDS` says for how long (`make soak
//! PARTS=rings`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Guest, PATIENCE, Valed, eventually, port_add};
use ring::{BUFFER_SIZE, InPlacePort, PushError};
use serde_json::{Value, json};
use vale_proto::RingFds;

/// Frames on their way at a time: fewer than the rings hold.
const WINDOW: u64 = 32;
/// Bytes of a region with 256 slots that hold indices and descriptors, and all of version 1.
const WORDS: u64 = 0x3000;
const REGION: u64 = 1_060_864;

fn port(last: u8) -> Value {
    json!({"mac": format!("02:00:00:00:00:{last:02x}"), "port_security": true})
}

/// A port that may send `frame`s.
fn allowed(last: u8) -> Value {
    let mut port = port(last);
    port["allowed"] = json!([{"ip": format!("10.0.0.{last}/32")}]);
    port
}

/// An IPv4 frame with its number at both ends.
fn frame(to: u8, from: u8, number: u64) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    frame.extend([0x45, 0, 0, 200, 0, 0, 0, 0, 64, 253, 0, 0]);
    frame.extend([10, 0, 0, from, 10, 0, 0, to]);
    frame.resize(214, 0);
    frame[40..48].copy_from_slice(&number.to_le_bytes());
    frame[206..].copy_from_slice(&number.to_le_bytes());
    frame
}

/// A small generator of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Writes anything anywhere in the region, mostly where it hurts, and kicks.
fn scribble(fds: RingFds, stop: Arc<AtomicBool>, seed: u64) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let (region, mut random, mut writes) = (File::from(fds.memfd), Random(seed), 0);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..64 {
                let at = match random.next() % 4 {
                    0 => 0x100 + random.next() % 0x200,
                    1 | 2 => 0x1000 + random.next() % (WORDS - 0x1000),
                    _ => random.next() % (REGION - 8),
                };
                let value = match random.next() % 4 {
                    0 => random.next(),
                    1 => random.next() % 256,
                    _ => (random.next() % REGION) | (60 << 32) | ((random.next() % 4) << 48),
                };
                region.write_all_at(&value.to_le_bytes(), at & !3).unwrap();
                writes += 1;
            }
            rustix::io::write(&fds.kick, &1u64.to_ne_bytes()).unwrap();
        }
        writes
    })
}

/// Takes the next frame of a peer; frames of others do not count.
fn take(guest: &mut Guest, from: u8, end: Instant) -> u64 {
    let mut buffer = [0; BUFFER_SIZE];
    loop {
        while let Some(len) = guest.ring.pop(&mut buffer) {
            if buffer[11] == from {
                assert_eq!((len, &buffer[40..48]), (214, &buffer[206..214]), "altered");
                return u64::from_le_bytes(buffer[40..48].try_into().unwrap());
            }
        }
        assert!(Instant::now() < end, "a frame was lost");
        guest.publish();
        Guest::sleep(std::slice::from_mut(guest));
    }
}

fn exchange(one: &mut Guest, two: &mut Guest, seconds: u64, is_enough: impl Fn() -> bool) -> u64 {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut number = 0;
    while Instant::now() < end || !is_enough() {
        let patience = Instant::now() + PATIENCE;
        for n in number..number + WINDOW {
            one.ring.push(&frame(2, 1, n)).unwrap();
        }
        one.publish();
        for n in number..number + WINDOW {
            assert_eq!(take(two, 1, patience), n, "lost, doubled or out of order");
            two.ring.push(&frame(1, 2, n)).unwrap();
        }
        two.publish();
        for n in number..number + WINDOW {
            assert_eq!(take(one, 2, patience), n, "lost, doubled or out of order");
        }
        number += WINDOW;
    }
    number
}

#[test]
fn garbage_in_the_rings_of_one_guest_costs_others_no_frame() {
    let seconds = std::env::var("HOSTILE_SECONDS").map_or(4, |text| text.parse().unwrap());
    let valed = Valed::start();
    let mut one = Guest::new(&valed, "one", allowed(1));
    let mut two = Guest::new(&valed, "two", allowed(2));
    let hostile = [(3, Value::Null), (4, json!(9)), (5, json!(9))].map(|(last, in_place)| {
        let mut add = port(last);
        add["in_place_domid"] = in_place;
        let add = port_add(&format!("bad{last}"), add);
        valed.client().port_add(&add).unwrap().unwrap()
    });
    let version = |fds: &RingFds| {
        let mut version = [0; 4];
        rustix::io::pread(&fds.memfd, &mut version, 8).unwrap();
        version[0]
    };
    assert_eq!(hostile.each_ref().map(version), [1, 2, 2]);
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (1..)
        .zip(hostile)
        .map(|(seed, fds)| scribble(fds, Arc::clone(&stop), seed))
        .collect();
    let malformed = || -> u64 {
        let ports = valed.client().port_list(None).unwrap();
        ports.iter().map(|p| p.counters.dropped_malformed).sum()
    };
    let count = exchange(&mut one, &mut two, seconds, || malformed() > 1000);
    stop.store(true, Ordering::Relaxed);
    let writes: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let malformed = malformed();
    println!("{count} frames each way, {writes} hostile writes, {malformed} malformed");
    assert!(count >= WINDOW);
}

/// A guest of version 2 that takes part by hand.
struct Liar {
    ring: InPlacePort,
    fds: RingFds,
}

impl Liar {
    /// A port of the guest `domain`.
    fn new(valed: &Valed, last: u8, domain: u16) -> Self {
        let mut add = allowed(last);
        add["in_place_domid"] = json!(domain);
        let fds = valed.add(&format!("port{last}"), add).unwrap();
        let (ring, _blocks) = InPlacePort::map(&fds.memfd).unwrap();
        Self { ring, fds }
    }

    /// Puts a frame into buffer `n`; returns its offset.
    fn fill(&self, n: usize, frame: &[u8]) -> u32 {
        let at = self.ring.layout().frame(n);
        rustix::io::pwrite(&self.fds.memfd, frame, at as u64).unwrap();
        at as u32
    }

    /// Sends whatever the descriptor names.
    fn send(&mut self, region: u16, offset: u32, len: usize) {
        self.ring.send(region, offset, len).unwrap();
        if self.ring.publish() {
            rustix::io::write(&self.fds.kick, &1u64.to_ne_bytes()).unwrap();
        }
    }
}

fn malformed(valed: &Valed, port: &str) -> u64 {
    valed.counters(port).dropped_malformed
}

#[test]
fn a_frame_that_is_not_in_the_buffers_of_its_guest_goes_nowhere() {
    let valed = Valed::start();
    let mut two = Guest::new(&valed, "two", allowed(2));
    let mut liar = Liar::new(&valed, 3, 9);
    let other = [4, 5, 6].map(|last| Liar::new(&valed, last, 10));
    let secret = other[2].fill(0, &frame(2, 3, 666));
    assert_eq!(other[2].ring.region(), 3);
    let (end, good) = (liar.ring.layout().size() as u32, frame(2, 3, 7));
    let first = liar.ring.layout().first_chunk() as u32 - 256 * 256;
    let bad = [
        (0, 0, 214),         // the header
        (0, first - 1, 214), // the last descriptor
        (0, end - 213, 214),
        (0, end, 214),
        (0, u32::MAX, 214),
        (0, u32::MAX - 100, 2048),
        (3, secret, 214), // another guest's region
        (u16::MAX, secret, 214),
    ];
    for (region, offset, len) in bad {
        liar.send(region, offset, len);
    }
    let good = liar.fill(300, &good);
    let at_end = end - 214;
    rustix::io::pwrite(&liar.fds.memfd, &frame(2, 3, 8), at_end.into()).unwrap();
    // One buffer twice, and the last bytes of all.
    for offset in [good, good, at_end] {
        liar.send(0, offset, 214);
    }
    let number = |frame: Vec<u8>| u64::from_le_bytes(frame[40..48].try_into().unwrap());
    let got = [(); 3].map(|()| number(two.receive().unwrap()));
    assert_eq!(got, [7, 7, 8]);
    eventually("all are counted", || {
        malformed(&valed, "port3") == bad.len() as u64
    });
    assert_eq!(
        liar.ring.send(0, good, 2049),
        Err(PushError::BadLength(2049))
    );
}

#[test]
fn a_frame_goes_to_no_place_that_its_guest_did_not_offer() {
    let valed = Valed::start();
    let mut two = Guest::new(&valed, "two", allowed(2));
    let mut liar = Liar::new(&valed, 3, 9);
    let end = liar.ring.layout().size() as u32;
    let twice = liar.ring.layout().frame(400) as u32;
    let bad = [0, 0x100, 0x2000, end - 2047, end, u32::MAX];
    for (slot, offset) in (0..).zip([twice, twice].into_iter().chain(bad)) {
        liar.ring.offer(slot, offset);
    }
    let mut before = vec![0; 0x1000];
    rustix::io::pread(&liar.fds.memfd, &mut before[..0x100], 0).unwrap();
    for n in 0..12 {
        two.send(&frame(3, 2, n));
    }
    let mut got = Vec::new();
    eventually("the good offers are filled", || {
        got.extend(std::iter::from_fn(|| liar.ring.receive()));
        got.len() == 6
    });
    // Both frames in the buffer that was offered twice; the later one is there.
    let slots: Vec<_> = got.iter().map(|(slot, len)| (*slot, *len)).collect();
    assert_eq!(slots, [0, 1, 8, 9, 10, 11].map(|slot| (slot, 214)));
    let mut last = [0; 214];
    rustix::io::pread(&liar.fds.memfd, &mut last, twice.into()).unwrap();
    assert_eq!(last[..], frame(3, 2, 1));
    let mut after = vec![0; 0x1000];
    rustix::io::pread(&liar.fds.memfd, &mut after[..0x100], 0).unwrap();
    assert_eq!(before, after, "the header is as it was");
    assert_eq!(malformed(&valed, "port3"), bad.len() as u64);
    two.send(&frame(3, 2, 99));
    eventually("the port goes on", || {
        liar.ring.receive() == Some((12, 214))
    });
}

/// The ports of one guest are at two workers, and each frame leaves from the region of the other port.
#[test]
fn a_frame_leaves_by_a_port_of_another_worker_from_where_it_lies() {
    let valed = Valed::start_with(2, &[]);
    // New ports take turns at the workers.
    let mut one = Guest::new(&valed, "one", allowed(1));
    let mut entry = Liar::new(&valed, 3, 9);
    let mut exit = Liar::new(&valed, 4, 9);
    let mut two = Guest::new(&valed, "two", allowed(2));
    let (region, layout) = (entry.ring.region(), entry.ring.layout());
    let mut buffers: Vec<_> = (0..256).map(|n| layout.frame(n) as u32).collect();
    let mut spare = layout.frame(300) as u32;
    for n in 0..500 {
        one.send(&frame(3, 1, n));
        let mut found = None;
        eventually("a frame at the entry", || {
            found = entry.ring.receive();
            found.is_some()
        });
        let (slot, len) = found.unwrap();
        let offset = std::mem::replace(&mut buffers[slot as usize], spare);
        rustix::io::pwrite(&entry.fds.memfd, &frame(2, 4, n)[..34], offset.into()).unwrap();
        exit.send(region, offset, len);
        entry.ring.offer(slot, spare);
        if entry.ring.publish() {
            rustix::io::write(&entry.fds.kick, &1u64.to_ne_bytes()).unwrap();
        }
        assert_eq!(two.receive(), Some(frame(2, 4, n)));
        spare = offset;
    }
    assert_eq!(malformed(&valed, "port4"), 0);
    let at = |port: &str| {
        let workers = valed.client().worker_list().unwrap();
        let mut has = workers
            .iter()
            .map(|w| w.ports.iter().any(|p| p.port.as_str() == port));
        has.position(|has| has)
    };
    assert_ne!(at("port3"), at("port4"));
}
