// SPDX-License-Identifier: Apache-2.0
//! Looks up the route of packets in a table that does not change.
//!
//! # Synopsis
//! `StaticIPLookup(ROUTE, ...)`: each ROUTE is `NETWORK/LENGTH [GATEWAY] OUTPUT`. The
//! longest prefix that contains the destination annotation decides: packets leave by OUTPUT, and
//! GATEWAY, if there is one, becomes the annotation. The first of two routes for a network counts.
//! LookupIPRouteMP is another name for it.
//! # Ports
//! 1/any, push. Packets without a route are dropped, the first five with a message.
//! # Handlers
//! * `table` (read): the routes. `lookup` (read, with an address as parameter): output and gateway, or -1.
//! # Differences from Click
//! See `RadixIPLookup`.
//! # Example
//! `rt :: StaticIPLookup(10.0.0.0/24 0, 0.0.0.0/0 10.0.0.254 1); rt[0] -> ...`
use crate::prelude::*;
use crate::routes::element::{CLASS, LOOKUP, TABLE};

pub static ELEMENT: Class = Class {
    name: "StaticIPLookup",
    aliases: &["LookupIPRouteMP"],
    handlers: &[TABLE, LOOKUP],
    ..CLASS
};
