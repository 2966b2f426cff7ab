// SPDX-License-Identifier: Apache-2.0
//! Arguments and answers of the verbs about mirrors.
use serde::{Deserialize, Serialize};

use crate::{MirrorName, PortName, SwitchName};

/// Most mirrors of a switch.
pub const MAX_MIRRORS: usize = 8;
/// Copies per second of a mirror that names no rate.
pub const MIRROR_RATE: u64 = 10_000;
/// Largest rate of a mirror, in copies per second.
pub const MAX_MIRROR_RATE: u64 = 10_000_000;

/// The frames of a port that a mirror copies, in the switch's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Side {
    /// Frames that the port sends into the switch.
    Rx,
    /// Frames that the switch sends to the port.
    Tx,
    #[default]
    Both,
}

/// Arguments of `mirror-set`, which makes a mirror or replaces it. A mirror copies admitted frames. A
/// switch has at most 8. Frames from or to `to_port` have no copies, and a copy passes no filter and no
/// rate of `to_port`. A port may be missing at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MirrorSet {
    pub switch: SwitchName,
    pub mirror: MirrorName,
    /// The mirror copies the frames of this port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortName>,
    /// The side of `port`; both if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The mirror copies each frame that a port of this segment sends, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
    /// The port that gets the copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_port: Option<PortName>,
    /// The new file in valed's `capture_dir` that gets the copies, 2,048 bytes of a frame and 256 MiB
    /// in all; its name gets `.pcap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_file: Option<MirrorName>,
    /// Copies per second, 1 to 10^7; 10,000 if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<u64>,
}

impl MirrorSet {
    /// Checks rules between fields; the error names the field, the value and the limit.
    ///
    /// # Errors
    /// The source or the target is missing or given twice, or the rate is outside of its range.
    pub fn check(&self) -> Result<(), String> {
        if self.port.is_some() == self.segment.is_some() {
            return Err("port: a mirror has either port or segment".to_owned());
        }
        if self.side.is_some() && self.port.is_none() {
            return Err("side: only a port has one".to_owned());
        }
        if self.to_port.is_some() == self.to_file.is_some() {
            return Err("to_port: a mirror has either to_port or to_file".to_owned());
        }
        if self.to_port.is_some() && self.to_port == self.port {
            return Err("to_port: a port cannot get its own copies".to_owned());
        }
        if let Some(segment) = self.segment {
            crate::port::check_segment(segment)?;
        }
        match self.packets_per_s {
            Some(rate) if !(1..=MAX_MIRROR_RATE).contains(&rate) => Err(format!(
                "packets_per_s: {rate} is outside 1..={MAX_MIRROR_RATE}"
            )),
            _ => Ok(()),
        }
    }
}

/// Arguments of `mirror-remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MirrorId {
    pub switch: SwitchName,
    pub mirror: MirrorName,
}

/// Arguments of `mirror-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MirrorList {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchName>,
}

/// Answer of `mirror-list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mirrors {
    pub mirrors: Vec<MirrorInfo>,
}

/// A mirror as `mirror-list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MirrorInfo {
    #[serde(flatten)]
    pub set: MirrorSet,
    pub counters: MirrorCounters,
}

/// Copies of a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MirrorCounters {
    /// Copies that the target got.
    pub packets: u64,
    pub bytes: u64,
    /// Frames beyond the mirror's rate, without a copy.
    pub over_rate: u64,
    /// Frames without a copy, since the target port is missing or the file takes no more.
    pub dropped: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_mirror_has_one_source_and_one_target() {
        let check = |mut args: Value| {
            args["switch"] = json!("vale0");
            args["mirror"] = json!("m");
            let set: Result<MirrorSet, _> = control_socket::typed(&args.to_string());
            set.map_err(|e| e.to_string()).and_then(|set| set.check())
        };
        for good in [
            json!({"port": "a", "to_port": "b"}),
            json!({"port": "a", "side": "rx", "to_file": "x", "packets_per_s": 1}),
            json!({"segment": 1, "to_file": "x"}),
        ] {
            assert_eq!(check(good), Ok(()));
        }
        for (wrong, field) in [
            (json!({"to_port": "b"}), "port"),
            (json!({"port": "a", "segment": 1, "to_port": "b"}), "port"),
            (json!({"port": "a"}), "to_port"),
            (
                json!({"port": "a", "to_port": "b", "to_file": "x"}),
                "to_port",
            ),
            (json!({"port": "a", "to_port": "a"}), "to_port"),
            (json!({"segment": 0, "to_port": "a"}), "segment: 0"),
            (json!({"segment": 1, "side": "rx", "to_port": "a"}), "side"),
            (json!({"port": "a", "to_file": "../x"}), "to_file: expected"),
            (
                json!({"port": "a", "to_port": "b", "packets_per_s": 0}),
                "packets_per_s: 0",
            ),
        ] {
            let error = check(wrong.clone()).unwrap_err();
            assert!(error.contains(field), "{wrong}: {error}");
        }
    }
}
