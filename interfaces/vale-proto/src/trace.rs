// SPDX-License-Identifier: Apache-2.0
//! Arguments and answer of `port-trace`.
use serde::{Deserialize, Serialize};

use crate::{PortName, Rule, SwitchName};

/// Shortest and longest frame of a trace, in bytes.
pub const TRACE_RANGE: std::ops::RangeInclusive<usize> = 14..=9_022;

/// Arguments of `port-trace`: a frame of 14 to 9,022 bytes that would come from the port. Nothing is
/// sent, counted or changed. The way ends at a hop of a chain; trace again from the hop's egress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortTrace {
    pub switch: SwitchName,
    pub port: PortName,
    /// The bytes of the frame as hexadecimal digits, from its destination address on.
    pub frame: String,
}

impl PortTrace {
    /// The bytes of the frame.
    ///
    /// # Errors
    /// A digit is wrong, or the length is outside of its range.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let digits = self.frame.as_bytes();
        let (low, high) = (TRACE_RANGE.start(), TRACE_RANGE.end());
        if digits.len() % 2 != 0 || !TRACE_RANGE.contains(&(digits.len() / 2)) {
            return Err(format!(
                "frame: {} digits, expected two for each of {low} to {high} bytes",
                digits.len()
            ));
        }
        let value = |digit: &u8| char::from(*digit).to_digit(16);
        let byte = |pair: &[u8]| Some((value(&pair[0])? * 16 + value(&pair[1])?) as u8);
        let bytes: Option<_> = digits.chunks_exact(2).map(byte).collect();
        bytes.ok_or_else(|| "frame: expected hexadecimal digits only".to_owned())
    }

    /// The digits of a frame.
    #[must_use]
    pub fn digits(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Answer of `port-trace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// The stages in their order. A stage that drops ends the way, apart from the ways to other
    /// ports.
    pub stages: Vec<Stage>,
    /// The ports that would get the frame.
    pub outputs: Vec<PortName>,
}

/// A stage of the switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    pub stage: StageKind,
    /// The port whose stage this is.
    pub port: PortName,
    /// The frame passes the stage.
    pub passes: bool,
    /// The reason, or the result of the stage.
    pub detail: String,
    /// The counter of the drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// The rule of a filter that permits the packet, and its number among the rules of its direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<(usize, Rule)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StageKind {
    /// The link, and port security.
    Guard,
    Filter,
    Limits,
    Chain,
    Lookup,
    /// The link and the MTU of a port that the frame leaves by.
    Output,
    /// A rule that decides instead of the guest.
    Offload,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_digits() {
        let trace = |frame: &str| PortTrace {
            switch: "vale0".parse().unwrap(),
            port: "a".parse().unwrap(),
            frame: frame.to_owned(),
        };
        let bytes: Vec<u8> = (100..120).collect();
        assert_eq!(trace(&PortTrace::digits(&bytes)).bytes(), Ok(bytes));
        for wrong in [
            "",
            "00",
            &"0".repeat(29),
            &"0g".repeat(14),
            &"00".repeat(9023),
            &"é".repeat(14),
        ] {
            let error = trace(wrong).bytes().unwrap_err();
            assert!(error.starts_with("frame: "), "{error}");
        }
    }
}
