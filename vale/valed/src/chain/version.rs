// SPDX-License-Identifier: Apache-2.0
//! One definition of a chain, with its ports and counters.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use vale_proto::{ChainCounters, ChainInfo, ChainSet, Classifier, IpNet, Mac, PortName};

use super::claim::Claimants;
use super::exit::{Retired, exits, shares_pair};
use super::flow::Flow;
use super::hop::{Entry, LiveHop};
use super::recent::{Stations, Translated};
use super::route::Route;
use super::{Definition, Direction, Next, Ports, find};
use crate::frame::headers::Ethernet;
use crate::frame::nsh::{FIRST_INDEX, Label, State};
use crate::port::Port;

/// The part that a definition plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Packets enter the chain by it.
    Active,
    /// It becomes active, in place of another one, when all hosts have it.
    Waiting(Instant),
    /// Other hosts may still send packets by it.
    Draining(Instant),
}

pub struct Chain {
    pub phase: Phase,
    pub retired: Vec<Retired>,
    pub set: ChainSet,
    pub route: Option<Route>,
    /// The ports that the classifiers name.
    ends: Vec<Ends>,
    /// The parts of the chain that the switch's ports belong to.
    inside: Vec<Option<Inside>>,
    pub hops: Vec<LiveHop>,
    pub stations: Arc<Stations>,
    pub translated: Arc<Translated>,
    claimants: Claimants,
    pub counters: ChainCounters,
}

/// Why a hop may send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permit {
    /// Its addresses are those of the classifier.
    Classified,
    /// A hop translated its source.
    Translated,
}

/// The ports that a classifier names; `None` selects any.
#[derive(Clone, Copy, Default)]
struct Ends {
    source: Option<usize>,
    destination: Option<usize>,
    /// A named port does not exist: the classifier selects nothing.
    missing: bool,
    /// Packets enter and leave at another host.
    elsewhere: bool,
}

/// The part of a chain that a port belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// The hop with this number.
    Hop(usize),
    /// A hop that left the chain a moment ago.
    Retired,
}

/// The place where a packet goes next, and the key of its flow.
#[derive(Clone, Copy)]
pub struct Way {
    pub next: Next,
    pub key: u64,
}

impl Way {
    pub fn blocked(hop: usize) -> Self {
        let next = Next::Blocked { hop };
        Self { next, key: 0 }
    }
}

/// The packet's place among the hops.
#[derive(Clone, Copy)]
pub struct ChainPosition {
    /// The hops before this one are behind the packet; for answers, those from this one on.
    pub at: usize,
    /// The hop that sent the packet.
    pub sender: Option<usize>,
    pub ttl: u8,
}

impl Chain {
    pub fn new(definition: Definition) -> Self {
        let Definition {
            set,
            link,
            is_due,
            flows,
            balances,
            worker,
            stations,
            translated,
        } = definition;
        let hops = set.hops.iter().zip(flows.into_iter().zip(balances));
        Self {
            phase: Phase::Active,
            retired: Vec::new(),
            route: Route::new(&set, link, is_due),
            ends: Vec::new(),
            inside: Vec::new(),
            hops: hops
                .map(|(hop, (flows, balance))| LiveHop::new(hop, flows, balance, worker))
                .collect(),
            stations,
            translated,
            claimants: Claimants::default(),
            counters: ChainCounters::default(),
            set,
        }
    }

    pub fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    pub fn waits(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
    }

