// SPDX-License-Identifier: Apache-2.0
//! Says on the console which packets are not as they should be.
//!
//! # Synopsis
//! `CheckPacket([DATA, DATA_OFFSET, LENGTH, LENGTH_EQ, LENGTH_GE, LENGTH_LE,
//! ALIGNMENT])`: from DATA_OFFSET (default 0) on packets hold exactly DATA. They are LENGTH (or
//! LENGTH_EQ) bytes long, at least LENGTH_GE, or at most LENGTH_LE; one of these may be given.
//! Their data begin OFFSET bytes behind a multiple of MODULUS (ALIGNMENT `MODULUS OFFSET`). It
//! checks only given values.
//! # Ports
//! 1/1, agnostic. All packets pass.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Packets pass; Click loses them.
//! # Example
//! `FromDump(in.pcap) -> CheckPacket(LENGTH_GE 60) -> Discard;`
use click_core::ArgContext;
use click_core::text::split_words;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckPacket",
    args: &[
        keyword("DATA"),
        keyword("DATA_OFFSET"),
        keyword("LENGTH"),
        keyword("LENGTH_EQ"),
        keyword("LENGTH_GE"),
        keyword("LENGTH_LE"),
        keyword("ALIGNMENT"),
    ],
    build: |a| {
        let (data, offset) = (a.opt::<Bytes>("DATA"), a.or("DATA_OFFSET", 0));
        let (length, alignment) = (Length::argument(a), a.opt("ALIGNMENT"));
        Some(Box::new(CheckPacket {
            data: data?.map(|d| d.0),
            offset: offset?,
            length: length?,
            alignment: alignment?,
        }))
    },
    ..Class::DEFAULT
};

type Compare = fn(&usize, &usize) -> bool;

/// The bound on a packet's length.
struct Length {
    sign: &'static str,
    fits: Compare,
    limit: usize,
}

impl Length {
    const WAYS: [(&'static str, &'static str, Compare); 4] = [
        ("LENGTH", "=", usize::eq),
        ("LENGTH_EQ", "=", usize::eq),
        ("LENGTH_GE", ">=", usize::ge),
        ("LENGTH_LE", "<=", usize::le),
    ];

    fn argument(a: &mut Args<'_>) -> Option<Option<Self>> {
        let mut found = None;
        for (name, sign, fits) in Self::WAYS {
            let Some(limit) = a.opt(name)? else {
                continue;
            };
            if found.replace(Self { sign, fits, limit }).is_some() {
                a.error(
                    name,
                    "at most one of LENGTH, LENGTH_EQ, LENGTH_GE, LENGTH_LE",
                );
            }
        }
        Some(found)
    }
}

struct Alignment {
    modulus: usize,
    offset: usize,
}

impl FromArg for Alignment {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let numbers: Result<Vec<_>, _> = words.iter().map(|w| usize::from_arg(w, at)).collect();
        match numbers.as_deref() {
            Ok([modulus, offset]) if offset < modulus && *modulus > 1 => Ok(Self {
                modulus: *modulus,
                offset: *offset,
            }),
            _ => Err(format!("expected MODULUS OFFSET, got \"{}\"", text.shown())),
        }
    }
}

struct CheckPacket {
    data: Option<Vec<u8>>,
    offset: usize,
    length: Option<Length>,
    alignment: Option<Alignment>,
}

impl CheckPacket {
    fn wrong_length(&self, len: usize) -> Option<String> {
        let Length { sign, fits, limit } = self.length.as_ref()?;
        (!fits(&len, limit)).then(|| format!("bad length {len} (wanted {sign} {limit})"))
    }

    fn wrong_data(&self, bytes: &[u8]) -> Option<String> {
        let data = self.data.as_ref()?;
        let (len, wanted) = (bytes.len(), self.offset.saturating_add(data.len()));
        match len {
            _ if len < wanted => Some(format!("data too short ({len} bytes, wanted {wanted})")),
            _ if len > wanted => Some(format!("data too long ({len} bytes, wanted {wanted})")),
            _ if bytes[self.offset..] != data[..] => Some("bad data (does not match)".to_string()),
            _ => None,
        }
    }

    fn wrong_alignment(&self, bytes: &[u8]) -> Option<String> {
        let Alignment { modulus, offset } = self.alignment.as_ref()?;
        let found = bytes.as_ptr().addr() % modulus;
        (found != *offset)
            .then(|| format!("bad alignment ({modulus}/{found}, wanted {modulus}/{offset})"))
    }
}

impl InPlace for CheckPacket {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let bytes = packet.data();
        let wrong = [
            self.wrong_length(bytes.len()),
            self.wrong_data(bytes),
            self.wrong_alignment(bytes),
        ];
        for message in wrong.iter().flatten() {
            ctx.print(&format!("{} :: CheckPacket: {message}", ctx.name()));
        }
        0
    }
}

impl Element for CheckPacket {
    in_place!();
}
