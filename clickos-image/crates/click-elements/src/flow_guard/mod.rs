// SPDX-License-Identifier: Apache-2.0
//! The element behind FlowGuard and IP6Balancer: it passes the packets of known flows, with other addresses if it balances.
mod balance;
pub mod element;
