// SPDX-License-Identifier: Apache-2.0
//! Preconnected vifs: those of Xen guests that are connected before they have a port
//! (docs/adr/0098-guest-pool.md).
use serde::{Deserialize, Serialize};

use crate::port::{check_domain, check_slots, default_slots};

/// Arguments of `preconnect-add`: valed connects to the device `vale/<devid>` of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreconnectAdd {
    pub domid: u16,
    pub devid: u32,
    /// Slots of each ring, a power of two; only a port with as many takes the vif over.
    #[serde(default = "default_slots")]
    pub slots: u32,
}

impl PreconnectAdd {
    /// Checks the ranges; the error names the field, the value and the limit.
    pub fn check(&self) -> Result<(), String> {
        check_domain(self.domid).map_err(|e| format!("domid: {e}"))?;
        check_slots(self.slots)
    }
}

/// Arguments of `preconnect-remove`: valed leaves all preconnected vifs of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreconnectRemove {
    pub domid: u16,
}

/// A preconnected vif.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreconnectedVif {
    pub domid: u16,
    pub devid: u32,
    /// It has rings.
    pub connected: bool,
}

/// Answer of `preconnect-list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreconnectedVifs {
    pub vifs: Vec<PreconnectedVif>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_named() {
        let read = |text: &str| serde_json::from_str::<PreconnectAdd>(text).unwrap().check();
        assert_eq!(read(r#"{"domid": 7, "devid": 0}"#), Ok(()));
        for (text, words) in [
            (r#"{"domid": 0, "devid": 0}"#, "0 is not a guest domain"),
            (
                r#"{"domid": 32752, "devid": 0}"#,
                "32752 is not a guest domain",
            ),
            (
                r#"{"domid": 7, "devid": 0, "slots": 63}"#,
                "slots: 63 is not",
            ),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text}");
        }
        for wrong in [
            r#"{"domid": 7}"#,
            r#"{"domid": -1, "devid": 0}"#,
            r#"{"domid": 7, "devid": 0, "mac": "02:00:00:00:00:01"}"#,
        ] {
            assert!(
                serde_json::from_str::<PreconnectAdd>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
