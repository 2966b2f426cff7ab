// SPDX-License-Identifier: Apache-2.0
//! What a guest is to be.

use std::fmt;

use crate::value::{
    CommandLine, ConfigName, ConfigText, GuestName, HandlerName, MAX_WRITE_BYTES, MemoryMib,
    TimeoutMs, Vcpus,
};
use control_socket::at_most;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use vale_proto::{Allowed, GuestVif, Kind, Mac, PortAdd, PortName, SwitchName};

/// Most interfaces of one guest.
pub const MAX_VIFS: usize = 16;
/// Most handler writes in one request.
pub const MAX_WRITES: usize = clickos_protocol::WRITES_MAX;

/// A guest's UUID: lower case, with hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(with = "String")
)]
pub struct Uuid(String);

impl Uuid {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A new one, of random bits (version 4 of RFC 9562).
    pub fn of_random(bits: u128) -> Self {
        let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let mut text = format!("{bits:032x}");
        [20, 16, 12, 8].iter().for_each(|at| text.insert(*at, '-'));
        Self(text)
    }
}

impl TryFrom<String> for Uuid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
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

/// A guest's share of processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// The only processor it runs on; any if missing.
    pub pin: Option<u16>,
    #[serde(default = "usual_weight")]
    pub weight: u16,
    /// Percent of one processor; 0 is no limit.
    #[serde(default)]
    pub cap_percent: u16,
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            pin: None,
            weight: usual_weight(),
            cap_percent: 0,
        }
    }
}

/// Parameters of Xen's schedulers.
fn usual_weight() -> u16 {
    256
}

/// The switch's treatment of the port of a guest that forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Link {
    #[default]
    Up,
    Down,
    /// Its port is to be removed.
    Leaving,
    /// The guest has the interface, the switch has no port.
    Removed,
}

/// One interface of a guest and its port of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vif {
    pub devid: u32,
    pub mac: Mac,
    pub switch: SwitchName,
    pub port: PortName,
    pub segment: u32,
    #[serde(
        default,
        deserialize_with = "vale_proto::allowed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub allowed: Vec<Allowed>,
    pub port_security: bool,
    /// With port security: the guest may answer as a DHCP server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dhcp_server: bool,
    /// The port permits nothing until `port-filter`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filtered: bool,
    pub mtu: u16,
    pub slots: u32,
    /// The number of the port's owner, as of the switch's `port-add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u64>,
    /// Neutron's port, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_id: Option<Uuid>,
    #[serde(default)]
    pub link: Link,
}

impl Vif {
    /// True if the switch has its port, or may have it.
    pub fn is_plugged(&self) -> bool {
        self.link != Link::Removed
    }

    /// The interface with the name of its port in the switch. A removed one has a placeholder
    /// while its guest is made: its own name may be another's by now.
    pub fn in_switch(&self, guest: &Uuid) -> Self {
        let mut vif = self.clone();
        if !self.is_plugged() {
            let tail = &guest.as_str()[26..];
            let name = format!("x{tail}-{}", self.devid);
            vif.port = name.parse().expect("10 digits and a devid fit a name");
        }
        vif
    }

    /// The port that cosmosd requests from the switch; its link is down until the guest forwards. A
    /// Xen guest's port belongs to a vif of its domain.
    pub fn port_add(&self, kind: Kind, domid: u16) -> PortAdd {
        let devid = self.devid;
        // A placeholder takes no address from the port's next owner.
        let is_plugged = self.is_plugged();
        PortAdd {
            switch: self.switch.clone(),
            port: self.port.clone(),
            kind,
            ifname: None,
            guest: (kind == Kind::Xen).then_some(GuestVif {
                domid,
                devid,
                netback: false,
            }),
            segment: self.segment,
            mac: is_plugged.then_some(self.mac),
            allowed: match is_plugged {
                true => self.allowed.clone(),
                false => Vec::new(),
            },
            port_security: self.port_security && is_plugged,
            dhcp_server: self.dhcp_server && is_plugged,
            vlan: None,
            vxlan: None,
            pipe: None,
            pcap: None,
            vlan_tags: false,
            filtered: self.filtered && is_plugged,
            backpressure: false,
            xdp: false,
            mtu: self.mtu,
            slots: self.slots,
            link_up: false,
            in_place_domid: (kind == Kind::Process).then_some(domid),
            owner: self.owner,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nic {
    pub devid: u32,
    pub mac: Mac,
    pub bridge: String,
    pub mtu: u16,
}

/// A SHA-256 in 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(with = "String")
)]
pub struct Sha256Text(String);

impl Sha256Text {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Sha256Text> for String {
    fn from(sum: Sha256Text) -> Self {
        sum.0
    }
}

impl TryFrom<String> for Sha256Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
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
pub type Write = (HandlerName, String);

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_one(vcpus: &Vcpus) -> bool {
    vcpus.get() == 1
}

/// What a kernel that is not Click's starts with. Its guest has no configuration, no routers and no
/// handlers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// The initial RAM disk, of the image cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramdisk_sha256: Option<Sha256Text>,
    #[serde(default)]
    pub command_line: CommandLine,
}

/// The arguments of `create`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spec {
    pub uuid: Uuid,
    pub name: GuestName,
    pub image_sha256: String,
    pub memory_mib: MemoryMib,
    /// More than one on hosts of the kind `process` only.
    #[serde(default, skip_serializing_if = "is_one")]
    pub vcpus: Vcpus,
    #[serde(deserialize_with = "vifs")]
    pub vifs: Vec<Vif>,
    #[serde(default, deserialize_with = "nics")]
    pub nics: Vec<Nic>,
    /// The image is a kernel that is not Click's; `config` and `writes` are empty then. Kind `xen`
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
    pub config: ConfigText,
    pub config_name: ConfigName,
    #[serde(default, deserialize_with = "writes")]
    pub writes: Vec<Write>,
    /// As of `handler-write`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secrets: bool,
    /// The newest number among the changes that configuration and writes include.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u64,
    /// The ports stay down until `release`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// A guest of this UUID ends first, as soon as all that the new one needs is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    #[serde(default)]
    pub timeout_ms: TimeoutMs,
}

fn vifs<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Vif>, D::Error> {
    at_most(input, MAX_VIFS)
}

fn nics<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Nic>, D::Error> {
    at_most(input, MAX_VIFS)
}

/// A batch of handler writes.
pub fn writes<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Write>, D::Error> {
    let writes: Vec<Write> = at_most(input, MAX_WRITES)?;
    let bytes = writes.iter().map(|(name, value)| name.len() + value.len());
    match bytes.sum() {
        0..=MAX_WRITE_BYTES => Ok(writes),
        bytes => Err(D::Error::custom(format_args!(
            "expected at most {MAX_WRITE_BYTES} bytes of names and values, got {bytes}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for bits in [0, u128::MAX, 1 << 100] {
            let uuid = Uuid::of_random(bits);
            assert_eq!(Uuid::try_from(uuid.as_str().to_owned()), Ok(uuid.clone()));
            assert_eq!(&uuid.as_str()[14..15], "4");
        }
    }
}
