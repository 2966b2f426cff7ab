// SPDX-License-Identifier: Apache-2.0
//! The rings of a vale port, in both versions, and the pages that they take.
use crate::platform::{Access, DomId, Platform};
use crate::shared::Shared;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_core::{Batch, PacketPool};
use click_packet::memory::has_room;
use click_packet::{Region, memory};
use clickos_vif::{InPlace, copying};
use core::cell::Cell;
use ring::layout::{Layout, PAGE};
use ring::{GuestPort, InPlacePort, PushError};

/// Pages of a block, and those of them that belong to the region: all but the first.
const BLOCK_PAGES: usize = Region::BLOCK / PAGE;
const CHUNK_PAGES: usize = Region::CHUNK / PAGE;

/// The numbers that a guest has given to its regions. It gives none twice: frames may lie in a region
/// that is gone.
#[derive(Default)]
pub(crate) struct Numbers(Cell<u16>);

impl Numbers {
    /// A number for a new region; 0 if all have been given. The guest then copies frames that go from one
    /// port to another.
    fn next(&self) -> u16 {
        let next = self.0.get().checked_add(1);
        next.inspect(|next| self.0.set(*next)).unwrap_or(0)
    }
}

/// The guest's rings.
pub(crate) enum Rings<P: Platform> {
    /// Version 1.
    Copying(GuestPort<Shared<P>>),
    /// Version 2. The pages are those of the packets.
    InPlace(Box<InPlace<Shared<P>>>, Shared<P>),
}

impl<P: Platform> Rings<P> {
    /// Rings of version 1, which offer long frames if they are wanted.
    pub fn copying(
        platform: &Rc<P>,
        backend: DomId,
        slots: u32,
        long: bool,
    ) -> Result<Self, String> {
        let layout = Layout::new(slots).map_err(|e| e.to_string())?;
        let pages = layout.size() / PAGE;
        let region = granted(platform, backend, pages).ok_or_else(|| short(pages))?;
        let port = GuestPort::format(region, slots).map_err(|e| e.to_string())?;
        if long {
            port.offer_long();
        }
        Ok(Self::Copying(port))
    }

    /// Takes what the switch has accepted, when it is connected.
    pub fn negotiate(&mut self) {
        if let Self::Copying(port) = self {
            port.negotiate();
        }
    }

    /// Rings of version 2; `None` without grants or memory. As much memory as they take has to be left.
    pub fn in_place(
        platform: &Rc<P>,
        backend: DomId,
        slots: u32,
        numbers: &Numbers,
    ) -> Option<Self> {
        let layout = Layout::of(2, slots).ok()?;
        let blocks = layout.chunks();
        let bytes = layout.first_chunk() + blocks * Region::BLOCK;
        if !has_room(2 * bytes + memory::RESERVE) {
            return None;
        }
        let words = granted(platform, backend, layout.first_chunk() / PAGE)?;
        let (pages, region) = platform.allocate_blocks(blocks)?;
        let mut pages = Shared::of(platform, backend, pages, blocks * CHUNK_PAGES);
        let page = |n| n / CHUNK_PAGES * BLOCK_PAGES + 1 + n % CHUNK_PAGES;
        pages.grant_each(page, Access::ReadWrite)?;
        let port = InPlacePort::format(words, slots, numbers.next()).ok()?;
        let rings = InPlace::new(port, region)?;
        Some(Self::InPlace(Box::new(rings), pages))
    }

    pub fn version(&self) -> u32 {
        match self {
            Self::Copying(_) => 1,
            Self::InPlace(..) => 2,
        }
    }

    /// The grants of the region's pages in their order.
    pub fn references(&self) -> Vec<u32> {
        match self {
            Self::Copying(port) => port.memory().references().collect(),
            Self::InPlace(rings, pages) => {
                let words = rings.memory().references();
                words.chain(pages.references()).collect()
            }
        }
    }

    /// The pages, whose grants the caller ends.
    pub fn into_pages(self) -> Vec<Shared<P>> {
        match self {
            Self::Copying(port) => [port.into_memory()].into(),
            Self::InPlace(rings, pages) => [rings.into_memory(), pages].into(),
        }
    }

    /// As [`InPlace::receive`].
    pub fn receive(
        &mut self,
        max: usize,
        pool: &mut PacketPool,
        out: &mut Batch,
        done: impl FnMut(usize),
    ) -> usize {
        match self {
            Self::Copying(port) => copying::receive(max, pool, out, port, done),
            Self::InPlace(rings, _) => rings.receive(max, pool, out, done),
        }
    }

    /// As [`InPlace::transmit`].
    pub fn transmit(
        &mut self,
        batch: &mut Batch,
        mut done: impl FnMut(usize, &Result<(), PushError>),
    ) {
        match self {
            Self::Copying(port) => {
                copying::transmit(batch, |frame| {
                    let result = port.push(frame);
                    done(frame.len(), &result);
                    result
                });
            }
            Self::InPlace(rings, _) => rings.transmit(batch, |len, result| done(len, &result)),
        }
    }

    pub fn publish(&mut self) -> bool {
        match self {
            Self::Copying(port) => port.publish(),
            Self::InPlace(rings, _) => rings.publish(),
        }
    }

    pub fn sleep_prepare(&mut self) -> bool {
        match self {
            Self::Copying(port) => port.sleep_prepare(),
            Self::InPlace(rings, _) => rings.port().sleep_prepare(),
        }
    }

    pub fn wake_done(&mut self) {
        match self {
            Self::Copying(port) => port.wake_done(),
            Self::InPlace(rings, _) => {
                rings.port().wake_done();
                rings.reclaim();
            }
        }
    }

    pub fn malformed(&self) -> u64 {
        match self {
            Self::Copying(port) => port.malformed(),
            Self::InPlace(rings, _) => rings.malformed(),
        }
    }
}

fn granted<P: Platform>(platform: &Rc<P>, to: DomId, pages: usize) -> Option<Shared<P>> {
    let mut shared = Shared::new(platform, to, pages, pages)?;
    shared.grant_all(Access::ReadWrite)?;
    Some(shared)
}

/// The failure to share pages.
pub(crate) fn short(pages: usize) -> String {
    format!("vale: no memory or no grants for {pages} pages")
}
