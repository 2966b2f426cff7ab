// SPDX-License-Identifier: Apache-2.0
//! A peer that writes anything anywhere: no panic, no endless loop, no frame out of bounds.
//! An honest flow continues once the peer behaves.
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use clickos_ring::{
    BUFFER_SIZE, GuestPort, InPlacePort, LONGEST, Memory, Parts, Regions, Slot, SwitchPort,
};
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

/// Flags of any kind, and those of features.
fn flags() -> impl Strategy<Value = u16> {
    prop_oneof![
        any::<u16>(),
        0..4u16,
        (250..2050u16).prop_map(|size| 1 | size << 1),
        (8990..9010u16).prop_map(|size| 1 | size << 1)
    ]
}

/// Writes of a guest that makes frames of several slots.
fn long_writes() -> impl Strategy<Value = Vec<Write>> {
    let word = (0..300_000u64, any::<u16>(), flags())
        .prop_map(|(offset, len, flags)| offset | u64::from(len) << 32 | u64::from(flags) << 48);
    let value = prop_oneof![4 => word, 1 => Just(0), 1 => 0..SLOTS as u64];
    let place = prop_oneof![4 => 0x1000..0x1200u64, 1 => Just(0x100), 1 => 0x100..0x300u64];
    let write = (place, value).prop_map(|(at, value)| Write { at: at & !7, value });
    prop::collection::vec(write, 0..100)
}

fn scribble(fd: &OwnedFd, writes: &[Write]) {
    for write in writes {
        rustix::io::pwrite(fd, &write.value.to_le_bytes(), write.at).unwrap();
    }
}

