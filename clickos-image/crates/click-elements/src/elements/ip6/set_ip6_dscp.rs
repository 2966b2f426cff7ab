// SPDX-License-Identifier: Apache-2.0
//! Sets the differentiated services code point of IPv6 packets.
//!
//! # Synopsis
//! `SetIP6DSCP(DSCP)`: 0 to 63, mandatory; the upper six bits of the traffic class.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `dscp` (read, write): DSCP.
//! # Example
//! `... -> CheckIP6Header -> SetIP6DSCP(46) -> ...`
use crate::ip6::{View as Header, header_mut, set_traffic_class};
use crate::numbers::Dscp;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIP6DSCP",
    args: &[mandatory("DSCP")],
    handlers: &[read_write(
        "dscp",
        |me: &mut SetIP6DSCP, _| text(me.dscp.0),
        set!(|me, dscp, _| me.dscp = dscp),
    )],
    build: |a| {
        Some(Box::new(SetIP6DSCP {
            dscp: a.need("DSCP")?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct SetIP6DSCP {
    dscp: Dscp,
}

impl InPlace for SetIP6DSCP {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(class) = Header::marked(packet).map(Header::traffic_class) else {
            return DROPPED;
        };
        if let Some(header) = header_mut(packet) {
            set_traffic_class(header, class & 3 | self.dscp.0 << 2);
        }
        0
    }
}

impl Element for SetIP6DSCP {
    in_place!(plain);
}
