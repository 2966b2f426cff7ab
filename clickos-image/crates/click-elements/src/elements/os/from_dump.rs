// SPDX-License-Identifier: Apache-2.0
//! Reads packets from a pcap file.
//!
//! # Synopsis
//! `FromDump(FILENAME [, STOP, TIMING, SAMPLE, FORCE_IP, START, START_AFTER, END, END_AFTER, INTERVAL, END_CALL, ACTIVE,
//! FILEPOS, MMAP])`: reads FILENAME (`-`: standard input), only while ACTIVE (default true). Files with microseconds and
//! nanoseconds in both byte orders are read; a damaged record ends the file.
//! Packets are taken from START (seconds since the epoch) or START_AFTER the first one, before END, END_AFTER the first
//! one or INTERVAL after the start, and of those each with probability SAMPLE (default 1). With TIMING (default false)
//! packets keep their distances in time. With FORCE_IP (default false) only IP packets pass, their headers marked.
//! At the end END_CALL (`HANDLER [VALUE]`) is written; without it nothing more is read, and with STOP (default false)
//! the router stops. FILEPOS is the byte of the file where reading begins. MMAP is understood.
//! # Ports
//! 0/1-2, agnostic. The timestamp is the file's, the extra length annotation what was cut off when the file was written;
//! link headers are marked. Output 1 (push) gets what FORCE_IP does not let pass; it is dropped if it is not connected.
//! # Handlers
//! * `count` (read): packets sent; `reset_counts` (write) sets it to 0. `filename`, `filepos` (read): file and place in
//!   it; `packet_filepos` (read): where the last packet was. `encap` (read): what packets begin with.
//! * `active` (read, write): ACTIVE. `sampling_prob` (read): SAMPLE. `stop` (write): ends reading and stops the router.
//! * `extend_interval` (write): moves the end by a time. `reset_timing` (write): TIMING counts from the next packet.
//! # Example
//! `FromDump(in.pcap, STOP true) -> Counter -> ToDump(out.pcap);`
use click_core::class::Arg;

use crate::dump::link::Link;
use crate::dump::pcap::{Pcap, open};
use crate::dump::window::{ARGS, Verdict, Window};
use crate::handler_call::HandlerCall;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromDump",
    aliases: &["FromTcpdump"],
    ports: "0/1-2",
    processing: "a/ah",
    args: &OWN_ARGS,
    handlers: &[
        read("count"),
        write("reset_counts"),
        read("filename"),
        read("filepos"),
        read("packet_filepos"),
        read("encap"),
        read_write("active"),
        read("sampling_prob"),
        write("stop"),
        write("extend_interval"),
        write("reset_timing"),
    ],
    build,
    task: true,
    ..Class::DEFAULT
};

const OWN_ARGS: [Arg; 14] = [
    mandatory("FILENAME"),
    ARGS[0],
    ARGS[1],
    ARGS[2],
    ARGS[3],
    ARGS[4],
    ARGS[5],
    keyword("STOP"),
    keyword("TIMING"),
    keyword("FORCE_IP"),
    keyword("END_CALL"),
    keyword("ACTIVE"),
    keyword("FILEPOS"),
    keyword("MMAP"),
];

fn build(a: &mut Args<'_>) -> Built {
    let (filename, window) = (a.need::<String>("FILENAME"), Window::of(a));
    let (stop, timing) = (a.or("STOP", false), a.or("TIMING", false));
    let (force_ip, active) = (a.or("FORCE_IP", false), a.or("ACTIVE", true));
    let (end_call, filepos) = (a.opt("END_CALL"), a.or("FILEPOS", 0u64));
    a.or("MMAP", false)?;
    let (stop, end_call) = (stop?, end_call?);
    if stop && end_call.is_some() {
        a.error("END_CALL", "give one of END_CALL and STOP");
        return None;
    }
    let (filename, filepos) = (filename?, filepos?);
    let file = start(&filename, filepos).map_err(|e| a.error("FILENAME", e));
    let file = file.ok()?;
    Some(Box::new(FromDump {
        filename,
        link: file.link,
        file: Some(file),
        window: window?,
        stop,
        timing: timing?,
        force_ip: force_ip?,
        active: active?,
        end_call,
        packet_filepos: filepos,
        ..FromDump::default()
    }))
}

