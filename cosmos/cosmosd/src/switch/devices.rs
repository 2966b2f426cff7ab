// SPDX-License-Identifier: Apache-2.0
//! The ports of Neutron's DHCP servers and routers, which are interfaces of this host.
//!
//! As with uplinks, valed's list of ports is their only record (docs/adr/0021-ports-follow-neutron.md).

use cosmos_proto::answer::Device;
use vale_proto::{HostDevice, Kind, PortId, PortInfo, is_device_port, verb};

use super::{Switch, relay};
use crate::base::error::{Error, Result};

/// Attaches an interface. It replaces a port of its name: the interface may be a new one.
pub fn set(switch: &dyn Switch, device: &HostDevice) -> Result<()> {
    let named = |e| Error::bad_request(format!("device-set: {e}"));
    let port = device.port_add().map_err(named)?;
    relay::<verb::RemovePort>(switch, &port.id())?;
    relay::<verb::AddPort>(switch, &port).map(drop)
}

/// Detaches an interface; one that is not attached is no error.
pub fn remove(switch: &dyn Switch, id: &PortId) -> Result<()> {
    if !is_device_port(&id.port) {
        let text = format!("device-remove: port: {} is not a device's", id.port);
        return Err(Error::bad_request(text));
    }
    relay::<verb::RemovePort>(switch, id).map(drop)
}

/// The ports that [`set`] made, and those that an operator named so.
pub fn list(switch: &dyn Switch) -> Result<Vec<Device>> {
    Ok(switch.ports()?.into_iter().filter_map(device_of).collect())
}

fn device_of(port: PortInfo) -> Option<Device> {
    let is_device = port.kind == Kind::Veth && is_device_port(&port.port);
    Some(Device {
        mac: port.mac.filter(|_| is_device)?,
        switch: port.switch,
        port: port.port,
        segment: port.segment,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::base::faults::FaultInjector;
    use crate::switch::sim::SimSwitch;

    #[test]
    fn a_device_comes_anew_and_goes_once() {
        let faults = Arc::new(FaultInjector::default());
        let switch = Arc::new(SimSwitch::new(faults.clone()));
        let device: HostDevice = serde_json::from_value(json!({
            "switch": "vale0", "port": "d01234567-89", "segment": 5,
            "mac": "fa:16:3e:00:00:01", "ifname": "tap01234567-89"}))
        .unwrap();
        for _ in 0..2 {
            set(&switch, &device).unwrap();
            let listed = list(&switch).unwrap();
            assert_eq!((listed.len(), listed[0].segment), (1, 5));
            assert_eq!(listed[0].mac, device.mac);
        }
        let mut id = PortId {
            switch: device.switch,
            port: device.port,
        };
        for _ in 0..2 {
            remove(&switch, &id).unwrap();
            assert!(list(&switch).unwrap().is_empty());
        }
        id.port = "g1-0".parse().unwrap();
        let refused = remove(&switch, &id).unwrap_err();
        assert_eq!(
            refused.message,
            "device-remove: port: g1-0 is not a device's"
        );
    }
}
