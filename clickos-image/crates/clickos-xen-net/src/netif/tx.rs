// SPDX-License-Identifier: Apache-2.0
//! Frames to the backend. Sending never waits: buffers come back when the backend has answered.
use super::fault::Fault;
use super::ring::{FrontRing, SLOTS};
use super::slots::{STATUS_NULL, TX_SLOT, TxRequest, TxResponse};
use crate::options::Options;
use crate::platform::{Access, DomId, GrantRef, Platform};
use crate::shared::Shared;
use alloc::rc::Rc;
use alloc::vec::Vec;
use ring::layout::PAGE;
use ring::{BUFFER_SIZE, Memory, PushError};

const PER_PAGE: usize = PAGE / BUFFER_SIZE;
const NAME: &str = "tx";
/// An Ethernet header; no backend takes less.
const SHORTEST: usize = 14;

pub(super) struct Tx<P: Platform> {
    ring: FrontRing<Shared<P>, TX_SLOT>,
    buffers: Shared<P>,
    free: Vec<u16>,
    in_use: [bool; SLOTS as usize],
    keep_grants: bool,
    /// The last push found no free buffer.
    blocked: bool,
    pub errors: u64,
}

impl<P: Platform> Tx<P> {
    /// None if there is no memory or no grant.
    pub fn new(platform: &Rc<P>, backend: DomId, options: Options) -> Option<Self> {
        let mut page = Shared::new(platform, backend, 1, 1)?;
        page.grant_all(Access::ReadWrite)?;
        let pages = SLOTS as usize / PER_PAGE;
        let grants = if options.keep_grants {
            pages
        } else {
            SLOTS as usize
        };
        let mut buffers = Shared::new(platform, backend, pages, grants)?;
        if options.keep_grants {
            buffers.grant_all(Access::Read)?;
        }
        Some(Self {
            ring: FrontRing::new(page),
            buffers,
            free: (0..SLOTS as u16).rev().collect(),
            in_use: [false; SLOTS as usize],
            keep_grants: options.keep_grants,
            blocked: false,
            errors: 0,
        })
    }

    /// The ring's page, for the backend.
    pub fn gref(&self) -> Option<GrantRef> {
        self.ring.memory().gref(0)
    }

    pub fn push(&mut self, frame: &[u8]) -> Result<Result<(), PushError>, Fault> {
        if !(SHORTEST..=BUFFER_SIZE).contains(&frame.len()) {
            return Ok(Err(PushError::BadLength(frame.len())));
        }
        if self.free.is_empty() {
            self.reap()?;
        }
        let Some(id) = self.free.pop() else {
            self.blocked = true;
            return Ok(Err(PushError::Full));
        };
        let at = usize::from(id) * BUFFER_SIZE;
        self.buffers.write(at, frame);
        let request = TxRequest {
            gref: self.lend(id).ok_or(Fault::NoGrant)?,
            offset: (at % PAGE) as u16,
            id,
            size: frame.len() as u16,
        };
        self.ring.push(&request.to_bytes());
        self.in_use[usize::from(id)] = true;
        Ok(Ok(()))
    }

    fn lend(&mut self, id: u16) -> Option<GrantRef> {
        let (id, page) = (usize::from(id), usize::from(id) / PER_PAGE);
        if self.keep_grants {
            self.buffers.gref(page)
        } else {
            self.buffers.grant(id, page, Access::Read)
        }
    }

    /// Takes back the buffers of frames the backend is done with.
    pub fn reap(&mut self) -> Result<(), Fault> {
        let mut bytes = [0; TxResponse::BYTES];
        while self
            .ring
            .pop(&mut bytes)
            .map_err(|e| Fault::Index(NAME, e))?
        {
            let response = TxResponse::from_bytes(bytes);
            let id = response.id;
            match self.in_use.get_mut(usize::from(id)) {
                Some(in_use) if *in_use => *in_use = false,
                _ => return Err(Fault::Id(NAME, id)),
            }
            if !self.keep_grants && !self.buffers.end(id.into()) {
                return Err(Fault::Grant(NAME, id));
            }
            self.errors += u64::from(response.status < 0 || response.status >= STATUS_NULL);
            self.free.push(id);
        }
        Ok(())
    }

    /// Shows the frames to the backend; true if it has to be notified.
    pub fn publish(&mut self) -> bool {
        self.ring.publish()
    }

    /// If there was no buffer: asks for an event once most are free. True if some are already.
    pub fn sleep_prepare(&mut self) -> Result<bool, Fault> {
        self.reap()?;
        if !self.blocked || !self.free.is_empty() {
            return Ok(core::mem::take(&mut self.blocked));
        }
        let most = (self.ring.outstanding() * 3 / 4).max(1);
        self.ring.arm(most).map_err(|e| Fault::Index(NAME, e))
    }

    /// The pages, to end their grants.
    pub fn into_pages(self) -> [Shared<P>; 2] {
        [self.ring.into_memory(), self.buffers]
    }
}
