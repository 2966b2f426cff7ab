// SPDX-License-Identifier: Apache-2.0
//! Sets the differentiated services code point of IP packets.
//!
//! # Synopsis
//! `SetIPDSCP(DSCP)`: 0 to 63, mandatory. The checksum follows.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `dscp` (read, write): DSCP.
//! # Example
//! `... -> CheckIPHeader -> SetIPDSCP(46) -> ...`
use crate::ip_packet::header_mut;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIPDSCP",
    args: &[mandatory("DSCP")],
    handlers: &[read_write("dscp")],
    build: |a| {
        let dscp = a.need("DSCP")?;
        match in_range(dscp) {
            Ok(()) => Some(Box::new(SetIPDSCP { dscp })),
            Err(message) => {
                a.error("DSCP", message);
                None
            }
        }
    },
    ..Class::DEFAULT
};

fn in_range(dscp: u8) -> Result<(), String> {
    match dscp {
        0..=63 => Ok(()),
        _ => Err(format!("{dscp} is out of range, the most is 63")),
    }
}

struct SetIPDSCP {
    dscp: u8,
}

impl Element for SetIPDSCP {
    fn process(&mut self, _ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let Some(mut header) = header_mut(&mut packet) else {
            return Out::Drop;
        };
        header.set_tos(header.tos() & 3 | self.dscp << 2);
        Out::Port(0, packet)
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "dscp" => text(self.dscp),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "dscp" => {
                in_range(view.parse(value)?).map_err(HandlerError::rejected)?;
                on_value(view, value, |me: &mut Self, dscp, _| me.dscp = dscp)
            }
            _ => undeclared(handler),
        }
    }
}
