// SPDX-License-Identifier: Apache-2.0
//! Chains: packets that a classifier selects pass the ports of hops, in order, before they go to
//! their destination (docs/adr/0032-chains.md).
//!
//! All names and live ports are resolved when the configuration or a link changes. A packet costs
//! its classification and one look into a table.
mod exit;
mod flow;
mod hop;
mod spread;

use vale_proto::{ChainCounters, ChainInfo, ChainName, ChainSet, Classifier, MAX_CHAINS};

use crate::headers::Ethernet;
use crate::port::Port;
use exit::{Exit, Retired, exits, retire, shares_pair};
use flow::Flow;
use hop::LiveHop;

/// The ports of a switch, by index.
pub type Ports = [Option<Box<Port>>];

/// The direction of a packet: with the classifier, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// The step of a packet that belongs to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    chain: usize,
    /// The packet enters the chain here, and no hop sent it.
    pub enters: bool,
    pub next: Next,
}

/// The place where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To a port of a hop; unless the hop is transparent, with the port's MAC address.
    Hop {
        hop: usize,
        port: usize,
        addressed: bool,
    },
    /// It passed all hops, and goes to its destination.
    Exit,
    /// The hop has no live port pair.
    Blocked { hop: usize },
}

/// A hop that a port belongs to.
#[derive(Clone, Copy)]
struct Role {
    chain: usize,
    exit: Exit,
}

struct Chain {
    retired: Vec<Retired>,
    set: ChainSet,
    /// Indexes of the ports that the classifiers name.
    ends: Vec<Ends>,
    hops: Vec<LiveHop>,
    counters: ChainCounters,
}

/// The ports that a classifier names; `None` selects any.
#[derive(Clone, Copy, Default)]
struct Ends {
    source: Option<usize>,
    destination: Option<usize>,
    /// A named port does not exist: the classifier selects nothing.
    missing: bool,
}

/// The chains of a switch.
#[derive(Default)]
pub struct Chains {
    chains: Vec<Chain>,
    /// The roles of each port.
    roles: Vec<Vec<Role>>,
    /// Ports of transparent hops, which would pass flooded frames around in a circle.
    isolated: Vec<bool>,
}

/// The switch has [`MAX_CHAINS`] already.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyChains;

impl Chains {
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Makes a chain, or replaces it between two packets. Counters of unchanged hops go on.
    pub fn set(&mut self, set: ChainSet, ports: &Ports) -> Result<(), TooManyChains> {
        let found = self.chains.iter().position(|c| c.set.chain == set.chain);
        if found.is_none() && self.chains.len() == MAX_CHAINS {
            return Err(TooManyChains);
        }
        let mut new = Chain {
            hops: set.hops.iter().map(LiveHop::new).collect(),
            ends: Vec::new(),
            retired: Vec::new(),
            counters: ChainCounters::default(),
            set,
        };
        match found {
            Some(index) => {
                let old = &mut self.chains[index];
                new.retired = retire(&old.set, &old.retired, &new.set);
                new.keep_counters(old);
                new.keep_flows(old);
                self.chains[index] = new;
            }
            None => self.chains.push(new),
        }
        self.resolve(ports);
        Ok(())
    }

    pub fn remove(&mut self, name: &ChainName, ports: &Ports) {
        self.chains.retain(|c| c.set.chain != *name);
        self.resolve(ports);
    }

    pub fn infos(&self) -> impl Iterator<Item = ChainInfo> {
        self.chains.iter().map(|chain| ChainInfo {
            set: chain.set.clone(),
            counters: chain.counters,
            hop_counters: chain.hops.iter().map(|h| h.counters).collect(),
            live_pairs: chain.hops.iter().map(LiveHop::live_pairs).collect(),
        })
    }

