// SPDX-License-Identifier: Apache-2.0
//! Makes packets of the lines of an IP summary dump.
//!
//! # Synopsis
//! `FromIPSummaryDump([FILENAME, STOP, TIMING, ACTIVE, ZERO, CHECKSUM, PROTO, MULTIPACKET, FIELDS, FLOWID, DATA,
//! ALLOW_NONEXISTENT])`: reads FILENAME (`-`: standard input), or the text DATA. Lines that begin with `!` say which
//! fields follow (`!data`; FIELDS until then), the addresses and ports of packets without any (`!flowid`; FLOWID),
//! their protocol (`!proto`; PROTO, default 6) and aggregate (`!aggregate`). With STOP the router stops at the end.
//! With TIMING packets keep their distances in time. With CHECKSUM checksums are right and the data complete; else
//! the packet ends with what is known. With MULTIPACKET a line with a count becomes as many packets.
//! What nothing is said about is zero, whatever ZERO says. It reads only while ACTIVE (default true).
//! # Ports
//! 0/1, agnostic. The network header and the destination annotation are set.
//! # Handlers
//! * `active` (read, write): ACTIVE. `count` (read): packets made. `encap` (read): `IP`.
//! * `stop` (write): ends reading and stops the router.
//! # Example
//! `FromIPSummaryDump(DATA "!data src dst\n1.0.0.1 1.0.0.2", STOP true) -> IPPrint -> Discard;`
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, stdin};

use click_core::value::Verbatim;

