// SPDX-License-Identifier: Apache-2.0
//! A peer that writes anything anywhere: no panic, no endless loop, no frame out of bounds.
//! An honest flow goes on once the peer behaves.
#![cfg(test)]
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use clickos_ring::{BUFFER_SIZE, GuestPort, InPlacePort, Memory, Regions, Slot, SwitchPort};
use proptest::prelude::*;

const SLOTS: u32 = 64;

/// A write of the hostile peer, in its own lines or in the descriptors and buffers it may reach.
#[derive(Clone, Debug)]
struct Write {
    at: u64,
    value: u64,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let interesting = prop_oneof![
        any::<u64>(),
        0..200u64,
        (0..300_000u64, 0..4096u64, 0..2u64)
            .prop_map(|(offset, len, flags)| offset | len << 32 | flags << 48),
    ];
    let place = prop_oneof![0x100..0x300u64, 0x1000..0x3000u64, 0..274_432u64 - 8];
    let write = (place, interesting).prop_map(|(at, value)| Write { at: at & !7, value });
    prop::collection::vec(write, 0..40)
}

fn scribble(fd: &OwnedFd, writes: &[Write]) {
    for write in writes {
        rustix::io::pwrite(fd, &write.value.to_le_bytes(), write.at).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_switch_survives_any_guest(rounds in prop::collection::vec(writes(), 1..8)) {
        let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
        let mut buffer = [0; BUFFER_SIZE];
        for writes in &rounds {
            scribble(&fd, writes);
            for _ in 0..2 * SLOTS {
                let _ = switch.push(&[7; 60]);
            }
            let mut popped = 0;
            while let Some(length) = switch.pop(&mut buffer) {
                prop_assert!((1..=BUFFER_SIZE).contains(&length));
                popped += 1;
                prop_assert!(popped < SLOTS, "more frames than the ring holds");
            }
            let _ = (switch.publish(), switch.sleep_prepare());
            switch.wake_done();
        }
    }

    #[test]
    fn the_guest_survives_any_switch(rounds in prop::collection::vec(writes(), 1..8)) {
        let (_switch, fd) = SwitchPort::create(SLOTS).unwrap();
        let mut guest = GuestPort::map(&fd).unwrap();
        let mut buffer = [0; BUFFER_SIZE];
        for writes in &rounds {
            scribble(&fd, writes);
            for _ in 0..2 * SLOTS {
                let _ = guest.push(&[7; 60]);
            }
            let mut popped = 0;
            while guest.pop(&mut buffer).is_some() {
                popped += 1;
                prop_assert!(popped < SLOTS, "more frames than the ring holds");
            }
            let _ = (guest.publish(), guest.sleep_prepare());
            guest.wake_done();
        }
    }

    /// A guest of two ports of version 2: frames lie in regions of its own, whole, or nowhere.
    #[test]
    fn the_switch_survives_any_guest_in_place(rounds in prop::collection::vec(writes(), 1..8)) {
        let regions = Arc::new(Regions::default());
        let mut ports = [(); 2].map(|()| SwitchPort::create_in(&regions, SLOTS).unwrap());
        let (mut buffer, mut slots) = ([0; BUFFER_SIZE], [Slot::EMPTY; 16]);
        for writes in &rounds {
            for (switch, fd) in &mut ports {
                scribble(fd, writes);
                for _ in 0..2 * SLOTS {
                    let _ = switch.push(&[7; 60]);
                }
                let mut count = 0;
                loop {
                    let fetched = switch.fetch(&mut slots);
                    if fetched == 0 {
                        break;
                    }
                    for slot in &slots[..fetched] {
                        prop_assert!((1..=BUFFER_SIZE).contains(&slot.len()));
                        switch.read(*slot, &mut buffer);
                        if let Some(rest) = switch.rest(*slot, 64) {
                            rest.read(&mut buffer);
                        }
                    }
                    count += fetched;
                    prop_assert!(count < SLOTS as usize, "more frames than the ring holds");
                }
                let _ = (switch.publish(), switch.sleep_prepare());
                switch.wake_done();
            }
        }
    }

    /// The guest takes no frame from where it offered no room, and frees no buffer that the switch may read.
    #[test]
    fn the_guest_survives_any_switch_in_place(rounds in prop::collection::vec(writes(), 1..8)) {
        let (_switch, fd) = SwitchPort::create_in(&Arc::default(), SLOTS).unwrap();
        let (mut guest, _blocks) = InPlacePort::map(&fd).unwrap();
        let layout = guest.layout();
        let (mut kept, mut total, mut spare) = (VecDeque::new(), 0, 0);
        for writes in &rounds {
            scribble(&fd, writes);
            for n in 0..2 * SLOTS {
                if n % 2 == 0 && guest.send(0, layout.frame(100) as u32, 60).is_ok() {
                    kept.push_back(total);
                    total += 1;
                } else if guest.send_copy(&[7; 60]).is_ok() {
                    total += 1;
                }
            }
            let mut count = 0;
            while let Some((slot, len)) = guest.receive() {
                prop_assert!(slot < SLOTS && (1..=BUFFER_SIZE).contains(&len));
                spare = (spare + 1) % SLOTS as usize;
                guest.offer(slot, layout.frame(SLOTS as usize + spare) as u32);
                count += 1;
                prop_assert!(count < SLOTS, "more frames than the ring holds");
            }
            guest.refresh();
            let outstanding = (0..SLOTS).filter(|slot| !guest.is_taken(*slot)).count() as u32;
            while kept.front().is_some_and(|n| guest.is_taken(*n % SLOTS)) {
                let first = kept.pop_front().unwrap();
                prop_assert!(first + outstanding < total, "the switch may still read it");
            }
            let _ = (guest.publish(), guest.sleep_prepare());
            guest.wake_done();
        }
    }

    /// Bad descriptors cost their own frames only.
    #[test]
    fn good_frames_pass_between_bad_ones(bad in prop::collection::vec(any::<bool>(), 1..60)) {
        let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
        let mut guest = GuestPort::map(&fd).unwrap();
        for (slot, is_bad) in bad.iter().enumerate() {
            guest.push(&[slot as u8; 60]).unwrap();
            if *is_bad {
                rustix::io::pwrite(&fd, &[0xff; 8], 0x1000 + slot as u64 * 8).unwrap();
            }
        }
        let _ = guest.publish();
        let mut buffer = [0; BUFFER_SIZE];
        for (slot, _) in bad.iter().enumerate().filter(|(_, is_bad)| !**is_bad) {
            prop_assert_eq!(switch.pop(&mut buffer), Some(60));
            prop_assert_eq!(buffer[0], slot as u8);
        }
        prop_assert_eq!(switch.pop(&mut buffer), None);
        prop_assert_eq!(switch.malformed(), bad.iter().filter(|b| **b).count() as u64);
    }
}

/// A guest that offered nonsense as receive buffers gets frames again once it offers good ones.
#[test]
fn bad_receive_buffers_heal() {
    let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
    let mut guest = GuestPort::map(&fd).unwrap();
    let mut buffer = [0; BUFFER_SIZE];
    rustix::io::pwrite(&fd, &[0xff; 512], 0x2000).unwrap();
    for _ in 0..SLOTS - 1 {
        assert!(switch.push(&[1; 60]).is_err());
    }
    let _ = switch.publish();
    assert_eq!(guest.pop(&mut buffer), None);
    assert_eq!(guest.malformed(), u64::from(SLOTS) - 1);
    let _ = guest.publish();
    switch.push(&[1; 60]).unwrap_err();
    switch.push(&[2; 60]).unwrap();
    let _ = switch.publish();
    assert_eq!(guest.pop(&mut buffer), Some(60));
}

/// A guest that publishes a ring full of bad descriptors whenever it is looked at.
struct Endless {
    index: Cell<u32>,
    loads: Cell<u32>,
}

impl Memory for Endless {
    fn size(&self) -> usize {
        1 << 20
    }

    fn load(&self, _: usize) -> u32 {
        self.loads.set(self.loads.get() + 1);
        assert!(self.loads.get() < 10_000, "the peer keeps us busy for ever");
        self.index.set((self.index.get() + SLOTS - 1) % SLOTS);
        self.index.get()
    }

    fn store(&self, _: usize, _: u32) {}

    fn load_descriptor(&self, _: usize) -> u64 {
        u64::MAX
    }

    fn store_descriptor(&self, _: usize, _: u64) {}

    fn read(&self, _: usize, _: &mut [u8]) {}

    fn write(&self, _: usize, _: &[u8]) {}

    fn fence(&self) {}
}

#[test]
fn endless_bad_descriptors_end() {
    let memory = Endless {
        index: Cell::new(0),
        loads: Cell::new(0),
    };
    let mut switch = SwitchPort::format(memory, SLOTS).unwrap();
    assert_eq!(switch.pop(&mut [0; BUFFER_SIZE]), None);
    assert!(switch.malformed() > 0);
}
