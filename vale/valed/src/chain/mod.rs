// SPDX-License-Identifier: Apache-2.0
//! Chains: packets that a classifier selects pass the ports of hops, in order, before they go to
//! their destination (docs/adr/0032-chains.md).
//!
//! All names and live ports are resolved when the configuration or a link changes. A packet costs
//! its classification and one look into a table.
mod balance;
mod claim;
mod exit;
mod flow;
mod flows;
mod hop;
mod recent;
mod route;
mod steps;
mod tick;
mod version;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use vale_proto::{ChainInfo, ChainName, ChainSet, IpNet, MAX_CHAINS, PortName};

use crate::frame::nsh::{Heard, Label, Link};
use crate::port::Port;
use balance::Balance;
use exit::{Exit, exits, retire, shares_pair};
pub use flow::Flow;
use flows::Flows;
use recent::{Stations, Translated};
use route::Route;
use version::{Chain, Phase, Way};

/// The ports of a switch, by index.
pub type Ports = [Option<Box<Port>>];

/// Definitions of one chain that wait, and draining ones that other hosts may still use.
const MAX_OLD: usize = 4;

/// The direction of a packet: with the classifier, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// The step of a packet that belongs to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering {
    chain: usize,
    /// The packet enters the chain here, and no hop sent it.
    pub enters: bool,
    /// Another host sent the packet.
    arrives: bool,
    /// The hop of this host that sent the packet.
    sender: Option<usize>,
    /// The key of the packet's flow.
    key: u64,
    /// The packet is an ICMP error.
    is_error: bool,
    /// The key of the packet's source, see [`Stations`].
    station: u64,
    /// The keys of the packet's flow if a hop translated its source, see [`Translated`].
    translated: Option<[u64; 2]>,
    pub next: Next,
}

impl Steering {
    fn new(index: usize, chain: &Chain, way: Way, flow: Flow) -> Self {
        Self {
            chain: index,
            enters: false,
            arrives: false,
            sender: None,
            key: way.key,
            is_error: flow.is_error,
            station: chain.stations.key(flow.source),
            translated: None,
            next: way.next,
        }
    }
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
    /// To another host, by the port of the path.
    Remote {
        port: usize,
        host: IpAddr,
        label: Label,
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
    /// The other port of its pair.
    partner: Option<usize>,
}

/// The chains of a switch.
#[derive(Default)]
pub struct Chains {
    /// The active definition of each chain, and those that wait or drain.
    chains: Vec<Chain>,
    /// The roles of each port.
    roles: Vec<Vec<Role>>,
    /// Ports that get and send packets of chains only.
    isolated: Vec<bool>,
    /// Ports whose frames may have a step.
    steered: Vec<bool>,
    /// A definition waits.
    waits: bool,
}

/// A definition of a chain, as all workers get it.
#[derive(Clone)]
pub struct Definition {
    pub set: ChainSet,
    /// The link of a new path.
    link: Option<Arc<Link>>,
    /// See [`Route::is_due`].
    is_due: Arc<AtomicBool>,
    /// The flows of each hop.
    flows: Vec<Arc<Flows>>,
    /// The frames of each hop.
    balances: Vec<Arc<Balance>>,
    /// The worker that gets the definition.
    pub worker: usize,
    stations: Arc<Stations>,
    translated: Arc<Translated>,
}

impl Definition {
    pub fn new(set: ChainSet, link: Option<Arc<Link>>) -> Self {
        Self {
            link,
            is_due: Arc::default(),
            stations: Arc::default(),
            translated: Arc::default(),
            flows: set.hops.iter().map(|_| Arc::default()).collect(),
            balances: set.hops.iter().map(|_| Arc::default()).collect(),
            worker: 0,
            set,
        }
    }
}

/// What another host sent.
pub struct ReceivedState {
    link: Arc<Link>,
    from: IpAddr,
    heard: Heard,
}

/// Why a chain cannot be set.
#[derive(Debug, PartialEq, Eq)]
pub enum SetError {
    /// The switch has [`MAX_CHAINS`] already.
    TooMany,
    /// The chain's path has no port.
    NoPath,
    /// A NAT network is wider than any hop may use; the port is one of the first hop.
    Claim(IpNet, PortName),
}

impl Chains {
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    fn active(&self) -> impl Iterator<Item = (usize, &Chain)> {
        let all = self.chains.iter().enumerate();
        all.filter(|(_, chain)| chain.is_active())
    }

    fn find(&self, name: &ChainName) -> Option<usize> {
        let mut found = self.active();
        found.find_map(|(index, chain)| (chain.set.chain == *name).then_some(index))
    }

    /// The new chains that wait until the other hosts have them.
    fn new_ones(&self) -> impl Iterator<Item = (usize, &Chain)> {
        let is_last = |index: usize, chain: &Chain| {
            let mut later = self.chains[index + 1..].iter();
            !later.any(|c| c.waits() && c.is_of(chain))
        };
        let all = self.chains.iter().enumerate();
        all.filter(move |(index, c)| {
            c.waits() && is_last(*index, c) && self.find(&c.set.chain).is_none()
        })
    }