use crate::ip_summary::{Defaults, Field, Record, fields, protocol};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromIPSummaryDump",
    ports: "0/1",
    args: &[
        optional("FILENAME"),
        keyword("STOP"),
        keyword("TIMING"),
        keyword("ACTIVE"),
        keyword("ZERO"),
        keyword("CHECKSUM"),
        keyword("PROTO"),
        keyword("MULTIPACKET"),
        keyword("FIELDS"),
        keyword("FLOWID"),
        keyword("DATA"),
        keyword("ALLOW_NONEXISTENT"),
    ],
    handlers: &[
        read_write("active"),
        read("count"),
        read("encap"),
        write("stop"),
    ],
    build: |a| {
        let (filename, data) = (a.opt::<String>("FILENAME"), a.opt::<Bytes>("DATA"));
        let (stop, timing, active) = (
            a.or("STOP", false),
            a.or("TIMING", false),
            a.or("ACTIVE", true),
        );
        let (zero, checksum) = (a.or("ZERO", true), a.or("CHECKSUM", false));
        let (number, multipacket) = (a.or("PROTO", 6u8), a.or("MULTIPACKET", false));
        let (list, flow) = (
            a.or("FIELDS", Verbatim(String::new())),
            a.or("FLOWID", String::new()),
        );
        let allow_nonexistent = a.or("ALLOW_NONEXISTENT", false);
        let mut defaults = Defaults {
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            ports: (0, 0),
            protocol: number?,
            aggregate: None,
            checksum: checksum?,
        };
        let fields = fields(&list?.0).map_err(|e| a.error("FIELDS", e)).ok()?;
        let flow = flow?;
        if !flow.is_empty() && flow_id(&flow, &mut defaults).is_none() {
            a.error(
                "FLOWID",
                format!(
                    "expected SRC SPORT DST DPORT [PROTO], got \"{}\"",
                    flow.escape_debug()
                ),
            );
            return None;
        }
        let (filename, data) = (filename?, data?.map(|d| d.0));
        if filename.is_some() == data.is_some() {
            a.error("FILENAME", "needed, unless DATA is given");
            return None;
        }
        zero?;
        Some(Box::new(FromIPSummaryDump {
            filename,
            data,
            lines: None,
            fields,
            defaults,
            stop: stop?,
            timing: timing?,
            active: active?,
            multipacket: multipacket?,
            allow_nonexistent: allow_nonexistent?,
            next: None,
            offset_ns: None,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

/// Octets of a line at most; what is longer is cut.
const MAX_LINE: u64 = 1 << 18;

/// `SRC SPORT DST DPORT [PROTO]`.
fn flow_id(text: &str, defaults: &mut Defaults) -> Option<()> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (source, sport, destination, dport, proto) = match words[..] {
        [a, b, c, d] => (a, b, c, d, None),
        [a, b, c, d, p] => (a, b, c, d, Some(protocol(p)?)),
        _ => return None,
    };
    let (source, destination) = (source.parse().ok()?, destination.parse().ok()?);
    let ports = (sport.parse().ok()?, dport.parse().ok()?);
    (defaults.source, defaults.destination, defaults.ports) = (source, destination, ports);
    defaults.protocol = proto.unwrap_or(defaults.protocol);
    Some(())
}

struct FromIPSummaryDump {
    filename: Option<String>,
    data: Option<Vec<u8>>,
    lines: Option<Box<dyn BufRead>>,
    fields: Vec<Field>,
    defaults: Defaults,
    stop: bool,
    timing: bool,
    active: bool,
    multipacket: bool,
    allow_nonexistent: bool,
    /// The record that was read and not sent, and how many packets of it are left.
    next: Option<(Record, u32)>,
    /// From a packet's timestamp to the time it is due, for TIMING.
    offset_ns: Option<i128>,
    count: u64,
}

impl FromIPSummaryDump {
    fn open(&self) -> Result<Box<dyn BufRead>, String> {
        if let Some(data) = &self.data {
            return Ok(Box::new(Cursor::new(data.clone())));
        }
        let filename = self.filename.as_deref().unwrap_or("-");
        if filename == "-" {
            return Ok(Box::new(BufReader::new(stdin())));
        }
        match File::open(filename) {
            Ok(file) => Ok(Box::new(BufReader::new(file))),
            Err(_) if self.allow_nonexistent => Ok(Box::new(Cursor::new(Vec::new()))),
            Err(error) => Err(format!("{filename}: {error}")),
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        let lines = self.lines.as_mut()?;
        let read = lines.take(MAX_LINE).read_until(b'\n', &mut bytes).ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// Reads up to the next packet's line; false at the end.
    fn fetch(&mut self) -> bool {
        while self.next.is_none() {
            let Some(line) = self.line() else {
                return false;
            };
            if let Some(rest) = line.strip_prefix('!') {
                self.directive(rest);
            } else if !line.starts_with('#') {
                let record = Record::parse(&line, &self.fields, &self.defaults);
                self.next = record.map(|r| {
                    let times = if self.multipacket { r.count } else { 1 };
                    (r, times)
                });
            }
        }
        true
    }

    /// What cannot be read is as if it were not there: dumps carry comments of other programs.
    fn directive(&mut self, line: &str) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "data" => self.fields = fields(rest).unwrap_or_default(),
            "flowid" => {
                let _ = flow_id(rest, &mut self.defaults);
            }
            "proto" => {
                self.defaults.protocol = protocol(rest.trim()).unwrap_or(self.defaults.protocol)
            }
            "aggregate" => self.defaults.aggregate = rest.trim().parse().ok(),
            _ => {}
        }
    }

    /// When the next packet is due.
    fn due_ns(&mut self, now_ns: u64) -> u64 {
        let Some((record, _)) = self.next.as_ref().filter(|_| self.timing) else {
            return now_ns;
        };
        let time = i128::from(record.timestamp_ns.unwrap_or(0));
        let offset = *self.offset_ns.get_or_insert(i128::from(now_ns) - time);
        u64::try_from((time + offset).max(0)).unwrap_or(u64::MAX)
    }

    /// The next packet, if it is due; sets the timer if it is not.
    fn packet(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        if !self.active || self.lines.is_none() {
            return None;
        }
        if !self.fetch() {
            self.lines = None;
            if self.stop {
                ctx.stop();
            }
            return None;
        }
        let due = self.due_ns(ctx.now_ns());
        if due > ctx.now_ns() {
            ctx.set_timer(due);
            return None;
        }
        let (record, times) = self.next.take()?;
        let mut packet = record.packet(ctx.pool(), &self.defaults)?;
        if self.multipacket {
            packet.anno_mut().set_u32(24, 0);
        }
        if times > 1 {
            self.next = Some((record, times - 1));
        }
        self.count += 1;
        Some(packet)
    }
}

impl Element for FromIPSummaryDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.lines = Some(self.open()?);
        if ctx.output_is_push(0) {
            ctx.schedule();
        } else {
            ctx.set_readable(true);
        }
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(packet) = self.packet(ctx) else {
            return false;
        };
        ctx.push_one(0, packet);
        ctx.schedule();
        true
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if ctx.output_is_push(0) {
            ctx.schedule();
        } else {
            ctx.set_readable(true);
        }
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            let Some(packet) = self.packet(ctx) else {
                ctx.set_readable(false);
                break;
            };
            batch.push_back(packet);
        }
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "active" => text(self.active),
            "count" => text(self.count),
            "encap" => text("IP"),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "active" => on_value(view, value, |me: &mut Self, active, ctx| {
                me.active = active;
                me.run_timer(ctx);
            }),
            "stop" => on_write(|me: &mut Self, ctx| {
                me.active = false;
                ctx.stop();
            }),
            _ => undeclared(handler),
        }
    }
}
