// SPDX-License-Identifier: Apache-2.0
//! Writes a line of text about each packet.
//!
//! # Synopsis
//! `ToIPSummaryDump(FILENAME [, FIELDS, HEADER, VERBOSE, BANNER, MULTIPACKET, BAD_PACKETS, CAREFUL_TRUNC, EXTRA_LENGTH])`:
//! FIELDS is a list of field names (default `ip_src ip_dst`) for each packet's line in FILENAME (`-` is standard
//! output). HEADER (default true) puts lines with `!` in front: the format, with BANNER who wrote it, with VERBOSE
//! when. MULTIPACKET repeats the line of a packet that stands for several, unless `count` is a field. With
//! BAD_PACKETS a line `!bad` tells of a damaged header. CAREFUL_TRUNC and EXTRA_LENGTH are understood.
//! # Ports
//! 1/0-1, agnostic. Output 0, if it is connected, gets the packets.
//! # Handlers
//! * `count` (read): lines written. `filename` (read). `flush` (write): writes what is buffered.
//! # Example
//! `FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> ToIPSummaryDump(-, FIELDS src dst ip_len);`
use std::fs::File;
use std::io::{BufWriter, Write, stdout};

use crate::ip_summary::{Field, fields, show};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ToIPSummaryDump",
    ports: "1/0-1",
    args: &[
        mandatory("FILENAME"),
        keyword("FIELDS"),
        keyword("HEADER"),
        keyword("VERBOSE"),
        keyword("BANNER"),
        keyword("MULTIPACKET"),
        keyword("BAD_PACKETS"),
        keyword("CAREFUL_TRUNC"),
        keyword("EXTRA_LENGTH"),
    ],
    handlers: &[read("count"), read("filename"), write("flush")],
    build: |a| {
        let filename = a.need::<String>("FILENAME");
        let list = a.or(
            "FIELDS",
            click_core::value::Verbatim("ip_src ip_dst".into()),
        );
        let (header, verbose) = (a.or("HEADER", true), a.or("VERBOSE", false));
        let (banner, multipacket) = (a.or("BANNER", String::new()), a.or("MULTIPACKET", false));
        let bad_packets = a.or("BAD_PACKETS", false);
        let (careful, extra) = (a.or("CAREFUL_TRUNC", true), a.or("EXTRA_LENGTH", true));
        let fields = match fields(&list?.0) {
            Ok(fields) => fields,
            Err(message) => {
                a.error("FIELDS", message);
                return None;
            }
        };
        careful?;
        extra?;
        Some(Box::new(ToIPSummaryDump {
            filename: filename?,
            multipacket: multipacket? && !fields.contains(&Field::Count),
            fields,
            header: header?,
            verbose: verbose?,
            banner: banner?,
            bad_packets: bad_packets?,
            out: None,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct ToIPSummaryDump {
    filename: String,
    fields: Vec<Field>,
    header: bool,
    verbose: bool,
    banner: String,
    multipacket: bool,
    bad_packets: bool,
    out: Option<BufWriter<Box<dyn Write>>>,
    count: u64,
}

impl ToIPSummaryDump {
    fn open(&self, now_ns: u64) -> std::io::Result<BufWriter<Box<dyn Write>>> {
        let sink: Box<dyn Write> = if self.filename == "-" {
            Box::new(stdout())
        } else {
            Box::new(File::create(&self.filename)?)
        };
        let mut out = BufWriter::new(sink);
        if self.header {
            writeln!(out, "!IPSummaryDump 1.3")?;
            if !self.banner.is_empty() {
                writeln!(out, "!creator \"{}\"", self.banner.escape_debug())?;
            }
            if self.verbose {
                writeln!(
                    out,
                    "!runtime {}.{:06}",
                    now_ns / 1_000_000_000,
                    now_ns % 1_000_000_000 / 1000
                )?;
            }
            let names: Vec<_> = self.fields.iter().map(|f| f.name()).collect();
            writeln!(out, "!data {}", names.join(" "))?;
        }
        Ok(out)
    }

    fn write_packet(&mut self, packet: &Packet) -> std::io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        if self.bad_packets && packet.network().is_none_or(|b| b.len() < 20) {
            writeln!(out, "!bad no IP header")?;
        }
        let line = show(packet, &self.fields);
        let extra = packet.anno().u32(EXTRA_PACKETS);
        let times = if self.multipacket {
            u64::from(extra) + 1
        } else {
            1
        };
        for _ in 0..times.min(MAX_REPEATS) {
            writeln!(out, "{line}")?;
            self.count += 1;
        }
        Ok(())
    }

    /// Writes all packets; a file that cannot be written is closed with a message.
    fn write_batch(&mut self, ctx: &mut Context<'_>, batch: &Batch) {
        for packet in batch.iter() {
            if let Err(error) = self.write_packet(packet) {
                ctx.print(&format!("{}: {error}", self.filename));
                self.out = None;
                return;
            }
        }
    }
}

/// Lines one packet may give: its annotation is not to be trusted.
const MAX_REPEATS: u64 = 65_536;
/// Offset of the annotation for packets a packet stands for besides itself.
const EXTRA_PACKETS: usize = 24;

impl Element for ToIPSummaryDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let opened = self.open(ctx.now_ns());
        self.out = Some(opened.map_err(|e| format!("{}: {e}", self.filename))?);
        if ctx.outputs() == 0 && ctx.input_is_pull(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.write_batch(ctx, &batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = ctx.pull(0, max);
        self.write_batch(ctx, &batch);
        batch
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let batch = ctx.pull(0, 1);
        let worked = !batch.is_empty();
        self.write_batch(ctx, &batch);
        ctx.recycle(batch);
        if worked || ctx.readable(0) {
            ctx.schedule();
        }
        worked
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "filename" => text(&self.filename),
            _ => undeclared(handler),
        }
    }

    fn write(&self, _view: &View<'_>, handler: &str, _value: &str) -> Result<Change, HandlerError> {
        match handler {
            "flush" => on_write(|me: &mut Self, ctx| {
                if let Some(Err(error)) = me.out.as_mut().map(Write::flush) {
                    ctx.print(&format!("{}: {error}", me.filename));
                }
            }),
            _ => undeclared(handler),
        }
    }
}
