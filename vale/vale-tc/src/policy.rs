// SPDX-License-Identifier: Apache-2.0
//! The policy of a vif: the fields of valed's verbs `port-add`, `port-filter` and `offload-set`.
use clickos_offload::{Action, MAX_RULES, Rule as Decision};
use serde::{Deserialize, Deserializer, Serialize};
use vale_proto::{Allowed, Limits, Mac, OffloadRule, PortFilter, Rule, allowed};

/// The document of a vif.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    #[serde(default, deserialize_with = "allowed")]
    pub allowed: Vec<Allowed>,
    #[serde(default = "yes")]
    pub port_security: bool,
    #[serde(default)]
    pub vlan_tags: bool,
    /// Without rules the vif has no filter. An empty list permits nothing.
    #[serde(default)]
    pub rules: Option<Vec<Rule>>,
    #[serde(default)]
    pub offload: Offload,
    #[serde(default)]
    pub limits: Limits,
}

/// The tables of rules that decide packets to the guest, in the order of their verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Offload {
    #[serde(deserialize_with = "table")]
    pub operator: Vec<OffloadRule>,
    #[serde(deserialize_with = "table")]
    pub guest: Vec<OffloadRule>,
}

fn yes() -> bool {
    true
}

fn table<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<OffloadRule>, D::Error> {
    let rules = Vec::deserialize(input)?;
    match rules.len() <= MAX_RULES {
        true => Ok(rules),
        false => Err(serde::de::Error::custom(format!(
            "{} rules are more than {MAX_RULES}",
            rules.len()
        ))),
    }
}

impl Offload {
    /// The tables by the names of their fields.
    pub fn tables(&self) -> [(&'static str, &[OffloadRule]); 2] {
        [("operator", &self.operator), ("guest", &self.guest)]
    }

    /// All rules in the order of their verdicts.
    pub fn rules(&self) -> impl Iterator<Item = &Decision> {
        self.operator.iter().chain(&self.guest).map(|rule| &rule.0)
    }
}

impl Policy {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// It is not valid, or tc has no means for a field, which the error names.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        policy.check().map(|()| policy)
    }

    /// # Errors
    /// As of [`Self::parse`].
    pub fn check(&self) -> Result<(), String> {
        let has_mac = self.mac.is_some() || self.allowed.iter().any(|a| a.mac.is_some());
        if self.port_security && !has_mac {
            return Err("port_security: needs a mac, or an allowed address with one".into());
        }
        if self.mac.is_none() && self.allowed.iter().any(|a| a.mac.is_none()) {
            return Err("allowed: an address without a mac needs that of the vif".into());
        }
        self.check_rules()?;
        self.check_means()
    }

    fn check_rules(&self) -> Result<(), String> {
        let id = "vale0:vif".parse::<vale_proto::PortId>()?;
        PortFilter {
            switch: id.switch,
            port: id.port,
            rules: self.rules.clone(),
        }
        .check()
    }

    /// Refuses the fields that valed has and a tc program has not.
    fn check_means(&self) -> Result<(), String> {
        if self.vlan_tags {
            return Err("vlan_tags: a tc program judges no frames with tags".into());
        }
        if self.limits != Limits::default() {
            return Err(
                "limits: a tc program has no rates; use a qdisc, or a rate of the vif".into(),
            );
        }
        for (name, rules) in self.offload.tables() {
            let is_redirect = |rule: &OffloadRule| matches!(rule.0.action, Action::Redirect(_));
            if let Some(at) = rules.iter().position(is_redirect) {
                return Err(format!(
                    "offload.{name}[{at}]: redirect: a tc program sends no packet to another station"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_field_that_tc_cannot_express_is_named() {
        let mac = "02:00:00:00:00:01";
        for (document, words) in [
            (json!({}), "port_security: needs"),
            (
                json!({"port_security": false, "allowed": [{"ip": "10.0.0.1/32"}]}),
                "allowed",
            ),
            (json!({"mac": mac, "vlan_tags": true}), "vlan_tags"),
            (
                json!({"mac": mac, "limits": {"rx": {"bits_per_s": 5}}}),
                "limits",
            ),
            (
                json!({"mac": mac, "offload": {"guest": ["drop", "redirect 02:00:00:00:00:02"]}}),
                "offload.guest[1]: redirect",
            ),
            (
                json!({"mac": mac, "rules": [{"direction": "ingress", "ports": {"first": 1, "last": 2}}]}),
                "rules[0]: ports",
            ),
            (json!({"mac": mac, "hold": true}), "hold"),
            (
                json!({"mac": mac, "offload": {"guest": vec!["drop"; 65]}}),
                "65 rules",
            ),
        ] {
            let error = Policy::parse(&document.to_string()).unwrap_err();
            assert!(error.contains(words), "{document}: {error}");
        }
    }
}
