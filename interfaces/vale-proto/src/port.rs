// SPDX-License-Identifier: Apache-2.0
//! Arguments and answers of the verbs.
use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    Counters, Limits, MAX_ALLOWED, MAX_SEGMENT, MAX_VLAN, MTU_RANGE, Mac, MirrorName, Pcap,
    PipeName, PortName, SwitchName, Uplink, Vxlan,
};

/// Domain numbers from here on are Xen's own (`DOMID_FIRST_RESERVED`).
const DOMID_RESERVED: u16 = 0x7ff0;

/// The kind of a port's far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Kind {
    /// Rings in a memfd, for a guest that is a process. The answer carries three descriptors: the memfd,
    /// `kick` (an eventfd from guest to switch), and `wake` (the read end of a pipe from switch to
    /// guest, 8 bytes a time, to be read and polled as an eventfd).
    Process,
    /// The tap interface `ifname`, made if missing.
    Tap,
    /// The existing interface `ifname` in valed's network namespace, for one VLAN or untagged frames
    /// (adr/0054). Any other tag is dropped both ways at a port without `mac`, unless it has
    /// `vlan_tags` (`dropped_type`). Several ports may share an interface if each has its own `vlan`.
    Veth,
    /// Rings that a Xen guest grants; the toolstack makes its nodes (docs/rings.md). Without rings its
    /// frames count as `dropped_link_down`.
    Xen,
    /// A VXLAN network between hosts (adr/0054). Tags are dropped as at an interface.
    Vxlan,
    /// One of the two ends of a pipe, which joins two segments of one switch or two. A third end gets
    /// `exists`, an end that would close a loop `bad-request`. Each direction holds 512 frames and drops
    /// further ones (`dropped_full`). Without the other end frames count as `dropped_link_down`.
    Pipe,
    /// Files of packets that valed plays and writes.
    Pcap,
    /// The other hosts of a chain's path; valed makes it with the chain.
    Path,
}

/// A vif of a Xen guest: the device `vale/<devid>` of a domain, or `vif/<devid>` with `netback`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestVif {
    pub domid: u16,
    pub devid: u32,
    /// The kernel's netback has the handshake with the guest, and hands its rings on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub netback: bool,
}

/// A source address a port may use; without `mac` the port's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allowed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub ip: IpNet,
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mac {
            Some(mac) => write!(f, "{mac}={}", self.ip),
            None => write!(f, "{}", self.ip),
        }
    }
}

/// `CIDR` or `MAC=CIDR`.
impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mac, cidr) = match text.split_once('=') {
            Some((mac, cidr)) => (Some(mac.parse()?), cidr),
            None => (None, text),
        };
        let ip = cidr
            .parse()
            .map_err(|e| format!("allow: {cidr:.50?}: {e}, expected e.g. 10.0.0.5/32"))?;
        Ok(Self { mac, ip })
    }
}

