// SPDX-License-Identifier: Apache-2.0
//! How long rewriters remember flows.
use super::header::{BOTH, DATA, DONE, is_streaming};
use super::kind::Kind;
use crate::flows::{Flow, FlowTable, ListId, Times};
use click_wire::ipv4;

/// Time-outs of flows of one protocol.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts<const N: usize> {
    /// How long a flow is safe from being thrown out for another.
    pub guarantee_ns: u64,
    /// Lifetime of a flow, by the packets seen.
    pub rest_ns: [u64; N],
}

/// All time-outs: TCP without acknowledgments of both sides, with them, done; others, and those that stream.
#[derive(Clone, Copy, Debug)]
pub struct AllTimeouts {
    pub tcp: Timeouts<3>,
    pub other: Timeouts<2>,
}

/// Time-outs that handlers change: of established connections, of other connections, of other flows.
#[derive(Clone, Copy)]
pub enum Clock {
    Established,
    Transitory,
    Other,
}

/// How many of them there are.
pub const CLOCKS: usize = 3;

impl AllTimeouts {
    /// A time-out as the arguments say it.
    pub fn get(&self, clock: Clock) -> u64 {
        match clock {
            Clock::Established => self.tcp.rest_ns[1],
            Clock::Transitory => self.tcp.rest_ns[2],
            Clock::Other => self.other.rest_ns[0],
        }
    }
}

/// The table's lists for these time-outs.
#[derive(Clone, Copy)]
pub struct Clocks {
    tcp: [Times; 3],
    other: [Times; 2],
}

const NO_TIMES: Times = Times {
    guaranteed: None,
    rest: ListId::NONE,
};

impl<const N: usize> Timeouts<N> {
    fn register(&self, table: &mut FlowTable) -> Option<[Times; N]> {
        let guaranteed = match self.guarantee_ns {
            0 => None,
            ns => Some(table.add_list(ns, true)?),
        };
        let mut all = [NO_TIMES; N];
        for (times, ns) in all.iter_mut().zip(self.rest_ns) {
            let rest = table.add_list(ns, false)?;
            *times = Times { guaranteed, rest };
        }
        Some(all)
    }
}

impl Clocks {
    /// None yet.
    pub const NONE: Self = Self {
        tcp: [NO_TIMES; 3],
        other: [NO_TIMES; 2],
    };

    /// Makes the lists in a table; `None` if it has too many.
    pub fn register(timeouts: &AllTimeouts, table: &mut FlowTable) -> Option<Self> {
        Some(Self {
            tcp: timeouts.tcp.register(table)?,
            other: timeouts.other.register(table)?,
        })
    }

    /// Changes a time-out of existing flows and of those to come.
    pub fn set(&self, clock: Clock, timeout_ns: u64, table: &mut FlowTable) {
        let lists = match clock {
            Clock::Established => [self.tcp[1]; 2],
            Clock::Transitory => [self.tcp[0], self.tcp[2]],
            Clock::Other => self.other,
        };
        for times in lists {
            table.set_timeout(times.rest, timeout_ns);
        }
    }

    /// The lifetime of a flow, by the packets seen.
    #[inline]
    pub fn of(&self, kind: Kind, flow: &Flow) -> Times {
        let both = |flag: u8| flow.flags & (BOTH * flag) == BOTH * flag;
        match kind {
            Kind::Tcp | Kind::Ip if flow.protocol == ipv4::TCP => {
                let seen = if both(DONE) {
                    2
                } else {
                    usize::from(both(DATA))
                };
                self.tcp[seen]
            }
            _ => self.other[usize::from(is_streaming(flow.flags))],
        }
    }
}
