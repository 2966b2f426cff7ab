// SPDX-License-Identifier: Apache-2.0
//! A guest that writes garbage into its rings while two others exchange traffic: they lose no frame
//! and get none altered. `HOSTILE_SECONDS` says for how long (`make soak PARTS=rings`).
#![cfg(test)]
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Guest, Valed, port_add};
use ring::BUFFER_SIZE;
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
                    _ => random.next() % REGION | 60 << 32 | random.next() % 4 << 48,
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

fn exchange(one: &mut Guest, two: &mut Guest, seconds: u64) -> u64 {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut number = 0;
    while Instant::now() < end {
        let patience = Instant::now() + Duration::from_secs(20);
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
    let allowed = |last: u8| {
        let mut port = port(last);
        port["allowed"] = json!([{"ip": format!("10.0.0.{last}/32")}]);
        port
    };
    let mut one = Guest::new(&valed, "one", allowed(1));
    let mut two = Guest::new(&valed, "two", allowed(2));
    let region = |number: u16| json!({"domain": 9, "region": number});
    let hostile = [(3, Value::Null), (4, region(1)), (5, region(2))].map(|(last, in_place)| {
        let mut add = port(last);
        add["in_place"] = in_place;
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
    let count = exchange(&mut one, &mut two, seconds);
    stop.store(true, Ordering::Relaxed);
    let writes: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let ports = valed.client().port_list(None).unwrap();
    let malformed: u64 = ports.iter().map(|p| p.counters.dropped_malformed).sum();
    println!("{count} frames each way, {writes} hostile writes, {malformed} malformed");
    assert!(count > WINDOW && malformed > 1000);
}
