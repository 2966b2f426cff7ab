// SPDX-License-Identifier: Apache-2.0
//! Reads packets from a pcap file.
//!
//! # Synopsis
//! `FromDump(FILENAME [, STOP, ACTIVE, END_CALL])`: with STOP (default false) the router stops at the end of the file,
//! where END_CALL (`HANDLER [VALUE]`) is written; it reads only while ACTIVE (default true). Files with microseconds and nanoseconds in both byte orders are read;
//! a damaged record ends the file.
//! # Ports
//! 0/1, agnostic. The timestamp is the file's; Ethernet packets have their link header marked, IP packets their
//! network header.
//! # Handlers
//! * `count` (read): packets read. `filename` (read). `active` (read, write): ACTIVE.
//! # Example
//! `FromDump(in.pcap, STOP true) -> Counter -> ToDump(out.pcap);`
use std::fs::File;
use std::io::{BufReader, Read};

use click_core::MAX_PACKET;

use crate::handler_call::HandlerCall;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromDump",
    aliases: &["FromTcpdump"],
    ports: "0/1",
    args: &[
        mandatory("FILENAME"),
        keyword("STOP"),
        keyword("ACTIVE"),
        keyword("END_CALL"),
    ],
    handlers: &[read("count"), read("filename"), read_write("active")],
    build: |a| {
        let (filename, stop, active) = (
            a.need::<String>("FILENAME"),
            a.or("STOP", false),
            a.or("ACTIVE", true),
        );
        let end_call = a.opt("END_CALL");
        Some(Box::new(FromDump {
            filename: filename?,
            file: None,
            stop: stop?,
            active: active?,
            end_call: end_call?,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

/// An open file and what its header says.
struct Dump {
    reader: BufReader<File>,
    swapped: bool,
    ns_per_unit: u64,
    link_type: u32,
}

const ETHERNET: u32 = 1;
/// Link types of packets that begin with an IP header.
const RAW_IP: [u32; 4] = [12, 14, 101, 228];

impl Dump {
    fn open(filename: &str) -> Result<Self, String> {
        let file = File::open(filename).map_err(|e| format!("{filename}: {e}"))?;
        let mut dump = Self {
            reader: BufReader::new(file),
            swapped: false,
            ns_per_unit: 1000,
            link_type: 0,
        };
        let mut header = [0; 24];
        dump.reader
            .read_exact(&mut header)
            .map_err(|e| format!("{filename}: no pcap header: {e}"))?;
        let magic = dump.number(&header, 0);
        (dump.swapped, dump.ns_per_unit) = match magic {
            0xa1b2_c3d4 => (false, 1000),
            0xa1b2_3c4d => (false, 1),
            0xd4c3_b2a1 => (true, 1000),
            0x4d3c_b2a1 => (true, 1),
            _ => return Err(format!("{filename}: not a pcap file (magic {magic:#010x})")),
        };
        dump.link_type = dump.number(&header, 20) & 0x0fff_ffff;
        Ok(dump)
    }

    /// A number in the byte order of the file.
    fn number(&self, bytes: &[u8], at: usize) -> u32 {
        let mut four = [0; 4];
        four.copy_from_slice(&bytes[at..at + 4]);
        if self.swapped {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    }

    /// The next packet; `None` at the end.
    fn packet(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let mut header = [0; 16];
        self.reader.read_exact(&mut header).ok()?;
        let length = usize::try_from(self.number(&header, 8))
            .ok()
            .filter(|n| *n <= MAX_PACKET)?;
        let mut packet = ctx.pool().alloc(length)?;
        self.reader.read_exact(packet.data_mut()).ok()?;
        let seconds = u64::from(self.number(&header, 0)) * 1_000_000_000;
        packet.set_timestamp_ns(seconds + u64::from(self.number(&header, 4)) * self.ns_per_unit);
        if self.link_type == ETHERNET {
            packet.set_mac_offset(0);
        } else if RAW_IP.contains(&self.link_type) && length >= 20 {
            let header_len = usize::from(packet.data()[0] & 15) * 4;
            packet.set_network(0, header_len);
        }
        Some(packet)
    }
}

struct FromDump {
    filename: String,
    file: Option<Dump>,
    stop: bool,
    active: bool,
    end_call: Option<HandlerCall>,
    count: u64,
}

impl FromDump {
    fn next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let packet = self.file.as_mut().filter(|_| self.active)?.packet(ctx);
        match packet {
            Some(_) => self.count += 1,
            None => {
                self.file = None;
                self.end(ctx);
            }
        }
        packet
    }

    /// The end of the file was reached.
    fn end(&self, ctx: &mut Context<'_>) {
        if let Some(call) = &self.end_call {
            call.make(ctx);
        }
        if self.stop {
            ctx.stop();
        }
    }
}

impl Element for FromDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.end_call.iter().try_for_each(|c| c.check(ctx))?;
        self.file = Some(Dump::open(&self.filename)?);
        if ctx.output_is_push(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(packet) = self.next(ctx) else {
            return false;
        };
        ctx.push_one(0, packet);
        ctx.schedule();
        true
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            let Some(packet) = self.next(ctx) else { break };
            batch.push_back(packet);
        }
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Always
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "filename" => text(&self.filename),
            "active" => text(self.active),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "active" => on_value(view, value, |me: &mut Self, active, ctx| {
                me.active = active;
                if ctx.output_is_push(0) {
                    ctx.schedule();
                }
            }),
            _ => undeclared(handler),
        }
    }
}