    pub fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining(_))
    }

    /// True if both are definitions of one chain.
    pub fn is_of(&self, other: &Self) -> bool {
        self.set.chain == other.set.chain
    }

    /// True if the chain's packets are dropped until the other hosts know it.
    pub fn blocks_until_known(&self) -> bool {
        self.set.restored && self.waits()
    }

    /// True if both are one definition for the other hosts.
    pub fn is_same_version(&self, other: &Self) -> bool {
        let version = |chain: &Self| chain.route.as_ref().map(|route| route.version);
        version(self) == version(other)
    }

    pub fn keep_counters(&mut self, old: &Self) {
        self.counters = old.counters;
        for (hop, spec) in self.hops.iter_mut().zip(&self.set.hops) {
            let same = old.set.hops.iter().position(|other| other == spec);
            hop.counters = same.map_or(hop.counters, |index| old.hops[index].counters);
        }
    }

    /// Shares the stations and translated flows with another definition of the chain. A packet may leave a
    /// hop by another definition than the one by which it entered.
    pub fn share(&mut self, other: &Self) {
        self.stations = Arc::clone(&other.stations);
        self.translated = Arc::clone(&other.translated);
    }

    /// Takes over what hosts and workers know: about the same version, and about the flows of hops
    /// that keep a pair.
    pub fn keep_states(&mut self, old: &mut Self) {
        let mut free: Vec<_> = (0..old.hops.len()).collect();
        for (hop, spec) in self.hops.iter_mut().zip(&self.set.hops) {
            let shares = |n: &usize| shares_pair(spec, &old.set.hops[*n]);
            if let Some(place) = free.iter().position(shares) {
                hop.keep_flows(&mut old.hops[free.remove(place)]);
            }
        }
        if let Some((route, before)) = self.route.as_mut().zip(old.route.as_ref()) {
            route.keep(before);
        }
    }

    pub fn info(&self) -> ChainInfo {
        ChainInfo {
            set: self.set.clone(),
            counters: self.counters,
            hop_counters: self.hops.iter().map(|h| h.counters).collect(),
            live_pairs: self.hops.iter().map(LiveHop::live_pairs).collect(),
            hosts: self.route.as_ref().map_or(Vec::new(), Route::states),
            is_changing: false,
        }
    }

    pub fn resolve(&mut self, ports: &Ports) {
        let find = |name: &PortName| find(ports, name);
        if let Some(route) = &mut self.route {
            route.port = find(&route.port_name());
        }
        let local = self.route.as_ref().map(Route::local);
        let ends = |c: &Classifier| {
            let source = c.source_port.as_ref().map(find);
            let destination = c.destination_port.as_ref().map(find);
            Ends {
                source: source.flatten(),
                destination: destination.flatten(),
                missing: source == Some(None) || destination == Some(None),
                elsewhere: local.is_some() && c.host != local,
            }
        };
        self.ends = self.set.classifiers.iter().map(ends).collect();
        let inside = |port: &Option<Box<Port>>| self.inside_by_name(&port.as_ref()?.face.name);
        self.inside = ports.iter().map(inside).collect();
        self.claimants = Claimants::new(&self.set, local, find);
        let hops = self.hops.iter_mut().zip(&self.set.hops);
        for (n, (hop, spec)) in hops.enumerate() {
            hop.resolve(n, spec, self.route.as_ref(), ports, find);
        }
    }

    fn inside_by_name(&self, name: &PortName) -> Option<Inside> {
        let mut exits = exits(&self.set);
        let hop = exits.find_map(|(port, exit)| exit.hop.filter(|_| port == name));
        let mut retired = self.retired.iter().filter(|r| r.port == *name);
        let retired = || retired.next().map(|_| Inside::Retired);
        hop.map(Inside::Hop).or_else(retired)
    }

    /// The part of the chain that a port belongs to.
    pub fn inside(&self, port: usize) -> Option<Inside> {
        self.inside.get(port).copied().flatten()
    }

    /// This host's part, for the other hosts.
    pub fn state(&self) -> Option<State> {
        let route = self.route.as_ref()?;
        Some(State {
            version: route.version,
            in_force: self.is_active(),
            is_informed: route.is_known() && !self.is_draining(),
            live: self.hops.iter().map(|hop| hop.live_bits).collect(),
        })
    }

    pub fn is_transparent(&self, port: &PortName) -> bool {
        let mut hops = self.set.hops.iter().filter(|hop| hop.transparent);
        hops.any(|hop| {
            let mut pairs = hop.pairs.iter();
            pairs.any(|pair| pair.ingress == *port || pair.egress == *port)
        })
    }

    /// False if [`Self::entry`] holds for no packet from a port.
    pub fn takes_from(&self, port: usize) -> bool {
        let names = |end: Option<usize>| end.is_none_or(|named| named == port);
        let mut here = self.ends.iter().filter(|e| !e.missing && !e.elsewhere);
        let answers = self.set.symmetric;
        let restores = answers && self.route.is_some() && !self.set.nat.is_empty();
        restores || here.any(|e| names(e.source) || answers && names(e.destination))
    }

    fn classifiers(&self) -> impl Iterator<Item = (&Classifier, Ends)> {
        self.set.classifiers.iter().zip(self.ends.iter().copied())
    }

    /// The direction of a packet that enters the chain at the port `source`.
    pub fn entry(
        &self,
        ports: &Ports,
        source: usize,
        ethernet: &Ethernet,
        flow: Flow,
    ) -> Option<Direction> {
        let to_many = ethernet.destination.is_multicast();
        let owns = |port: usize| {
            let port = ports[port].as_ref();
            port.is_some_and(|p| match to_many {
                false => p.face.mac == Some(ethernet.destination),
                true => p.face.guard.has(flow.destination),
            })
        };
        let here = |ends: Ends| !ends.missing && !ends.elsewhere;
        let is = |wanted: Option<Mac>, found: Mac| {
            wanted.is_none_or(|mac| mac == found || to_many && found == ethernet.destination)
        };
        let forward = |(c, ends): (&Classifier, Ends)| {
            here(ends)
                && ends.source.is_none_or(|port| port == source)
                && ends.destination.is_none_or(owns)
                && is(c.source_mac, ethernet.source)
                && is(c.destination_mac, ethernet.destination)
                && flow.matches(c)
        };
        let answer = flow.reversed();
        let comes_from = |ends: Ends| ends.destination.is_none_or(|port| port == source);
        let reverse = |(c, ends): (&Classifier, Ends)| {
            here(ends)
                && comes_from(ends)
                && is(c.source_mac, ethernet.destination)
                && is(c.destination_mac, ethernet.source)
                && ends.source.is_none_or(owns)
                && answer.matches(c)
        };
        let restored = |(c, ends): (&Classifier, Ends)| {
            (self.route.is_some() || here(ends) && comes_from(ends))
                && answer.matches_except_source(c)
        };
        if self.classifiers().any(forward) {
            return Some(Direction::Forward);
        }
        let enters = self.set.symmetric
            && (self.classifiers().any(reverse)
                || self.returns(ports, ethernet, answer) && self.classifiers().any(restored));
        enters.then_some(Direction::Reverse)
    }

    /// True for a packet to an address that a hop put in place of a source. The address alone takes no
    /// packet from another station: the chain must have translated the packet's flow. Else the frame
    /// must have the MAC address of a hop's port that may use the address.
    fn returns(&self, ports: &Ports, ethernet: &Ethernet, answer: Flow) -> bool {
        let (claimants, address) = (&self.claimants, answer.source);
        // The host of the hop that translates gets the answers, and only it.
        let is_here = || self.route.is_none() || self.has_mac(ports, ethernet);
        self.translates(answer)
            && is_here()
            && claimants.may_use(ports, address)
            && (self.translated.has(answer) || claimants.has(ports, address, ethernet.destination))
    }

    /// True if a port of this host's segment has the destination of a frame.
    fn has_mac(&self, ports: &Ports, ethernet: &Ethernet) -> bool {
        let mut ports = ports.iter().flatten();
        ports
            .any(|p| p.face.segment == self.set.segment && p.face.mac == Some(ethernet.destination))
    }

    /// The same for the port of a hop on this host. It puts addresses in place of a source only if it may
    /// use them. A later hop passes on what an earlier one translated.
    pub fn permits_hop(
        &self,
        ports: &Ports,
        port: usize,
        direction: Direction,
        flow: Flow,
    ) -> bool {
        let Some(permit) = self.permits(ports, direction, flow) else {
            return false;
        };
        let claims = permit == Permit::Translated && direction == Direction::Forward;
        let may_use = || {
            ports[port]
                .as_ref()
                .is_some_and(|p| p.face.guard.has(flow.source))
        };
        let is_known = || self.claimants.may_use(ports, flow.source) && self.translated.has(flow);
        !claims || may_use() || is_known()
    }

    /// The reason why a hop may send the packet in this direction. The packet belongs to a flow of the
    /// classifiers, and its addresses to their ports.
    fn permits(&self, ports: &Ports, direction: Direction, flow: Flow) -> Option<Permit> {
        let found = self.permitting(ports, direction, flow);
        found.map(|(_, permit)| permit)
    }

    /// The keys by which the chain knows a packet of a translated flow. A classifier alone may permit such
    /// a packet, too: its client may use any address.
    pub fn translated_keys(&self, flow: Flow) -> Option<[u64; 2]> {
        self.translates(flow).then(|| self.translated.keys(flow))
    }

    /// The classifier that permits a hop to send the packet.
    fn permitting(
        &self,
        ports: &Ports,
        direction: Direction,
        flow: Flow,
    ) -> Option<(&Classifier, Permit)> {
        let flow = match direction {
            Direction::Forward => flow,
            Direction::Reverse if !self.set.symmetric => return None,
            Direction::Reverse => flow.reversed(),
        };
        let owns = |port: Option<usize>, elsewhere: &[IpNet], address: IpAddr| match port
            .and_then(|port| ports[port].as_ref())
        {
            Some(port) => port.face.guard.has(address),
            None => elsewhere.is_empty() || elsewhere.iter().any(|n| n.contains(&address)),
        };
        let fits = |(c, ends): &(&Classifier, Ends)| {
            (!ends.missing || self.route.is_some())
                && owns(ends.destination, &c.receivers, flow.destination)
        };
        let is_whole = |(c, ends): &(&Classifier, Ends)| {
            owns(ends.source, &c.senders, flow.source) && flow.matches(c)
        };
        let found = || self.classifiers().filter(fits);
        let whole = found().find(is_whole).map(|(c, _)| (c, Permit::Classified));
        let rest = || found().find(|(c, _)| flow.matches_except_source(c));
        whole.or_else(|| {
            let (c, _) = self.translates(flow).then(rest)??;
            Some((c, Permit::Translated))
        })
    }

    /// True if a hop translated the source of the flow.
    fn translates(&self, flow: Flow) -> bool {
        self.set
            .nat
            .iter()
            .any(|network| network.contains(&flow.source))
    }

    /// The next step of a packet at this place.
    pub fn next(
        &self,
        ports: &Ports,
        place: ChainPosition,
        direction: Direction,
        flow: Flow,
    ) -> Way {
        let (seen, key) = self.seen_by_hops(flow, direction == Direction::Forward);
        self.learn(seen, key);
        let next = self.next_of(ports, place, direction, (flow, seen, key));
        Way { next, key }
    }

    /// The same for a flow that the hops see with this key.
    fn next_of(
        &self,
        ports: &Ports,
        mut place: ChainPosition,
        direction: Direction,
        (flow, seen, key): (Flow, Flow, u64),
    ) -> Next {
        let forward = direction == Direction::Forward;
        while forward && place.at < self.hops.len() || !forward && place.at > 0 {
            let hop = if forward { place.at } else { place.at - 1 };
            match self.hops[hop].entry(seen, key, forward) {
                Some(Entry::Port(port, addressed)) => {
                    return Next::Hop {
                        hop,
                        port,
                        addressed,
                    };
                }
                Some(Entry::Host(host)) => return self.remote(host, place, forward, hop),
                None if self.hops[hop].bypasses() => place.at = if forward { hop + 1 } else { hop },
                None => return Next::Blocked { hop },
            }
        }
        match self.exit_host(ports, place.sender, direction, flow) {
            Some(host) => self.remote(host, place, forward, self.hops.len() - 1),
            None => Next::Exit,
        }
    }

    /// A flow as the hops see it, with its key. A translation changes the flow between the hops, but
    /// not the address of the other end. So this address alone names the bucket, in both directions.
    /// An error is about a packet of the other direction, and anybody on the way sends it.
    /// The flow of the answers begins with the answer to SYN.
    fn seen_by_hops(&self, flow: Flow, forward: bool) -> (Flow, u64) {
        if self.set.nat.is_empty() {
            return (flow, flow.key());
        }
        let (source, destination) = match flow.quoted {
            Some((source, destination)) => (destination, source),
            None => (flow.source, flow.destination),
        };
        let end = if forward { destination } else { source };
        let begins = flow.begins || flow.accepts;
        (Flow { begins, ..flow }, flow.key_by(end))
    }

    /// All hosts that a flow passes learn its pairs. One host chooses the pair of a hop for a packet,
    /// and another one for its answer.
    fn learn(&self, flow: Flow, key: u64) {
        if self.route.is_some() {
            for hop in &self.hops {
                hop.learn(flow, key);
            }
        }
    }

    /// The step of a packet that another host sent to this one.
    pub fn arrive(&self, ports: &Ports, label: Label, flow: Flow) -> Option<Way> {
        let passed = usize::from(FIRST_INDEX - label.index);
        let (direction, at) = match label.reverse {
            false => (Direction::Forward, passed),
            true => (Direction::Reverse, self.hops.len().checked_sub(passed)?),
        };
        if passed > self.hops.len() {
            return None;
        }
        self.permits(ports, direction, flow)?;
        let forward = direction == Direction::Forward;
        let (seen, key) = self.seen_by_hops(flow, forward);
        self.learn(seen, key);
        if passed == self.hops.len() {
            let next = Next::Exit;
            return Some(Way { next, key });
        }
        let hop = if forward { at } else { at - 1 };
        let place = ChainPosition {
            at: if forward { hop + 1 } else { hop },
            sender: None,
            ttl: label.ttl,
        };
        let next = match self.hops[hop].arrival(seen, key, forward) {
            Some(Entry::Port(port, addressed)) => Next::Hop {
                hop,
                port,
                addressed,
            },
            _ if self.hops[hop].bypasses() => {
                self.next_of(ports, place, direction, (flow, seen, key))
            }
            _ => Next::Blocked { hop },
        };
        Some(Way { next, key })
    }

    /// The step to another host.
    fn remote(&self, host: IpAddr, place: ChainPosition, forward: bool, hop: usize) -> Next {
        let passed = match forward {
            true => place.at,
            false => self.hops.len() - place.at,
        };
        let route = self.route.as_ref();
        let index = u8::try_from(passed).map(|passed| FIRST_INDEX - passed);
        match route.and_then(|r| r.port.zip(Some(r))).zip(index.ok()) {
            Some(((port, route), index)) => Next::Remote {
                port,
                host,
                label: Label {
                    number: route.link.number,
                    reverse: !forward,
                    index,
                    ttl: place.ttl,
                    version: route.version,
                },
            },
            None => Next::Blocked { hop },
        }
    }

    /// The other host at which a packet leaves the chain. Its source address has to be at that
    /// host, else other switches would learn it at two places. A routed hop put its own address
    /// there. Answers leave where the chain's packets enter.
    fn exit_host(
        &self,
        ports: &Ports,
        sender: Option<usize>,
        direction: Direction,
        flow: Flow,
    ) -> Option<IpAddr> {
        let route = self.route.as_ref()?;
        let routed = self.hops.iter().rposition(|hop| !hop.transparent);
        let routed = routed.filter(|_| direction == Direction::Forward);
        let (seen, key) = self.seen_by_hops(flow, true);
        match routed.map(|hop| (hop, self.hops[hop].entry(seen, key, true))) {
            Some((hop, _)) if sender == Some(hop) => return None,
            Some((_, Some(Entry::Host(host)))) => return Some(host),
            Some((_, Some(Entry::Port(..)))) => return None,
            _ => (),
        }
        let permitting = self.permitting(ports, direction, flow);
        let home = permitting.and_then(|(c, _)| c.host);
        home.filter(|host| *host != route.local())
    }
}
