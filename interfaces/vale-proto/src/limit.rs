// SPDX-License-Identifier: Apache-2.0
//! Arguments of `port-limit`.
use serde::{Deserialize, Serialize};

use crate::{PortName, SwitchName};

/// Largest rate, in packets/s or bit/s.
pub const MAX_RATE: u64 = 1_000_000_000_000;

/// The rates of one direction; a missing one is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<u64>,
    /// Bits of Ethernet frames without their check sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_s: Option<u64>,
}

/// The limits of a port. rx limits frames from the port into the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    pub rx: Rates,
    pub tx: Rates,
    /// Broadcast and multicast frames per second from the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_per_s: Option<u64>,
    /// Frames per second from the port to addresses that no port of the segment has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_per_s: Option<u64>,
}

/// Arguments of `port-limit`, which replaces all limits of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortLimit {
    pub switch: SwitchName,
    pub port: PortName,
    pub limits: Limits,
}

/// Arguments of `segment-limit`, which replaces all limits of a segment: rx limits the frames from
/// its ports together, tx those to its ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentLimit {
    pub switch: SwitchName,
    pub segment: u32,
    pub limits: Limits,
}

impl SegmentLimit {
    /// Checks the ranges; the error names the field, the value and the limit.
    ///
    /// # Errors
    /// The segment or a rate is outside of its range.
    pub fn check(&self) -> Result<(), String> {
        crate::port::check_segment(self.segment)?;
        self.limits.check()
    }
}

/// Arguments of `segment-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentList {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchName>,
}

/// Answer of `segment-list`: the segments with limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segments {
    pub segments: Vec<SegmentLimit>,
}

impl Limits {
    /// Checks the ranges; the error names the field, the value and the limit.
    ///
    /// # Errors
    /// A rate is 0 or too large.
    pub fn check(&self) -> Result<(), String> {
        for (name, rate) in [
            ("rx.packets_per_s", self.rx.packets_per_s),
            ("rx.bits_per_s", self.rx.bits_per_s),
            ("tx.packets_per_s", self.tx.packets_per_s),
            ("tx.bits_per_s", self.tx.bits_per_s),
            ("group_per_s", self.group_per_s),
            ("unknown_per_s", self.unknown_per_s),
        ] {
            match rate {
                Some(rate) if !(1..=MAX_RATE).contains(&rate) => {
                    return Err(format!("{name}: {rate} is outside 1..={MAX_RATE}"));
                }
                _ => (),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_range() {
        assert!(Limits::default().check().is_ok());
        for (rate, good) in [
            (0, false),
            (1, true),
            (MAX_RATE, true),
            (MAX_RATE + 1, false),
        ] {
            let limits = Limits {
                group_per_s: Some(rate),
                ..Limits::default()
            };
            assert_eq!(limits.check().is_ok(), good, "{rate}");
        }
    }
}
