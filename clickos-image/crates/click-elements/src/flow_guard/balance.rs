// SPDX-License-Identifier: Apache-2.0
//! What a balancer of IPv6 does to packets: the address that clients use becomes that of a server, and back.
use alloc::rc::Rc;
use core::cell::RefCell;
use core::net::{IpAddr, Ipv6Addr};

use super::element::{Guard, NO_FLOW, REFUSED, UNREADABLE};
use crate::flows::Delta;
use crate::guard::ends::{Ends, address};
use crate::guard::seen::{Fragment, Seen, TCP, Tcp, UDP};
use crate::guard::table::{Verdict, Way};
use crate::guard::targets::Targets;
use crate::headers::{Headers, NOWHERE, Start};
use crate::ip6::{self, Address};
use crate::prelude::*;
use crate::rewrite::server_pool::{Served, ServerPool, Servers};

/// The address of clients and the pool of servers.
pub struct Balance {
    own: u128,
    pool: String,
    servers: Option<Rc<RefCell<Servers>>>,
}

impl Balance {
    /// From the arguments of the element.
    pub fn new(a: &mut Args<'_>) -> Option<Self> {
        let own = a.need::<Address>("ADDRESS");
        let pool = a.need("POOL");
        Some(Self {
            own: own?.0.into(),
            pool: pool?,
            servers: None,
        })
    }

    /// The targets of an empty table.
    pub fn targets(&self) -> Rc<RefCell<Targets>> {
        Rc::new(RefCell::new(Targets::new(self.own)))
    }

    /// Finds the pool, which counts the flows of the targets from now on.
    pub fn resolve(
        &mut self,
        ctx: &mut Context<'_>,
        targets: Option<&Rc<RefCell<Targets>>>,
    ) -> Result<(), String> {
        let servers = |element: &mut dyn Element| {
            let pool = element.as_any_mut().downcast_ref::<ServerPool>();
            pool.map(ServerPool::servers)
        };
        let Some(found) = ctx.peer(&self.pool, servers).flatten() else {
            return Err(format!("POOL: no ServerPool \"{}\"", self.pool));
        };
        if let Some(targets) = targets {
            let targets: Rc<RefCell<dyn Served>> = targets.clone();
            found.borrow_mut().serve(Rc::downgrade(&targets));
        }
        self.servers = Some(found);
        Ok(())
    }

    /// True if flows of the other one can go on.
    pub fn is_like(&self, other: &Self) -> bool {
        self.own == other.own
    }

    /// The server for a new flow of a client; none if its address stands for one of IPv4.
    fn choose(&self, client: u128) -> Option<Ipv6Addr> {
        let client = address(client);
        if client.is_ipv4() {
            return None;
        }
        match self.servers.as_ref()?.borrow().server(client)? {
            IpAddr::V6(server) => Some(server),
            IpAddr::V4(_) => None,
        }
    }

    /// A server got a flow.
    fn count(&self, server: Ipv6Addr) {
        if let Some(servers) = &self.servers {
            servers.borrow_mut().count(server.into());
        }
    }
}

/// Where the header of IPv6 has its addresses.
const SOURCE: usize = 8;
const DESTINATION: usize = 24;
/// Bytes of the header of an ICMPv6 error, and where its checksum is.
const MESSAGE: usize = 8;
const MESSAGE_SUM: usize = 2;

/// A checksum in a packet.
#[derive(Clone, Copy)]
struct Sum {
    at: usize,
    /// 0 means that the sender has not computed it.
    is_udp: bool,
}

impl Sum {
    /// That of TCP or UDP after the headers, which begin at a place of the packet.
    fn of(headers: &Headers<'_>, protocol: u8, begin: usize) -> Option<Self> {
        let upper = headers.starts[Start::Transport as usize];
        let at = match protocol {
            TCP => 16,
            UDP => 6,
            _ => return None,
        };
        (upper < NOWHERE).then_some(Self {
            at: begin + upper as usize + at,
            is_udp: protocol == UDP,
        })
    }

    /// Changes it; returns by how much.
    fn change(self, bytes: &mut [u8], delta: Delta) -> Delta {
        let Some(place) = bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut) else {
            return Delta::NONE;
        };
        let old = u16::from_be_bytes(*place);
        let new = match delta.apply(old) {
            _ if self.is_udp && old == 0 => 0,
            0 if self.is_udp => u16::MAX,
            new => new,
        };
        *place = new.to_be_bytes();
        Delta::between(old.into(), new.into())
    }
}

/// New addresses for a packet.
struct Change {
    /// Where they are, and the new one.
    places: [Option<usize>; 2],
    new: u128,
    /// How checksums change with one of them.
    delta: Delta,
    /// The checksum of the packet that an error quotes.
    quoted: Option<Sum>,
    sum: Option<Sum>,
}

impl Change {
    fn apply(&self, bytes: &mut [u8]) {
        let mut all = Delta::NONE;
        for at in self.places.into_iter().flatten() {
            if let Some(place) = bytes.get_mut(at..at + size_of::<u128>()) {
                place.copy_from_slice(&self.new.to_be_bytes());
                all = all.and(self.delta);
            }
        }
        if let Some(quoted) = self.quoted {
            all = all.and(quoted.change(bytes, self.delta));
        }
        if let Some(sum) = self.sum {
            sum.change(bytes, all);
        }
    }
}

