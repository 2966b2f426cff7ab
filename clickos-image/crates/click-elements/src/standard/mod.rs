// SPDX-License-Identifier: Apache-2.0
//! What elements of group `standard` share.
pub mod average;
pub mod bandwidth;
pub mod crc32;
pub mod delay;
pub mod fifo;
pub mod input_choice;
pub mod interval;
pub mod meter;
pub mod probability;
pub mod queues;
pub mod rate_anno;
pub mod rated;
pub mod rated_splitter;
pub mod rated_unqueue;
pub mod red;
pub mod shaper;
pub mod share;
pub mod spinlock;
pub mod stride;
pub mod time;
pub mod timed_unqueue;
pub mod token_bucket;
pub mod udp_encap;

use crate::prelude::Bytes;

/// The content of packets when a source is not told it: as long as Click's.
pub fn default_data() -> Bytes {
    Bytes((0..69).map(|n| b'A' + n % 26).collect())
}
