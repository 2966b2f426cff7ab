// SPDX-License-Identifier: Apache-2.0
//! Sets the explicit congestion notification of IP packets.
//!
//! # Synopsis
//! `SetIPECN(ECN)`: `no` or `-` (0), `ect1` or `ECT(1)` (1), `ect2` or `ECT(0)` (2), `ce` or `CE` (3), or the number. The
//! checksum follows.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `ecn` (read, write): ECN.
//! # Differences from Click
//! Packets without a marked IP header are dropped.
//! # Example
//! `... -> CheckIPHeader -> SetIPECN(ect1) -> ...`
use click_core::ArgContext;

use crate::ip_packet::header_mut;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIPECN",
    args: &[mandatory("ECN")],
    handlers: &[read_write(
        "ecn",
        |me: &mut SetIPECN, _| text(&me.ecn.word),
        set!(|me, ecn, _| me.ecn = ecn),
    )],
    build: |a| {
        Some(Box::new(SetIPECN {
            ecn: a.need("ECN")?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

/// The given value, and the bits it means.
struct Ecn {
    word: String,
    bits: u8,
}

impl FromArg for Ecn {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let bits = match text {
            "0" | "no" | "-" => 0,
            "1" | "ect1" | "ECT(1)" => 1,
            "2" | "ect2" | "ECT(0)" => 2,
            "3" | "ce" | "CE" => 3,
            _ => {
                return Err(format!(
                    "expected no, ect1, ect2 or ce, got \"{}\"",
                    text.shown()
                ));
            }
        };
        let word = text.to_string();
        Ok(Self { word, bits })
    }
}

struct SetIPECN {
    ecn: Ecn,
}

impl InPlace for SetIPECN {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(mut header) = header_mut(packet) else {
            return DROPPED;
        };
        header.set_tos(header.tos() & !3 | self.ecn.bits);
        0
    }
}

impl Element for SetIPECN {
    in_place!(plain);
}
