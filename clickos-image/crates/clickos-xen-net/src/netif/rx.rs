// SPDX-License-Identifier: Apache-2.0
//! Frames from the backend: it copies each to the start of a granted page.
use super::fault::Fault;
use super::ring::{FrontRing, SLOTS};
use super::slots::{
    CHECKSUM_BLANK, EXTRA_INFO, GSO_PREFIX, MORE_DATA, RX_SLOT, RxRequest, RxResponse,
};
use crate::checksum;
use crate::device::Counters;
use crate::options::Options;
use crate::platform::{Access, DomId, GrantRef, Platform};
use crate::shared::Shared;
use alloc::rc::Rc;
use alloc::vec::Vec;
use ring::Memory;
use ring::layout::PAGE;

const NAME: &str = "rx";
/// Frames passed over in search of a good one.
const MAX_BAD: u32 = 64;

pub(super) struct Rx<P: Platform> {
    ring: FrontRing<Shared<P>, RX_SLOT>,
    buffers: Shared<P>,
    /// The backend may write to the buffer.
    offered: [bool; SLOTS as usize],
    /// Buffers that were read and are not offered again yet.
    empty: Vec<u16>,
    /// The last slot was not its frame's last: the frame is passed over up to its end.
    in_chain: bool,
    options: Options,
}

impl<P: Platform> Rx<P> {
    /// None if there is no memory or no grant.
    pub fn new(platform: &Rc<P>, backend: DomId, options: Options) -> Option<Self> {
        let mut page = Shared::new(platform, backend, 1, 1)?;
        page.grant_all(Access::ReadWrite)?;
        let count = SLOTS as usize;
        let mut buffers = Shared::new(platform, backend, count, count)?;
        if options.keep_grants {
            buffers.grant_all(Access::ReadWrite)?;
        }
        let mut rx = Self {
            ring: FrontRing::new(page),
            buffers,
            offered: [false; SLOTS as usize],
            empty: (0..SLOTS as u16).collect(),
            in_chain: false,
            options,
        };
        rx.refill().ok()?;
        Some(rx)
    }

    /// The ring's page, for the backend.
    pub fn gref(&self) -> Option<GrantRef> {
        self.ring.memory().gref(0)
    }

    /// Copies the next frame to the start of `buffer`; bad ones before it are counted.
    pub fn pop(
        &mut self,
        buffer: &mut [u8],
        counters: &mut Counters,
    ) -> Result<Option<usize>, Fault> {
        let mut bytes = [0; RX_SLOT];
        for _ in 0..=MAX_BAD {
            if !self
                .ring
                .pop(&mut bytes)
                .map_err(|e| Fault::Index(NAME, e))?
            {
                return Ok(None);
            }
            let response = RxResponse::from_bytes(bytes);
            self.take_back(response.id)?;
            let length = self.frame(response, buffer, counters)?;
            self.empty.push(response.id);
            if self.options.fast_refill || self.empty.len() >= SLOTS as usize / 2 {
                self.refill()?;
            }
            if length.is_some() {
                return Ok(length);
            }
        }
        Ok(None)
    }

    fn take_back(&mut self, id: u16) -> Result<(), Fault> {
        match self.offered.get_mut(usize::from(id)) {
            Some(offered) if *offered => *offered = false,
            _ => return Err(Fault::Id(NAME, id)),
        }
        if !self.options.keep_grants && !self.buffers.end(id.into()) {
            return Err(Fault::Grant(NAME, id));
        }
        Ok(())
    }

    /// The frame of one slot. One of several slots is passed over: no backend has reason to
    /// send it, since we do not offer `feature-sg`.
    fn frame(
        &mut self,
        response: RxResponse,
        buffer: &mut [u8],
        counters: &mut Counters,
    ) -> Result<Option<usize>, Fault> {
        let RxResponse {
            id,
            offset,
            flags,
            status,
        } = response;
        if flags & (EXTRA_INFO | GSO_PREFIX) != 0 {
            return Err(Fault::Flags(flags));
        }
        let more = flags & MORE_DATA != 0;
        let is_part = core::mem::replace(&mut self.in_chain, more);
        let (length, offset) = (usize::try_from(status).unwrap_or(0), usize::from(offset));
        if status < 0 {
            counters.rx_errors += 1;
        } else if length == 0 || offset + length > PAGE {
            counters.malformed += 1;
        } else if more || is_part || length > buffer.len() {
            counters.too_long += u64::from(!is_part);
        } else {
            let frame = &mut buffer[..length];
            self.buffers.read(usize::from(id) * PAGE + offset, frame);
            if flags & CHECKSUM_BLANK != 0 && !checksum::complete(frame) {
                counters.malformed += 1;
                return Ok(None);
            }
            return Ok(Some(length));
        }
        Ok(None)
    }

    /// Offers all empty buffers; the backend sees them after [`Self::publish`].
    fn refill(&mut self) -> Result<(), Fault> {
        while let Some(id) = self.empty.pop() {
            let place = usize::from(id);
            let gref = if self.options.keep_grants {
                self.buffers.gref(place)
            } else {
                self.buffers.grant(place, place, Access::ReadWrite)
            };
            let gref = gref.ok_or(Fault::NoGrant)?;
            self.ring.push(&RxRequest { id, gref }.to_bytes());
            self.offered[place] = true;
        }
        Ok(())
    }

    /// Shows the backend the buffers it may fill; true if it has to be notified.
    pub fn publish(&mut self) -> bool {
        self.ring.publish()
    }

    /// Asks for an event at the next frame; true if one came since this was last asked.
    pub fn arm(&mut self) -> Result<bool, Fault> {
        self.ring.arm_next().map_err(|e| Fault::Index(NAME, e))
    }

    /// The pages, to end their grants.
    pub fn into_pages(self) -> [Shared<P>; 2] {
        [self.ring.into_memory(), self.buffers]
    }
}
