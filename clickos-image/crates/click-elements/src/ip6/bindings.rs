// SPDX-License-Identifier: Apache-2.0
//! What hosts are called on the other side of an address translator.
use click_core::memory;

use super::Address;
use super::naming::{End, Endpoint, Flow, Names};
use crate::prelude::*;

/// How much of a flow a binding is for; the rest keeps its name, or does not matter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Address,
    Port,
    Flow,
}

const NOBODY: Endpoint = Endpoint {
    address: Address(core::net::Ipv6Addr::UNSPECIFIED),
    port: 0,
};

impl Detail {
    fn key(self, flow: &Flow) -> Flow {
        let address = Endpoint {
            port: 0,
            ..flow.own
        };
        match self {
            Self::Address => Flow {
                own: address,
                peer: NOBODY,
            },
            Self::Port => Flow {
                peer: NOBODY,
                ..*flow
            },
            Self::Flow => *flow,
        }
    }
}

/// A flow as it is called on both sides.
struct Binding {
    inner: Flow,
    mapped: Flow,
    used_ns: u64,
}

impl Binding {
    /// What its flow is called on the side on which `end` of packets gets another name.
    fn name(&self, end: End) -> &Flow {
        match end {
            End::Source => &self.inner,
            End::Destination => &self.mapped,
        }
    }
}

/// Flows by both of their names.
pub struct Bindings {
    detail: Detail,
    list: Vec<Binding>,
    /// Indices of the list, sorted by names: new ones are rare.
    by_inner: Vec<usize>,
    by_mapped: Vec<usize>,
}

impl Bindings {
    pub fn new(detail: Detail) -> Self {
        Self {
            detail,
            list: Vec::new(),
            by_inner: Vec::new(),
            by_mapped: Vec::new(),
        }
    }

    /// Binds an inner name to one outside, for good. The first of two bindings of a name counts.
    pub fn fix(&mut self, inner: Endpoint, mapped: Endpoint) {
        let flow = |own| Flow { own, peer: NOBODY };
        self.list.push(Binding {
            inner: flow(inner),
            mapped: flow(mapped),
            used_ns: u64::MAX,
        });
        self.enter(self.list.len() - 1);
    }

    /// True if the memory takes one more: each list that is full doubles.
    fn may_grow(&self) -> bool {
        let (list, bytes) = (&self.list, 2 * size_of::<Binding>() + 32);
        list.len() < list.capacity() || memory::has_room(2 * list.len() * bytes + memory::RESERVE)
    }

    fn sorted(&mut self, end: End) -> &mut Vec<usize> {
        match end {
            End::Source => &mut self.by_inner,
            End::Destination => &mut self.by_mapped,
        }
    }

    /// Where the sorted indices have a name, or where it is to be put.
    fn place(&self, end: End, name: &Flow) -> Result<usize, usize> {
        let sorted = match end {
            End::Source => &self.by_inner,
            End::Destination => &self.by_mapped,
        };
        sorted.binary_search_by(|index| self.list[*index].name(end).cmp(name))
    }

    /// Makes a binding of the list known by its names, unless others have them.
    fn enter(&mut self, index: usize) {
        for end in [End::Source, End::Destination] {
            let name = *self.list[index].name(end);
            if let Err(at) = self.place(end, &name) {
                self.sorted(end).insert(at, index);
            }
        }
    }

    /// Makes a binding of the list unknown.
    fn leave(&mut self, index: usize) {
        for end in [End::Source, End::Destination] {
            let name = *self.list[index].name(end);
            if let Ok(at) = self.place(end, &name) {
                let sorted = self.sorted(end);
                // another one may have the name
                if sorted[at] == index {
                    sorted.remove(at);
                }
            }
        }
    }

    /// What the `end` of a packet's flow is called on the other side.
    fn find(&mut self, end: End, flow: &Flow, now_ns: u64) -> Option<Endpoint> {
        let key = self.detail.key(flow);
        let at = self.place(end, &key).ok()?;
        let index = self.sorted(end)[at];
        let binding = &mut self.list[index];
        binding.used_ns = binding.used_ns.max(now_ns);
        Some(self.name(index, end, flow))
    }

    /// The other name of binding `index` for a flow that it is for.
    fn name(&self, index: usize, end: End, flow: &Flow) -> Endpoint {
        let name = match end {
            End::Source => self.list[index].mapped.own,
            End::Destination => self.list[index].inner.own,
        };
        match self.detail {
            Detail::Address => Endpoint {
                port: flow.own.port,
                ..name
            },
            Detail::Port | Detail::Flow => name,
        }
    }

    /// Binds a flow to a name, in place of the binding `index`, if there is one.
    fn bind(&mut self, index: usize, end: End, flow: &Flow, name: Endpoint, now_ns: u64) {
        let key = self.detail.key(flow);
        let named = Flow { own: name, ..key };
        let (inner, mapped) = match end {
            End::Source => (key, named),
            End::Destination => (named, key),
        };
        let binding = Binding {
            inner,
            mapped,
            used_ns: now_ns,
        };
        if index < self.list.len() {
            self.leave(index);
            self.list[index] = binding;
        } else {
            self.list.push(binding);
        }
        self.enter(index);
    }
}