    /// The definition of each chain that counts: the active one, or that of a new chain.
    fn current(&self) -> impl Iterator<Item = (usize, &Chain)> {
        self.active().chain(self.new_ones())
    }

    /// Refuses a chain that claims addresses which no hop may use.
    pub fn check_claims(&self, set: &ChainSet, ports: &Ports) -> Result<(), SetError> {
        claim::check(set, ports)
    }

    /// Makes a chain, or replaces it between two packets. Counters of unchanged hops go on. A chain
    /// with a path begins and changes when all hosts have the definition.
    pub fn set(&mut self, mut definition: Definition, ports: &Ports) -> Result<(), SetError> {
        self.check_claims(&definition.set, ports)?;
        if self.promote(Instant::now()) {
            self.resolve(ports);
        }
        let found = self.find(&definition.set.chain);
        let same = |c: &Chain| !c.is_draining() && c.set.chain == definition.set.chain;
        let is_new = !self.chains.iter().any(same);
        if is_new && self.current().count() == MAX_CHAINS {
            return Err(SetError::TooMany);
        }
        let link = definition.link.take();
        definition.link = link.or_else(|| self.link_of(&definition.set));
        let mut new = Chain::new(definition);
        // A station's addresses say nothing in another segment, where others may have them.
        let same = |c: &&Chain| c.is_of(&new) && c.set.segment == new.set.segment;
        if let Some(other) = self.chains.iter().find(same) {
            new.share(other);
        }
        self.share_balances(&mut new);
        if new.set.path.is_some() && new.route.is_none() {
            return Err(SetError::NoPath);
        }
        let same = |c: &Chain| c.waits() && c.is_of(&new) && c.is_same_version(&new);
        if let Some(waiting) = self.chains.iter().position(same) {
            let mut old = self.chains.remove(waiting);
            new.phase = old.phase;
            // Packets that it blocks do not bypass it because it was set again.
            new.set.restored |= old.set.restored;
            new.keep_states(&mut old);
            self.chains.push(new);
        } else if new.route.is_none() || found.is_some_and(|n| self.is_settled(n, &new)) {
            self.end_waiting(self.chains.len(), &new.set.chain);
            match found {
                Some(index) => self.replace(index, new),
                None => self.chains.push(new),
            }
        } else {
            self.take_again(&mut new);
            new.phase = Phase::Waiting(Instant::now());
            self.chains.push(new);
        }
        self.limit();
        self.resolve(ports);
        Ok(())
    }

    /// Takes over the counts of hops that another definition has, of this chain or of another one. Packets
    /// inside of a hop may leave it by any of them.
    fn share_balances(&self, new: &mut Chain) {
        for (hop, spec) in new.hops.iter_mut().zip(&new.set.hops) {
            let known = self
                .chains
                .iter()
                .flat_map(|c| c.set.hops.iter().zip(&c.hops));
            let mut same = known.filter(|(other, _)| shares_pair(spec, other));
            if let Some((_, other)) = same.next() {
                hop.balance = Arc::clone(&other.balance);
            }
        }
    }

    /// True if the active definition at `index` is this one, and no other waits.
    fn is_settled(&self, index: usize, new: &Chain) -> bool {
        let mut all = self.chains.iter();
        self.chains[index].is_same_version(new) && !all.any(|c| c.waits() && c.is_of(new))
    }

    /// Takes over what hosts announced about the same version. A new definition takes the place of one that
    /// drains: packets by it can still come, and make the new one active.
    fn take_again(&mut self, new: &mut Chain) {
        let same = |c: &Chain| c.is_of(new) && c.is_same_version(new);
        let Some(index) = self.chains.iter().position(same) else {
            return;
        };
        let old = &self.chains[index];
        if let Some((route, before)) = new.route.as_mut().zip(old.route.as_ref()) {
            route.keep_live(before);
        }
        if old.is_draining() {
            self.chains.remove(index);
        }
    }

    /// Ends the definitions of a chain that wait, up to an index.
    fn end_waiting(&mut self, index: usize, name: &ChainName) {
        let now = Phase::Draining(Instant::now());
        let waiting = self.chains[..index].iter_mut();
        let waiting = waiting.filter(|c| c.waits() && c.set.chain == *name);
        waiting.for_each(|c| c.phase = now);
    }

    /// Makes a definition active in place of another.
    fn replace(&mut self, index: usize, mut new: Chain) {
        let old = &mut self.chains[index];
        new.retired = retire(&old.set, &old.retired, &new.set);
        new.keep_counters(old);
        new.phase = Phase::Active;
        new.keep_states(old);
        let ends = old.route.is_some() && !new.is_same_version(old);
        let mut old = std::mem::replace(old, new);
        if ends {
            old.phase = Phase::Draining(Instant::now());
            self.chains.push(old);
        }
    }