/// Arguments of `port-add`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortAdd {
    pub switch: SwitchName,
    pub port: PortName,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ifname: Option<String>,
    /// The VLAN of the interface, 1 to 4094, that the segment gets: the switch removes and inserts its
    /// tag. Only for kind `veth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// The network of a port of kind `vxlan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<Vxlan>,
    /// The pipe (`[a-z0-9-]{1,15}`) whose other end another port has; only for kind `pipe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipe: Option<PipeName>,
    /// The files of a port of kind `pcap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcap: Option<Pcap>,
    /// The vif of a Xen port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestVif>,
    pub segment: u32,
    #[serde(default)]
    pub mac: Option<Mac>,
    #[serde(default, deserialize_with = "allowed")]
    pub allowed: Vec<Allowed>,
    #[serde(default = "yes")]
    pub port_security: bool,
    /// With port security: answers of DHCP servers may enter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dhcp_server: bool,
    /// With port security: VLAN tags (802.1Q, 802.1ad) may enter; the guard judges what is behind
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vlan_tags: bool,
    /// The port has a filter without rules from the start: it permits nothing until `port-filter`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filtered: bool,
    /// Frames from the port wait for a full receiver, so the sender's ring fills; after 100 ms without
    /// room they may be lost. Flooded frames never wait. Without it a frame to a full port is lost.
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        // Its name before 0.3.
        alias = "hold"
    )]
    pub backpressure: bool,
    /// An AF_XDP socket takes the interface's frames, or a packet socket if the kernel refuses that;
    /// only for kind `veth`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xdp: bool,
    #[serde(default = "default_mtu")]
    pub mtu: u16,
    /// Slots of each ring of a guest's port, a power of two.
    #[serde(default = "default_slots")]
    pub slots: u32,
    #[serde(default = "yes")]
    pub link_up: bool,
    /// The domain of a guest that is a process and takes rings of version 2, for an MTU of at most
    /// 1,900. Its ports send frames that lie in each other's regions.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        // Its name before 1.0.
        alias = "in_place"
    )]
    pub in_place_domid: Option<u16>,
    /// The owner: all ports with its number share one turn at the switch. Without one the port has a
    /// turn of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u64>,
}

/// Reads a port's list of allowed addresses, of [`MAX_ALLOWED`] at most.
pub fn allowed<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Allowed>, D::Error> {
    control_socket::at_most(input, MAX_ALLOWED)
}

fn yes() -> bool {
    true
}

fn default_mtu() -> u16 {
    1500
}

pub(crate) fn default_slots() -> u32 {
    256
}

/// Checks the range of a segment number.
pub fn check_segment(segment: u32) -> Result<(), String> {
    match (1..=MAX_SEGMENT).contains(&segment) {
        true => Ok(()),
        false => Err(format!("segment: {segment} is outside 1..={MAX_SEGMENT}")),
    }
}

pub(crate) fn check_slots(slots: u32) -> Result<(), String> {
    match slots.is_power_of_two() && (64..=2048).contains(&slots) {
        true => Ok(()),
        false => Err(format!("slots: {slots} is not a power of two in 64..=2048")),
    }
}

pub(crate) fn check_domain(domid: u16) -> Result<(), String> {
    match (1..DOMID_RESERVED).contains(&domid) {
        true => Ok(()),
        false => Err(format!("{domid} is not a guest domain")),
    }
}

impl PortAdd {
    pub fn id(&self) -> PortId {
        PortId {
            switch: self.switch.clone(),
            port: self.port.clone(),
        }
    }

    /// A port without an address, port security and special features.
    pub fn open(id: PortId, kind: Kind, segment: u32) -> Self {
        Self {
            switch: id.switch,
            port: id.port,
            kind,
            ifname: None,
            vlan: None,
            vxlan: None,
            pipe: None,
            pcap: None,
            guest: None,
            segment,
            mac: None,
            allowed: Vec::new(),
            port_security: false,
            dhcp_server: false,
            vlan_tags: false,
            filtered: false,
            backpressure: false,
            xdp: false,
            mtu: default_mtu(),
            slots: default_slots(),
            link_up: true,
            in_place_domid: None,
            owner: None,
        }
    }

    /// True if frames of the port may be longer than a slot of a ring.
    pub fn has_long_frames(&self) -> bool {
        self.mtu > crate::SHORT_MTU
    }

    /// Checks rules between fields; the error names the field, the value and the limit.
    pub fn check(&self) -> Result<(), String> {
        check_segment(self.segment)?;
        if !MTU_RANGE.contains(&self.mtu) {
            let (low, high) = (MTU_RANGE.start(), MTU_RANGE.end());
            return Err(format!("mtu: {} is outside {low}..={high}", self.mtu));
        }
        check_slots(self.slots)?;
        if self.allowed.len() > MAX_ALLOWED {
            return Err(format!(
                "allowed: {} entries are more than {MAX_ALLOWED}",
                self.allowed.len()
            ));
        }
        if self.mac.is_some_and(Mac::is_multicast) {
            return Err("mac: a port cannot have a group address".to_owned());
        }
        self.check_vlan()?;
        self.check_far_end()?;
        check_security(self.port_security, self.mac, &self.allowed)?;
        self.check_guest()?;
        self.check_ifname()
    }

