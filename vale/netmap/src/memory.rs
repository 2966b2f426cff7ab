// SPDX-License-Identifier: Apache-2.0
//! The rings and buffers that the program sees: memory of the process, apart from the switch's.
//!
//! The program may write any value at any time, so all words are read once and then checked.
use std::mem::{offset_of, size_of};
use std::ptr::{self, NonNull};

use ring::{BUFFER_SIZE, Mapping, Memory};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::abi::{self, Interface, RingHead, Slot};

const PAGE: usize = 4096;
/// Buffers 0 and 1 belong to no slot, as in netmap.
const FIRST_BUFFER: u32 = 2;

/// A direction; the value is the field `dir` of its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Tx = 0,
    Rx = 1,
}

/// Places in the memory, in bytes from its start.
#[derive(Clone, Copy)]
pub struct Layout {
    slots: u32,
}

impl Layout {
    pub fn ring(self, way: Way) -> usize {
        let ring = size_of::<RingHead>() + self.slots as usize * size_of::<Slot>();
        size_of::<Interface>().next_multiple_of(64) + way as usize * ring.next_multiple_of(64)
    }

    pub fn slot(self, way: Way, slot: u32) -> usize {
        self.ring(way) + size_of::<RingHead>() + slot as usize * size_of::<Slot>()
    }

    pub fn buffer(self, index: u32) -> usize {
        self.slot(Way::Rx, self.slots).next_multiple_of(PAGE) + index as usize * BUFFER_SIZE
    }

    /// The index after the last buffer.
    fn end(self) -> u32 {
        FIRST_BUFFER + 2 * self.slots
    }

    pub fn size(self) -> usize {
        self.buffer(self.end())
    }
}

/// The mapped memory.
pub struct Shim {
    pub layout: Layout,
    memory: Mapping,
}

/// Unmaps the memory after its last use.
struct Owner {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the address range belongs to this value alone, and unmapping works from any thread.
unsafe impl Send for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: `Shim::new` mapped exactly this range, and its `Mapping` has ended.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size) };
    }
}

impl Shim {
    /// Maps and fills the memory. Returns its address too, for the program.
    pub fn new(name: &str, slots: u32) -> rustix::io::Result<(Self, NonNull<u8>)> {
        let layout = Layout { slots };
        let size = layout.size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), size, protection, MapFlags::PRIVATE) }?;
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: mapped just now, page aligned, until the owner is dropped. The program uses
        // pointers only; this library makes no references into it.
        let memory = unsafe { Mapping::with_owner(base, size, Box::new(Owner { base, size })) };
        let shim = Self { layout, memory };
        shim.fill(name);
        Ok((shim, base))
    }

    fn fill(&self, name: &str) {
        let name = abi::name(name).map(|c| c as u8);
        self.memory.write(0, &name);
        let word = |at, value| self.memory.store(at, value);
        word(offset_of!(Interface, version), abi::NETMAP_API);
        word(offset_of!(Interface, tx_rings), 1);
        word(offset_of!(Interface, rx_rings), 1);
        for way in [Way::Tx, Way::Rx] {
            let offset = offset_of!(Interface, ring_ofs) + way as usize * 8;
            self.long(offset, self.layout.ring(way));
            self.fill_ring(way);
        }
    }

    fn fill_ring(&self, way: Way) {
        let ring = self.layout.ring(way);
        let buffers = self.layout.buffer(0) - ring;
        self.long(ring + offset_of!(RingHead, buf_ofs), buffers);
        self.word(way, offset_of!(RingHead, num_slots), self.layout.slots);
        self.word(way, offset_of!(RingHead, buf_size), BUFFER_SIZE as u32);
        let kind = (way as u16).to_ne_bytes();
        self.memory.write(ring + offset_of!(RingHead, dir), &kind);
        for slot in 0..self.layout.slots {
            let index = FIRST_BUFFER + way as u32 * self.layout.slots + slot;
            self.memory.store(self.layout.slot(way, slot), index);
        }
    }

    fn long(&self, at: usize, value: usize) {
        self.memory.store_descriptor(at, value as u64);
    }

    fn word(&self, way: Way, field: usize, value: u32) {
        self.memory.store(self.layout.ring(way) + field, value);
    }

    /// The words `head` and `cur`.
    pub fn head_and_cur(&self, way: Way) -> (u32, u32) {
        let ring = self.layout.ring(way);
        let word = |field| self.memory.load(ring + field);
        (
            word(offset_of!(RingHead, head)),
            word(offset_of!(RingHead, cur)),
        )
    }

    pub fn set_head_and_cur(&self, way: Way, index: u32) {
        self.word(way, offset_of!(RingHead, head), index);
        self.word(way, offset_of!(RingHead, cur), index);
    }

    pub fn set_tail(&self, way: Way, tail: u32) {
        self.word(way, offset_of!(RingHead, tail), tail);
    }

    /// Seconds and microseconds of the last synchronization.
    pub fn set_time(&self, seconds: u64, microseconds: u32) {
        let at = self.layout.ring(Way::Rx) + offset_of!(RingHead, ts);
        self.memory.store_descriptor(at, seconds);
        self.memory.store_descriptor(at + 8, microseconds.into());
    }

    /// A copy of a slot, unchecked.
    pub fn slot(&self, way: Way, slot: u32) -> Slot {
        let at = self.layout.slot(way, slot);
        let mut rest = [0; 4];
        self.memory.read(at + offset_of!(Slot, len), &mut rest);
        let [len, more, flags, end] = rest;
        Slot {
            buf_idx: self.memory.load(at),
            len: u16::from_ne_bytes([len, more]),
            flags: u16::from_ne_bytes([flags, end]),
            ptr: 0,
        }
    }

    /// Sets a slot's length, without flags.
    pub fn set_len(&self, way: Way, slot: u32, len: u16) {
        let at = self.layout.slot(way, slot) + offset_of!(Slot, len);
        let [low, high] = len.to_ne_bytes();
        self.memory.write(at, &[low, high, 0, 0]);
    }

    /// Checks the index of a buffer.
    pub fn check(&self, index: u32) -> Result<u32, String> {
        let end = self.layout.end();
        match (FIRST_BUFFER..end).contains(&index) {
            true => Ok(index),
            false => Err(format!(
                "buf_idx: {index} is outside {FIRST_BUFFER}..={}",
                end - 1
            )),
        }
    }

    /// Copies out of a checked buffer.
    pub fn read(&self, index: u32, into: &mut [u8]) {
        self.memory.read(self.layout.buffer(index), into);
    }

    /// Copies into a checked buffer.
    pub fn write(&self, index: u32, from: &[u8]) {
        self.memory.write(self.layout.buffer(index), from);
    }
}
