// SPDX-License-Identifier: Apache-2.0
//! What the frame path asks of chains: the step of a packet, and the notes of those taken.
use vale_proto::{ChainName, Mac};

use super::balance::Leaving;
use super::hop::LiveHop;
use super::version::{Chain, ChainPosition, Inside, Way};
use super::{Chains, Direction, Flow, Next, Ports, Role, Steering};
use crate::clock::Nanoseconds;
use crate::frame::headers::Ethernet;
use crate::frame::nsh::{Label, TTL};
use crate::port::Relayed;

impl Chains {
    /// The step of a frame from the port `source`; `None` for a frame that no chain selects. A frame
    /// from another host has a label.
    pub fn step(
        &self,
        ports: &Ports,
        source: usize,
        label: Option<Label>,
        ethernet: &Ethernet,
        frame: &[u8],
    ) -> Option<Steering> {
        let flow = Flow::parse(ethernet, frame)?;
        match label {
            Some(_) if flow.evades => None,
            Some(label) => self.arrive(ports, label, flow),
            None => self.step_of(ports, source, ethernet, flow),
        }
    }

    /// The same for a frame of a flow from this host. All frames of the flow with its addresses have one
    /// step.
    pub fn step_of(
        &self,
        ports: &Ports,
        source: usize,
        ethernet: &Ethernet,
        flow: Flow,
    ) -> Option<Steering> {
        let roles = self.roles.get(source).map_or(&[][..], Vec::as_slice);
        if !roles.is_empty() {
            (!flow.evades).then_some(())?;
            return roles
                .iter()
                .find_map(|role| self.onward(ports, source, *role, flow));
        }
        let port = ports[source].as_ref().filter(|port| !port.face.is_path())?;
        let chains = self.chains.iter().enumerate();
        let mut chains = chains.filter(|(_, c)| c.is_active() || c.blocks_until_known());
        chains.find_map(|(index, chain)| {
            (chain.set.segment == port.face.segment).then_some(())?;
            let direction = chain.entry(ports, source, ethernet, flow)?;
            let place = ChainPosition {
                at: match direction {
                    Direction::Forward => 0,
                    Direction::Reverse => chain.hops.len(),
                },
                sender: None,
                ttl: TTL,
            };
            // No hop gets such a frame, and it may not pass by the hops.
            let way = match chain.is_active() && !flow.evades {
                true => chain.next(ports, place, direction, flow),
                false => Way::blocked(0),
            };
            Some(Steering {
                enters: true,
                ..Steering::new(index, chain, way, flow)
            })
        })
    }

    /// The step of a packet from another host, which never classifies it again.
    fn arrive(&self, ports: &Ports, label: Label, flow: Flow) -> Option<Steering> {
        let is_it = |chain: &Chain| {
            let route = chain.route.as_ref();
            route.is_some_and(|r| (r.link.number, r.version) == (label.number, label.version))
        };
        let index = self.chains.iter().position(is_it)?;
        let chain = &self.chains[index];
        let way = chain.arrive(ports, label, flow)?;
        Some(Steering {
            arrives: true,
            translated: chain.translated_keys(flow).filter(|_| !label.reverse),
            ..Steering::new(index, chain, way, flow)
        })
    }

    /// The step of a packet that a hop sends; it never enters a chain again.
    fn onward(&self, ports: &Ports, source: usize, role: Role, flow: Flow) -> Option<Steering> {
        let chain = &self.chains[role.chain];
        if role.exit.is_over() {
            return None;
        }
        let to = |at: Option<usize>, direction| {
            let at = at?;
            if !chain.permits_hop(ports, source, direction, flow) {
                return None;
            }
            let sender = match direction {
                Direction::Forward => at.checked_sub(1),
                Direction::Reverse => Some(at),
            };
            let place = ChainPosition {
                at,
                sender,
                ttl: TTL,
            };
            let way = chain.next(ports, place, direction, flow);
            Some(Steering {
                sender: role.exit.hop,
                translated: chain
                    .translated_keys(flow)
                    .filter(|_| direction == Direction::Forward),
                ..Steering::new(role.chain, chain, way, flow)
            })
        };
        let forward = to(role.exit.forward, Direction::Forward);
        forward.or_else(|| to(role.exit.reverse, Direction::Reverse))
    }

    /// False for a port whose frames have no step.
    pub fn steers(&self, port: usize) -> bool {
        self.steered.get(port).is_some_and(|steered| *steered)
    }

    /// True for a port of a transparent hop, which would pass flooded frames around in a circle, and
    /// for the port of a path. They get and send packets of chains only.
    pub fn isolates(&self, port: usize) -> bool {
        self.isolated.get(port).is_some_and(|isolated| *isolated)
    }

    /// True if a port is one of the hops of a step's chain. A packet that has passed the chain enters
    /// none of them: it would go in a circle.
    pub fn is_inside(&self, step: Steering, port: usize) -> bool {
        self.chains[step.chain].inside(port).is_some()
    }

