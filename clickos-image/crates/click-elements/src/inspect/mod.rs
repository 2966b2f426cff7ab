// SPDX-License-Identifier: Apache-2.0
//! Inspection of flows by rules: what is taken of Suricata's language ([`rules`]), TCP streams as their receivers read
//! them ([`stream`], [`connection`]), fragments that wait for the whole packet ([`fragments`]), and alerts ([`alerts`]).
//! The [`judge`] finds the flow of a packet, the [`inspector`] asks the rules.
//!
//! All input is hostile: work for a packet, and memory for a flow and for all, have bounds.
pub mod alerts;
pub mod connection;
pub mod fragments;
pub mod inspector;
pub mod judge;
pub mod pcre;
pub mod prefilter;
pub mod rules;
pub mod segment;
pub mod stream;
pub mod table;
pub mod threshold;
pub mod verify;
pub mod vlans;
