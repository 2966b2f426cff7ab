// SPDX-License-Identifier: Apache-2.0
//! Guests that leave checksums to the switch, and guests that take such frames.
use rustix::io::{pread, pwrite};

use super::*;
use crate::frame::gso::{Checksum, complete};

const SLOTS: u64 = 64;
/// Places in a region of 64 slots (docs/rings.md).
const RX_TAIL: u64 = 0x280;
const TX: u64 = 0x1000;
const RX: u64 = 0x2000;
const FLAG: u16 = 1;

/// A guest that has agreed on checksums. It writes and reads flags by hand.
struct Agreed {
    guest: Guest,
    sent: u64,
    taken: u64,
}

impl Agreed {
    fn new(bench: &mut Bench, last: u8) -> Self {
        let guest = bench.agreed(last, 1);
        let (sent, taken) = (0, 0);
        Self { guest, sent, taken }
    }

    fn send(&mut self, frame: &[u8], flags: u16) {
        self.guest.ring.push(frame).unwrap();
        let at = TX + self.sent % SLOTS * 8 + 6;
        pwrite(&self.guest.fds[0], &flags.to_le_bytes(), at).unwrap();
        let _ = self.guest.ring.publish();
        self.sent += 1;
    }

    /// The flags and the bytes of new frames, up to the size of the ring.
    fn received(&mut self) -> Vec<(u16, Vec<u8>)> {
        let region = &self.guest.fds[0];
        let word = |at| {
            let mut word = [0; 8];
            pread(region, &mut word, at).unwrap();
            u64::from_le_bytes(word)
        };
        let tail = word(RX_TAIL) & 0xffff_ffff;
        let frames = (self.taken..tail).map(|slot| {
            let found = word(RX + slot * 8);
            let mut frame = vec![0; (found >> 32) as usize & 0xffff];
            pread(region, &mut frame, found & 0xffff_ffff).unwrap();
            ((found >> 48) as u16, frame)
        });
        let frames = frames.collect();
        self.taken = tail;
        frames
    }
}

/// A frame of TCP or UDP whose checksum has the pseudo header's sum, `len` bytes long.
pub fn partial_csum(destination: Mac, protocol: u8, len: usize) -> Vec<u8> {
    let mut frame = frame(destination, mac(1), len);
    let [high, low] = (len as u16 - 14).to_be_bytes();
    frame[12..34].copy_from_slice(&[
        8, 0, 0x45, 0, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    (34..len).for_each(|at| frame[at] = at as u8);
    let field = Checksum::of(&frame).unwrap().field();
    let sum = 0x0a00 + 1 + 0x0a00 + 2 + u32::from(protocol) + len as u32 - 34;
    let sum = (sum >> 16) as u16 + sum as u16;
    frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn summed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let checksum = Checksum::of(&frame).unwrap();
    complete(&mut frame, checksum);
    frame
}

/// A receiver's sum over pseudo header and segment is 0.
fn is_right(frame: &[u8]) -> bool {
    let (words, length) = (frame[26..].chunks(2), frame.len() as u32 - 34);
    let words = words.map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum = words.sum::<u32>() + u32::from(frame[23]) + length;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum == 0xffff
}

const LENGTHS: [usize; 7] = [54, 60, 127, 128, 129, 1501, 1514];

#[test]
fn between_two_guests_that_agreed_no_side_sums() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    for (protocol, len) in [6, 17]
        .into_iter()
        .flat_map(|p| LENGTHS.map(|len| (p, len)))
    {
        let frame = partial_csum(mac(2), protocol, len);
        a.send(&frame, FLAG);
        a.send(&frame, 0);
        bench.round();
        assert_eq!(b.received(), [(FLAG, frame.clone()), (0, frame)]);
    }
    assert_eq!(bench.counters(&a.guest).dropped_malformed, 0);
    assert_eq!(
        bench.counters(&a.guest).rx_bytes,
        bench.counters(&b.guest).tx_bytes
    );
}

#[test]
fn the_switch_completes_checksums_for_a_guest_that_did_not_agree() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), bench.guest(2, 1));
    for (protocol, len) in [6, 17]
        .into_iter()
        .flat_map(|p| LENGTHS.map(|len| (p, len)))
    {
        let frame = partial_csum(mac(2), protocol, len);
        assert!(!is_right(&frame));
        a.send(&frame, FLAG);
        bench.round();
        let received = b.received();
        assert_eq!(received, [summed(&frame)]);
        assert!(is_right(&received[0]), "{protocol}, {len} bytes");
    }
}

