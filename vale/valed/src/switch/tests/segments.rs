// SPDX-License-Identifier: Apache-2.0
//! Guests that leave segmentation to the switch, and guests that take such frames.
use rustix::io::{pread, pwrite};

use super::checksums::partial_csum;
use super::*;

const SLOTS: usize = 64;
/// Places in a region of up to 512 slots (docs/rings.md).
pub const TX_HEAD: usize = 0x100;
pub const RX_HEAD: usize = 0x200;
pub const RX_TAIL: usize = 0x280;
pub const TX: usize = 0x1000;
pub const RX: usize = 0x2000;
pub const BUFFERS: usize = 0x3000;
pub const BUFFER: usize = 2048;
const SIZE: u16 = 1460;
const LENGTHS: [usize; 8] = [60, 128, 2048, 2049, 4096, 20_000, 65_000, 65_535];

/// A guest that has agreed on segments. It writes and reads its rings by hand.
struct Agreed {
    guest: Guest,
    head: usize,
    taken: usize,
}

fn flags(size: u16) -> u16 {
    1 | size << 1
}

impl Agreed {
    fn new(bench: &mut Bench, last: u8) -> Self {
        let guest = bench.agreed(last, 3);
        let (head, taken) = (0, 0);
        Self { guest, head, taken }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        pwrite(&self.guest.fds[0], bytes, at as u64).unwrap();
    }

    fn describe(&self, slot: usize, offset: usize, len: usize, flags: u16) {
        let word = offset as u64 | (len as u64) << 32 | u64::from(flags) << 48;
        self.write(TX + slot * 8, &word.to_le_bytes());
    }

    fn publish(&mut self, slots: usize) {
        self.head = (self.head + slots) % SLOTS;
        self.write(TX_HEAD, &(self.head as u32).to_le_bytes());
    }

    /// Sends a frame, whose slots follow each other.
    fn send(&mut self, frame: &[u8], flags: u16) {
        let count = frame.len().div_ceil(BUFFER);
        let passed = match count > SLOTS - self.head {
            true => SLOTS - self.head,
            false => 0,
        };
        if passed > 0 {
            self.describe(self.head, 0, 0, 0);
        }
        let slot = (self.head + passed) % SLOTS;
        let offset = BUFFERS + slot * BUFFER;
        self.write(offset, frame);
        self.describe(slot, offset, frame.len(), flags);
        self.publish(passed + count);
    }

    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        pread(&self.guest.fds[0], &mut word, at as u64).unwrap();
        u64::from_le_bytes(word)
    }

    /// Takes the flags and the bytes of all frames.
    fn received(&mut self) -> Vec<(u16, Vec<u8>)> {
        let tail = self.word(RX_TAIL) as u32 as usize;
        let mut frames = Vec::new();
        while self.taken != tail {
            let word = self.word(RX + self.taken * 8);
            let (offset, len) = (word & 0xffff_ffff, (word >> 32) as usize & 0xffff);
            if len == 0 {
                self.taken = 0;
                continue;
            }
            assert_eq!(offset as usize, BUFFERS + (SLOTS + self.taken) * BUFFER);
            let mut frame = vec![0; len];
            pread(&self.guest.fds[0], &mut frame, offset).unwrap();
            frames.push(((word >> 48) as u16, frame));
            self.taken = (self.taken + len.div_ceil(BUFFER)) % SLOTS;
        }
        self.write(RX_HEAD, &(self.taken as u32).to_le_bytes());
        frames
    }

    fn malformed(&self, bench: &Bench) -> u64 {
        bench.counters(&self.guest).dropped_malformed
    }
}

/// A frame of TCP whose headers end at byte 54.
fn tcp(destination: Mac, len: usize) -> Vec<u8> {
    let mut frame = partial_csum(destination, 6, len);
    frame[46] = 0x50;
    frame
}

