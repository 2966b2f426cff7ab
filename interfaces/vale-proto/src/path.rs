// SPDX-License-Identifier: Apache-2.0
//! The path of a chain between hosts.
use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

/// Largest number of a path. Each direction has a service path identifier of 24 bits (RFC 8300).
pub const MAX_PATH: u32 = (1 << 23) - 1;
/// Most hosts of a path.
pub const MAX_HOSTS: usize = 16;

/// The hosts that a chain's packets pass. All hosts have the same number and hosts, in one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Path {
    /// The number on the wire, 1 to [`MAX_PATH`].
    pub number: u32,
    /// This host's address, one of `hosts`.
    pub local: IpAddr,
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<IpAddr>,
}

fn hosts<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<IpAddr>, D::Error> {
    control_socket::at_most(input, MAX_HOSTS)
}

impl Path {
    /// Checks ranges and addresses; the error names the field and the value.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(1..=MAX_PATH).contains(&self.number) {
            let number = self.number;
            return Err(format!("path.number: {number} is outside 1..={MAX_PATH}"));
        }
        let count = self.hosts.len();
        if !(2..=MAX_HOSTS).contains(&count) {
            return Err(format!("path.hosts: {count} are outside 2..={MAX_HOSTS}"));
        }
        let mut seen = BTreeSet::new();
        for host in &self.hosts {
            let is_host = !host.is_unspecified() && !host.is_multicast();
            if !is_host || host.is_ipv4() != self.local.is_ipv4() || !seen.insert(host) {
                let local = self.local;
                return Err(format!(
                    "path.hosts: {host} is not a further host of the family of {local}"
                ));
            }
        }
        match seen.contains(&self.local) {
            true => Ok(()),
            false => Err(format!("path.local: {} is not in path.hosts", self.local)),
        }
    }
}

/// Another host of a chain's path, as `chain-list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostState {
    pub host: IpAddr,
    /// The host has the chain as this one has it, and said so within the last second.
    pub is_ready: bool,
}
