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
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

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
    /// Destination ports of TCP or UDP; types of ICMP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortRange>,
    /// Addresses of the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub remote: Option<IpNet>,
}

/// Arguments of `port-filter`, which replaces all rules of a port and forgets its connections. The
/// rules that the port has already change nothing.
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
    fn check(&self) -> Result<(), String> {
        if let Some(PortRange { first, last }) = self.ports {
            if first > last {
                return Err(format!("ports: {first} is above {last}"));
            }
            if !matches!(self.protocol, Some(TCP | UDP | ICMP | ICMPV6)) {
                return Err("ports: need protocol 6, 17, 1 or 58".to_owned());
            }
            if matches!(self.protocol, Some(ICMP | ICMPV6)) && last > 255 {
                return Err(format!("ports: ICMP type {last} is above 255"));
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

/// `DIRECTION[,PART]...`; a part is a family, a protocol, `N` or `N-M`, or a CIDR.
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
            remote: None,
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
            "icmp" => self.protocol = Some(ICMP),
            "icmpv6" => self.protocol = Some(ICMPV6),
            _ if part.contains('/') => self.remote = Some(net(part)?),
            _ => self.ports = Some(range(part)?),
        }
        Ok(())
    }
}

fn net(text: &str) -> Result<IpNet, String> {
    text.parse()
        .map_err(|e| format!("rule: {text:.50?}: {e}, expected e.g. 10.0.0.0/8"))
}

fn range(text: &str) -> Result<PortRange, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("rule: {text:.50?} is no family, protocol, port or CIDR"))
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
        for (bad, word) in [
            ("tcp", "direction"),
            ("ingress,http", "protocol"),
            ("ingress,80", "protocol"),
            ("ingress,tcp,9-8", "above"),
            ("ingress,icmp,300", "255"),
            ("ingress,ipv6,10.0.0.0/8", "family"),
            ("ingress,10.0.0.0/40", "10.0.0.0/8"),
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
