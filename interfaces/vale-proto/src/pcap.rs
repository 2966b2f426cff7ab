// SPDX-License-Identifier: Apache-2.0
//! The far end of a port of kind `pcap`.
use serde::{Deserialize, Serialize};

use crate::FileName;

/// Largest rate of a played file, in frames per second.
pub const MAX_PLAY_RATE: u64 = 10_000_000;

/// Files in valed's `capture_dir`, whose names (`[a-z0-9-]{1,36}`) get `.pcap`. A played file has at most
/// 64 MiB and 1,048,576 frames of 14 to 10,240 bytes, a written one 256 MiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pcap {
    /// The port plays this file into the switch, from `port-add` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<FileName>,
    /// Frames per second, 1 to 10^7; the file's own times if missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<u64>,
    /// The port plays the file again and again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// The port writes the frames that it gets to this new file; without one they count as
    /// `dropped_link_down`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<FileName>,
}

impl Pcap {
    /// Checks rules between fields; the error names the field, the value and the limit.
    ///
    /// # Errors
    /// There is no file, or the rate has no file to play or is outside of its range.
    pub fn check(&self) -> Result<(), String> {
        if self.read.is_none() && self.write.is_none() {
            return Err("pcap: needs read, write or both".to_owned());
        }
        if self.read.is_none() && (self.repeat || self.packets_per_s.is_some()) {
            return Err("pcap.read: is missing; packets_per_s and repeat concern it".to_owned());
        }
        match self.packets_per_s {
            Some(rate) if !(1..=MAX_PLAY_RATE).contains(&rate) => Err(format!(
                "pcap.packets_per_s: {rate} is outside 1..={MAX_PLAY_RATE}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_port_plays_or_writes_a_file_of_its_directory() {
        let check = |args: Value| {
            let pcap: Result<Pcap, _> = control_socket::typed(&args.to_string());
            pcap.map_err(|e| e.to_string()).and_then(|p| p.check())
        };
        let good = json!({"read": "in", "packets_per_s": MAX_PLAY_RATE, "repeat": true});
        assert_eq!(check(good), Ok(()));
        assert_eq!(check(json!({"write": "out"})), Ok(()));
        for (wrong, field) in [
            (json!({}), "pcap"),
            (json!({"write": "out", "repeat": true}), "pcap.read"),
            (json!({"write": "out", "packets_per_s": 1}), "pcap.read"),
            (
                json!({"read": "in", "packets_per_s": 0}),
                "packets_per_s: 0",
            ),
            (
                json!({"read": "in", "packets_per_s": MAX_PLAY_RATE + 1}),
                "packets_per_s",
            ),
            (json!({"read": "../in"}), "read: expected"),
            (json!({"write": ""}), "write: expected"),
            (json!({"write": "a".repeat(37)}), "write: expected"),
        ] {
            let error = check(wrong.clone()).unwrap_err();
            assert!(error.contains(field), "{wrong}: {error}");
        }
    }
}
