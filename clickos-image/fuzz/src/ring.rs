// SPDX-License-Identifier: Apache-2.0
//! Rings between guest and switch: a peer that writes anything anywhere.
use std::cell::RefCell;

use ring::{BUFFER_SIZE, GuestPort, InPlacePort, Memory, Slot, SwitchPort};

use crate::router::choose;

/// The smallest ring.
const SLOTS: u32 = 64;

/// Memory that is shared with the fuzzer.
#[derive(Clone, Copy)]
struct Shared<'a>(&'a RefCell<Vec<u8>>);

impl Shared<'_> {
    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.read(at, &mut bytes);
        bytes
    }
}

impl Memory for Shared<'_> {
    fn size(&self) -> usize {
        self.0.borrow().len()
    }

    fn load(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.get(at))
    }

    fn store(&self, at: usize, value: u32) {
        self.write(at, &value.to_ne_bytes());
    }

    fn load_descriptor(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.get(at))
    }

    fn store_descriptor(&self, at: usize, value: u64) {
        self.write(at, &value.to_ne_bytes());
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow()[at..at + into.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }

    fn fence(&self) {}
}

/// Both ends go on while the memory between them is written to: nothing is read or written beyond it.
pub fn rings(data: &[u8]) {
    copying(data);
    in_place(data);
}

/// The same in version 2, where the guest's frames stay in the memory.
fn in_place(data: &[u8]) {
    let size = ring::layout::Layout::of(2, SLOTS).map_or(0, |layout| layout.size());
    let memory = RefCell::new(vec![0; size]);
    let Ok(mut guest) = InPlacePort::format(Shared(&memory), SLOTS, 1) else {
        panic!("the memory is as large as it has to be");
    };
    let Ok(mut switch) = SwitchPort::attach(Shared(&memory), SLOTS) else {
        panic!("the ring was formatted");
    };
    let (mut rest, mut frame, mut slots) = (data, [0; BUFFER_SIZE], [Slot::EMPTY; 8]);
    while let Some((at, bytes)) = choose(rest, size.min(16_384)) {
        let (scribble, behind) = bytes.split_at(bytes.len().min(9));
        let end = size.min(at + scribble.len());
        memory.borrow_mut()[at..end].copy_from_slice(&scribble[..end - at]);
        if let Some((slot, len)) = guest.receive() {
            assert!(slot < SLOTS && (1..=BUFFER_SIZE).contains(&len));
            guest.offer(slot, guest.layout().frame(at % 128) as u32);
        }
        guest.refresh();
        let _ = guest.send_copy(&data[..data.len().min(300)]);
        let _ = (guest.send(at as u16, at as u32, at % 3000), guest.publish());
        let count = switch.fetch(&mut slots);
        for slot in &slots[..count] {
            switch.read(*slot, &mut frame);
            switch.rest(*slot, 64).inspect(|rest| rest.read(&mut frame));
        }
        let _ = (switch.push(scribble), switch.publish());
        let _ = (guest.sleep_prepare(), switch.sleep_prepare());
        rest = behind;
    }
}

fn copying(data: &[u8]) {
    let size = ring::layout::Layout::new(SLOTS).map_or(0, |layout| layout.size());
    let memory = RefCell::new(vec![0; size]);
    let Ok(mut guest) = GuestPort::format(Shared(&memory), SLOTS) else {
        panic!("the memory is as large as it has to be");
    };
    let Ok(mut switch) = SwitchPort::attach(Shared(&memory), SLOTS) else {
        panic!("the ring was formatted");
    };
    let (mut rest, mut frame, mut slots) = (data, [0; BUFFER_SIZE], [Slot::EMPTY; 8]);
    while let Some((at, bytes)) = choose(rest, size.min(8192)) {
        let (scribble, behind) = bytes.split_at(bytes.len().min(9));
        let end = size.min(at + scribble.len());
        memory.borrow_mut()[at..end].copy_from_slice(&scribble[..end - at]);
        let _ = (guest.push(scribble), guest.publish(), guest.pop(&mut frame));
        let _ = (
            switch.push(scribble),
            switch.publish(),
            switch.pop(&mut frame),
        );
        switch.negotiate();
        let count = switch.fetch(&mut slots);
        for slot in &slots[..count] {
            assert!(!slot.needs_csum() || switch.accepts_partial_csum());
            switch.read(*slot, &mut frame);
        }
        let _ = switch.push_partial_csum(scribble, None);
        let _ = (
            guest.sleep_prepare(),
            switch.sleep_prepare(),
            switch.waiting(),
        );
        rest = behind;
    }
    let _ = GuestPort::attach(Shared(&memory)).map(|mut port| port.pop(&mut frame));
}
