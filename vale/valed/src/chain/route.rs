// SPDX-License-Identifier: Apache-2.0
//! The other hosts of one version of a chain, and what they said about it.
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vale_proto::{ChainSet, HostState, Path, PortName};

use crate::frame::nsh::{Heard, Link, State};

/// A host that sends neither states nor packets for this long is gone.
pub const DEAD_INTERVAL: Duration = Duration::from_secs(1);

/// A host and the last state that it announced.
#[derive(Clone)]
struct Host {
    address: IpAddr,
    seen: Option<Instant>,
    in_force: bool,
    is_informed: bool,
    live: Vec<u16>,
}

/// The path of one version of a chain.
pub struct Route {
    pub link: Arc<Link>,
    /// A number of the definition, equal on all hosts.
    pub version: u64,
    /// The port that leads to the other hosts, if it is there.
    pub port: Option<usize>,
    /// All workers share this: a packet came by the version, or a worker has made it active.
    is_due: Arc<AtomicBool>,
    hosts: Vec<Host>,
}

impl Route {
    /// None for a chain without a path, or without the link of its path.
    pub fn new(set: &ChainSet, link: Option<Arc<Link>>, is_due: Arc<AtomicBool>) -> Option<Self> {
        let (path, link) = set.path.as_ref().zip(link)?;
        let host = |address| Host {
            address,
            seen: None,
            in_force: false,
            is_informed: false,
            live: Vec::new(),
        };
        Some(Self {
            link,
            version: version(set, path),
            port: None,
            is_due,
            hosts: others(path).map(host).collect(),
        })
    }

    pub fn local(&self) -> IpAddr {
        self.link.local
    }

    pub fn port_name(&self) -> PortName {
        PortName::of_path(self.link.number)
    }

    pub fn others(&self) -> impl Iterator<Item = IpAddr> {
        self.hosts.iter().map(|host| host.address)
    }

    /// Takes over what the hosts said, and the shared part, from the same version.
    pub fn keep(&mut self, old: &Self) {
        if self.version == old.version {
            self.hosts.clone_from(&old.hosts);
            self.is_due = Arc::clone(&old.is_due);
        }
    }

    /// Takes over which pairs live from a draining definition of the same version. Its hosts may not have
    /// the new one yet.
    pub fn keep_live(&mut self, draining: &Self) {
        self.hosts.clone_from(&draining.hosts);
        for host in &mut self.hosts {
            (host.in_force, host.is_informed) = (false, false);
        }
    }

    /// Takes what a host sent. True if a pair came or went.
    pub fn take(&mut self, from: IpAddr, heard: &Heard, now: Instant) -> bool {
        let (Heard::Frame(version) | Heard::State(State { version, .. })) = heard;
        let mut hosts = self.hosts.iter_mut();
        let Some(host) = hosts.find(|h| h.address == from && self.version == *version) else {
            return false;
        };
        let Heard::State(state) = heard else {
            // A host that sends packets by the version lives, however late its states are.
            host.seen = host.seen.map(|_| now);
            return false;
        };
        (host.seen, host.in_force) = (Some(now), state.in_force);
        host.is_informed = state.is_informed;
        let differs = host.live != state.live;
        host.live.clone_from(&state.live);
        differs
    }

    /// Forgets what hosts said that are silent now. True if any was there before.
    pub fn expire(&mut self, now: Instant) -> bool {
        let mut expired = false;
        for host in &mut self.hosts {
            let silent = host.seen.is_some_and(|seen| now - seen > DEAD_INTERVAL);
            if silent {
                (host.seen, host.in_force) = (None, false);
                host.is_informed = false;
                host.live.clear();
                expired = true;
            }
        }
        expired
    }

    /// True if all hosts have this version.
    pub fn is_known(&self) -> bool {
        self.hosts.iter().all(|host| host.seen.is_some())
    }

    /// True if all hosts have this version, and each knows the live pairs of all others.
    pub fn is_ready(&self) -> bool {
        self.is_known() && self.hosts.iter().all(|host| host.is_informed)
    }

    /// True if packets enter the chain by this version at another host.
    pub fn is_used(&self) -> bool {
        self.hosts.iter().any(|host| host.in_force)
    }

    /// True if a packet came by the version at any worker, or a worker has made it active. A worker
    /// asks after it has taken a frame, and before it judges the frame. Another worker may have given
    /// the sender a packet by the version.
    pub fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Acquire)
    }

    /// Lets all workers make the version active.
    pub fn set_due(&self) {
        self.is_due.store(true, Ordering::Release);
    }

    /// True if another host has a live pair.
    pub fn is_live(&self, host: IpAddr, hop: usize, pair: usize) -> bool {
        let mut hosts = self.hosts.iter();
        let found = hosts.find(|h| h.address == host);
        let word = found.and_then(|h| h.live.get(hop));
        word.is_some_and(|word| word >> pair & 1 == 1)
    }

    pub fn states(&self) -> Vec<HostState> {
        let state = |host: &Host| HostState {
            host: host.address,
            is_ready: host.seen.is_some(),
        };
        self.hosts.iter().map(state).collect()
    }
}

/// The hosts of a path but this one.
fn others(path: &Path) -> impl Iterator<Item = IpAddr> {
    let hosts = path.hosts.iter().copied();
    hosts.filter(|host| *host != path.local)
}

/// A number of all that hosts have to agree about: the path, the hops and the addresses. FNV-1a of
/// 64 bits (RFC 9923), since valed of another build must find the same.
fn version(set: &ChainSet, path: &Path) -> u64 {
    let mut text = format!(
        "{} {:?} {} {:?}",
        path.number, path.hosts, set.symmetric, set.nat
    );
    for hop in &set.hops {
        text += &format!(" | {} {:?}", hop.transparent, hop.on_failure);
        for pair in &hop.pairs {
            let host = pair.host.unwrap_or(path.local);
            let (ingress, egress, weight) = (&pair.ingress, &pair.egress, pair.weight);
            text += &format!(" {ingress} {egress} {weight} {host}");
        }
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
