// SPDX-License-Identifier: Apache-2.0
//! Views and plain structs for Ethernet, ARP, IPv4, ICMP, UDP and TCP headers.
#![forbid(unsafe_code)]
