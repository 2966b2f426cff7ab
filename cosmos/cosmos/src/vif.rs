// SPDX-License-Identifier: Apache-2.0
//! An interface as people write it: `mac=…,bridge=vale0,port=a,segment=1,ip=10.0.0.5/32`.

use serde_json::{Value, json};

/// The interfaces of a guest, as `create` takes them.
#[derive(Debug, Default)]
pub struct Vifs {
    /// On the switch.
    pub ports: Vec<Value>,
    /// A vif of stock netback, on a bridge of dom0.
    pub nics: Vec<Value>,
}

/// All interfaces, numbered in their order. One with a bridge that is no switch (`vale0` and so
/// on) is of stock netback.
pub fn parse_all(texts: &[String], uuid: &str) -> Result<Vifs, String> {
    let mut vifs = Vifs::default();
    for (devid, text) in texts.iter().enumerate() {
        let bridge = text
            .split(',')
            .find_map(|part| part.strip_prefix("bridge="));
        match bridge.filter(|name| !is_switch(name)) {
            Some(bridge) => vifs.nics.push(nic(text, bridge, devid, uuid)?),
            None => vifs.ports.push(parse(text, devid, uuid)?),
        }
    }
    Ok(vifs)
}

fn is_switch(name: &str) -> bool {
    let number = name.strip_prefix("vale").unwrap_or("");
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn nic(text: &str, bridge: &str, devid: usize, uuid: &str) -> Result<Value, String> {
    for part in text.split(',') {
        let key = part.split_once('=').map_or(part, |(key, _)| key);
        if !["", "mac", "bridge", "mtu"].contains(&key) {
            return Err(format!(
                "vif {devid}: {part:?}: a vif of bridge {bridge} has only mac, bridge and mtu"
            ));
        }
    }
    let rest: Vec<&str> = text
        .split(',')
        .filter(|p| !p.starts_with("bridge="))
        .collect();
    let all = parse(&rest.join(","), devid, uuid)?;
    Ok(json!({"devid": devid, "mac": all["mac"], "bridge": bridge, "mtu": all["mtu"]}))
}

/// The vif argument of `create` for the interface number `devid` of guest `uuid`. The command
/// chooses missing values: MAC address and port name from the UUID, segment 1 of vale0.
fn parse(text: &str, devid: usize, uuid: &str) -> Result<Value, String> {
    let id: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let tail = id
        .get(26..32)
        .ok_or_else(|| format!("{uuid:?} is not a uuid"))?;
    let mut vif = json!({
        "devid": devid, "mac": default_mac(tail, devid), "switch": "vale0",
        "port": format!("u{}-{devid}", &id[..8]), "segment": 1, "allowed": [],
        "mtu": 1500, "slots": 256,
    });
    let (mut allowed, mut security) = (Vec::new(), None);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let wrong = |what: &str| format!("vif {devid}: {part:?}: {what}");
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| wrong("expected KEY=VALUE"))?;
        let number = || value.parse::<u32>().map_err(|_| wrong("expected a number"));
        match key {
            "mac" | "port" => vif[key] = json!(value),
            "bridge" => vif["switch"] = json!(value),
            "segment" | "mtu" | "slots" => vif[key] = json!(number()?),
            "ip" => allowed.push(json!({"ip": cidr(value)})),
            "security" => {
                security = Some(on_off(value).ok_or_else(|| wrong("expected on or off"))?)
            }
            _ => {
                return Err(wrong(
                    "unknown key; use mac, bridge, port, segment, ip, mtu, slots or security",
                ));
            }
        }
    }
    vif["port_security"] = json!(security.unwrap_or(!allowed.is_empty()));
    vif["allowed"] = json!(allowed);
    Ok(vif)
}

/// In the range of Xen's guests (OUI 00:16:3e), as xl chooses.
fn default_mac(tail: &str, devid: usize) -> String {
    let number = u32::from_str_radix(tail, 16)
        .unwrap_or(0)
        .wrapping_add(devid as u32);
    let [_, a, b, c] = number.to_be_bytes();
    format!("00:16:3e:{a:02x}:{b:02x}:{c:02x}")
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
    use super::*;

    const UUID: &str = "12345678-0000-4000-8000-0000000a0bff";

    #[test]
    fn what_is_missing_is_chosen() {
        let vif = parse("", 1, UUID).unwrap();
        assert_eq!(vif["mac"], "00:16:3e:0a:0c:00");
        assert_eq!(
            (&vif["port"], &vif["switch"]),
            (&json!("u12345678-1"), &json!("vale0"))
        );
        assert_eq!(vif["port_security"], false);
    }

    #[test]
    fn everything_can_be_said() {
        let text = "mac=02:00:00:00:00:01,bridge=vale3,port=p,segment=7,ip=10.0.0.5,ip=fd00::/64,mtu=1400,slots=64";
        let vif = parse(text, 0, UUID).unwrap();
        let wanted = json!({
            "devid": 0, "mac": "02:00:00:00:00:01", "switch": "vale3", "port": "p", "segment": 7,
            "allowed": [{"ip": "10.0.0.5/32"}, {"ip": "fd00::/64"}], "port_security": true,
            "mtu": 1400, "slots": 64,
        });
        assert_eq!(vif, wanted);
        assert_eq!(
            parse("ip=::1,security=off", 0, UUID).unwrap()["port_security"],
            false
        );
    }

    #[test]
    fn a_bridge_that_is_no_switch_is_netbacks() {
        let texts = [
            "bridge=vale12,port=a",
            "mac=02:00:00:00:00:01,bridge=br0,mtu=1400",
            "",
        ];
        let vifs = parse_all(&texts.map(str::to_owned), UUID).unwrap();
        let devids = vifs.ports.iter().map(|port| port["devid"].clone());
        assert_eq!(devids.collect::<Vec<_>>(), [json!(0), json!(2)]);
        let wanted = json!({"devid": 1, "mac": "02:00:00:00:00:01", "bridge": "br0", "mtu": 1400});
        assert_eq!(vifs.nics, [wanted]);
        let error = parse_all(&["bridge=br0,port=a".to_owned()], UUID).unwrap_err();
        assert!(error.contains("only mac, bridge and mtu"), "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("mac", "vif 0: \"mac\": expected KEY=VALUE"),
            ("segment=x", "expected a number"),
            ("vlan=3", "unknown key"),
            ("security=yes", "expected on or off"),
        ] {
            let error = parse(text, 0, UUID).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(parse("", 0, "x").is_err());
    }
}
