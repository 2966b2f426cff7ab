// SPDX-License-Identifier: Apache-2.0
//! The checks of what a guest is to be, and of other arguments.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use vale_proto::Kind;

use crate::error::{Error, Result};

pub use cosmos_proto::{
    Cpu, Link, MAX_CONFIG, MAX_NAME, MAX_VIFS, MAX_WRITES, Nic, Sha256Text, Spec, Uuid, Vif, Write,
};

/// Their bytes together: a request to a guest has at most 1 MiB.
const MAX_WRITE_BYTES: usize = 1000 << 10;
/// Guest memory in MiB: the engine needs some, and no guest of this kind needs more.
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 4..=65536;
/// Deadlines a client may ask for, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=600_000;

/// Bytes of the kernel's random numbers.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Error::internal("getrandom", e))?;
    Ok(bytes)
}

/// Checks every argument before anything is built.
pub fn check_spec(spec: &Spec) -> Result<()> {
    check_name("name", &spec.name)?;
    if !MEMORY_MIB.contains(&spec.memory_mib) {
        return Err(out_of_range("memory_mib", spec.memory_mib, &MEMORY_MIB));
    }
    check_devices(&spec.vifs, &spec.nics)?;
    check_config(&spec.config, &spec.config_name)?;
    if spec.config.is_empty() {
        return Err(Error::bad_request(
            "config: a new guest needs a configuration",
        ));
    }
    check_writes(&spec.writes)
}

fn check_devices(vifs: &[Vif], nics: &[Nic]) -> Result<()> {
    limit("vifs and nics", vifs.len() + nics.len(), MAX_VIFS)?;
    let (mut devids, mut ports) = (HashSet::new(), HashSet::new());
    let all = vifs.iter().map(|vif| vif.devid);
    for devid in all.chain(nics.iter().map(|nic| nic.devid)) {
        if devid as usize >= MAX_VIFS || !devids.insert(devid) {
            let last = MAX_VIFS - 1;
            let message = format!("vifs: devid {devid}: expected each of 0 to {last} at most once");
            return Err(Error::bad_request(message));
        }
    }
    for vif in vifs {
        let place = format!("vifs: devid {}", vif.devid);
        vif.port_add(Kind::Process, 0)
            .check()
            .map_err(|e| Error::bad_request(format!("{place}: {e}")))?;
        if !ports.insert((&vif.switch, &vif.port)) {
            let message = format!("{place}: port {} is used twice", vif.place());
            return Err(Error::bad_request(message));
        }
    }
    nics.iter().try_for_each(check_nic)
}

/// The bridge is named as Linux names interfaces; the smallest MTU is IPv4's.
fn check_nic(nic: &Nic) -> Result<()> {
    let place = format!("nics: devid {}", nic.devid);
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let (name, mtu) = (nic.bridge.as_bytes(), nic.mtu);
    if !(1..=15).contains(&name.len()) || !name.iter().all(|byte| good(*byte)) {
        let message = format!(
            "{place}: bridge: expected 1 to 15 of A-Z, a-z, 0-9, '.', '_', '-', got {:.40?}",
            nic.bridge
        );
        return Err(Error::bad_request(message));
    }
    if mtu < 68 {
        return Err(out_of_range("nics: mtu", mtu, &(68..=u16::MAX)));
    }
    Ok(())
}

/// Checks a configuration and its name; an empty one removes a router.
pub fn check_config(config: &str, config_name: &str) -> Result<()> {
    limit("config", config.len(), MAX_CONFIG)?;
    if config.contains('\0') {
        return Err(Error::bad_request("config: it has a NUL character"));
    }
    check_name("config_name", config_name)
}

/// Checks a batch of handler writes.
pub fn check_writes(writes: &[Write]) -> Result<()> {
    limit("writes", writes.len(), MAX_WRITES)?;
    let bytes = writes
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    limit("writes: bytes", bytes, MAX_WRITE_BYTES)?;
    writes.iter().try_for_each(|(name, _)| check_handler(name))
}

