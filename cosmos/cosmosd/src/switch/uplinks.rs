// SPDX-License-Identifier: Apache-2.0
//! The ports that lead segments to other hosts (docs/adr/0054-networks.md).
//!
//! valed's list of ports is their only record. After a restart of valed the agent sets them again.

use cosmos_proto::OfSegment;
use vale_proto::{PortId, PortInfo, PortName, PortPeers, SegmentUplink, verb};

use super::{Switch, relay};
use crate::base::error::{Error, Result};

/// Gives a segment an uplink, or replaces it. Other peers of the same network cost no frame.
pub fn set(switch: &dyn Switch, wanted: &SegmentUplink) -> Result<()> {
    let named = |e| Error::bad_request(format!("uplink-set: {e}"));
    let port = wanted.port_add().map_err(named)?;
    let known = list(switch)?;
    let same = |u: &&SegmentUplink| u.switch == wanted.switch && u.segment == wanted.segment;
    let found = known.iter().find(same);
    if found == Some(wanted) {
        return Ok(());
    }
    match (found, &wanted.uplink.vxlan) {
        (Some(found), Some(vxlan)) if found.uplink.is_same_network(&wanted.uplink) => {
            let peers = PortPeers {
                switch: port.switch,
                port: port.port,
                peers: vxlan.peers.clone(),
            };
            return relay::<verb::SetPeers>(switch, &peers).map(drop);
        }
        (Some(_), _) => relay::<verb::RemovePort>(switch, &port.id()).map(drop)?,
        (None, _) => (),
    }
    relay::<verb::AddPort>(switch, &port).map(drop)
}

/// Takes the uplink of a segment; one that is not there is no error.
pub fn remove(switch: &dyn Switch, of: &OfSegment) -> Result<()> {
    let port = PortId {
        switch: of.switch.clone(),
        port: PortName::of_uplink(of.segment),
    };
    relay::<verb::RemovePort>(switch, &port).map(drop)
}

/// The uplinks that [`set`] made, and those that an operator named so.
pub fn list(switch: &dyn Switch) -> Result<Vec<SegmentUplink>> {
    Ok(switch.ports()?.into_iter().filter_map(uplink_of).collect())
}

fn uplink_of(port: PortInfo) -> Option<SegmentUplink> {
    let is_ours = port.port == PortName::of_uplink(port.segment);
    Some(SegmentUplink {
        switch: port.switch,
        segment: port.segment,
        uplink: port.uplink.filter(|_| is_ours)?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::base::faults::FaultInjector;
    use crate::switch::sim::SimSwitch;

    fn uplink(segment: u32, uplink: Value) -> SegmentUplink {
        let json = json!({"switch": "vale0", "segment": segment, "uplink": uplink});
        serde_json::from_value(json).unwrap()
    }

    fn vxlan(peers: &[&str]) -> SegmentUplink {
        let vxlan = json!({"vni": 1, "local": "192.0.2.1", "peers": peers});
        uplink(4097, json!({"vxlan": vxlan}))
    }

    #[test]
    fn peers_change_in_place_and_another_network_replaces_the_port() {
        let faults = Arc::new(FaultInjector::default());
        let switch = Arc::new(SimSwitch::new(faults.clone()));
        let calls = |of: &SegmentUplink| {
            set(&switch, of).unwrap();
            faults.take()
        };
        let add = "switch.port-add vale0:u4097";
        assert_eq!(calls(&vxlan(&[])), ["switch.ports", add]);
        assert_eq!(calls(&vxlan(&[])), ["switch.ports"]);
        let peers = "switch.port-peers vale0:u4097";
        assert_eq!(calls(&vxlan(&["192.0.2.2"])), ["switch.ports", peers]);
        let other = uplink(4097, json!({"ifname": "eth1", "vlan": 7}));
        let removed = "switch.port-remove vale0:u4097";
        assert_eq!(calls(&other), ["switch.ports", removed, add]);
        assert_eq!(list(&switch).unwrap(), [other]);
        let switch_name = "vale0".parse().unwrap();
        let of = OfSegment {
            switch: switch_name,
            segment: 4097,
        };
        remove(&switch, &of).unwrap();
        remove(&switch, &of).unwrap();
        assert!(list(&switch).unwrap().is_empty());
    }
}
