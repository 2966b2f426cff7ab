// SPDX-License-Identifier: Apache-2.0
//! Arguments of `port-limit`.
use serde::{Deserialize, Serialize};

use crate::{PortName, SwitchName};

/// Largest rate, in packets/s or bit/s.
pub const MAX_RATE: u64 = 1_000_000_000_000;
/// Largest differentiated services code point (RFC 2474).
pub const MAX_DSCP: u8 = 63;

/// The rates of one direction, each 1 to 10^12; a missing one is unlimited. A bucket holds the burst,
/// or without one the tokens of 10 ms, and at least 64 packets or 65,600 bytes. A long frame counts
/// as the packets that a network card would cut, and a full bucket admits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<u64>,
    /// Bits of Ethernet frames without their check sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_s: Option<u64>,
    /// Packets that may pass at one time after a silence; needs `packets_per_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_packets: Option<u64>,
    /// Bits that may pass at one time after a silence; needs `bits_per_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_bits: Option<u64>,
}

/// The limits of a port (adr/0030). rx limits frames from the port into the switch. Drops count at the
/// port that sent or would get the frame. Limits end with their port, those of a segment with its
/// switch.
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
    /// The differentiated services code point, 0 to 63, that IPv4 and IPv6 packets from the port get;
    /// ECN is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
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
/// its ports together, tx those to its ports, flooded copies included.
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
        if self.limits.dscp.is_some() {
            return Err("dscp: marks the packets of a port, not of a segment".to_owned());
        }
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
        self.rx.check("rx")?;
        self.tx.check("tx")?;
        in_range("group_per_s", self.group_per_s)?;
        in_range("unknown_per_s", self.unknown_per_s)?;
        match self.dscp {
            Some(dscp) if dscp > MAX_DSCP => Err(format!("dscp: {dscp} is outside 0..={MAX_DSCP}")),
            _ => Ok(()),
        }
    }
}

impl Rates {
    fn check(&self, side: &str) -> Result<(), String> {
        for (name, rate) in [
            ("packets_per_s", self.packets_per_s),
            ("bits_per_s", self.bits_per_s),
            ("burst_packets", self.burst_packets),
            ("burst_bits", self.burst_bits),
        ] {
            in_range(&format!("{side}.{name}"), rate)?;
        }
        for (burst, is_set, rate, has_rate) in [
            (
                "burst_packets",
                self.burst_packets.is_some(),
                "packets_per_s",
                self.packets_per_s.is_some(),
            ),
            (
                "burst_bits",
                self.burst_bits.is_some(),
                "bits_per_s",
                self.bits_per_s.is_some(),
            ),
        ] {
            if is_set && !has_rate {
                return Err(format!("{side}.{burst}: needs {rate}"));
            }
        }
        Ok(())
    }
}

fn in_range(name: &str, rate: Option<u64>) -> Result<(), String> {
    match rate {
        Some(rate) if !(1..=MAX_RATE).contains(&rate) => {
            Err(format!("{name}: {rate} is outside 1..={MAX_RATE}"))
        }
        _ => Ok(()),
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

    #[test]
    fn a_burst_needs_its_rate_and_a_mark_its_port() {
        let rates = |text| serde_json::from_str::<Rates>(text).unwrap();
        let limits = |rx| Limits {
            rx,
            ..Limits::default()
        };
        assert!(
            limits(rates(r#"{"bits_per_s": 1, "burst_bits": 9}"#))
                .check()
                .is_ok()
        );
        for (text, word) in [
            (r#"{"burst_bits": 9}"#, "rx.burst_bits: needs bits_per_s"),
            (
                r#"{"bits_per_s": 1, "burst_packets": 9}"#,
                "rx.burst_packets: needs",
            ),
            (
                r#"{"packets_per_s": 1, "burst_packets": 0}"#,
                "rx.burst_packets: 0",
            ),
        ] {
            let error = limits(rates(text)).check().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let marks = |dscp| Limits {
            dscp: Some(dscp),
            ..Limits::default()
        };
        assert!(marks(63).check().is_ok() && marks(64).check().is_err());
        let segment = SegmentLimit {
            switch: "vale0".parse().unwrap(),
            segment: 1,
            limits: marks(46),
        };
        assert!(segment.check().unwrap_err().starts_with("dscp"));
    }
}
