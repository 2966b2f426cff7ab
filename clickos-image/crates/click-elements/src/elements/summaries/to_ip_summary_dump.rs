// SPDX-License-Identifier: Apache-2.0
//! Writes a line of text, or a binary record, about each packet.
//!
//! # Synopsis
//! `ToIPSummaryDump(FILENAME [, FIELDS, CONTENTS, HEADER, VERBOSE, BANNER, BINARY, MULTIPACKET, BAD_PACKETS, CAREFUL_TRUNC,
//! EXTRA_LENGTH])`:
//! FIELDS, or CONTENTS, is a list of field names (default `ip_src ip_dst`) for each packet's line in FILENAME (`-` is standard
//! output). HEADER (default true) puts lines with `!` in front: the format, with BANNER who wrote it, with VERBOSE
//! when. BINARY writes binary records, without `payload`, instead of lines. MULTIPACKET repeats the line of a packet that stands for several, unless `count` is a field. With
//! BAD_PACKETS a line `!bad` tells of a damaged header. CAREFUL_TRUNC and EXTRA_LENGTH are understood.
//! # Ports
//! 1/0-1, agnostic to push. It pulls itself from a pull input. Output 0, if it is connected, gets the packets.
//! # Handlers
//! * `count` (read): lines written. `filename` (read). `flush` (write): writes what is buffered.
//! # Differences from Click
//! If a packet is shorter than its headers say, its payload has length 0. Packets do not change.
//! No gzip. The times have microseconds (`ntimestamp`, `first_ntimestamp` are missing). Binary
//! records hold options as they are in the packet.
//! # Example
//! `FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> ToIPSummaryDump(-, FIELDS src dst ip_len);`
use click_core::value::Verbatim;

use crate::dump::recorder::{Format, Recorder};
use crate::files::Sink;
use crate::ip_summary::{EXTRA_PACKETS, Field, binary, fields, show, store};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ToIPSummaryDump",
    ports: "1/0-1",
    processing: "a/h",
    args: &[
        mandatory("FILENAME"),
        keyword("FIELDS"),
        keyword("CONTENTS"),
        keyword("HEADER"),
        keyword("VERBOSE"),
        keyword("BANNER"),
        keyword("BINARY"),
        keyword("MULTIPACKET"),
        keyword("BAD_PACKETS"),
        keyword("CAREFUL_TRUNC"),
        keyword("EXTRA_LENGTH"),
    ],
    handlers: &[
        Recorder::<Summary>::COUNT,
        Recorder::FILENAME,
        Recorder::FLUSH,
    ],
    build,
    task: true,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (filename, fields) = (a.need::<String>("FILENAME"), wanted_fields(a));
    let (header, verbose) = (a.or("HEADER", true), a.or("VERBOSE", false));
    let (banner, multipacket) = (a.or("BANNER", String::new()), a.or("MULTIPACKET", false));
    let (binary, bad_packets) = (a.or("BINARY", false), a.or("BAD_PACKETS", false));
    let (careful, extra) = (a.or("CAREFUL_TRUNC", true), a.or("EXTRA_LENGTH", true));
    let (fields, binary) = (fields?, binary?);
    if let Some(unfit) = binary::unfit(&fields).filter(|_| binary) {
        a.error("FIELDS", format!("{} has no binary form", unfit.name()));
        return None;
    }
    careful?;
    extra?;
    let format = Summary {
        multipacket: multipacket? && !fields.contains(&Field::Count),
        fields,
        header: header?,
        verbose: verbose?,
        banner: banner?,
        binary,
        bad_packets: bad_packets?,
        line: String::new(),
    };
    Recorder::element(filename?, format)
}

fn wanted_fields(a: &mut Args<'_>) -> Option<Vec<Field>> {
    let usual = a.or("CONTENTS", Verbatim("ip_src ip_dst".to_string()))?;
    let list = a.or("FIELDS", usual)?;
    fields(&list.0).map_err(|e| a.error("FIELDS", e)).ok()
}

struct Summary {
    fields: Vec<Field>,
    header: bool,
    verbose: bool,
    banner: String,
    binary: bool,
    multipacket: bool,
    bad_packets: bool,
    /// Memory for a line.
    line: String,
}

impl Summary {
    /// The lines in front.
    fn lines_in_front(&self, now_ns: u64) -> String {
        let mut lines = String::new();
        if !self.header {
            return lines;
        }
        lines += "!IPSummaryDump 1.3\n";
        if !self.banner.is_empty() {
            lines += &format!("!creator \"{}\"\n", self.banner.escape_debug());
        }
        if self.verbose {
            let (seconds, us) = (now_ns / 1_000_000_000, now_ns % 1_000_000_000 / 1000);
            lines += &format!("!runtime {seconds}.{us:06}\n");
        }
        let names: Vec<_> = self.fields.iter().map(|f| f.name()).collect();
        lines += &format!("!data {}\n", names.join(" "));
        if self.binary {
            lines += "!binary\n";
        }
        lines
    }

    /// A line between the packets.
    fn note(&self, line: &str) -> Vec<u8> {
        match self.binary {
            true => binary::framed_line(line),
            false => format!("{line}\n").into_bytes(),
        }
    }

    /// Writes what there is about a packet that many times.
    fn write(&mut self, sink: &mut Sink, packet: &Packet, times: u64) -> Result<(), String> {
        let framed;
        let entry = match self.binary {
            true => {
                framed = binary::framed(&store(packet, &self.fields));
                framed.as_slice()
            }
            false => {
                self.line.clear();
                show(packet, &self.fields, &mut self.line);
                self.line.push('\n');
                self.line.as_bytes()
            }
        };
        (0..times).try_for_each(|_| sink.write(entry))
    }
}

impl Format for Summary {
    fn header(&mut self, ctx: &mut Context<'_>) -> Result<Vec<u8>, String> {
        Ok(self.lines_in_front(ctx.now_ns()).into_bytes())
    }

    fn record(&mut self, sink: &mut Sink, packet: &Packet) -> Result<u64, String> {
        let is_bad = packet.network().is_none_or(|b| b.len() < 20);
        let bad = (self.bad_packets && is_bad).then(|| self.note("!bad no IP header"));
        bad.iter().try_for_each(|note| sink.write(note))?;
        let times = match self.multipacket {
            true => MAX_REPEATS.min(u64::from(packet.anno().u32(EXTRA_PACKETS)) + 1),
            false => 1,
        };
        self.write(sink, packet, times)?;
        Ok(times)
    }
}

/// Lines one packet may give: its annotation is not to be trusted.
const MAX_REPEATS: u64 = 65_536;
