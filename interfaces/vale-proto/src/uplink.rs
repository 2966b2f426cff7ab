// SPDX-License-Identifier: Apache-2.0
//! Ports that lead to other hosts.
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::vxlan::{Vxlan, peers};
use crate::{Kind, MTU_RANGE, PortAdd, PortId, PortName, SwitchName};

/// The far end of an uplink: an interface, one VLAN of an interface, or a VXLAN network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uplink {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ifname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<Vxlan>,
}

impl Uplink {
    /// The far end of a port, if it leads to other hosts: a port with an address is a station's.
    pub fn of(add: &PortAdd) -> Option<Self> {
        let leads = matches!(add.kind, Kind::Veth | Kind::Vxlan);
        (leads && add.mac.is_none()).then(|| Self {
            ifname: add.ifname.clone(),
            vlan: add.vlan,
            vxlan: add.vxlan.clone(),
        })
    }

    /// True if the two differ in the peers of a VXLAN network at most.
    pub fn is_same_network(&self, other: &Self) -> bool {
        let networks = [self, other].map(|uplink| {
            let vxlan = uplink.vxlan.as_ref();
            (&uplink.ifname, uplink.vlan, vxlan.map(|v| (v.vni, v.local)))
        });
        networks[0] == networks[1]
    }
}

/// The uplink of a segment; arguments of cosmosd's `uplink-set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentUplink {
    pub switch: SwitchName,
    pub segment: u32,
    pub uplink: Uplink,
}

impl SegmentUplink {
    /// The port that makes the uplink, with the largest MTU: the hosts' network has its own.
    ///
    /// # Errors
    /// A value is outside of its range; the text names the field.
    pub fn port_add(&self) -> Result<PortAdd, String> {
        let Uplink {
            ifname,
            vlan,
            vxlan,
        } = self.uplink.clone();
        let kind = match vxlan {
            Some(_) => Kind::Vxlan,
            None => Kind::Veth,
        };
        let id = PortId {
            switch: self.switch.clone(),
            port: PortName::of_uplink(self.segment),
        };
        let add = PortAdd {
            ifname,
            vlan,
            vxlan,
            mtu: *MTU_RANGE.end(),
            ..PortAdd::open(id, kind, self.segment)
        };
        add.check()?;
        Ok(add)
    }
}

/// Arguments of `port-peers`, which replaces the peers of a port of kind `vxlan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortPeers {
    pub switch: SwitchName,
    pub port: PortName,
    #[serde(deserialize_with = "peers")]
    pub peers: Vec<IpAddr>,
}

impl PortPeers {
    pub fn id(&self) -> PortId {
        PortId {
            switch: self.switch.clone(),
            port: self.port.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn port_of(uplink: Value) -> Result<PortAdd, String> {
        let args = json!({"switch": "vale0", "segment": 4197, "uplink": uplink});
        let set: SegmentUplink = control_socket::typed(&args.to_string())?;
        set.port_add()
    }

    fn vxlan(peers: &[&str]) -> Value {
        json!({"vxlan": {"vni": 101, "local": "192.0.2.1", "peers": peers}})
    }

    #[test]
    fn an_uplink_is_a_port_named_after_its_segment() {
        let add = port_of(vxlan(&["192.0.2.2"])).unwrap();
        assert_eq!((add.port.as_str(), add.kind), ("u4197", Kind::Vxlan));
        let add = port_of(json!({"ifname": "eth1", "vlan": 101})).unwrap();
        assert_eq!((add.kind, add.vlan), (Kind::Veth, Some(101)));
        for (wrong, field) in [
            (json!({}), "ifname"),
            (json!({"ifname": "eth1", "vlan": 4095}), "vlan: 4095"),
            (json!({"vlan": 5}), "ifname"),
            (
                json!({"ifname": "e", "vxlan": vxlan(&[])["vxlan"]}),
                "ifname",
            ),
            (vxlan(&["192.0.2.1"]), "192.0.2.1"),
            (json!({"tap": 1}), "tap"),
        ] {
            let error = port_of(wrong.clone()).unwrap_err();
            assert!(error.contains(field), "{wrong}: {error}");
        }
    }

    #[test]
    fn other_peers_make_no_other_network() {
        let of = |json| Uplink::of(&port_of(json).unwrap()).unwrap();
        let one = of(vxlan(&[]));
        assert!(one.is_same_network(&of(vxlan(&["192.0.2.2"]))));
        assert!(!one.is_same_network(&of(json!({"ifname": "eth1"}))));
    }
}