    fn check_vlan(&self) -> Result<(), String> {
        if self.xdp && self.kind != Kind::Veth {
            return Err("xdp: only a port of kind veth has it".to_owned());
        }
        match self.vlan {
            Some(_) if self.kind != Kind::Veth => {
                Err("vlan: only a port of kind veth has one".to_owned())
            }
            Some(vlan) if !(1..=MAX_VLAN).contains(&vlan) => {
                Err(format!("vlan: {vlan} is outside 1..={MAX_VLAN}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the fields that each belong to one kind, which has the field's name.
    fn check_far_end(&self) -> Result<(), String> {
        if self.kind == Kind::Path {
            return Err("kind: path is the kind of ports that chain-set makes".to_owned());
        }
        for (name, kind, is_there) in [
            ("vxlan", Kind::Vxlan, self.vxlan.is_some()),
            ("pipe", Kind::Pipe, self.pipe.is_some()),
            ("pcap", Kind::Pcap, self.pcap.is_some()),
        ] {
            match (self.kind == kind, is_there) {
                (true, false) => {
                    return Err(format!("{name}: is missing; a port of kind {name} has one"));
                }
                (false, true) => return Err(format!("{name}: only a port of kind {name} has one")),
                _ => (),
            }
        }
        self.vxlan.as_ref().map_or(Ok(()), Vxlan::check)?;
        self.pcap.as_ref().map_or(Ok(()), Pcap::check)
    }

    fn check_guest(&self) -> Result<(), String> {
        if self.in_place_domid.is_some() && self.kind != Kind::Process {
            return Err("in_place_domid: only a port of kind process has it".to_owned());
        }
        match (self.kind == Kind::Xen, self.guest) {
            (true, None) => Err("guest: is missing; a Xen port belongs to one".to_owned()),
            (false, Some(_)) => Err("guest: only a Xen port has one".to_owned()),
            (true, Some(guest)) => check_domain(guest.domid).map_err(|e| format!("guest: {e}")),
            _ => Ok(()),
        }
    }

    fn check_ifname(&self) -> Result<(), String> {
        let has_none = !matches!(self.kind, Kind::Tap | Kind::Veth);
        let Some(name) = self.ifname.as_deref() else {
            return if has_none {
                Ok(())
            } else {
                Err("ifname: is missing".to_owned())
            };
        };
        if has_none {
            return Err("ifname: only a port of kind tap or veth has one".to_owned());
        }
        // The kernel's rule (dev_valid_name) less the characters only a typing error brings.
        let valid = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if !(1..=15).contains(&name.len())
            || !name.bytes().all(valid)
            || name.bytes().all(|b| b == b'.')
        {
            let name = control_socket::quoted(name);
            return Err(format!("ifname: {name} is not an interface name"));
        }
        Ok(())
    }
}

/// Arguments of `port-remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortId {
    pub switch: SwitchName,
    pub port: PortName,
}

/// `vale0:name`.
impl FromStr for PortId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (switch, port) = text
            .split_once(':')
            .ok_or_else(|| format!("port: expected vale<N>:<name>, got {text:.40?}"))?;
        let (switch, port) = (switch.parse()?, port.parse()?);
        Ok(Self { switch, port })
    }
}

/// Arguments of `port-set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortSet {
    pub switch: SwitchName,
    pub port: PortName,
    pub link_up: bool,
}

/// Arguments of `port-guard`, which replaces what a port may send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortGuard {
    pub switch: SwitchName,
    pub port: PortName,
    #[serde(deserialize_with = "allowed")]
    pub allowed: Vec<Allowed>,
    pub port_security: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dhcp_server: bool,
}

