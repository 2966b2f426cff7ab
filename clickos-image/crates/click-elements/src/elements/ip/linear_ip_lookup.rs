// SPDX-License-Identifier: Apache-2.0
//! Looks up the route of packets.
//!
//! # Synopsis
//! `LinearIPLookup(ROUTE, ...)`: each ROUTE is `NETWORK/LENGTH [GATEWAY] OUTPUT`. The
//! longest prefix that contains the destination annotation decides: packets leave by OUTPUT, and
//! GATEWAY, if there is one, becomes the annotation. The first of two routes for a network counts.
//! All elements that look up routes share one table structure here.
//! # Ports
//! 1/any, push. Packets without a route are dropped, the first five with a message.
//! # Handlers
//! * `table` (read): the routes. `lookup` (read, with an address as parameter): output and gateway, or -1.
//! * `add` (write): a route for a network that has none. `set` (write): a route, in place of the older one.
//! * `remove` (write): `NETWORK/LENGTH [[GATEWAY] OUTPUT]`. `ctrl` (write): `add`, `set` and `remove` with their
//!   arguments, one a line; all of them or none.
//! # Differences from Click
//! See `RadixIPLookup`.
//! # Example
//! `rt :: LinearIPLookup(10.0.0.0/24 0, 0.0.0.0/0 10.0.0.254 1); rt[0] -> ...`
use crate::prelude::*;
use crate::routes::element::CLASS;

pub static ELEMENT: Class = Class {
    name: "LinearIPLookup",
    ..CLASS
};
