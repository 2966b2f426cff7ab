// SPDX-License-Identifier: Apache-2.0
//! Files of packets: pcap records, what packets begin with, which part of a file is wanted, and how
//! files are played and recorded.
pub mod link;
pub mod pcap;
pub mod playback;
pub mod recorder;
pub mod window;
