// SPDX-License-Identifier: Apache-2.0
//! The right of hops to the addresses that a chain declares as translated. A declaration counts within
//! what the guards of the hops' ports allow.
use std::net::IpAddr;

use vale_proto::{ChainSet, Hop, Mac, PortName};

use super::{Ports, SetError, find};
use crate::port::Port;

/// Refuses networks that no hop may use as a whole. A hop may use what the guards of all its egress
/// ports allow. Other hosts judge their own ports, and a port that does not exist sends nothing.
///
/// # Errors
/// The first such network, with a port that may not use it.
pub fn check(set: &ChainSet, ports: &Ports) -> Result<(), SetError> {
    let port = |name: &PortName| find(ports, name).and_then(|index| ports[index].as_deref());
    for network in &set.nat {
        let refusing = |hop: &Hop| {
            let mut egresses = hop.pairs.iter().filter_map(|pair| port(&pair.egress));
            let refusing = egresses.find(|port| !port.face.guard.covers(*network));
            refusing.map(|port| port.face.name.clone())
        };
        // Some only if each hop has such a port.
        let refusing: Option<Vec<_>> = set.hops.iter().map(refusing).collect();
        if let Some(port) = refusing.and_then(|ports| ports.into_iter().next()) {
            return Err(SetError::Claim(*network, port));
        }
    }
    Ok(())
}

/// The ports by which translated packets leave the hops of a chain.
#[derive(Default)]
pub struct Claimants {
    /// Those of this host.
    here: Vec<usize>,
    /// Other hosts have some, and judge them.
    elsewhere: bool,
}

impl Claimants {
    /// The ports of a chain at the host `local`; None for a chain without a path.
    pub fn new(
        set: &ChainSet,
        local: Option<IpAddr>,
        find: impl Fn(&PortName) -> Option<usize>,
    ) -> Self {
        let pairs = || set.hops.iter().flat_map(|hop| &hop.pairs);
        let is_elsewhere = |host: Option<IpAddr>| local.is_some() && host != local;
        let here = pairs().filter(|pair| !is_elsewhere(pair.host));
        Self {
            here: here.filter_map(|pair| find(&pair.egress)).collect(),
            elsewhere: pairs().any(|pair| is_elsewhere(pair.host)),
        }
    }

    fn of<'a>(&'a self, ports: &'a Ports, address: IpAddr) -> impl Iterator<Item = &'a Port> {
        let here = self.here.iter();
        let here = here.filter_map(|port| ports[*port].as_deref());
        here.filter(move |port| port.face.guard.has(address))
    }

    /// True if the guard of a hop's port allows the address now.
    pub fn may_use(&self, ports: &Ports, address: IpAddr) -> bool {
        self.elsewhere || self.of(ports, address).next().is_some()
    }

    /// True if such a port of this host has the MAC address.
    pub fn has(&self, ports: &Ports, address: IpAddr, mac: Mac) -> bool {
        let mut claimants = self.of(ports, address);
        claimants.any(|port| port.face.mac == Some(mac))
    }
}
