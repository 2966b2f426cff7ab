// SPDX-License-Identifier: Apache-2.0
//! An interface as people write it: `mac=…,bridge=vale0,port=a,segment=1,ip=10.0.0.5/32`.

use cosmos_proto::{Link, Nic, Uuid, Vif};
use vale_proto::{Allowed, Mac};

/// The interfaces of a guest, as `create` takes them.
#[derive(Debug, Default)]
pub struct Vifs {
    /// On the switch.
    pub ports: Vec<Vif>,
    /// A vif of stock netback, on a bridge of dom0.
    pub nics: Vec<Nic>,
}

/// All interfaces, numbered in their order. One with a bridge that is no switch (`vale0` and so
/// on) is of stock netback.
pub fn parse_all(texts: &[String], uuid: &Uuid) -> Result<Vifs, String> {
    let mut vifs = Vifs::default();
    for (devid, text) in texts.iter().enumerate() {
        let bridge = text
            .split(',')
            .find_map(|part| part.strip_prefix("bridge="));
        match bridge.filter(|name| !is_switch(name)) {
            Some(bridge) => vifs.nics.push(nic(text, bridge, devid, uuid)?),
            None => vifs.ports.push(parse(text, devid, uuid, "vif-vale")?),
        }
    }
    Ok(vifs)
}

fn is_switch(name: &str) -> bool {
    let number = name.strip_prefix("vale").unwrap_or("");
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn nic(text: &str, bridge: &str, devid: usize, uuid: &Uuid) -> Result<Nic, String> {
    for part in text.split(',') {
        let key = part.split_once('=').map_or(part, |(key, _)| key);
        if ["port", "vifname", "segment", "slots", "ip", "security"].contains(&key) {
            return Err(format!(
                "vif {devid}: {part:?}: a vif of bridge {bridge} has only mac, bridge and mtu"
            ));
        }
    }
    let rest: Vec<&str> = text
        .split(',')
        .filter(|p| !p.starts_with("bridge="))
        .collect();
    let all = parse(&rest.join(","), devid, uuid, "vif-bridge")?;
    Ok(Nic {
        devid: all.devid,
        mac: all.mac,
        bridge: bridge.to_owned(),
        mtu: all.mtu,
    })
}

/// Judges a key of xl-network-configuration(5) that has one value here.
///
/// `script` is the one that does for xl what the host does here by itself.
fn key_of_xl(key: &str, value: &str, devid: usize, script: &str) -> Result<(), String> {
    let only = |wanted: &str, why: &str| match value == wanted {
        true => Ok(()),
        false => Err(format!("expected {wanted}, {why}")),
    };
    match key {
        "script" => only(
            script,
            "the host attaches the vif itself and runs no script",
        ),
        "devid" => only(&devid.to_string(), "the place in the list"),
        "trusted" => only("1", "the guest keeps no second copy of its rings"),
        "type" if value == "vale" => Ok(()),
        "type" => only("vif", "a guest has no emulated devices"),
        "model" => Err("a guest has no emulated devices".into()),
        "backend" => Err("the host chooses the domain of the switch (driver_domain)".into()),
        "gatewaydev" => Err("the host adds no routes; use bridge".into()),
        "rate" => Err("set it on the port: vale-ctl limit".into()),
        _ => Err(format!("unknown key; use {KEYS}")),
    }
}

const KEYS: &str = "mac, bridge, port, segment, ip, mtu, slots or security";

/// The vif argument of `create` for the interface number `devid` of guest `uuid`. The command
/// chooses missing values: MAC address and port name from the UUID, segment 1 of vale0.
fn parse(text: &str, devid: usize, uuid: &Uuid, script: &str) -> Result<Vif, String> {
    let id = uuid.as_str();
    let mut vif = Vif {
        devid: devid as u32,
        mac: default_mac(&id[30..], devid),
        switch: "vale0".parse()?,
        port: format!("u{}-{devid}", &id[..8]).parse()?,
        segment: 1,
        allowed: Vec::new(),
        port_security: false,
        dhcp_server: false,
        filtered: false,
        mtu: 1500,
        slots: 256,
        port_id: None,
        owner: None,
        link: Link::Up,
    };
    let mut security = None;
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let wrong = |what: &str| format!("vif {devid}: {part:?}: {what}");
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| wrong("expected KEY=VALUE"))?;
        let number = |_| wrong("expected a number");
        match key {
            "mac" => vif.mac = value.parse().map_err(|e: String| wrong(&e))?,
            "port" | "vifname" => vif.port = value.parse().map_err(|e: String| wrong(&e))?,
            "bridge" => vif.switch = value.parse().map_err(|e: String| wrong(&e))?,
            "segment" => vif.segment = value.parse().map_err(number)?,
            "mtu" => vif.mtu = value.parse().map_err(number)?,
            "slots" => vif.slots = value.parse().map_err(number)?,
            "ip" => {
                for address in value.split_whitespace() {
                    let address: Allowed = cidr(address).parse().map_err(|e: String| wrong(&e))?;
                    vif.allowed.push(address);
                }
            }
            "security" => {
                security = Some(on_off(value).ok_or_else(|| wrong("expected on or off"))?)
            }
            _ => key_of_xl(key, value, devid, script).map_err(|e| wrong(&e))?,
        }
    }
    vif.port_security = security.unwrap_or(!vif.allowed.is_empty());
    Ok(vif)
}