/// Gives each frame that the guest has sent to `check`; there are no more than the ring holds.
fn fetch_all(
    switch: &mut SwitchPort,
    mut check: impl FnMut(&SwitchPort, Slot) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let (mut slots, mut count) = ([Slot::EMPTY; 16], 0);
    loop {
        let fetched = switch.fetch(&mut slots);
        if fetched == 0 {
            return Ok(());
        }
        switch.read_heads::<128>(&slots[..fetched], &mut [0; 16 * 128]);
        for slot in &slots[..fetched] {
            check(switch, *slot)?;
        }
        count += fetched;
        prop_assert!(count < SLOTS as usize, "more frames than the ring holds");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_switch_survives_any_guest(rounds in prop::collection::vec(writes(), 1..8)) {
        let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
        let mut buffer = [0; BUFFER_SIZE];
        for writes in &rounds {
            scribble(&fd, writes);
            for _ in 0..SLOTS {
                let _ = switch.push(&[7; 60]);
            }
            let part = Parts { head: &[7; 60], rest: None };
            let pushed = switch.push_all(&[part; SLOTS as usize]);
            let all = pushed.frames + pushed.full + pushed.bad_buffers;
            prop_assert_eq!(all, u64::from(SLOTS));
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

    /// A switch that makes frames of several slots, of any length and anywhere.
    #[test]
    fn the_guest_survives_any_switch_with_long_frames(
        rounds in prop::collection::vec(long_writes(), 1..8),
    ) {
        let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
        switch.set_long();
        let mut guest = GuestPort::map(&fd).unwrap();
        let mut buffer = [0; LONGEST];
        for writes in &rounds {
            scribble(&fd, writes);
            for n in 0..2 * SLOTS as usize {
                let _ = guest.push(&buffer[..1 + n * 80]);
            }
            let mut popped = 0;
            loop {
                let room = guest.next_room();
                prop_assert!((BUFFER_SIZE..=LONGEST).contains(&room));
                let Some(len) = guest.pop(&mut buffer[..room]) else {
                    break;
                };
                popped += 1;
                prop_assert!(len <= room && popped < SLOTS, "more than the ring holds");
            }
            let _ = (guest.publish(), guest.sleep_prepare());
            guest.wake_done();
        }
    }

    /// Features and flags of any kind, and honest flags now and then.
    #[test]
    fn the_switch_survives_any_features_and_flags(
        offered in any::<u32>(),
        flags in prop::collection::vec(flags(), 1..60),
    ) {
        let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
        rustix::io::pwrite(&fd, &offered.to_le_bytes(), 0x18).unwrap();
        switch.negotiate();
        let mut accepted = [0; 4];
        rustix::io::pread(&fd, &mut accepted, 0x1c).unwrap();
        let agreed = if offered & 1 == 1 { offered & 7 } else { offered & 4 };
        prop_assert_eq!(u32::from_le_bytes(accepted), agreed);
        prop_assert_eq!(switch.accepts_partial_csum(), agreed & 1 == 1);
        prop_assert_eq!(switch.takes_segments(), agreed & 2 == 2);
        let mut guest = GuestPort::map(&fd).unwrap();
        for (slot, flags) in flags.iter().enumerate() {
            guest.push(&[slot as u8; 60]).unwrap();
            rustix::io::pwrite(&fd, &flags.to_le_bytes(), 0x1006 + slot as u64 * 8).unwrap();
        }
        let _ = guest.publish();
        let is_good = |flags: u16| match (flags & 1, flags >> 1) {
            (_, 0) => u32::from(flags) & !(agreed & 1) == 0,
            (1, 256..=2047) => agreed & 3 == 3,
            (1, 2048..=9000) => agreed == 7,
            _ => false,
        };
        let good: Vec<_> = flags.iter().copied().filter(|flags| is_good(*flags)).collect();
        let mut slots = [Slot::EMPTY; 64];
        let fetched = switch.fetch(&mut slots);
        let found = slots[..fetched].iter();
        let found: Vec<_> = found.map(|s| u16::from(s.needs_csum()) | s.segment() << 1).collect();
        prop_assert_eq!(&found, &good);
        prop_assert_eq!(switch.malformed() as usize, flags.len() - good.len());
        let _ = switch.publish();
    }

    /// Frames of several slots lie in the buffers, whole, or nowhere.
    #[test]
    fn the_switch_survives_any_guest_with_long_frames(
        rounds in prop::collection::vec(long_writes(), 1..8),
        features in prop_oneof![Just(3u8), Just(4), Just(7)],
    ) {
        let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
        rustix::io::pwrite(&fd, &[features], 0x18).unwrap();
        switch.negotiate();
        let longest = if features & 4 == 0 { BUFFER_SIZE } else { LONGEST };
        let mut buffer = [0; u16::MAX as usize];
        for writes in &rounds {
            scribble(&fd, writes);
            for n in 0..2 * SLOTS as usize {
                let _ = match features & 2 {
                    2 => switch.push_gso(&buffer[..1 + n * 500], 1460),
                    _ => switch.push(&buffer[..1 + n * 80]),
                };
                let _ = switch.push(&[7; 60]);
            }
            fetch_all(&mut switch, |switch, slot| {
                prop_assert!(slot.len() <= longest || slot.segment() >= 256);
                switch.read(slot, &mut buffer);
                Ok(())
            })?;
            let _ = (switch.publish(), switch.sleep_prepare());
            switch.wake_done();
        }
    }

    /// A guest of two ports of version 2: frames lie in regions of its own, whole, or nowhere.
    #[test]
    fn the_switch_survives_any_guest_in_place(rounds in prop::collection::vec(writes(), 1..8)) {
        let regions = Arc::new(Regions::default());
        let mut ports = [(); 2].map(|()| SwitchPort::create_in(&regions, SLOTS).unwrap());
        let mut buffer = [0; BUFFER_SIZE];
        for writes in &rounds {
            for (switch, fd) in &mut ports {
                scribble(fd, writes);
                for _ in 0..2 * SLOTS {
                    let _ = switch.push(&[7; 60]);
                }
                fetch_all(switch, |switch, slot| {
                    prop_assert!((1..=BUFFER_SIZE).contains(&slot.len()));
                    switch.read(slot, &mut buffer);
                    if let Some(rest) = switch.rest(slot, 64) {
                        rest.read(&mut buffer);
                    }
                    Ok(())
                })?;
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

/// The flags of version 2 are numbers of regions.
#[test]
fn a_guest_of_version_2_has_no_features() {
    let (mut switch, fd) = SwitchPort::create_in(&Arc::default(), SLOTS).unwrap();
    rustix::io::pwrite(&fd, &[0xff; 8], 0x18).unwrap();
    switch.negotiate();
    let mut accepted = [0xff; 4];
    rustix::io::pread(&fd, &mut accepted, 0x1c).unwrap();
    assert_eq!((accepted, switch.accepts_partial_csum()), ([0; 4], false));
}

/// A guest without the feature takes no frame with its flag.
#[test]
fn a_guest_passes_over_flags_that_it_did_not_ask_for() {
    let (mut switch, fd) = SwitchPort::create(SLOTS).unwrap();
    let mut guest = GuestPort::map(&fd).unwrap();
    switch.push_partial_csum(&[1; 60], None).unwrap();
    switch.push(&[2; 60]).unwrap();
    let _ = switch.publish();
    let mut buffer = [0; BUFFER_SIZE];
    assert_eq!(guest.pop(&mut buffer), Some(60));
    assert_eq!((buffer[0], guest.malformed()), (2, 1));
    drop(fd);
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
