// SPDX-License-Identifier: Apache-2.0
//! Prints the contents of packets.
//!
//! # Synopsis
//! `Print([LABEL, MAXLENGTH, CONTENTS, TIMESTAMP, PRINTANNO, HEADROOM, ACTIVE])`: at most MAXLENGTH bytes
//! (default 24, negative: all) as CONTENTS HEX (default), ASCII or NONE, after LABEL.
//! TIMESTAMP, PRINTANNO and HEADROOM (default false) add what they say. Nothing is printed unless
//! ACTIVE (default true). Lines beyond the console's rate are counted instead.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `active` (read, write): ACTIVE.
//! # Differences from Click
//! The CPU argument is missing; with `HEADROOM` the figures are this engine's buffers.
//! # Example
//! `FromDevice(0) -> Print(in, 64) -> Discard;`
use core::fmt::Write as _;

use crate::prelude::*;
use crate::print_line::{Contents, ascii, hex, stamp};

pub static ELEMENT: Class = Class {
    name: "Print",
    args: &[
        optional("LABEL"),
        optional("MAXLENGTH"),
        keyword("CONTENTS"),
        keyword("TIMESTAMP"),
        keyword("PRINTANNO"),
        keyword("HEADROOM"),
        keyword("ACTIVE"),
    ],
    handlers: &[read_write(
        "active",
        |me: &mut Print, _| text(me.active),
        set!(|me, active, _| me.active = active),
    )],
    build: |a| {
        let (label, max) = (a.or("LABEL", String::new()), a.or("MAXLENGTH", 24i64));
        let (timestamp, annotations) = (a.or("TIMESTAMP", false), a.or("PRINTANNO", false));
        let (headroom, active) = (a.or("HEADROOM", false), a.or("ACTIVE", true));
        let contents = Contents::argument(a, "CONTENTS", "HEX");
        Some(Box::new(Print {
            label: label?,
            max: usize::try_from(max?).unwrap_or(usize::MAX),
            contents: contents?,
            timestamp: timestamp?,
            annotations: annotations?,
            headroom: headroom?,
            active: active?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct Print {
    label: String,
    max: usize,
    contents: Contents,
    timestamp: bool,
    annotations: bool,
    headroom: bool,
    active: bool,
}

impl Print {
    fn line(&self, packet: &Packet) -> String {
        let mut line = self.label.clone();
        let mut separator = if line.is_empty() { "" } else { ": " };
        if self.timestamp {
            line.push_str(separator);
            stamp(&mut line, packet.timestamp_ns());
            separator = ": ";
        }
        let _ = write!(line, "{separator}{:4}", packet.len());
        if self.headroom {
            let _ = write!(line, " (h{} t{})", packet.headroom(), packet.tailroom());
        }
        if self.annotations {
            line.push_str(" | ");
            hex(&mut line, &packet.anno().bytes(), usize::MAX);
        }
        let shown = &packet.data()[..packet.len().min(self.max)];
        if self.contents != Contents::None && !shown.is_empty() {
            line.push_str(" | ");
            match self.contents {
                Contents::Hex => hex(&mut line, shown, 4),
                _ => {
                    line.push(' ');
                    ascii(&mut line, shown);
                }
            }
        }
        line
    }
}

impl InPlace for Print {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if self.active {
            ctx.print(&self.line(packet));
        }
        0
    }
}

impl Element for Print {
    in_place!();
}
