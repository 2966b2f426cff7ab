// SPDX-License-Identifier: Apache-2.0
//! Prints IPv6 headers, a line each.
//!
//! # Synopsis
//! `IP6Print([LABEL, NBYTES, CONTENTS])`: LABEL, addresses, length, next header and hop limit. With CONTENTS (default
//! false) the first NBYTES (default 1500) of the packet follow in hexadecimal, 24 a line.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are not printed.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Lines have no blank at their ends.
//! # Example
//! `... -> CheckIP6Header -> IP6Print(in) -> ...`
use crate::ip6::View as Header;
use crate::prelude::*;
use crate::print_line::hex;

pub static ELEMENT: Class = Class {
    name: "IP6Print",
    args: &[optional("LABEL"), keyword("NBYTES"), keyword("CONTENTS")],
    build: |a| {
        let (label, most) = (a.or("LABEL", String::new()), a.or("NBYTES", 1500usize));
        let contents = a.or("CONTENTS", false);
        Some(Box::new(IP6Print {
            label: label?,
            most: most?,
            contents: contents?,
        }))
    },
    ..Class::DEFAULT
};

/// Bytes of contents in a line.
const ROW: usize = 24;

struct IP6Print {
    label: String,
    most: usize,
    contents: bool,
}

impl IP6Print {
    fn line(&self, header: Header<'_>) -> String {
        let label = match self.label.as_str() {
            "" => String::new(),
            label => format!("{label}: "),
        };
        format!(
            "{label}{} -> {} plen {}, next {}, hlim {}",
            header.source(),
            header.destination(),
            header.payload_len(),
            header.next_header(),
            header.hop_limit()
        )
    }

    fn print_contents(&self, ctx: &mut Context<'_>, packet: &Packet) {
        let shown = &packet.data()[..packet.len().min(self.most)];
        for row in shown.chunks(ROW) {
            let mut line = String::from("  ");
            hex(&mut line, row, 4);
            ctx.print(&line);
        }
    }
}

impl InPlace for IP6Print {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if let Some(header) = Header::marked(packet) {
            ctx.print(&self.line(header));
            if self.contents {
                self.print_contents(ctx, packet);
            }
        }
        0
    }
}

impl Element for IP6Print {
    in_place!();
}