/// Names to be given away.
#[derive(PartialEq, Eq)]
pub enum Pool {
    Addresses(Vec<Address>),
    /// Ports of an address from the first one on, and how many.
    Ports(Endpoint, usize),
}

impl Pool {
    fn len(&self) -> usize {
        match self {
            Self::Addresses(addresses) => addresses.len(),
            Self::Ports(_, count) => *count,
        }
    }

    fn get(&self, index: usize) -> Endpoint {
        match self {
            Self::Addresses(addresses) => Endpoint {
                address: addresses[index],
                port: 0,
            },
            Self::Ports(first, _) => Endpoint {
                port: first.port + u16::try_from(index).expect("there are as many ports"),
                ..*first
            },
        }
    }

    fn detail(&self) -> Detail {
        match self {
            Self::Addresses(_) => Detail::Address,
            Self::Ports(..) => Detail::Flow,
        }
    }
}

/// How long a flow is silent before its name may be given to another.
pub const SILENT_NS: u64 = 300_000_000_000;
/// Bindings that are looked at for a name when none is free.
const TRIES: usize = 16;

/// Bindings that are made for whom packets come from, or go to.
pub struct Dynamic {
    pool: Pool,
    /// The end of packets that gets new names.
    grows: End,
    bindings: Bindings,
    /// The binding to look at next where no name is free.
    hand: usize,
}

impl Dynamic {
    pub fn new(pool: Pool, grows: End) -> Self {
        let bindings = Bindings::new(pool.detail());
        Self {
            pool,
            grows,
            bindings,
            hand: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.bindings.list.len()
    }

    /// True if bindings of the other are as right here.
    pub fn is_like(&self, other: &Self) -> bool {
        self.pool == other.pool && self.grows == other.grows
    }

    fn find_or_bind(&mut self, end: End, flow: &Flow, now_ns: u64) -> Option<Endpoint> {
        let known = self.bindings.find(end, flow, now_ns);
        if known.is_some() || end != self.grows {
            return known;
        }
        let index = self.free(now_ns)?;
        let name = self.pool.get(index);
        self.bindings.bind(index, end, flow, name, now_ns);
        Some(self.bindings.name(index, end, flow))
    }

    /// A free name, or that of a silent flow.
    fn free(&mut self, now_ns: u64) -> Option<usize> {
        let used = self.len();
        if used < self.pool.len() && self.bindings.may_grow() {
            return Some(used);
        }
        for _ in 0..TRIES.min(used) {
            let index = self.hand;
            self.hand = (index + 1) % used;
            let silent_since = self.bindings.list[index].used_ns;
            if now_ns.saturating_sub(silent_since) >= SILENT_NS {
                return Some(index);
            }
        }
        None
    }
}

/// All bindings of a translator, at one time.
pub struct At<'a> {
    pub fixed: &'a mut Bindings,
    pub dynamic: Option<&'a mut Dynamic>,
    pub now_ns: u64,
}

impl Names for At<'_> {
    fn name(&mut self, end: End, flow: &Flow) -> Option<Endpoint> {
        let fixed = self.fixed.find(end, flow, self.now_ns);
        fixed.or_else(|| {
            let dynamic = self.dynamic.as_mut()?;
            dynamic.find_or_bind(end, flow, self.now_ns)
        })
    }

    fn known(&mut self, end: End, flow: &Flow) -> Option<Endpoint> {
        let fixed = self.fixed.find(end, flow, self.now_ns);
        fixed.or_else(|| {
            let dynamic = self.dynamic.as_mut()?;
            dynamic.bindings.find(end, flow, self.now_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(last: u16, port: u16) -> Endpoint {
        let address = Address(core::net::Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, last));
        Endpoint { address, port }
    }

    fn flow(host: u16, port: u16) -> Flow {
        Flow {
            own: endpoint(host, port),
            peer: endpoint(99, 80),
        }
    }

    #[test]
    fn a_name_is_given_on_once_its_flow_was_silent() {
        let mut dynamic = Dynamic::new(Pool::Ports(endpoint(1, 65_534), 2), End::Source);
        let mut name = |n: u16, now_ns| {
            let name = dynamic.find_or_bind(End::Source, &flow(n, n), now_ns);
            name.map(|n| n.port)
        };
        assert_eq!((name(5, 0), name(6, 7)), (Some(65_534), Some(65_535)));
        assert_eq!(name(7, SILENT_NS - 1), None);
        assert_eq!(name(7, SILENT_NS), Some(65_534));
        assert_eq!(name(5, SILENT_NS + 6), None, "the other was used later");
        assert_eq!(name(6, SILENT_NS + 6), Some(65_535));
        let back = flow(1, 65_534);
        let inner = dynamic.bindings.find(End::Destination, &back, 0);
        assert_eq!(
            inner,
            Some(endpoint(7, 7)),
            "not the host that had it before"
        );
        assert_eq!((dynamic.len(), dynamic.bindings.by_inner.len()), (2, 2));
    }
}
