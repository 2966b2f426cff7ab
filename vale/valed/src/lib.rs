// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
//!
//! One thread forwards ([`forwarder`]); control threads open what ports are attached to and hand
//! it over ([`control`]); on a Xen host a third one follows the guests ([`xen`]). A frame's way is in [`switch`].
#![forbid(unsafe_code)]

pub mod control;
pub mod forwarder;
mod guard;
mod headers;
mod host;
mod lookup;
mod offload;
mod packet;
mod port;
mod role;
mod switch;
pub mod xen;