#[test]
fn between_two_guests_that_agreed_no_side_cuts() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    // The ring is filled several times, so frames meet its end at different slots.
    for round in 0..5 {
        for len in LENGTHS {
            for len in [len, len - round] {
                let frame = tcp(mac(2), len);
                a.send(&frame, flags(SIZE));
                bench.round();
                assert_eq!(b.received(), [(flags(SIZE), frame)], "{len} bytes");
            }
            let short = partial_csum(mac(2), 17, 60 + round);
            a.send(&short, 1);
            bench.round();
            assert_eq!(b.received(), [(1, short)]);
        }
    }
    assert_eq!((a.malformed(&bench), b.malformed(&bench)), (0, 0));
    let (a, b) = (bench.counters(&a.guest), bench.counters(&b.guest));
    assert_eq!((a.rx_bytes, a.rx_packets), (b.tx_bytes, b.tx_packets));
}

#[test]
fn the_switch_cuts_for_a_guest_that_did_not_agree() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), bench.guest(2, 1));
    for (protocol, headers) in [(6, 54), (17, 42)] {
        let mut frame = partial_csum(mac(2), protocol, headers + 3 * usize::from(SIZE) + 1);
        if protocol == 6 {
            frame[46] = 0x50;
        }
        a.send(&frame, flags(SIZE));
        bench.round();
        let parts = b.received();
        let lengths: Vec<_> = parts.iter().map(|part| part.len() - headers).collect();
        assert_eq!(lengths, [1460, 1460, 1460, 1]);
        let payload: Vec<_> = parts.iter().flat_map(|part| &part[headers..]).collect();
        assert_eq!(payload, frame[headers..].iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_long_frame_of_an_interface_stays_whole() {
    let mut bench = Bench::new();
    let (_a, mut b) = (bench.guest(1, 1), Agreed::new(&mut bench, 2));
    let (burst, offload) = tcp_burst();
    bench.send_from_interface(&burst, offload);
    bench.round();
    assert_eq!(b.received(), [(flags(1400), burst)]);
}

#[test]
fn a_full_ring_takes_what_fits() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    let frame = tcp(mac(2), 40_000);
    for expected in [20, 40, 60, 60] {
        a.send(&frame, flags(SIZE));
        bench.round();
        assert_eq!(b.word(RX_TAIL) as u32, expected);
    }
    assert_eq!(bench.counters(&b.guest).dropped_full, 1);
    assert_eq!(b.received().len(), 3);
    // 4 slots are left before the end of the ring.
    a.send(&frame, flags(SIZE));
    bench.round();
    assert_eq!(b.word(RX_TAIL) as u32, 20);
    assert_eq!(b.received(), [(flags(SIZE), frame)]);
}

#[test]
fn descriptors_that_make_no_sense_are_dropped_and_counted() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    let good = tcp(mac(2), 3000);
    let end = BUFFERS + 2 * SLOTS * BUFFER;
    let wrong: [(&str, usize, usize, u16); 8] = [
        ("long without segments", BUFFERS, 3000, 1),
        ("long without flags", BUFFERS, 3000, 0),
        ("segments without a checksum", BUFFERS, 3000, SIZE << 1),
        ("segments too short", BUFFERS, 3000, flags(255)),
        ("segments too long", BUFFERS, 3000, flags(2048)),
        ("before the buffers", BUFFERS - 1, 3000, flags(SIZE)),
        ("behind the buffers", end - 2999, 3000, flags(SIZE)),
        ("headers only", BUFFERS, 54, flags(SIZE)),
    ];
    for (n, (why, offset, len, flags)) in wrong.into_iter().enumerate() {
        a.write(BUFFERS, &good);
        a.describe(a.head, offset, len, flags);
        a.publish(len.div_ceil(BUFFER));
        bench.round();
        a.send(&good, self::flags(SIZE));
        bench.round();
        assert_eq!(b.received(), [(self::flags(SIZE), good.clone())], "{why}");
        assert_eq!(a.malformed(&bench), n as u64 + 1, "{why}");
    }
}