impl Guard {
    /// Gives a packet of a balancer its new addresses, and the destination annotation; returns its output.
    pub(super) fn balanced(&mut self, input: usize, packet: &mut Packet, now_ns: u64) -> usize {
        let headers = Headers::of(packet);
        let Some(change) = self.change(input, &headers, now_ns) else {
            return REFUSED;
        };
        match packet.network_mut() {
            Some(bytes) => change.apply(bytes),
            None => return REFUSED,
        }
        let destination = ip6::View::marked(packet).map(ip6::View::destination);
        if let Some(destination) = destination {
            destination.put(packet);
        }
        input
    }

    /// The change of a packet that came by an input, if it passes.
    fn change(&mut self, input: usize, headers: &Headers<'_>, now_ns: u64) -> Option<Change> {
        let fragment = Fragment::of(headers);
        if let Some(later) = fragment.filter(|fragment| !fragment.is_first) {
            return match self.fragments.find(&later, now_ns) {
                Some((known, server)) if known == input => {
                    self.renamed(input, (server, Delta::NONE), None)
                }
                _ => self.none(headers, NO_FLOW, now_ns),
            };
        }
        match Seen::of(headers) {
            Some(Seen::Part { ends, tcp, .. }) if matches!(ends.protocol, TCP | UDP) => {
                let verdict = match self.wanted(input, ends) {
                    None => Verdict::NoFlow,
                    Some(ends) => self.judged(input, ends, tcp, now_ns),
                };
                let target = self.settle(verdict, headers, input, now_ns)?;
                let sum = Sum::of(headers, ends.protocol, 0);
                self.renamed(input, self.table.address(target)?, sum)
            }
            Some(Seen::Error { about, to }) => {
                let change = self.error(input, headers, about, to, now_ns);
                change.or_else(|| self.none(headers, NO_FLOW, now_ns))
            }
            Some(_) => self.none(headers, NO_FLOW, now_ns),
            None => self.none(headers, UNREADABLE, now_ns),
        }
    }

    /// Counts a packet that does not pass.
    fn none(&mut self, headers: &Headers<'_>, reason: usize, now_ns: u64) -> Option<Change> {
        self.refuse(headers, reason, now_ns);
        None
    }

    /// The ends by which the table knows the flow of a packet: those of clients, whatever server it has. `None` if the
    /// packet is to another address, or of a server without the flow.
    fn wanted(&self, input: usize, ends: Ends) -> Option<Ends> {
        let own = self.balance.as_ref()?.own;
        if input == 0 {
            return (ends.destination == own).then_some(ends);
        }
        let known = Ends {
            source: own,
            ..ends
        };
        let (server, _) = self.target(&known)?;
        (server == ends.source).then_some(known)
    }

    /// The server of the flow with these ends, and how checksums change with its address.
    fn target(&self, ends: &Ends) -> Option<(u128, Delta)> {
        let target = self.table.target(ends)?;
        self.table.address(target)
    }

    fn judged(&mut self, input: usize, ends: Ends, tcp: Option<Tcp>, now_ns: u64) -> Verdict {
        let (balance, mut chosen) = (self.balance.as_ref(), None);
        let way = Way {
            opens: input == 0 && now_ns >= self.blocked_until_ns,
            answers: false,
            outside: input > 0,
            server: &mut || {
                chosen = balance?.choose(ends.source);
                chosen.map(u128::from)
            },
        };
        let verdict = self.table.judge(ends, tcp, way, now_ns);
        if let (Some(balance), Some(server), Verdict::Passes(_)) = (balance, chosen, verdict) {
            balance.count(server);
        }
        verdict
    }

    /// The change of an error about a packet of a flow, so that its receiver knows the addresses. `None` if there is no
    /// such flow, or the error is not for the sender of the packet (RFC 5508, REQ-3).
    fn error(
        &mut self,
        input: usize,
        headers: &Headers<'_>,
        about: Ends,
        to: u128,
        now_ns: u64,
    ) -> Option<Change> {
        let own = self.balance.as_ref()?.own;
        let message = headers.starts[Start::Transport as usize] as usize;
        let quoted = message + MESSAGE;
        let inner = Headers::of_ip6(headers.network.get(quoted..)?, None);
        // what the server sent is known by the address of clients; so is what the client sent
        let known = match input {
            0 => about,
            _ => Ends {
                destination: own,
                ..about
            },
        };
        if to != about.source || !self.table.is_of(&known, input > 0, now_ns) {
            return None;
        }
        let (server, delta) = self.target(&known)?;
        let sender = headers.from(Start::Ip6).get(SOURCE..)?.first_chunk()?;
        let from_server = u128::from_be_bytes(*sender) == server;
        let (places, new, delta) = match input {
            0 => ([Some(DESTINATION), Some(quoted + SOURCE)], server, delta),
            _ if about.destination != server => return None,
            _ => (
                [from_server.then_some(SOURCE), Some(quoted + DESTINATION)],
                own,
                delta.inverse(),
            ),
        };
        Some(Change {
            places,
            new,
            delta,
            quoted: Sum::of(&inner, about.protocol, quoted),
            sum: Some(Sum {
                at: message + MESSAGE_SUM,
                is_udp: false,
            }),
        })
    }

    /// The change of a packet with its flow's server, and how checksums change with its address.
    fn renamed(
        &self,
        input: usize,
        (server, delta): (u128, Delta),
        sum: Option<Sum>,
    ) -> Option<Change> {
        let (at, new, delta) = match input {
            0 => (DESTINATION, server, delta),
            _ => (SOURCE, self.balance.as_ref()?.own, delta.inverse()),
        };
        Some(Change {
            places: [Some(at), None],
            new,
            delta,
            quoted: None,
            sum,
        })
    }
}