    /// Forgets the oldest definitions of chains that changed often.
    fn limit(&mut self) {
        let names: Vec<_> = self.chains.iter().map(|c| c.set.chain.clone()).collect();
        for name in names {
            for is_old in [Chain::waits, Chain::is_draining] {
                let old = |c: &Chain| is_old(c) && c.set.chain == name;
                while self.chains.iter().filter(|c| old(c)).count() > MAX_OLD {
                    let oldest = self.chains.iter().position(old);
                    oldest.map(|index| self.chains.remove(index));
                }
            }
        }
    }

    /// Removes a chain. Other hosts may still send packets by it for a while.
    pub fn remove(&mut self, name: &ChainName, ports: &Ports) {
        let of_name = |chain: &Chain| chain.set.chain == *name;
        self.chains.retain(|c| !of_name(c) || c.route.is_some());
        for chain in self.chains.iter_mut().filter(|c| of_name(c)) {
            if !chain.is_draining() {
                chain.phase = Phase::Draining(Instant::now());
            }
        }
        self.limit();
        self.resolve(ports);
    }

    pub fn infos(&self) -> impl Iterator<Item = ChainInfo> {
        let waits = |name: &ChainName| {
            let mut all = self.chains.iter();
            all.any(|c| c.waits() && c.set.chain == *name)
        };
        self.current().map(move |(_, chain)| ChainInfo {
            is_changing: waits(&chain.set.chain),
            ..chain.info()
        })
    }

    /// Finds all ports again, after a port, its link or another host changed.
    pub fn resolve(&mut self, ports: &Ports) {
        self.roles = vec![Vec::new(); ports.len()];
        let is_path = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.face.is_path());
        self.isolated = ports.iter().map(is_path).collect();
        let phase = |chain: &Chain| match chain.phase {
            Phase::Active => 0,
            Phase::Waiting(_) => 1,
            Phase::Draining(_) => 2,
        };
        // A port has one role in each chain, in the definition that counts most.
        self.chains.sort_by_key(phase);
        self.waits = self.chains.iter().any(Chain::waits);
        for index in 0..self.chains.len() {
            self.chains[index].resolve(ports);
            self.give_roles(index, ports);
        }
        let steered = ports.iter().enumerate().map(|(index, port)| {
            let segment = port.as_ref().map(|port| port.face.segment);
            let takes = |chain: &Chain| {
                let counts = chain.is_active() || chain.blocks_until_known();
                counts && segment == Some(chain.set.segment) && chain.takes_from(index)
            };
            let is_part = !self.roles[index].is_empty() || self.isolated[index];
            is_part || self.chains.iter().any(takes)
        });
        self.steered = steered.collect();
    }

    fn give_roles(&mut self, index: usize, ports: &Ports) {
        let chain = &self.chains[index];
        let earlier = &self.chains[..index];
        let retired = chain.retired.iter().map(|r| (&r.port, r.exit));
        for (name, exit) in exits(&chain.set).chain(retired) {
            let Some(port) = find(ports, name) else {
                continue;
            };
            let partner = partner(&chain.set, name).and_then(|name| find(ports, name));
            // A port that left the chain has the role of a draining definition after its own ends.
            let same = |role: &Role| {
                let earlier = earlier.get(role.chain);
                let same = earlier.is_some_and(|other| other.set.chain == chain.set.chain);
                same && role.exit.until.is_none()
            };
            if !self.roles[port].iter().any(same) {
                self.roles[port].push(Role {
                    chain: index,
                    exit,
                    partner,
                });
            }
            self.isolated[port] |= chain.is_transparent(name);
        }
    }

    /// True if packets came by a definition that waits.
    pub fn is_due(&self) -> bool {
        let is_due = |chain: &Chain| {
            let route = chain.route.as_ref();
            chain.waits() && route.is_some_and(Route::is_due)
        };
        self.waits && self.chains.iter().any(is_due)
    }

    /// Makes definitions active by which packets came: hops that another order has could else send
    /// packets in a circle between hosts. To be called between two bursts.
    #[cold]
    pub fn promote_due(&mut self, ports: &Ports) {
        if self.promote(Instant::now()) {
            self.resolve(ports);
        }
    }

    /// The port names of all paths.
    pub fn path_ports(&self) -> impl Iterator<Item = PortName> {
        let routes = self.chains.iter().filter_map(|c| c.route.as_ref());
        routes.map(|route| route.port_name())
    }
}

fn find(ports: &Ports, name: &PortName) -> Option<usize> {
    let named = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.face.name == *name);
    ports.iter().position(named)
}

/// The other port of a port's pair.
fn partner<'a>(set: &'a ChainSet, name: &PortName) -> Option<&'a PortName> {
    let mut pairs = set.hops.iter().flat_map(|hop| &hop.pairs);
    pairs.find_map(|pair| match () {
        () if pair.ingress == *name => Some(&pair.egress),
        () if pair.egress == *name => Some(&pair.ingress),
        () => None,
    })
}
