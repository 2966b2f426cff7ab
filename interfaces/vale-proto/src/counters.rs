// SPDX-License-Identifier: Apache-2.0
//! The counters of a port.
use serde::{Deserialize, Serialize};

/// Events at a port. rx counts frames that came from the port into the switch, dropped or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    /// Frames to this port that found its ring or socket full.
    pub dropped_full: u64,
    /// Frames from this port with an address it may not use.
    pub dropped_spoof: u64,
    /// Frames from this port of an EtherType or with a tag that port security does not allow.
    pub dropped_type: u64,
    /// Messages from this port that only routers and servers send, and source routes.
    pub dropped_rogue: u64,
    /// As `dropped_rogue`: its name before 1.0, for one more release.
    pub dropped_role: u64,
    /// Frames from this port whose fragments or headers hide what they carry.
    pub dropped_hidden: u64,
    /// Frames from this port to the other end of its cable: STP, LACP, LLDP, PAUSE.
    pub dropped_link_control: u64,
    /// Invalid frames or descriptors from this port.
    pub dropped_malformed: u64,
    /// Frames to this port longer than its MTU.
    pub dropped_too_long: u64,
    /// Frames from or to this port while its link was down.
    pub dropped_link_down: u64,
    /// Frames from this port to a MAC address no port of the segment has.
    pub dropped_unknown: u64,
    /// Frames from or to this port above its rates.
    pub dropped_rate: u64,
    /// Group frames, or frames to unknown addresses, from this port above its budgets.
    pub dropped_flood: u64,
    /// Frames from or to this port that its filter does not permit.
    pub dropped_filter: u64,
    /// Packets to this port that a rule dropped instead of the guest.
    pub dropped_offload: u64,
    /// Frames from this port that had entered the switch before: they would pass it again. Also frames
    /// of a hop beyond the copies that it declares.
    pub dropped_loop: u64,
    /// Notifications sent to this port.
    pub kicks: u64,
    /// Notifications and events received from this port.
    pub kicks_received: u64,
    /// Looks at this port that found no frame.
    pub polls_empty: u64,
    /// Looks that found frames: `rx_packets` / `bursts` is the length of a burst.
    pub bursts: u64,
}

/// Adds all counters of another port.
impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.dropped_full += other.dropped_full;
        self.dropped_spoof += other.dropped_spoof;
        self.dropped_type += other.dropped_type;
        self.dropped_rogue += other.dropped_rogue;
        self.dropped_role += other.dropped_role;
        self.dropped_hidden += other.dropped_hidden;
        self.dropped_link_control += other.dropped_link_control;
        self.dropped_malformed += other.dropped_malformed;
        self.dropped_too_long += other.dropped_too_long;
        self.dropped_link_down += other.dropped_link_down;
        self.dropped_unknown += other.dropped_unknown;
        self.dropped_rate += other.dropped_rate;
        self.dropped_flood += other.dropped_flood;
        self.dropped_filter += other.dropped_filter;
        self.dropped_offload += other.dropped_offload;
        self.dropped_loop += other.dropped_loop;
        self.kicks += other.kicks;
        self.kicks_received += other.kicks_received;
        self.polls_empty += other.polls_empty;
        self.bursts += other.bursts;
    }
}

impl Counters {
    /// Gives both names of a counter its value. valed counts by the new name only, and a valed of before
    /// 1.0 sends only the old one.
    pub fn with_earlier_names(mut self) -> Self {
        self.dropped_rogue = self.dropped_rogue.max(self.dropped_role);
        self.dropped_role = self.dropped_rogue;
        self
    }

    /// The counters of drops, by their names in answers, each once.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("full", self.dropped_full),
            ("spoof", self.dropped_spoof),
            ("type", self.dropped_type),
            ("rogue", self.dropped_rogue),
            ("hidden", self.dropped_hidden),
            ("link_control", self.dropped_link_control),
            ("malformed", self.dropped_malformed),
            ("too_long", self.dropped_too_long),
            ("link_down", self.dropped_link_down),
            ("unknown", self.dropped_unknown),
            ("rate", self.dropped_rate),
            ("flood", self.dropped_flood),
            ("filter", self.dropped_filter),
            ("offload", self.dropped_offload),
            ("loop", self.dropped_loop),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_have_all_counters() {
        let ones = json!(Counters::default()).to_string().replace(":0", ":1");
        let mut sum: Counters = serde_json::from_str(&ones).unwrap();
        sum += sum;
        assert_eq!(json!(sum).to_string(), ones.replace(":1", ":2"));
    }

    #[test]
    fn the_earlier_name_of_dropped_rogue_has_its_value() {
        for name in ["dropped_rogue", "dropped_role"] {
            let counters: Counters = serde_json::from_value(json!({name: 7})).unwrap();
            let both = json!(counters.with_earlier_names());
            assert_eq!(
                (&both["dropped_rogue"], &both["dropped_role"]),
                (&json!(7), &json!(7))
            );
            let drops: u64 = counters.with_earlier_names().drops().map(|(_, n)| n).sum();
            assert_eq!(drops, 7, "a sum counts it once");
        }
    }

    #[test]
    fn all_drops_have_a_reason() {
        let counters = json!(Counters::default());
        let names = counters.as_object().unwrap().keys();
        let dropped = names.filter_map(|name| name.strip_prefix("dropped_"));
        let dropped = dropped.filter(|reason| *reason != "role");
        let mut reasons: Vec<_> = Counters::default().drops().map(|(r, _)| r).collect();
        reasons.sort_unstable();
        assert_eq!(reasons, dropped.collect::<Vec<_>>());
    }
}