/// The slots of a frame are published at once: what is left of such a frame is not waited for.
#[test]
fn a_frame_without_all_its_slots_is_malformed() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    a.describe(0, BUFFERS, 3000, flags(SIZE));
    a.publish(1);
    bench.round();
    assert_eq!(a.malformed(&bench), 1);
    a.describe(1, 0, 0, 0);
    a.publish(1);
    bench.round();
    assert_eq!(a.malformed(&bench), 2);
    let good = tcp(mac(2), 3000);
    a.send(&good, flags(SIZE));
    bench.round();
    assert_eq!(b.received(), [(flags(SIZE), good)]);
}

/// Sends frames of 20 segments each and returns the number of those that arrive.
fn arrived(bench: &mut Bench, a: &mut Agreed, b: &mut Agreed, destination: Mac) -> usize {
    let frame = tcp(destination, 54 + 20 * usize::from(SIZE));
    let got = (0..10).map(|_| {
        a.send(&frame, flags(SIZE));
        bench.round();
        b.received().len()
    });
    got.sum()
}

fn rates(limits: Value) -> PortLimits {
    PortLimits::new(&serde_json::from_value(limits).unwrap())
}

/// The buckets have 64 packets.
#[test]
fn packet_rates_count_each_segment() {
    for direction in ["rx", "tx"] {
        let limits = || rates(json!({direction: {"packets_per_s": 100}}));
        let mut bench = Bench::new();
        let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
        let limited = if direction == "rx" { &a } else { &b };
        let name = limited.guest.name.clone();
        assert!(bench.switch.set_limits(&name, limits()));
        assert_eq!(arrived(&mut bench, &mut a, &mut b, mac(2)), 3);
        assert!(bench.switch.set_limits(&name, PortLimits::default()));
        assert_eq!(arrived(&mut bench, &mut a, &mut b, mac(2)), 10);
        bench.switch.set_segment_limits(1, limits());
        assert_eq!(arrived(&mut bench, &mut a, &mut b, mac(2)), 3);
    }
}

#[test]
fn budgets_of_flooded_frames_and_mirrors_count_each_segment() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    assert_eq!(
        arrived(&mut bench, &mut a, &mut b, mac(9)),
        10,
        "to open ports"
    );
    let name = a.guest.name.clone();
    let limits = rates(json!({"unknown_per_s": 100}));
    assert!(bench.switch.set_limits(&name, limits));
    assert_eq!(arrived(&mut bench, &mut a, &mut b, mac(9)), 3);
    let mut monitor = Agreed::new(&mut bench, 3);
    let set = json!({"switch": "vale0", "mirror": "m", "port": name,
        "to_port": monitor.guest.name, "packets_per_s": 100});
    let set: vale_proto::MirrorSet = serde_json::from_value(set).unwrap();
    let budget = crate::mirror::budget(&set);
    bench.switch.set_mirror(set, None, budget).unwrap();
    assert_eq!(arrived(&mut bench, &mut a, &mut b, mac(2)), 10);
    assert_eq!(monitor.received().len(), 3);
}

/// Else TCP would repeat such frames for ever.
#[test]
fn a_full_bucket_admits_a_frame_of_more_segments_than_it_holds() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    let limits = rates(json!({"rx": {"packets_per_s": 100}}));
    assert!(bench.switch.set_limits(&a.guest.name.clone(), limits));
    let frame = tcp(mac(2), 54 + 100 * 536);
    // 100 segments take a second.
    for (now_ms, passes) in [
        (0, true),
        (0, false),
        (999, false),
        (1000, true),
        (1999, false),
    ] {
        bench.scratch.now = now_ms * 1_000_000;
        a.send(&frame, flags(536));
        bench.round();
        assert_eq!(b.received().len(), usize::from(passes), "{now_ms} ms");
    }
}
