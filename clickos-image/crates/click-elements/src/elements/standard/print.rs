// SPDX-License-Identifier: Apache-2.0
//! Prints the contents of packets.
//!
//! # Synopsis
//! `Print([LABEL, MAXLENGTH, CONTENTS, TIMESTAMP, PRINTANNO, HEADROOM, ACTIVE])`: at most MAXLENGTH bytes
//! (default 24, negative: all) as CONTENTS HEX (default), ASCII or NONE, behind LABEL.
//! TIMESTAMP, PRINTANNO and HEADROOM (default false) add what they say. Nothing is printed unless
//! ACTIVE (default true). Lines beyond the console's rate are counted instead.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `active` (read, write): ACTIVE.
//! # Example
//! `FromDevice(0) -> Print(in, 64) -> Discard;`
use core::fmt::Write as _;

use crate::prelude::*;

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
    handlers: &[read_write("active")],
    build: |a| {
        let (label, max) = (a.or("LABEL", String::new()), a.or("MAXLENGTH", 24i64));
        let (timestamp, annotations) = (a.or("TIMESTAMP", false), a.or("PRINTANNO", false));
        let (headroom, active) = (a.or("HEADROOM", false), a.or("ACTIVE", true));
        let contents = contents(a);
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
    ..Class::DEFAULT
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    None,
    Hex,
    Ascii,
}

fn contents(a: &mut Args<'_>) -> Option<Contents> {
    let word = a.or("CONTENTS", "HEX".to_string())?;
    match word.to_ascii_uppercase().as_str() {
        "NONE" | "FALSE" | "0" => Some(Contents::None),
        "HEX" | "TRUE" | "1" => Some(Contents::Hex),
        "ASCII" => Some(Contents::Ascii),
        _ => {
            a.error(
                "CONTENTS",
                format!("expected NONE, HEX or ASCII, got \"{word}\""),
            );
            None
        }
    }
}

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
            let ns = packet.timestamp_ns();
            let _ = write!(
                line,
                "{separator}{}.{:09}",
                ns / 1_000_000_000,
                ns % 1_000_000_000
            );
            separator = ": ";
        }
        let _ = write!(line, "{separator}{:4}", packet.len());
        if self.headroom {
            let _ = write!(line, " (h{} t{})", packet.headroom(), packet.tailroom());
        }
        if self.annotations {
            line.push_str(" | ");
            hex(&mut line, packet.anno().bytes(), usize::MAX);
        }
        let shown = &packet.data()[..packet.len().min(self.max)];
        if self.contents != Contents::None && !shown.is_empty() {
            line.push_str(" | ");
            match self.contents {
                Contents::Hex => hex(&mut line, shown, 4),
                _ => ascii(&mut line, shown),
            }
        }
        line
    }
}

fn hex(line: &mut String, bytes: &[u8], group: usize) {
    for (index, byte) in bytes.iter().enumerate() {
        let blank = if index > 0 && index % group == 0 {
            " "
        } else {
            ""
        };
        let _ = write!(line, "{blank}{byte:02x}");
    }
}

fn ascii(line: &mut String, bytes: &[u8]) {
    for (index, byte) in bytes.iter().enumerate() {
        if index % 8 == 0 {
            line.push(' ');
        }
        line.push(if (32..127).contains(byte) {
            char::from(*byte)
        } else {
            '.'
        });
    }
}

impl Element for Print {
    fn process(&mut self, ctx: &mut Context<'_>, packet: Packet) -> Out {
        if self.active {
            ctx.print(&self.line(&packet));
        }
        Out::Port(0, packet)
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "active" => text(self.active),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "active" => on_value(view, value, |me: &mut Self, active, _| me.active = active),
            _ => undeclared(handler),
        }
    }
}
