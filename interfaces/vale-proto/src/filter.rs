// SPDX-License-Identifier: Apache-2.0
//! Arguments of `port-filter`.
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{PortName, PortRange, SwitchName};

/// Most rules of a port.
pub const MAX_RULES: usize = 1024;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// True for the protocols whose headers begin with a source and a destination port.
pub fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

/// The first and the last number of a packet that a rule permits: its destination port, or the type
/// of an ICMP message before its code.
pub fn numbers(rule: &Rule) -> (u16, u16) {
    let Some(ports) = rule.ports else {
        return (0, u16::MAX);
    };
    if !rule.is_icmp() {
        return (ports.first, ports.last);
    }
    let (first, last) = rule.code.map_or((0, u8::MAX), |code| (code, code));
    let number = |kind: u16, code| kind << 8 | u16::from(code);
    (number(ports.first, first), number(ports.last, last))
}

/// The direction of a packet, as seen by the guest behind the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    /// To the guest.
    Ingress,
    /// From the guest.
    Egress,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Family {
    Ipv4,
    Ipv6,
}

/// Permits packets; a missing field permits any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rule {
    pub direction: Direction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The number of the transport protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Destination ports of TCP, UDP, DCCP, SCTP or UDP-Lite; types of ICMP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortRange>,
    /// The code of the one ICMP type in `ports`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
    /// Addresses of the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub remote: Option<IpNet>,
    /// The packets that match begin no connection, so their answers need a rule of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stateless: bool,
}

/// Arguments of `port-filter`, which replaces all rules of a port and forgets its connections
/// (adr/0030). The rules that the port has already change nothing. A port has at most 1,024 rules and
/// 8,192 connections, and a filter ends with its port.
///
/// A rule also permits the answers, for 1 h of silence with TCP, DCCP and SCTP and 120 s otherwise.
/// ICMP errors about a packet of such a connection pass from any address, if they quote its ports and
/// go to its sender; redirects do not. ARP, neighbor discovery and a client's DHCP pass every filter;
/// other frames that are not IP pass none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortFilter {
    pub switch: SwitchName,
    pub port: PortName,
    /// Without rules the port has no filter. An empty list permits nothing.
    #[serde(default, deserialize_with = "rules")]
    pub rules: Option<Vec<Rule>>,
}

