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

/// The backend's index answers more than was asked, or takes answers back.
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
}

impl<M: Memory, const SLOT: usize> FrontRing<M, SLOT> {
    /// Prepares a page nobody uses yet.
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
        Ok(true)
    }

    /// Asks for an event at the response number `after` from now (1 is the next one). True if
    /// that response is there already: do not sleep.
    ///
    /// # Errors
    /// As [`Self::waiting`].
    pub fn arm(&mut self, after: u32) -> Result<bool, BadIndex> {
        let event = self.rsp_cons.wrapping_add(after);
        self.memory.store(RSP_EVENT, event);
        self.memory.fence();
        self.rsp_prod = self.rsp_cons; // look again
        Ok(self.waiting()? >= after)
    }
}

fn slot_at<const SLOT: usize>(index: u32) -> usize {
    FIRST_SLOT + (index % SLOTS) as usize * SLOT
}
