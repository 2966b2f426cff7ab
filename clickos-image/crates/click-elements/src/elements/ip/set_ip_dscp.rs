// SPDX-License-Identifier: Apache-2.0
//! Sets the differentiated services code point of IP packets.
//!
//! # Synopsis
//! `SetIPDSCP(DSCP)`: 0 to 63, mandatory. The checksum follows.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `dscp` (read, write): DSCP.
//! # Differences from Click
//! Packets without a marked IP header are dropped.
//! # Example
//! `... -> CheckIPHeader -> SetIPDSCP(46) -> ...`
use crate::ip_packet::header_mut;
use crate::numbers::Dscp;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIPDSCP",
    args: &[mandatory("DSCP")],
    handlers: &[read_write(
        "dscp",
        |me: &mut SetIPDSCP, _| text(me.dscp.0),
        set!(|me, dscp, _| me.dscp = dscp),
    )],
    build: |a| {
        Some(Box::new(SetIPDSCP {
            dscp: a.need("DSCP")?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct SetIPDSCP {
    dscp: Dscp,
}

impl InPlace for SetIPDSCP {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(mut header) = header_mut(packet) else {
            return DROPPED;
        };
        header.set_tos(header.tos() & 3 | self.dscp.0 << 2);
        0
    }
}

impl Element for SetIPDSCP {
    in_place!(plain);
}