#[test]
fn a_flooded_frame_is_right_for_each_of_its_receivers() {
    let mut bench = Bench::new();
    let (mut before, mut a) = (bench.guest(4, 1), Agreed::new(&mut bench, 1));
    let (mut b, mut after) = (Agreed::new(&mut bench, 2), bench.guest(3, 1));
    for len in [60, 1514] {
        let frame = partial_csum(BROADCAST, 17, len);
        a.send(&frame, FLAG);
        bench.round();
        assert_eq!(before.received(), [summed(&frame)]);
        assert_eq!(after.received(), [summed(&frame)]);
        // A short frame was completed for the first receiver.
        let expected = match len {
            60 => (0, summed(&frame)),
            _ => (FLAG, frame),
        };
        assert_eq!(b.received(), [expected]);
    }
}

#[test]
fn a_frame_of_an_interface_keeps_its_checksum_open_if_the_flag_can_say_so() {
    let mut bench = Bench::new();
    let (_a, mut b) = (bench.guest(1, 1), Agreed::new(&mut bench, 2));
    let udp = partial_csum(mac(2), 17, 100);
    for (offset, flags) in [(6u8, FLAG), (8, 0)] {
        let header = [1, 0, 0, 0, 0, 0, 34, 0, offset, 0];
        let offload = TxOffload::parse(&header, udp.len()).unwrap();
        bench.send_from_interface(&udp, offload);
        bench.round();
        let received = b.received();
        assert_eq!(received[0].0, flags);
        assert_eq!(received[0].1 == udp, flags == FLAG);
    }
    let (burst, offload) = tcp_burst();
    bench.send_from_interface(&burst, offload);
    bench.round();
    let received = b.received();
    assert!(received.iter().all(|(flags, _)| *flags == 0));
    assert_eq!(received.len(), 3);
}

#[test]
fn flags_that_make_no_sense_are_dropped_and_counted() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), Agreed::new(&mut bench, 2));
    let good = partial_csum(mac(2), 6, 60);
    let edited = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        frame
    };
    let wrong = [
        (good.clone(), 2, "a flag that is not defined"),
        (good.clone(), 3, "one more flag"),
        (good.clone(), u16::MAX, "all flags"),
        (frame(mac(2), mac(1), 60), FLAG, "no IP"),
        (edited(23, 1), FLAG, "ICMP"),
        (edited(20, 0x20), FLAG, "first fragment"),
        (edited(21, 1), FLAG, "later fragment"),
        (edited(14, 0x44), FLAG, "header too short"),
        (edited(14, 0x4f), FLAG, "header longer than the frame"),
        (good[..51].to_vec(), FLAG, "no room for the checksum"),
    ];
    for (n, (frame, flags, why)) in wrong.iter().enumerate() {
        a.send(frame, *flags);
        a.send(&good, FLAG);
        bench.round();
        assert_eq!(b.received(), [(FLAG, good.clone())], "{why}");
        let malformed = bench.counters(&a.guest).dropped_malformed;
        assert_eq!(malformed, n as u64 + 1, "{why}");
    }
}

#[test]
fn a_guest_that_did_not_agree_has_no_flags() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (Agreed::new(&mut bench, 1), bench.guest(2, 1));
    let (port, fds) = port::open(&add("c", json!({"mac": mac(3)})), &bench.resources).unwrap();
    bench.switch.add(&mut Some(Box::new(port))).unwrap();
    let ring = GuestPort::map(&fds[0]).unwrap();
    let name = "c".parse().unwrap();
    let guest = Guest { name, ring, fds };
    let (sent, taken) = (0, 0);
    let mut c = Agreed { guest, sent, taken };
    // Too late: the rings are in use.
    pwrite(&c.guest.fds[0], &1u32.to_le_bytes(), OFFERED).unwrap();
    c.send(&partial_csum(mac(2), 6, 60), FLAG);
    a.send(&partial_csum(mac(3), 6, 60), FLAG);
    bench.round();
    assert!(b.received().is_empty());
    assert_eq!(bench.counters(&c.guest).dropped_malformed, 1);
    assert_eq!(c.received(), [(0, summed(&partial_csum(mac(3), 6, 60)))]);
}
