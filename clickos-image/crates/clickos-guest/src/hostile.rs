// SPDX-License-Identifier: Apache-2.0
//! A guest's operating system that writes garbage to the words of the guest's rings.
use alloc::rc::Rc;
use alloc::vec::Vec;
use click_packet::Region;
use core::cell::{Cell, RefCell};
use ring::Memory;
use xen_net::{Access, DomId, EvtchnPort, GrantRef, Platform};

/// Where the indices begin. valed reads the header before them once.
const INDICES: usize = 0x100;
/// Where the descriptors begin.
const DESCRIPTORS: usize = 0x1000;
/// Where they end, with 64 to 512 slots. Directory pages are smaller.
const WORDS: usize = 0x3000;

/// The platform `P`, and the memory and event channels that the devices got from it.
pub struct Scribbler<P: Platform> {
    inner: P,
    shared: RefCell<Vec<Rc<P::Memory>>>,
    channels: RefCell<Vec<EvtchnPort>>,
    random: Cell<u64>,
}

impl<P: Platform> Scribbler<P> {
    /// A seed decides what it writes.
    pub fn new(inner: P, seed: u64) -> Self {
        Self {
            inner,
            shared: RefCell::default(),
            channels: RefCell::default(),
            random: Cell::new(seed),
        }
    }

    /// Writes `count` words to each region, mostly where it hurts, and kicks.
    pub fn scribble(&self, count: u32) {
        let shared = self.shared.borrow();
        for memory in shared.iter().filter(|memory| memory.size() >= WORDS) {
            (0..count).for_each(|_| self.write(memory));
        }
        let channels = self.channels.borrow();
        channels.iter().for_each(|port| self.inner.notify(*port));
    }

    fn write(&self, memory: &P::Memory) {
        let size = memory.size() as u64;
        let at = match self.next() % 4 {
            0 => INDICES + self.below(0x200),
            1 | 2 => DESCRIPTORS + self.below((WORDS - DESCRIPTORS) as u64),
            _ => INDICES + self.below(size - INDICES as u64 - 8),
        };
        let value = match self.next() % 4 {
            0 => self.next(),
            1 => self.next() % 256,
            // A frame that might be right, of one of the guest's regions.
            _ => (self.next() % (2 * size)) | (60 << 32) | ((self.next() % 4) << 48),
        };
        memory.store_descriptor(at & !7, value);
    }

    fn below(&self, end: u64) -> usize {
        (self.next() % end) as usize
    }

    /// SplitMix64.
    fn next(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Memory of a device and of the scribbler.
pub struct Common<M>(Rc<M>);

impl<M: Memory> Memory for Common<M> {
    fn size(&self) -> usize {
        self.0.size()
    }
    fn load(&self, at: usize) -> u32 {
        self.0.load(at)
    }
    fn store(&self, at: usize, value: u32) {
        self.0.store(at, value);
    }
    fn load_descriptor(&self, at: usize) -> u64 {
        self.0.load_descriptor(at)
    }
    fn store_descriptor(&self, at: usize, value: u64) {
        self.0.store_descriptor(at, value);
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        self.0.read(at, into);
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.0.write(at, from);
    }
    fn fence(&self) {
        self.0.fence();
    }
}

impl<P: Platform> Platform for Scribbler<P> {
    type Memory = Common<P::Memory>;

    fn allocate(&self, pages: usize) -> Option<Self::Memory> {
        let memory = Rc::new(self.inner.allocate(pages)?);
        self.shared.borrow_mut().push(Rc::clone(&memory));
        Some(Common(memory))
    }

    fn allocate_blocks(&self, count: usize) -> Option<(Self::Memory, Region)> {
        let (memory, region) = self.inner.allocate_blocks(count)?;
        Some((Common(Rc::new(memory)), region))
    }

    fn grant(
        &self,
        memory: &Self::Memory,
        page: usize,
        to: DomId,
        access: Access,
    ) -> Option<GrantRef> {
        self.inner.grant(&memory.0, page, to, access)
    }

    fn end_grant(&self, gref: GrantRef) -> bool {
        self.inner.end_grant(gref)
    }

    fn open_evtchn(&self, remote: DomId) -> Option<EvtchnPort> {
        let port = self.inner.open_evtchn(remote)?;
        self.channels.borrow_mut().push(port);
        Some(port)
    }

    fn notify(&self, port: EvtchnPort) {
        self.inner.notify(port);
    }

    fn take_event(&self, port: EvtchnPort) -> bool {
        self.inner.take_event(port)
    }

    fn close_evtchn(&self, port: EvtchnPort) {
        self.channels.borrow_mut().retain(|open| *open != port);
        self.inner.close_evtchn(port);
    }

    fn say(&self, line: &str) {
        self.inner.say(line);
    }
}