    /// Finds all ports anew, after a port or its link changed.
    pub fn resolve(&mut self, ports: &Ports) {
        self.roles = vec![Vec::new(); ports.len()];
        self.isolated = vec![false; ports.len()];
        for (index, chain) in self.chains.iter_mut().enumerate() {
            chain.resolve(ports);
            let retired = chain.retired.iter().map(|r| (&r.port, r.exit));
            for (name, exit) in exits(&chain.set).chain(retired) {
                let named = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.name == *name);
                if let Some(port) = ports.iter().position(named) {
                    self.roles[port].push(Role { chain: index, exit });
                    self.isolated[port] |= chain.is_transparent(name);
                }
            }
        }
    }

    /// The step of a frame from the port `source`; `None` for a frame that no chain selects.
    pub fn step(
        &self,
        ports: &Ports,
        source: usize,
        ethernet: &Ethernet,
        frame: &[u8],
    ) -> Option<Step> {
        let flow = Flow::parse(ethernet, frame)?;
        let roles = self.roles.get(source).map_or(&[][..], Vec::as_slice);
        if !roles.is_empty() {
            return roles
                .iter()
                .find_map(|role| self.onward(ports, *role, flow));
        }
        let segment = ports[source].as_ref()?.segment;
        let chains = self.chains.iter().enumerate();
        let mut chains = chains.filter(|(_, chain)| chain.set.segment == segment);
        chains.find_map(|(index, chain)| {
            let direction = chain.entry(ports, source, ethernet, flow)?;
            let start = match direction {
                Direction::Forward => 0,
                Direction::Reverse => chain.hops.len(),
            };
            let next = chain.next(start, direction, flow);
            Some(Step {
                chain: index,
                enters: true,
                next,
            })
        })
    }

    /// The step of a packet that a hop sends; it never enters a chain again.
    fn onward(&self, ports: &Ports, role: Role, flow: Flow) -> Option<Step> {
        let chain = &self.chains[role.chain];
        if role.exit.is_over() {
            return None;
        }
        let to = |at: Option<usize>, direction| {
            let at = at.filter(|_| chain.permits(ports, direction, flow))?;
            Some(chain.next(at, direction, flow))
        };
        let forward = to(role.exit.forward, Direction::Forward);
        let next = forward.or_else(|| to(role.exit.reverse, Direction::Reverse))?;
        Some(Step {
            chain: role.chain,
            enters: false,
            next,
        })
    }

    /// True for a port of a transparent hop: it gets and sends packets of chains only.
    pub fn isolates(&self, port: usize) -> bool {
        self.isolated.get(port).is_some_and(|isolated| *isolated)
    }

    /// The name of a step's chain.
    pub fn name(&self, step: Step) -> &ChainName {
        &self.chains[step.chain].set.chain
    }

    /// The segment of a step's chain.
    pub fn segment(&self, step: Step) -> u32 {
        self.chains[step.chain].set.segment
    }

    /// Counts a step that was taken.
    pub fn count(&mut self, step: Step, bytes: usize) {
        let chain = &mut self.chains[step.chain];
        let add = |counters: &mut ChainCounters| {
            counters.packets += 1;
            counters.bytes += bytes as u64;
        };
        if step.enters {
            add(&mut chain.counters);
        }
        match step.next {
            Next::Hop { hop, .. } => add(&mut chain.hops[hop].counters),
            Next::Blocked { hop } => {
                chain.hops[hop].counters.dropped += 1;
                chain.counters.dropped += 1;
            }
            Next::Exit => (),
        }
    }
}

impl Chain {
    fn keep_counters(&mut self, old: &Self) {
        self.counters = old.counters;
        for (hop, spec) in self.hops.iter_mut().zip(&self.set.hops) {
            let same = old.set.hops.iter().position(|other| other == spec);
            hop.counters = same.map_or(hop.counters, |index| old.hops[index].counters);
        }
    }

    /// Keeps the flows of hops whose pairs changed in part.
    fn keep_flows(&mut self, old: &mut Self) {
        for (hop, spec) in self.hops.iter_mut().zip(&self.set.hops) {
            let hops = &old.set.hops;
            if let Some(index) = hops.iter().position(|other| shares_pair(spec, other)) {
                hop.keep_flows(&mut old.hops[index]);
            }
        }
    }

