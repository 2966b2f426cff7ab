// SPDX-License-Identifier: Apache-2.0
//! Pairs of routers: which of them is active (VRRP version 3, RFC 9568), and a copy of the flows of
//! the active one at the other.
pub mod advertisement;
pub mod copier;
pub mod frame;
pub mod group;
pub mod instance;
pub mod message;
pub mod router;