impl PortGuard {
    /// Checks the addresses of a port with or without a `mac` of its own.
    ///
    /// # Errors
    /// An address has no MAC, or nothing could be sent.
    pub fn check(&self, mac: Option<Mac>) -> Result<(), String> {
        check_security(self.port_security, mac, &self.allowed)
    }
}

/// Checks that each allowed address has a MAC, and that a port with security can send.
fn check_security(
    port_security: bool,
    mac: Option<Mac>,
    allowed: &[Allowed],
) -> Result<(), String> {
    if port_security && mac.is_none() && allowed.iter().all(|a| a.mac.is_none()) {
        return Err(
            "port_security: needs mac or allowed entries with a mac; nothing could be sent"
                .to_owned(),
        );
    }
    match allowed.iter().find(|a| a.mac.or(mac).is_none()) {
        Some(entry) => Err(format!(
            "allowed: {} has no mac, nor has the port",
            entry.ip
        )),
        None => Ok(()),
    }
}

/// Arguments of `port-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortList {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchName>,
}

/// Answer of `port-list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ports {
    pub ports: Vec<PortInfo>,
}

/// A port as `port-list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortInfo {
    pub switch: SwitchName,
    pub port: PortName,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestVif>,
    pub segment: u32,
    pub mac: Option<Mac>,
    pub link_up: bool,
    /// The far end of a port of kind `veth` or `vxlan` without an address of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Uplink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterInfo>,
    /// The mirrors that copy the port's frames, and those that send it copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<MirrorName>,
    /// Frames from the port wait for a full receiver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backpressure: bool,
    /// As `backpressure`: its name before 0.3, for one more release.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// How the switch reaches the interface of a port with `xdp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u64>,
    #[serde(default)]
    pub far_end: FarEnd,
    pub counters: Counters,
}

impl PortInfo {
    /// True if frames can pass the port.
    pub fn is_up(&self) -> bool {
        self.link_up && self.far_end == FarEnd::Up
    }
}

/// The state of what is behind a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FarEnd {
    /// It takes and sends frames.
    #[default]
    Up,
    /// It takes no frames: an interface that is down or without carrier, a Xen guest without rings, a
    /// pipe without its other end.
    Down,
    /// The interface is deleted or is another one now, or the process has ended. Frames to the port
    /// count as `dropped_link_down`. valed uses the next interface of this name.
    Gone,
}

impl fmt::Display for FarEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Gone => "gone",
        })
    }
}

