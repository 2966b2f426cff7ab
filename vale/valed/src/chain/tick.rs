// SPDX-License-Identifier: Apache-2.0
//! The states that the hosts of a chain exchange, and what follows from them.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vale_proto::{ChainName, ChainSet, PortName};

use super::route::{DEAD_INTERVAL, Route};
use super::version::Chain;
use super::{Chains, Phase, Ports, ReceivedState};
use crate::frame::nsh::Link;

/// Packets that are inside of guests when a chain ends may come back for this long.
const GRACE: Duration = Duration::from_secs(1);
/// A new definition waits this long for a host that says nothing about it.
const PENDING_TIMEOUT: Duration = Duration::from_secs(30);

impl Chains {
    /// What came since from other hosts. One worker asks, for all.
    pub fn received_states(&self) -> Vec<ReceivedState> {
        let links = self
            .chains
            .iter()
            .filter_map(|c| Some(&c.route.as_ref()?.link));
        let of = |link: &Arc<Link>| {
            let link = Arc::clone(link);
            let all = link.take().into_iter();
            all.map(move |(from, heard)| {
                let link = Arc::clone(&link);
                ReceivedState { link, from, heard }
            })
        };
        links.flat_map(of).collect()
    }

    /// Takes received states, and forgets those of silent hosts.
    pub fn receive_states(&mut self, received: &[ReceivedState], ports: &Ports, now: Instant) {
        let mut differs = false;
        for route in self.chains.iter_mut().filter_map(|c| c.route.as_mut()) {
            for ReceivedState { link, from, heard } in received {
                let own = Arc::ptr_eq(link, &route.link);
                differs |= own && route.take(*from, heard, now);
            }
            differs |= route.expire(now);
        }
        if differs {
            self.resolve(ports);
        }
    }

    /// Ends what is over. All workers have received the same states before. True if a definition came in
    /// force or is forgotten.
    pub fn tick(&mut self, ports: &Ports, now: Instant) -> bool {
        let changed = self.promote(now) | self.forget(now);
        if changed {
            self.resolve(ports);
        }
        changed
    }

    /// Announces this host's part to the other hosts, once for each version: the definition that counts
    /// most comes first. One worker does so, when all know what it announces.
    pub fn announce(&self) {
        for (index, chain) in self.chains.iter().enumerate() {
            let mut earlier = self.chains[..index].iter();
            if !earlier.any(|c| c.is_of(chain) && c.is_same_version(chain)) {
                announce(chain);
            }
        }
    }

    /// Makes definitions active that all hosts have. True if there is one.
    pub(super) fn promote(&mut self, now: Instant) -> bool {
        let is_due = |chain: &Chain| match (chain.phase, &chain.route) {
            // A silent host is gone, and no packet says more than the hosts themselves.
            (Phase::Waiting(since), Some(route)) if chain.set.restored => {
                route.is_known() || now - since > DEAD_INTERVAL
            }
            (Phase::Waiting(since), Some(route)) => {
                // Another host uses it only after all have announced it.
                let known = route.is_ready() || route.is_used();
                route.is_due() || known || now - since > PENDING_TIMEOUT
            }
            (phase, _) => matches!(phase, Phase::Waiting(_)),
        };
        let mut promoted = false;
        // The last one that is due ends those before it, since other hosts have left them.
        while let Some(index) = self.chains.iter().rposition(is_due) {
            let name = self.chains[index].set.chain.clone();
            self.end_waiting(index, &name);
            let mut new = self.chains.remove(index);
            (new.phase, new.set.restored) = (Phase::Active, false);
            new.route.iter().for_each(Route::set_due);
            match self.find(&new.set.chain) {
                Some(old) => self.replace(old, new),
                None => self.chains.push(new),
            }
            promoted = true;
        }
        promoted
    }

    /// Forgets definitions by which no host sends any more. True if there is one.
    fn forget(&mut self, now: Instant) -> bool {
        let before = self.chains.len();
        self.chains.retain(|chain| {
            let used = chain.route.as_ref().is_some_and(|route| route.is_used());
            match chain.phase {
                Phase::Draining(since) => {
                    used && now - since < PENDING_TIMEOUT || now - since < GRACE
                }
                _ => true,
            }
        });
        self.chains.len() < before
    }

    /// The link of a chain's path, from another definition of the chain.
    pub(super) fn link_of(&self, set: &ChainSet) -> Option<Arc<Link>> {
        let path = set.path.as_ref()?;
        let same = self.chains.iter().filter(|c| c.set.chain == set.chain);
        let mut links = same.filter_map(|c| Some(&c.route.as_ref()?.link));
        let found = links.find(|l| (l.number, l.local) == (path.number, path.local));
        found.map(Arc::clone)
    }

    /// The numbers and local addresses of a chain's paths.
    pub fn paths_of(&self, name: &ChainName) -> Vec<(u32, IpAddr)> {
        let same = self.chains.iter().filter(|c| c.set.chain == *name);
        let routes = same.filter_map(|c| c.route.as_ref());
        routes.map(|r| (r.link.number, r.local())).collect()
    }

    /// The version of a path that is active, or waits alone.
    #[cfg(test)]
    pub fn version(&self, number: u32) -> u64 {
        let routes = self.current().filter_map(|(_, c)| c.route.as_ref());
        let mut found = routes.filter(|r| r.link.number == number);
        found.next().map_or(0, |route| route.version)
    }

    /// The hosts that may send to the port of a path.
    pub fn peers(&self, port: &PortName) -> Vec<IpAddr> {
        let routes = self.chains.iter().filter_map(|c| c.route.as_ref());
        let routes = routes.filter(|route| route.port_name() == *port);
        let mut peers: Vec<_> = routes.flat_map(|route| route.others()).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }
}

/// Announces this host's part of a definition to the other hosts.
fn announce(chain: &Chain) {
    if let Some((route, state)) = chain.route.as_ref().zip(chain.state()) {
        route
            .others()
            .for_each(|host| route.link.announce(host, &state));
    }
}
