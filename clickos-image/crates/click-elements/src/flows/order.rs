// SPDX-License-Identifier: Apache-2.0
//! Who fell silent first: lists of flows in the order in which they were last heard of, one for each time-out.
use super::chunks::Chunks;
use crate::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A time-out in whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(u32);

impl FromArg for Seconds {
    fn from_arg(text: &str, at: click_core::ArgContext<'_>) -> Result<Self, String> {
        match u32::from_arg(text, at)? {
            0 => Err("0 seconds, the least is 1".into()),
            seconds => Ok(Self(seconds)),
        }
    }
}

impl Seconds {
    pub fn ns(self) -> u64 {
        u64::from(self.0) * SECOND_NS
    }

    /// A time-out as handlers show it.
    pub fn text(ns: u64) -> Text {
        text(ns / SECOND_NS)
    }
}

/// No flow.
pub const NOBODY: u32 = u32::MAX;

/// A list of flows that time out alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListId(pub(super) u16);

impl ListId {
    /// The position of a flow in no list.
    pub const NONE: Self = Self(u16::MAX);
}

/// What becomes of a flow when nothing is heard of it: it may be in a list of flows that are not thrown out for
/// others, and then waits in another one until it times out.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub guaranteed: Option<ListId>,
    pub rest: ListId,
}

#[derive(Clone, Copy)]
struct Links {
    before: u32,
    after: u32,
}

struct List {
    first: u32,
    last: u32,
    timeout_ns: u64,
}

/// The lists.
pub struct Order {
    lists: Vec<List>,
    /// Those that throw flows out for others, and those that do not.
    kinds: [Vec<ListId>; 2],
    links: Chunks<Links>,
}

const UNLINKED: Links = Links {
    before: NOBODY,
    after: NOBODY,
};

impl Order {
    /// No lists.
    pub fn new() -> Self {
        Self {
            lists: Vec::new(),
            kinds: [Vec::new(), Vec::new()],
            links: Chunks::new(),
        }
    }

    /// Another list; `None` if there are too many.
    pub fn add_list(&mut self, timeout_ns: u64, guaranteed: bool) -> Option<ListId> {
        let id = u16::try_from(self.lists.len()).map(ListId).ok()?;
        if id == ListId::NONE {
            return None;
        }
        self.kinds[usize::from(guaranteed)].push(id);
        self.lists.push(List {
            first: NOBODY,
            last: NOBODY,
            timeout_ns,
        });
        Some(id)
    }

    /// Changes how long flows of a list are kept, those in it included.
    pub fn set_timeout(&mut self, list: ListId, timeout_ns: u64) {
        if let Some(list) = self.lists.get_mut(usize::from(list.0)) {
            list.timeout_ns = timeout_ns;
        }
    }

    /// How long flows of a list are kept.
    pub fn timeout_ns(&self, list: ListId) -> u64 {
        self.lists[usize::from(list.0)].timeout_ns
    }

    /// The lists whose flows are not thrown out for others, or the other ones.
    pub fn lists(&self, guaranteed: bool) -> &[ListId] {
        &self.kinds[usize::from(guaranteed)]
    }

    /// The flow that was silent longest.
    pub fn first(&self, list: ListId) -> Option<u32> {
        Some(self.lists[usize::from(list.0)].first).filter(|slot| *slot != NOBODY)
    }

    /// The flows of a list, the one that was silent longest first.
    pub fn members(&self, list: ListId) -> impl Iterator<Item = u32> {
        let after = |slot: &u32| Some(self.links[*slot].after).filter(|next| *next != NOBODY);
        core::iter::successors(self.first(list), after)
    }

    /// True if a flow was heard of last.
    pub fn is_last(&self, list: ListId, slot: u32) -> bool {
        self.lists[usize::from(list.0)].last == slot
    }

    /// Makes a place for a flow; `None` if the memory does not take it.
    #[must_use]
    pub fn reach(&mut self, slot: u32) -> Option<()> {
        self.links.reach(slot, &UNLINKED)
    }

    /// Appends a flow that is in no list and has a place.
    pub fn append(&mut self, list: ListId, slot: u32) {
        let list = &mut self.lists[usize::from(list.0)];
        self.links[slot] = Links {
            before: list.last,
            after: NOBODY,
        };
        match list.last {
            NOBODY => list.first = slot,
            last => self.links[last].after = slot,
        }
        list.last = slot;
    }

    /// Takes a flow out of its list.
    pub fn unlink(&mut self, list: ListId, slot: u32) {
        let list = &mut self.lists[usize::from(list.0)];
        let Links { before, after } = self.links[slot];
        match before {
            NOBODY => list.first = after,
            before => self.links[before].after = after,
        }
        match after {
            NOBODY => list.last = before,
            after => self.links[after].before = before,
        }
    }
}
