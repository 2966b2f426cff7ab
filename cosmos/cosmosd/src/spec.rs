// SPDX-License-Identifier: Apache-2.0
//! What a guest is to be: the arguments of `create`, checked.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use control_socket::at_most;
use serde::{Deserialize, Deserializer, Serialize};
use vale_proto::{Allowed, GuestVif, Kind, Mac, PortAdd, PortName, SwitchName};

use crate::error::{Error, Result};
use crate::host::hex;

/// The longest configuration, in bytes.
pub const MAX_CONFIG: usize = 1 << 20;
/// Most interfaces of one guest.
pub const MAX_VIFS: usize = 16;
/// Most handler writes in one request.
pub const MAX_WRITES: usize = clickos_protocol::WRITES_MAX;
/// Their bytes together: a request to a guest has at most 1 MiB.
const MAX_WRITE_BYTES: usize = 1000 << 10;
/// Guest memory in MiB: the engine needs some, and no guest of this kind needs more.
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 4..=65536;
/// Deadlines a client may ask for, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=600_000;

/// A guest's UUID: lower case, with hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uuid(String);

impl Uuid {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A new one, of random bits (version 4 of RFC 9562).
    pub fn random() -> Result<Self> {
        let mut bytes = random_bytes::<16>()?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = hex(&bytes);
        [20, 16, 12, 8].iter().for_each(|at| text.insert(*at, '-'));
        Ok(Self(text))
    }
}

/// Bytes of the kernel's random numbers.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Error::internal("getrandom", e))?;
    Ok(bytes)
}

/// A guest's share of processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// The only processor it runs on; any if missing.
    pub pin: Option<u16>,
    #[serde(default = "usual_weight")]
    pub weight: u16,
    /// Percent of one processor; 0 is no limit.
    #[serde(default)]
    pub cap_percent: u16,
}

/// Of Xen's schedulers.
fn usual_weight() -> u16 {
    256
}

impl TryFrom<String> for Uuid {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let hyphens = [8, 13, 18, 23];
        let good = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match byte {
                b'-' => hyphens.contains(&at),
                b'0'..=b'9' | b'a'..=b'f' => !hyphens.contains(&at),
                _ => false,
            });
        if good {
            return Ok(Self(text));
        }
        Err(format!(
            "{:.64?} is not a uuid in lower case with hyphens",
            text
        ))
    }
}

impl From<Uuid> for String {
    fn from(uuid: Uuid) -> Self {
        uuid.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One interface of a guest and its port of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vif {
    pub devid: u32,
    pub mac: Mac,
    pub switch: SwitchName,
    pub port: PortName,
    pub segment: u16,
    #[serde(default, deserialize_with = "vale_proto::allowed")]
    pub allowed: Vec<Allowed>,
    pub port_security: bool,
    pub mtu: u16,
    pub slots: u32,
}

impl Vif {
    /// What the switch is asked for; the link is down until the guest forwards. A Xen guest's
    /// port belongs to a vif of its domain.
    pub fn port_add(&self, kind: Kind, domid: u16) -> PortAdd {
        let devid = self.devid;
        PortAdd {
            switch: self.switch.clone(),
            port: self.port.clone(),
            kind,
            ifname: None,
            guest: (kind == Kind::Xen).then_some(GuestVif { domid, devid }),
            segment: self.segment,
            mac: Some(self.mac),
            allowed: self.allowed.clone(),
            port_security: self.port_security,
            mtu: self.mtu,
            slots: self.slots,
            link_up: false,
        }
    }

    /// The port's name for a person.
    pub fn place(&self) -> String {
        format!("{}:{}", self.switch, self.port)
    }
}

/// A vif of stock xen-netback, on a bridge of dom0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    pub devid: u32,
    pub mac: Mac,
    pub bridge: String,
    pub mtu: u16,
}

/// A SHA-256 in 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha256Text(String);

impl Sha256Text {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sha256Text {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(digit) {
            return Ok(Self(text));
        }
        Err(format!(
            "{text:.80?} is not a sha256 in 64 lower-case hexadecimal digits"
        ))
    }
}

/// A handler and the value to write.
pub type Write = (String, String);

/// The arguments of `create`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub uuid: Uuid,
    pub name: String,
    pub image_sha256: String,
    pub memory_mib: u32,
    #[serde(deserialize_with = "vifs")]
    pub vifs: Vec<Vif>,
    #[serde(default, deserialize_with = "nics")]
    pub nics: Vec<Nic>,
    pub config: String,
    pub config_name: String,
    #[serde(default, deserialize_with = "writes")]
    pub writes: Vec<Write>,
    pub timeout_ms: u64,
}

fn vifs<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<Vec<Vif>, D::Error> {
    at_most(input, "vifs", MAX_VIFS)
}

fn nics<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<Vec<Nic>, D::Error> {
    at_most(input, "nics", MAX_VIFS)
}

/// A batch of handler writes.
pub fn writes<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<Vec<Write>, D::Error> {
    at_most(input, "writes", MAX_WRITES)
}

impl Spec {
    /// Checks every argument before anything is built.
    pub fn check(&self) -> Result<()> {
        check_name("name", &self.name)?;
        if !MEMORY_MIB.contains(&self.memory_mib) {
            return Err(out_of_range("memory_mib", self.memory_mib, &MEMORY_MIB));
        }
        check_devices(&self.vifs, &self.nics)?;
        check_config(&self.config, &self.config_name)?;
        if self.config.is_empty() {
            return Err(Error::bad_request(
                "config: a new guest needs a configuration",
            ));
        }
        check_writes(&self.writes)
    }
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
    limit("handler name", name.len(), 255)?;
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "handler name: expected ELEMENT.HANDLER, got {name:?}"
    )))
}

/// Checks a deadline and converts it.
pub fn check_timeout(timeout_ms: u64) -> Result<Duration> {
    if TIMEOUT_MS.contains(&timeout_ms) {
        return Ok(Duration::from_millis(timeout_ms));
    }
    Err(out_of_range("timeout_ms", timeout_ms, &TIMEOUT_MS))
}

fn check_name(key: &str, name: &str) -> Result<()> {
    limit(key, name.len(), 255)?;
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
        spec(1).check().unwrap();
    }

    #[test]
    fn uuids() {
        let good = "3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2a11";
        assert!(Uuid::try_from(good.to_owned()).is_ok());
        for bad in ["", "../../../../../../../../etc/passwd-xyz", &good[1..]] {
            assert!(Uuid::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert!(Uuid::try_from(good.to_uppercase()).is_err());
        assert!(Uuid::try_from(good.replace('-', "a")).is_err());
    }

    #[test]
    fn random_uuids_are_uuids() {
        let (one, two) = (Uuid::random().unwrap(), Uuid::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(Uuid::try_from(one.as_str().to_owned()), Ok(one.clone()));
        assert_eq!(&one.as_str()[14..15], "4");
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
            let error = bad.check().unwrap_err();
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