/// The filter of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilterInfo {
    pub ingress_rules: usize,
    pub egress_rules: usize,
    /// Places of the table that hold a connection, which may have ended by now.
    pub connections: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn with(change: Value) -> Result<PortAdd, String> {
        let mut args = json!({"switch": "vale0", "port": "p1", "kind": "process", "segment": 5, "mac": "02:00:00:00:00:01"});
        for (key, value) in change.as_object().unwrap() {
            args[key] = value.clone();
        }
        let add: PortAdd = control_socket::typed(&args.to_string())?;
        add.check().map(|()| add)
    }

    #[test]
    fn names_are_checked() {
        for good in ["p1-a", "vif12.0", "eth0.5", "Eth_0", "a23456789012345"] {
            assert!(format!("vale0:{good}").parse::<PortId>().is_ok(), "{good}");
        }
        for bad in [
            "vale0",
            "vale:p",
            "val0:p",
            "vale12345:p",
            "vale0:",
            "vale0:.",
            "vale0:..",
            "vale0:a:b",
            "vale0:a/b",
            "vale0:a b",
            "vale0:-a",
            "vale0:a23456789012345x",
        ] {
            assert!(bad.parse::<PortId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_earlier_name_of_backpressure_is_read() {
        for name in ["backpressure", "hold"] {
            let add = with(json!({name: true})).unwrap();
            assert!(add.backpressure, "{name}");
            assert_eq!(json!(add)["backpressure"], true);
        }
        assert!(with(json!({"backpressure": true, "hold": true})).is_err());
    }

    #[test]
    fn the_earlier_name_of_in_place_domid_is_read() {
        for name in ["in_place_domid", "in_place"] {
            let add = with(json!({name: 7})).unwrap();
            assert_eq!(add.in_place_domid, Some(7), "{name}");
            assert_eq!(json!(add)["in_place_domid"], 7);
        }
    }

    #[test]
    fn an_allowed_address_is_a_cidr_with_or_without_mac() {
        assert_eq!("10.0.0.5/32".parse::<Allowed>().unwrap().mac, None);
        let pair: Allowed = "02:00:00:00:00:02=2001:db8::/64".parse().unwrap();
        assert_eq!(pair.mac.unwrap().0, [2, 0, 0, 0, 0, 2]);
        assert!("10.0.0.5".parse::<Allowed>().unwrap_err().contains("allow"));
        assert!(
            "zz=10.0.0.5/32"
                .parse::<Allowed>()
                .unwrap_err()
                .contains("mac")
        );
    }

    #[test]
    fn the_defaults_are_the_contracts() {
        let add = with(json!({})).unwrap();
        assert!(add.port_security && add.link_up && !add.dhcp_server);
        assert_eq!((add.mtu, add.slots), (1500, 256));
    }

    #[test]
    fn each_wrong_field_is_named() {
        for (change, field) in [
            (json!({"segment": 0}), "segment"),
            (json!({"mtu": 9001}), "mtu"),
            (json!({"mtu": 67}), "mtu"),
            (json!({"slots": 100}), "slots"),
            (json!({"slots": 32}), "slots"),
            (json!({"slots": 4096}), "slots"),
            (json!({"mac": "ff:ff:ff:ff:ff:ff"}), "mac"),
            (json!({"mac": null}), "port_security"),
            (
                json!({"mac": null, "port_security": false, "allowed": [{"ip": "10.0.0.1/32"}]}),
                "allowed",
            ),
            (json!({"ifname": "x"}), "ifname"),
            (json!({"vlan": 5}), "vlan"),
            (json!({"kind": "veth", "ifname": "x", "vlan": 0}), "vlan"),
            (json!({"kind": "veth", "ifname": "x", "vlan": 4095}), "vlan"),
            (json!({"kind": "vxlan"}), "vxlan: is missing"),
            (
                json!({"vxlan": {"vni": 1, "local": "192.0.2.1", "peers": []}}),
                "vxlan: only",
            ),
            (json!({"kind": "pipe"}), "pipe: is missing"),
            (json!({"pipe": "x"}), "pipe: only"),
            (json!({"kind": "pipe", "pipe": "X"}), "pipe"),
            (json!({"kind": "path"}), "kind: path"),
            (json!({"kind": "pcap"}), "pcap: is missing"),
            (json!({"kind": "pcap", "pcap": {}}), "pcap: needs"),
            (json!({"kind": "tap"}), "ifname"),
            (json!({"kind": "xen"}), "guest"),
            (json!({"guest": {"domid": 1, "devid": 0}}), "guest"),
            (
                json!({"kind": "xen", "guest": {"domid": 0, "devid": 0}}),
                "guest",
            ),
            (
                json!({"kind": "xen", "guest": {"domid": 1, "devid": 0}, "ifname": "x"}),
                "ifname",
            ),
            (json!({"kind": "veth", "ifname": "a/b"}), "ifname"),
            (json!({"kind": "veth", "ifname": ".."}), "ifname"),
            (json!({"allowed": [{"ip": "10.0.0.1/33"}]}), "IP address"),
            (json!({"port": "ba/d"}), "port"),
            (json!({"segmnet": 1}), "segmnet"),
        ] {
            let error = with(change.clone()).unwrap_err();
            assert!(error.contains(field), "{change}: {error}");
        }
    }
}
