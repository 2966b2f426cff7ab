// SPDX-License-Identifier: Apache-2.0
//! The far end of a port of kind `vxlan`.
use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

/// Largest VXLAN network identifier (RFC 7348).
pub const MAX_VNI: u32 = (1 << 24) - 1;
/// Most peers of a port.
pub const MAX_PEERS: usize = 64;

/// A VXLAN network and the hosts that belong to it. A network has one port at an address `local`.
/// Datagrams use UDP port 4789, to a known station's peer or else to each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vxlan {
    /// The network's number on the wire, 1 to 16,777,215.
    pub vni: u32,
    /// This host's address.
    pub local: IpAddr,
    /// The other hosts, at most 64, of `local`'s family. valed sends to them and takes frames from them
    /// alone.
    #[serde(deserialize_with = "peers")]
    pub peers: Vec<IpAddr>,
}

/// Reads a list of peers, of [`MAX_PEERS`] at most.
pub fn peers<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<IpAddr>, D::Error> {
    control_socket::at_most(input, MAX_PEERS)
}

impl Vxlan {
    /// Checks ranges and addresses; the error names the field and the value.
    ///
    /// # Errors
    /// The number is outside of its range, or an address is unusable or there twice.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MAX_VNI).contains(&self.vni) {
            return Err(format!("vxlan.vni: {} is outside 1..={MAX_VNI}", self.vni));
        }
        if self.local.is_unspecified() || self.local.is_multicast() {
            return Err(format!(
                "vxlan.local: {} is not a host's address",
                self.local
            ));
        }
        if self.peers.len() > MAX_PEERS {
            return Err(format!(
                "vxlan.peers: {} are more than {MAX_PEERS}",
                self.peers.len()
            ));
        }
        let mut seen = BTreeSet::from([self.local]);
        for peer in &self.peers {
            let is_host = !peer.is_unspecified() && !peer.is_multicast();
            if !is_host || peer.is_ipv4() != self.local.is_ipv4() || !seen.insert(*peer) {
                return Err(format!(
                    "vxlan.peers: {peer} is not a further host of the family of {}",
                    self.local
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn peers_are_other_hosts_of_one_family() {
        let check = |change: Value| {
            let mut args = json!({"vni": 101, "local": "192.0.2.1", "peers": ["192.0.2.2"]});
            for (key, value) in change.as_object().unwrap() {
                args[key] = value.clone();
            }
            let vxlan: Result<Vxlan, _> = control_socket::typed(&args.to_string());
            vxlan.map_err(|e| e.to_string()).and_then(|v| v.check())
        };
        assert_eq!(check(json!({})), Ok(()));
        assert_eq!(check(json!({"vni": MAX_VNI, "peers": []})), Ok(()));
        for (wrong, field) in [
            (json!({"vni": 0}), "vni: 0"),
            (json!({"vni": 1 << 24}), "vni"),
            (json!({"local": "0.0.0.0"}), "local"),
            (json!({"local": "224.0.0.1"}), "local"),
            (json!({"peers": ["192.0.2.1"]}), "192.0.2.1"),
            (json!({"peers": ["192.0.2.2", "192.0.2.2"]}), "192.0.2.2"),
            (json!({"peers": ["2001:db8::1"]}), "2001:db8::1"),
            (json!({"peers": ["239.0.0.1"]}), "239.0.0.1"),
            (json!({"peers": vec!["192.0.2.2"; 65]}), "peers"),
        ] {
            let error = check(wrong.clone()).unwrap_err();
            assert!(error.contains(field), "{wrong}: {error}");
        }
    }
}
