// SPDX-License-Identifier: Apache-2.0
//! Time of the switch.

/// Nanoseconds since valed started. Each worker reads the clock once a round.
pub type Nanoseconds = u64;
