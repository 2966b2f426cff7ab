// SPDX-License-Identifier: Apache-2.0
//! Files of packets: pcap records, what packets begin with, and which part of a file is wanted.
pub mod link;
pub mod pcap;
pub mod window;