fn rules<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<Rule>>, D::Error> {
    #[derive(Deserialize)]
    struct Bounded(#[serde(deserialize_with = "bounded")] Vec<Rule>);
    fn bounded<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Rule>, D::Error> {
        control_socket::at_most(input, MAX_RULES)
    }
    Option::<Bounded>::deserialize(input).map(|found| found.map(|b| b.0))
}

impl PortFilter {
    /// Checks rules between fields; the error names the rule, the field and the cure.
    ///
    /// # Errors
    /// A rule cannot match as it is meant.
    pub fn check(&self) -> Result<(), String> {
        let rules = self.rules.as_deref().unwrap_or_default();
        if rules.len() > MAX_RULES {
            return Err(format!("rules: {} are more than {MAX_RULES}", rules.len()));
        }
        let mut checked = rules.iter().enumerate();
        checked.try_for_each(|(n, rule)| rule.check().map_err(|e| format!("rules[{n}]: {e}")))
    }
}

impl Rule {
    fn is_icmp(&self) -> bool {
        matches!(self.protocol, Some(ICMP | ICMPV6))
    }

    fn check(&self) -> Result<(), String> {
        if let Some(PortRange { first, last }) = self.ports {
            if first > last {
                return Err(format!("ports: {first} is above {last}"));
            }
            if !self.is_icmp() && !self.protocol.is_some_and(has_ports) {
                return Err("ports: need protocol 6, 17, 33, 132, 136, 1 or 58".to_owned());
            }
            if self.is_icmp() && last > 255 {
                return Err(format!("ports: ICMP type {last} is above 255"));
            }
        }
        if let Some(code) = self.code {
            let is_one = self.ports.is_some_and(|p| p.first == p.last);
            if !self.is_icmp() || !is_one {
                return Err(format!(
                    "code: {code} needs protocol 1 or 58 and one type in ports"
                ));
            }
        }
        match (self.remote, self.family) {
            (Some(IpNet::V4(_)), Some(Family::Ipv6)) | (Some(IpNet::V6(_)), Some(Family::Ipv4)) => {
                Err("remote: is of the other family".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// `DIRECTION[,PART]...`; a part is a family, a protocol, `N` or `N-M`, `code=N`, a CIDR, or `stateless`.
impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let direction = match parts.next() {
            Some("ingress") => Direction::Ingress,
            Some("egress") => Direction::Egress,
            _ => return Err(format!("rule: {text:.60?} begins with no direction")),
        };
        let mut rule = Self {
            direction,
            family: None,
            protocol: None,
            ports: None,
            code: None,
            remote: None,
            stateless: false,
        };
        parts.try_for_each(|part| rule.add(part))?;
        rule.check().map(|()| rule)
    }
}

impl Rule {
    fn add(&mut self, part: &str) -> Result<(), String> {
        match part {
            "ipv4" => self.family = Some(Family::Ipv4),
            "ipv6" => self.family = Some(Family::Ipv6),
            "tcp" => self.protocol = Some(TCP),
            "udp" => self.protocol = Some(UDP),
            "dccp" => self.protocol = Some(DCCP),
            "sctp" => self.protocol = Some(SCTP),
            "udplite" => self.protocol = Some(UDP_LITE),
            "icmp" => self.protocol = Some(ICMP),
            "icmpv6" => self.protocol = Some(ICMPV6),
            "stateless" => self.stateless = true,
            _ if part.starts_with("code=") => self.code = Some(code(&part[5..])?),
            _ if part.contains('/') => self.remote = Some(net(part)?),
            _ => self.ports = Some(range(part)?),
        }
        Ok(())
    }
}

fn code(text: &str) -> Result<u8, String> {
    text.parse()
        .map_err(|_| format!("rule: code={text:.50}: expected 0 to 255"))
}

fn net(text: &str) -> Result<IpNet, String> {
    text.parse()
        .map_err(|e| format!("rule: {text:.50?}: {e}, expected e.g. 10.0.0.0/8"))
}

fn range(text: &str) -> Result<PortRange, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("rule: {text:.50?} is not a family, protocol, port or CIDR"))
    };
    Ok(PortRange {
        first: number(first)?,
        last: number(last)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_from_its_text() {
        let rule: Rule = "ingress,tcp,80-90,10.0.0.0/8".parse().unwrap();
        assert_eq!(rule.protocol, Some(TCP));
        assert_eq!(
            rule.ports,
            Some(PortRange {
                first: 80,
                last: 90
            })
        );
        assert_eq!(rule.remote, Some("10.0.0.0/8".parse().unwrap()));
        assert!("egress".parse::<Rule>().is_ok());
        for good in [
            "egress,sctp,5060",
            "egress,dccp,1-2",
            "egress,udplite,9",
            "ingress,icmp,3,code=4,stateless",
        ] {
            assert!(good.parse::<Rule>().is_ok(), "{good}");
        }
        for (bad, word) in [
            ("tcp", "direction"),
            ("ingress,http", "protocol"),
            ("ingress,80", "protocol"),
            ("ingress,tcp,9-8", "above"),
            ("ingress,icmp,300", "255"),
            ("ingress,ipv6,10.0.0.0/8", "family"),
            ("ingress,10.0.0.0/40", "10.0.0.0/8"),
            ("ingress,icmp,3-4,code=0", "one type"),
            ("ingress,tcp,3,code=0", "protocol 1 or 58"),
            ("ingress,icmp,3,code=256", "0 to 255"),
            ("ingress,47,80", "protocol"),
        ] {
            let error = bad.parse::<Rule>().unwrap_err();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }

    #[test]
    fn the_list_of_rules_is_bounded_and_none_differs_from_empty() {
        let args = |rules: serde_json::Value| {
            let args = serde_json::json!({"switch": "vale0", "port": "p", "rules": rules});
            serde_json::from_value::<PortFilter>(args)
        };
        let rule = serde_json::json!({"direction": "egress"});
        assert_eq!(args(serde_json::Value::Null).unwrap().rules, None);
        assert_eq!(args(serde_json::json!([])).unwrap().rules, Some(vec![]));
        assert!(args(vec![rule.clone(); MAX_RULES].into()).is_ok());
        assert!(args(vec![rule; MAX_RULES + 1].into()).is_err());
    }
}
