// SPDX-License-Identifier: Apache-2.0
//! The counters of a vif: one for each reason of a drop, then one for each rule.
use crate::policy::Policy;

/// Why a program drops a frame, by the names of valed's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    LinkControl = 0,
    Malformed = 1,
    Type = 2,
    Spoof = 3,
    Rogue = 4,
    Hidden = 5,
    Filter = 6,
}

/// The names of the drops, in the order of their counters.
pub const DROPS: [&str; 7] = [
    "dropped_link_control",
    "dropped_malformed",
    "dropped_type",
    "dropped_spoof",
    "dropped_rogue",
    "dropped_hidden",
    "dropped_filter",
];

/// The counter of the first rule of the filter.
pub const FIRST_RULE: usize = DROPS.len();

/// The counter of the first rule that decides packets for the guest.
pub fn first_offload(policy: &Policy) -> usize {
    FIRST_RULE + policy.rules.as_ref().map_or(0, Vec::len)
}

/// The number of counters.
pub fn count(policy: &Policy) -> usize {
    first_offload(policy) + policy.offload.rules().count()
}
