// SPDX-License-Identifier: Apache-2.0
//! The frontend's side of a ring of `xen/io/ring.h`: requests to the backend, responses from it.
//!
//! Requests and responses share the slots. All our indices are private; the backend's one index
//! counts only if it answers what was asked, and a slot is copied before anything looks at it.
use core::fmt;
use ring::Memory;

/// Slots of a netif ring: what a page holds of 12-byte (tx) and 8-byte (rx) slots, rounded down
/// to a power of two, is the same.
pub const SLOTS: u32 = 256;

const REQ_PROD: usize = 0;
const REQ_EVENT: usize = 4;
const RSP_PROD: usize = 8;
const RSP_EVENT: usize = 12;
const FIRST_SLOT: usize = 64;

/// The backend's index answers more than the guest requested, or takes answers back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// Answers it claims beyond those that were taken.
    pub claimed: u32,
    /// Requests that have no answer yet.
    pub outstanding: u32,
}

impl fmt::Display for BadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            claimed,
            outstanding,
        } = self;
        write!(f, "{claimed} responses to {outstanding} requests")
    }
}

/// One ring of slots of `SLOT` bytes.
pub struct FrontRing<M, const SLOT: usize> {
    memory: M,
    req_prod: u32,
    /// `req_prod` when it was last shown to the backend.
    published: u32,
    rsp_cons: u32,
    /// The backend's `rsp_prod` as last read and checked.
    rsp_prod: u32,
    /// Responses that were there when [`Self::arm_next`] was last called, if none was taken since.
    left: u32,
}

impl<M: Memory, const SLOT: usize> FrontRing<M, SLOT> {
    /// Prepares a page before its first use.
    pub fn new(memory: M) -> Self {
        assert!(
            FIRST_SLOT + SLOTS as usize * SLOT <= memory.size(),
            "a ring is one page"
        );
        memory.store(REQ_PROD, 0);
        memory.store(REQ_EVENT, 1);
        memory.store(RSP_PROD, 0);
        memory.store(RSP_EVENT, 1);
        Self {
            memory,
            req_prod: 0,
            published: 0,
            rsp_cons: 0,
            rsp_prod: 0,
            left: 0,
        }
    }

    /// The page.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The page, when the ring is not used any more.
    pub fn into_memory(self) -> M {
        self.memory
    }

    /// Requests without an answer that was taken.
    pub fn outstanding(&self) -> u32 {
        self.req_prod.wrapping_sub(self.rsp_cons)
    }

    /// Adds a request, which the backend sees after [`Self::publish`]. The caller sees to it
    /// that at most [`SLOTS`] are outstanding.
    pub fn push(&mut self, request: &[u8]) {
        debug_assert!(self.outstanding() < SLOTS && request.len() <= SLOT);
        self.memory.write(slot_at::<SLOT>(self.req_prod), request);
        self.req_prod = self.req_prod.wrapping_add(1);
    }

    /// Shows the requests to the backend; true if it asked to be told.
    #[must_use = "the backend sleeps until it is notified"]
    pub fn publish(&mut self) -> bool {
        let old = self.published;
        if old == self.req_prod {
            return false;
        }
        self.published = self.req_prod;
        self.memory.store(REQ_PROD, self.req_prod);
        // Either we see the backend's `req_event`, or it sees the requests before it sleeps.
        self.memory.fence();
        let event = self.memory.load(REQ_EVENT);
        self.req_prod.wrapping_sub(event) < self.req_prod.wrapping_sub(old)
    }

    /// Responses that can be taken now.
    ///
    /// # Errors
    /// [`BadIndex`]; the ring is of no use any more then.
    pub fn waiting(&mut self) -> Result<u32, BadIndex> {
        let waiting = self.rsp_prod.wrapping_sub(self.rsp_cons);
        if waiting > 0 {
            return Ok(waiting);
        }
        self.look()
    }

    /// Responses that can be taken, the newest among them.
    fn look(&mut self) -> Result<u32, BadIndex> {
        let rsp_prod = self.memory.load(RSP_PROD);
        let claimed = rsp_prod.wrapping_sub(self.rsp_cons);
        let outstanding = self.published.wrapping_sub(self.rsp_cons);
        if claimed > outstanding {
            return Err(BadIndex {
                claimed,
                outstanding,
            });
        }
        self.rsp_prod = rsp_prod;
        Ok(claimed)
    }

    /// Takes a response into `response`; false if there is none.
    ///
    /// # Errors
    /// As [`Self::waiting`].
    pub fn pop(&mut self, response: &mut [u8]) -> Result<bool, BadIndex> {
        if self.waiting()? == 0 {
            return Ok(false);
        }
        self.memory.read(slot_at::<SLOT>(self.rsp_cons), response);
        self.rsp_cons = self.rsp_cons.wrapping_add(1);
        self.left = 0;
        Ok(true)
    }

    /// Asks for an event once `count` responses can be taken. True if they are there already: do
    /// not sleep.
    ///
    /// # Errors
    /// As [`Self::waiting`].
    pub fn arm(&mut self, count: u32) -> Result<bool, BadIndex> {
        self.ask(self.rsp_cons.wrapping_add(count));
        Ok(self.look()? >= count)
    }

    /// Asks for an event at the next response. True if one came since this was last asked: look
    /// at it before you sleep.
    ///
    /// # Errors
    /// As [`Self::waiting`].
    pub fn arm_next(&mut self) -> Result<bool, BadIndex> {
        self.ask(self.rsp_prod.wrapping_add(1));
        let waiting = self.look()?;
        Ok(waiting > core::mem::replace(&mut self.left, waiting))
    }

    fn ask(&self, event: u32) {
        self.memory.store(RSP_EVENT, event);
        self.memory.fence();
    }
}

fn slot_at<const SLOT: usize>(index: u32) -> usize {
    FIRST_SLOT + (index % SLOTS) as usize * SLOT
}
