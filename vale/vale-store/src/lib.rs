// SPDX-License-Identifier: Apache-2.0
//! The part of domain 0's store that the switch uses.
//!
//! Each client of xenstored's socket may read and change all nodes. This program opens that socket for valed.
//! It passes on the requests of [`rules`] and refuses all others with `EACCES`. valed keeps no more access to the
//! store than its ports need, also when a guest has taken it over. Nor can it fill the store's memory: [`account`]
//! bounds what a connection leaves open there, and [`outbox`] what it leaves unread.
#![forbid(unsafe_code)]

pub mod account;
pub mod door;
pub mod outbox;
pub mod rules;