    /// Counts the frames of a packet that a hop sent. False if the hop sent more than it may.
    pub fn leaves(&self, step: Steering, frames: usize, now: Nanoseconds) -> bool {
        let sent = self.sent(step, frames);
        sent.is_none_or(|(hop, leaving)| hop.balance.leave(hop.worker, leaving, now))
    }

    /// Counts packets of one flow that a hop sent, if each of them may leave it as a copy of one that entered.
    /// False if each needs [`Self::leaves`].
    pub fn all_leave(&self, step: Steering, packets: u64) -> bool {
        let sent = self.sent(step, packets as usize);
        sent.is_none_or(|(hop, leaving)| hop.balance.leave_as_copies(hop.worker, leaving))
    }

    /// As [`Self::leaves`], and counts nothing.
    pub fn would_leave(&self, step: Steering, frames: usize, now: Nanoseconds) -> bool {
        let sent = self.sent(step, frames);
        sent.is_none_or(|(hop, leaving)| hop.balance.would_leave(leaving, now))
    }

    /// The hop that sent a packet, and its frames.
    fn sent(&self, step: Steering, frames: usize) -> Option<(&LiveHop, Leaving)> {
        let hop = &self.chains[step.chain].hops[step.sender?];
        let leaving = Leaving {
            key: step.key,
            frames: frames as u64,
            copies: hop.copies,
            is_error: step.is_error,
        };
        Some((hop, leaving))
    }

    /// Counts frames that would enter the hop of a port again, or of which their sender sent too many.
    /// Returns the number of the hop.
    #[cold]
    pub fn count_looped(
        &mut self,
        step: Steering,
        to: Option<usize>,
        frames: usize,
    ) -> Option<usize> {
        let chain = &mut self.chains[step.chain];
        let entered = to.and_then(|port| match chain.inside(port) {
            Some(Inside::Hop(hop)) => Some(hop),
            Some(Inside::Retired) | None => None,
        });
        let found = entered.or(step.sender);
        chain.counters.looped += frames as u64;
        if let Some(hop) = found {
            chain.hops[hop].counters.looped += frames as u64;
        }
        found
    }

    /// The name of a step's chain.
    pub fn name(&self, step: Steering) -> &ChainName {
        &self.chains[step.chain].set.chain
    }

    /// The segment of a step's chain.
    pub fn segment(&self, step: Steering) -> u32 {
        self.chains[step.chain].set.segment
    }

    /// The guard's question about a step of a packet that a hop sends; None for any other step. Another
    /// host of a path has asked its own guard.
    pub fn relayed(
        &self,
        step: Steering,
        ports: &Ports,
        source: usize,
        ethernet: &Ethernet,
    ) -> Option<Relayed> {
        (!step.enters).then_some(())?;
        let stations = &self.chains[step.chain].stations;
        let is_partner = || {
            let roles = self.roles.get(source).into_iter().flatten();
            let mut partners = roles.filter_map(|role| ports[role.partner?].as_ref());
            partners.any(|port| port.face.guard.has_mac(ethernet.source))
        };
        Some(Relayed {
            is_station: step.arrives || stations.has(step.station, ethernet.source) || is_partner(),
        })
    }

    /// Notes what the next packets rest on: the station of a packet to a hop, and a translated flow.
    pub fn note(&self, step: Steering, source: Mac) {
        let chain = &self.chains[step.chain];
        if let Next::Hop { .. } = step.next {
            chain.stations.note(step.station, source);
        }
        if let Some(keys) = step.translated {
            chain.translated.note(keys);
        }
    }

    /// Forgets the translated flows of the chains that a port is a hop of.
    pub fn forget_translated(&self, port: usize) {
        for role in self.roles.get(port).into_iter().flatten() {
            self.chains[role.chain].translated.clear();
        }
    }

    /// Counts a step that a packet took, which is some frames.
    pub fn count(&mut self, step: Steering, bytes: usize, frames: usize) {
        self.count_packets(step, (1, bytes as u64), frames as u64);
    }

    /// Counts a step that packets of one flow took, each of them one frame.
    pub fn count_all(&mut self, step: Steering, packets: u64, bytes: u64) {
        self.count_packets(step, (packets, bytes), packets);
    }

    #[inline]
    fn count_packets(&mut self, step: Steering, (packets, bytes): (u64, u64), frames: u64) {
        let chain = &mut self.chains[step.chain];
        let add = |counters: &mut vale_proto::ChainCounters| {
            counters.packets += packets;
            counters.bytes += bytes;
        };
        if step.enters {
            add(&mut chain.counters);
        }
        if let (true, true, Some(route)) = (step.arrives, chain.waits(), &chain.route) {
            route.set_due();
        }
        match step.next {
            Next::Hop { hop, .. } => {
                let hop = &mut chain.hops[hop];
                add(&mut hop.counters);
                hop.balance.enter(hop.worker, step.key, frames);
            }
            Next::Blocked { hop } => {
                chain.hops[hop].counters.dropped += packets;
                chain.counters.dropped += packets;
            }
            Next::Exit | Next::Remote { .. } => (),
        }
    }
}