/// The file, open and at its place; those that ask for its link type can do so from the start.
fn start(filename: &str, at: u64) -> Result<Pcap, String> {
    let reader = open(filename).map_err(|e| format!("{filename}: {e}"))?;
    let mut file = Pcap::new(reader).map_err(|e| format!("{filename}: {e}"))?;
    file.skip_to(at);
    Ok(file)
}

#[derive(Default)]
struct FromDump {
    filename: String,
    file: Option<Pcap>,
    link: Link,
    window: Window,
    stop: bool,
    timing: bool,
    force_ip: bool,
    active: bool,
    end_call: Option<HandlerCall>,
    /// A packet that is not due yet.
    waiting: Option<Packet>,
    /// From a packet's timestamp to the time it is due, for TIMING.
    offset_ns: Option<i128>,
    packet_filepos: u64,
    count: u64,
}

impl FromDump {
    /// The next packet of the window; `None` at its end.
    fn fetch(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        while self.active {
            let file = self.file.as_mut()?;
            self.packet_filepos = file.at;
            let Some(record) = file.record() else {
                self.file = None;
                self.end(ctx);
                return None;
            };
            let mut verdict = self.window.judge(record.time_ns, ctx);
            if verdict == Verdict::End {
                self.end(ctx);
                verdict = match self.active {
                    true => self.window.judge(record.time_ns, ctx),
                    false => Verdict::Skip,
                };
            }
            let file = self.file.as_mut()?;
            match verdict {
                Verdict::Take => return file.packet(&record, ctx),
                _ => file.pass_over(&record),
            }
        }
        None
    }

    /// The file, or the window, is at its end.
    fn end(&mut self, ctx: &mut Context<'_>) {
        match self.end_call.clone() {
            Some(call) => call.make_from(ctx, self),
            None => self.active = false,
        }
        if self.stop {
            ctx.stop();
        }
    }

    /// The next packet, if it is due; sets the timer if it is not.
    fn next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        loop {
            if !self.active {
                return None;
            }
            let waiting = self.waiting.take();
            let mut packet = waiting.or_else(|| self.fetch(ctx))?;
            let due = self.due_ns(packet.timestamp_ns(), ctx.now_ns());
            if due > ctx.now_ns() {
                ctx.set_timer(due);
                self.waiting = Some(packet);
                return None;
            }
            if !self.force_ip || self.link.mark_ip(&mut packet) {
                self.count += 1;
                return Some(packet);
            }
            ctx.push_one(1, packet);
        }
    }

    fn due_ns(&mut self, time_ns: u64, now_ns: u64) -> u64 {
        if !self.timing {
            return now_ns;
        }
        let time = i128::from(time_ns);
        let offset = *self.offset_ns.get_or_insert(i128::from(now_ns) - time);
        u64::try_from((time + offset).max(0)).unwrap_or(u64::MAX)
    }
}

impl Element for FromDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.end_call.iter().try_for_each(|c| c.check(ctx))?;
        self.run_timer(ctx);
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
            let Some(packet) = self.next(ctx) else {
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
            "count" => text(self.count),
            "filename" => text(&self.filename),
            "filepos" => text(
                self.file
                    .as_ref()
                    .map_or(self.packet_filepos, |file| file.at),
            ),
            "packet_filepos" => text(self.packet_filepos),
            "encap" => text(self.link),
            "active" => text(self.active),
            "sampling_prob" => text(self.window.sample()),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "active" => on_value(view, value, |me: &mut Self, active, ctx| {
                me.active = active;
                me.run_timer(ctx);
            }),
            "extend_interval" => on_value(view, value, |me: &mut Self, span, _| {
                me.window.extend(span);
                me.active = true;
            }),
            "reset_timing" => on_write(|me: &mut Self, _| me.offset_ns = None),
            "reset_counts" => on_write(|me: &mut Self, _| me.count = 0),
            "stop" => on_write(|me: &mut Self, ctx| {
                me.active = false;
                ctx.stop();
            }),
            _ => undeclared(handler),
        }
    }
}
