// SPDX-License-Identifier: Apache-2.0
//! Ports of Neutron's DHCP servers and routers.
use serde::{Deserialize, Serialize};

use crate::{Kind, MTU_RANGE, Mac, PortAdd, PortName, SwitchName};

/// Characters of a Neutron port's id in the name of its switch port.
const ID_CHARACTERS: usize = 11;

/// A station that is an interface of the host; arguments of cosmosd's `device-set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostDevice {
    pub switch: SwitchName,
    /// The letter d, then the first characters of the id of Neutron's port.
    pub port: PortName,
    pub segment: u32,
    pub mac: Mac,
    pub ifname: String,
}

impl HostDevice {
    /// The port of the device. It is Neutron's own, so the switch checks no addresses.
    ///
    /// # Errors
    /// A value is outside of its range; the text names the field.
    pub fn port_add(&self) -> Result<PortAdd, String> {
        if !is_device_port(&self.port) {
            return Err(format!(
                "port: {} is not d with {ID_CHARACTERS} characters of an id",
                self.port
            ));
        }
        let add = PortAdd {
            switch: self.switch.clone(),
            port: self.port.clone(),
            kind: Kind::Veth,
            ifname: Some(self.ifname.clone()),
            vlan: None,
            vxlan: None,
            pipe: None,
            pcap: None,
            guest: None,
            segment: self.segment,
            mac: Some(self.mac),
            allowed: Vec::new(),
            port_security: false,
            dhcp_server: false,
            vlan_tags: false,
            filtered: false,
            backpressure: false,
            xdp: false,
            mtu: *MTU_RANGE.end(),
            slots: 256,
            link_up: true,
            in_place_domid: None,
            owner: None,
        };
        add.check()?;
        Ok(add)
    }
}

/// True for the name of a device's port.
pub fn is_device_port(name: &PortName) -> bool {
    let id = name.as_str().strip_prefix('d');
    let of_id = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    id.is_some_and(|id| id.len() == ID_CHARACTERS && id.bytes().all(of_id))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_device_is_an_unchecked_port_with_an_address() {
        let port_of = |change: Value| {
            let mut args = json!({"switch": "vale0", "port": "d01234567-89", "segment": 5,
                "mac": "fa:16:3e:00:00:01", "ifname": "tap01234567-89"});
            for (key, value) in change.as_object().unwrap() {
                args[key] = value.clone();
            }
            let device: HostDevice = control_socket::typed(&args.to_string())?;
            device.port_add()
        };
        let add = port_of(json!({})).unwrap();
        assert!(!add.port_security && add.mac.is_some() && add.kind == Kind::Veth);
        for (wrong, field) in [
            (json!({"port": "p01234567-89"}), "port"),
            (json!({"port": "d0123"}), "port"),
            (json!({"segment": 0}), "segment"),
            (json!({"ifname": "a/b"}), "ifname"),
            (json!({"mac": "01:00:5e:00:00:01"}), "mac"),
        ] {
            let error = port_of(wrong.clone()).unwrap_err();
            assert!(error.contains(field), "{wrong}: {error}");
        }
    }
}
