// SPDX-License-Identifier: Apache-2.0
//! The name of a port in `nm_open`: `vale0:p1,segment=101,mac=02:00:00:00:00:01,slots=512`.
use vale_proto::{Kind, PortAdd, PortId, SHORT_MTU};

/// Slots of each ring unless a number is requested.
const SLOTS: u32 = 1024;
/// Longest name, in bytes.
const LONGEST: usize = 128;

/// The port of a name; `wish` is the number of slots that the program asked for, or 0.
pub fn parse(text: &str, wish: u32) -> Result<PortAdd, String> {
    if text.len() > LONGEST {
        let len = text.len();
        return Err(format!(
            "name: {len} bytes are more than {LONGEST}: {text:.40?}"
        ));
    }
    let mut parts = text.split(',');
    let address = parts.next().unwrap_or_default().parse()?;
    let mut port = port(address, slots(wish));
    let mut seen = Vec::new();
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("name: expected OPTION=VALUE, got {part:.40?}"))?;
        if seen.contains(&key) {
            return Err(format!("name: {key:.40?} comes twice"));
        }
        seen.push(key);
        set(&mut port, key, value)?;
    }
    port.check()?;
    Ok(port)
}

fn set(port: &mut PortAdd, key: &str, value: &str) -> Result<(), String> {
    let number = |_| format!("{key}: expected a number, got {value:.40?}");
    match key {
        "segment" => port.segment = value.parse().map_err(number)?,
        "slots" => port.slots = value.parse().map_err(number)?,
        "mac" => port.mac = Some(value.parse()?),
        _ => {
            return Err(format!(
                "name: expected segment, mac or slots, got {key:.40?}"
            ));
        }
    }
    Ok(())
}

/// The next size of a ring that the switch has.
fn slots(wish: u32) -> u32 {
    let (least, most) = (*ring::SLOTS_RANGE.start(), *ring::SLOTS_RANGE.end());
    match wish {
        0 => SLOTS,
        n => n.clamp(least, most).next_power_of_two(),
    }
}

fn port(address: PortId, slots: u32) -> PortAdd {
    PortAdd {
        slots,
        mtu: SHORT_MTU,
        ..PortAdd::open(address, Kind::Process, 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_options() {
        let port = parse("vale3:p-1,mac=02:00:00:00:00:07,slots=64,segment=9", 512).unwrap();
        assert_eq!((port.segment, port.slots), (9, 64));
        assert_eq!(port.mac.unwrap().0, [2, 0, 0, 0, 0, 7]);
        assert_eq!((port.switch.as_str(), port.port.as_str()), ("vale3", "p-1"));
        for (wish, slots) in [
            (0, 1024),
            (1, 64),
            (64, 64),
            (65, 128),
            (1000, 1024),
            (9999, 2048),
        ] {
            assert_eq!(parse("vale0:p", wish).unwrap().slots, slots, "{wish}");
        }
    }

    #[test]
    fn each_wrong_name_is_explained() {
        for (name, word) in [
            ("eth0", "vale<N>:<name>"),
            ("netmap:eth0", "switch"),
            ("vale0:p^", "port"),
            ("vale0:p{1", "port"),
            ("vale0:p,", "OPTION=VALUE"),
            ("vale0:p,vlan=1", "segment, mac or slots"),
            ("vale0:p,segment=x", "segment: expected a number"),
            ("vale0:p,segment=0", "segment: 0"),
            ("vale0:p,slots=100", "slots: 100"),
            ("vale0:p,slots=64,slots=64", "twice"),
            ("vale0:p,mac=ff:ff:ff:ff:ff:ff", "mac"),
            (&format!("vale0:{}", "p".repeat(200)), "more than 128"),
        ] {
            let error = parse(name, 0).unwrap_err();
            assert!(error.contains(word), "{name}: {error}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_port_is_valid(name in "(vale[0-9]:)?[a-z0-9,=:^-]{0,60}", wish: u32) {
            if let Ok(port) = parse(&name, wish) {
                prop_assert!(port.check().is_ok());
            }
        }
    }
}