    fn resolve(&mut self, ports: &Ports) {
        let find = |name: &vale_proto::PortName| {
            let named = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.name == *name);
            ports.iter().position(named)
        };
        self.ends = self
            .set
            .classifiers
            .iter()
            .map(|c| {
                let source = c.source_port.as_ref().map(find);
                let destination = c.destination_port.as_ref().map(find);
                Ends {
                    source: source.flatten(),
                    destination: destination.flatten(),
                    missing: source == Some(None) || destination == Some(None),
                }
            })
            .collect();
        for (hop, spec) in self.hops.iter_mut().zip(&self.set.hops) {
            hop.resolve(spec, ports, find);
        }
    }

    fn is_transparent(&self, port: &vale_proto::PortName) -> bool {
        let mut hops = self.set.hops.iter().filter(|hop| hop.transparent);
        hops.any(|hop| {
            let mut pairs = hop.pairs.iter();
            pairs.any(|pair| pair.ingress == *port || pair.egress == *port)
        })
    }

    fn classifiers(&self) -> impl Iterator<Item = (&Classifier, Ends)> {
        let all = self.set.classifiers.iter().zip(self.ends.iter().copied());
        all.filter(|(_, ends)| !ends.missing)
    }

    /// The direction of a packet that enters the chain at the port `source`.
    fn entry(
        &self,
        ports: &Ports,
        source: usize,
        ethernet: &Ethernet,
        flow: Flow,
    ) -> Option<Direction> {
        let owns = |port: usize| {
            let port = ports[port].as_ref();
            port.is_some_and(|p| p.mac == Some(ethernet.destination))
        };
        let forward = |(c, ends): (&Classifier, Ends)| {
            ends.source.is_none_or(|port| port == source)
                && ends.destination.is_none_or(owns)
                && flow.matches(c)
        };
        let answer = flow.reversed();
        let reverse = |(c, ends): (&Classifier, Ends)| {
            ends.destination.is_none_or(|port| port == source)
                && match self.translates(answer) {
                    true => answer.matches_except_source(c),
                    false => ends.source.is_none_or(owns) && answer.matches(c),
                }
        };
        if self.classifiers().any(forward) {
            return Some(Direction::Forward);
        }
        (self.set.symmetric && self.classifiers().any(reverse)).then_some(Direction::Reverse)
    }

    /// True if a hop may send the packet in this direction. The packet belongs to a flow of the
    /// classifiers, and its addresses to their ports.
    fn permits(&self, ports: &Ports, direction: Direction, flow: Flow) -> bool {
        let flow = match direction {
            Direction::Forward => flow,
            Direction::Reverse if !self.set.symmetric => return false,
            Direction::Reverse => flow.reversed(),
        };
        let owns = |port: Option<usize>, address| {
            let port = port.and_then(|port| ports[port].as_ref());
            port.is_none_or(|port| port.guard.has(address))
        };
        let translated = self.translates(flow);
        self.classifiers().any(|(c, ends)| {
            owns(ends.destination, flow.destination)
                && match translated {
                    true => flow.matches_except_source(c),
                    false => owns(ends.source, flow.source) && flow.matches(c),
                }
        })
    }

    /// True if a hop translated the source of the flow.
    fn translates(&self, flow: Flow) -> bool {
        self.set
            .nat
            .iter()
            .any(|network| network.contains(&flow.source))
    }

    /// The place of a packet that has passed the hops before `at`; in reverse those from `at` on.
    fn next(&self, mut at: usize, direction: Direction, flow: Flow) -> Next {
        let forward = direction == Direction::Forward;
        while forward && at < self.hops.len() || !forward && at > 0 {
            let hop = if forward { at } else { at - 1 };
            match self.hops[hop].port(flow, forward) {
                Some((port, addressed)) => {
                    return Next::Hop {
                        hop,
                        port,
                        addressed,
                    };
                }
                None if self.hops[hop].bypasses() => at = if forward { at + 1 } else { hop },
                None => return Next::Blocked { hop },
            }
        }
        Next::Exit
    }
}