/// Checks a handler's name: `element.handler`, or one of the router's own.
pub fn check_handler(name: &str) -> Result<()> {
    limit("handler name", name.len(), MAX_NAME)?;
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "handler name: expected ELEMENT.HANDLER, got {name:?}"
    )))
}

/// Checks what a handler shall read.
pub fn check_param(param: &str) -> Result<()> {
    limit("handler parameter", param.len(), 255)
}

/// Checks a deadline and converts it.
pub fn check_timeout(timeout_ms: u64) -> Result<Duration> {
    if TIMEOUT_MS.contains(&timeout_ms) {
        return Ok(Duration::from_millis(timeout_ms));
    }
    Err(out_of_range("timeout_ms", timeout_ms, &TIMEOUT_MS))
}

fn check_name(key: &str, name: &str) -> Result<()> {
    limit(key, name.len(), MAX_NAME)?;
    if name.is_empty() || name.chars().any(char::is_control) {
        let message =
            format!("{key}: expected 1 to 255 bytes without control characters, got {name:?}");
        return Err(Error::bad_request(message));
    }
    Ok(())
}

fn limit(key: &str, count: usize, limit: usize) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "{key}: {count} is above the limit of {limit}"
    )))
}

fn out_of_range<T: fmt::Display>(key: &str, got: T, range: &std::ops::RangeInclusive<T>) -> Error {
    let (low, high) = (range.start(), range.end());
    Error::bad_request(format!("{key}: expected {low} to {high}, got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{nic, spec};

    #[test]
    fn a_good_one_passes() {
        check_spec(&spec(1)).unwrap();
    }

    #[test]
    fn bad_arguments_are_named() {
        type Change = fn(&mut Spec);
        let cases: [(&str, Change); 17] = [
            ("name: expected", |s| s.name.clear()),
            ("name: expected", |s| s.name = "a\u{1b}[2J".into()),
            ("name: 300 is above", |s| s.name = "a".repeat(300)),
            ("memory_mib: expected 4 to 65536, got 0", |s| {
                s.memory_mib = 0
            }),
            ("config: a new guest", |s| s.config.clear()),
            ("config: it has a NUL", |s| s.config.push('\0')),
            ("config: 1048577 is above", |s| {
                s.config = "x".repeat(MAX_CONFIG + 1)
            }),
            ("config_name: expected", |s| s.config_name = "a\nb".into()),
            ("vifs: devid 1: expected each", |s| s.vifs[0].devid = 1),
            ("vifs: devid 1: port vale0:g1-0 is used twice", |s| {
                s.vifs[1].port = s.vifs[0].port.clone()
            }),
            ("vifs: devid 0: segment: 0 is outside", |s| {
                s.vifs[0].segment = 0
            }),
            ("vifs: devid 1: expected each", |s| s.nics = vec![nic(1)]),
            ("nics: devid 2: bridge: expected 1 to 15", |s| {
                s.nics = vec![nic(2)];
                s.nics[0].bridge = "br0; reboot".into();
            }),
            ("nics: mtu: expected 68", |s| {
                s.nics = vec![nic(2)];
                s.nics[0].mtu = 0;
            }),
            ("handler name: expected", |s| {
                s.writes.push(("a b".into(), "".into()))
            }),
            ("writes: bytes: 1024001 is above", |s| {
                s.writes = vec![("a".into(), "x".repeat(1_024_000))];
            }),
            ("writes: 1025 is above", |s| {
                s.writes = vec![("a.b".into(), "".into()); 1025]
            }),
        ];
        for (words, change) in cases {
            let mut bad = spec(1);
            change(&mut bad);
            let error = check_spec(&bad).unwrap_err();
            assert!(error.message.starts_with(words), "{words}: {error}");
        }
        assert!(check_timeout(0).is_err() && check_timeout(600_001).is_err());
    }

    #[test]
    fn handler_names() {
        for good in ["fw.config", "a/b@1.count", "a.b.c", "handlers"] {
            check_handler(good).unwrap();
        }
        for bad in ["", "a b.c", "a.b\n", "é.x", &"a".repeat(256)] {
            assert!(check_handler(bad).is_err(), "{bad}");
        }
    }
}