/// In the range of Xen's guests (OUI 00:16:3e), as xl chooses.
fn default_mac(tail: &str, devid: usize) -> Mac {
    let number = u32::from_str_radix(tail, 16)
        .unwrap_or(0)
        .wrapping_add(devid as u32);
    let [_, a, b, c] = number.to_be_bytes();
    Mac([0x00, 0x16, 0x3e, a, b, c])
}

/// An address alone means just this address.
fn cidr(value: &str) -> String {
    match (value.contains('/'), value.contains(':')) {
        (true, _) => value.to_owned(),
        (false, true) => format!("{value}/128"),
        (false, false) => format!("{value}/32"),
    }
}

fn on_off(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn uuid() -> Uuid {
        let text = "12345678-0000-4000-8000-0000000a0bff";
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn what_is_missing_is_chosen() {
        let vif = parse("", 1, &uuid(), "vif-vale").unwrap();
        assert_eq!(vif.mac.to_string(), "00:16:3e:0a:0c:00");
        assert_eq!(
            (vif.port.as_str(), vif.switch.as_str()),
            ("u12345678-1", "vale0")
        );
        assert!(!vif.port_security);
    }

    #[test]
    fn everything_can_be_said() {
        let text = "mac=02:00:00:00:00:01,bridge=vale3,port=p,segment=7,ip=10.0.0.5,ip=fd00::/64,mtu=1400,slots=64";
        let vif = parse(text, 0, &uuid(), "vif-vale").unwrap();
        let wanted = json!({
            "devid": 0, "mac": "02:00:00:00:00:01", "switch": "vale3", "port": "p", "segment": 7,
            "allowed": [{"ip": "10.0.0.5/32"}, {"ip": "fd00::/64"}], "port_security": true,
            "mtu": 1400, "slots": 64, "link": "up",
        });
        assert_eq!(serde_json::to_value(vif).unwrap(), wanted);
        let of_xl = "vifname=p,script=vif-vale,type=vif,devid=0,trusted=1,ip=10.0.0.5 fd00::/64";
        let vif = parse(of_xl, 0, &uuid(), "vif-vale").unwrap();
        assert_eq!((vif.port.as_str(), vif.allowed.len()), ("p", 2));
        let unguarded = parse("ip=::1,security=off", 0, &uuid(), "vif-vale").unwrap();
        assert!(!unguarded.port_security);
    }

    #[test]
    fn a_bridge_that_is_no_switch_is_netbacks() {
        let texts = [
            "bridge=vale12,port=a",
            "mac=02:00:00:00:00:01,bridge=br0,mtu=1400",
            "",
        ];
        let vifs = parse_all(&texts.map(str::to_owned), &uuid()).unwrap();
        let devids = vifs.ports.iter().map(|port| port.devid);
        assert_eq!(devids.collect::<Vec<_>>(), [0, 2]);
        let wanted = json!({"devid": 1, "mac": "02:00:00:00:00:01", "bridge": "br0", "mtu": 1400});
        assert_eq!(serde_json::to_value(&vifs.nics[0]).unwrap(), wanted);
        let error = parse_all(&["bridge=br0,port=a".to_owned()], &uuid()).unwrap_err();
        assert!(error.contains("only mac, bridge and mtu"), "{error}");
        let scripts = ["bridge=br0,script=vif-bridge", "script=vif-vale"];
        assert!(parse_all(&scripts.map(str::to_owned), &uuid()).is_ok());
        let other = "script=vif-openvswitch,mac=00:00:00:00:02:00,bridge=ovs-lan";
        let error = parse_all(&[other.to_owned()], &uuid()).unwrap_err();
        assert!(
            error.contains("expected vif-bridge, the host attaches"),
            "{error}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("mac", "vif 0: \"mac\": expected KEY=VALUE"),
            ("segment=x", "expected a number"),
            ("vlan=3", "unknown key"),
            ("security=yes", "expected on or off"),
            (
                "script=vif-route",
                "expected vif-vale, the host attaches the vif itself",
            ),
            ("devid=1", "expected 0, the place in the list"),
            (
                "type=ioemu",
                "expected vif, a guest has no emulated devices",
            ),
            ("model=e1000", "no emulated devices"),
            ("backend=1", "driver_domain"),
            ("rate=10Mb/s", "vale-ctl limit"),
            ("gatewaydev=eth0", "use bridge"),
            ("trusted=0", "expected 1"),
            ("mac=1", "vif 0: \"mac=1\": mac: expected six octets"),
            ("ip=1.2.3", "expected e.g. 10.0.0.5/32"),
        ] {
            let error = parse(text, 0, &uuid(), "vif-vale").unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
