// SPDX-License-Identifier: Apache-2.0
//! Arguments and answers of the verbs about rules that decide packets for a guest.
use std::str::FromStr;

use clickos_offload::{MAX_RULES, Rule};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{PortName, SwitchName};

/// The author of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Owner {
    /// Judges first.
    Operator,
    Guest,
}

/// A rule, which is text on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(with = "String")
)]
pub struct OffloadRule(pub Rule);

impl TryFrom<String> for OffloadRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for OffloadRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl From<OffloadRule> for String {
    fn from(rule: OffloadRule) -> Self {
        rule.0.to_string()
    }
}

/// Arguments of `offload-set`, which replaces the table of an owner at a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadSet {
    pub switch: SwitchName,
    pub port: PortName,
    pub owner: Owner,
    /// The number that the owner gave the table.
    #[serde(default)]
    pub version: u64,
    /// Replaces only the table with this epoch, or none if it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u64>,
    #[serde(deserialize_with = "rules")]
    pub rules: Vec<OffloadRule>,
}

fn rules<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<OffloadRule>, D::Error> {
    control_socket::at_most(input, MAX_RULES)
}

/// Arguments of `offload-remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadId {
    pub switch: SwitchName,
    pub port: PortName,
    pub owner: Owner,
}

/// Arguments of `offload-enable`. A table that is not enabled decides nothing, and neither does the
/// one that replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadEnable {
    pub switch: SwitchName,
    pub port: PortName,
    pub owner: Owner,
    pub enabled: bool,
}

/// Arguments of `offload-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadList {
    #[serde(default)]
    pub switch: Option<SwitchName>,
}

/// A rule and the packets that it decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleHits {
    pub rule: OffloadRule,
    pub hits: u64,
}

/// A table as `offload-list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadInfo {
    pub switch: SwitchName,
    pub port: PortName,
    pub owner: Owner,
    pub version: u64,
    /// New with each table, also after a restart of valed.
    pub epoch: u64,
    pub enabled: bool,
    pub rules: Vec<RuleHits>,
}

/// Answer of `offload-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offloads {
    pub offloads: Vec<OffloadInfo>,
}

/// Answer of `offload-set` and `offload-remove`: the table that ended, with its last hits, and the one
/// that began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadChange {
    pub before: Option<OffloadInfo>,
    pub now: Option<OffloadInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_bounded_and_its_rules_are_checked() {
        let set = |rules: serde_json::Value| {
            serde_json::from_value::<OffloadSet>(serde_json::json!({
                "switch": "vale0", "port": "fw", "owner": "guest", "version": 7, "rules": rules,
            }))
        };
        let rule = "drop src 10.0.0.0/8 proto 17 dport 53";
        let one = set(serde_json::json!([rule])).unwrap();
        assert_eq!(String::from(one.rules[0]), rule);
        let again = serde_json::to_value(&one).unwrap();
        assert_eq!(serde_json::from_value::<OffloadSet>(again).unwrap(), one);
        assert!(set(vec![rule; MAX_RULES].into()).is_ok());
        assert!(set(vec![rule; MAX_RULES + 1].into()).is_err());
        let error = set(serde_json::json!(["drop proto 300"])).unwrap_err();
        assert!(error.to_string().contains("proto: expected"), "{error}");
    }
}
