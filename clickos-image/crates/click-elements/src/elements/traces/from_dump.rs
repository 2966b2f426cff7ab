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
//! * `count` (read): packets sent; `reset_counts` (write) sets it to 0. `filename`, `filesize`, `filepos` (read): the
//!   file, its size (`-`: unknown) and the place in it; `packet_filepos` (read): where the last packet was. `encap`
//!   (read): what packets begin with.
//! * `active` (read, write): ACTIVE. `sampling_prob` (read): SAMPLE. `stop` (write): ends reading and stops the router.
//! * `extend_interval` (write): moves the end by a time. `reset_timing` (write): TIMING counts from the next packet.
//! # Differences from Click
//! Plain pcap only, not compressed. FORCE_IP also knows Linux cooked captures of version 2
//! (`SLL2`); it is refused for files of an unknown link type, and does not read Ethernet frames
//! that are bridged in LLC. MMAP has no effect, `filepos` is read only, and the file is opened when
//! the element is built. Without a free buffer, reading waits.
//! # Example
//! `FromDump(in.pcap, STOP true) -> Counter -> ToDump(out.pcap);`
use click_core::class::Arg;

use crate::dump::link::Link;
use crate::dump::pcap::{Pcap, Record};
use crate::dump::playback::{self, Playback, Player, say_failure, size_text};
use crate::dump::window::{ARGS, Verdict, Window};
use crate::files::Source;
use crate::handler_call::HandlerCall;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FromDump",
    aliases: &["FromTcpdump"],
    ports: "0/1-2",
    processing: "a/ah",
    args: &OWN_ARGS,
    handlers: &[
        read("count", |me: &mut FromDump, _| text(me.play.count)),
        command("reset_counts", run!(|me, _| me.play.count = 0)),
        read("filename", |me, _| text(&me.filename)),
        read("filesize", |me, _| size_text(me.size)),
        read("filepos", |me, _| me.filepos_text()),
        read("packet_filepos", |me, _| text(me.packet_filepos)),
        read("encap", |me, _| text(me.link)),
        read_write("active", |me, _| text(me.play.active), FromDump::set_active),
        read("sampling_prob", |me, _| text(me.window.sample())),
        command("stop", FromDump::stop_all),
        command(
            "extend_interval",
            set!(|me, span, _| {
                me.window.extend(span);
                me.play.active = true;
            }),
        ),
        command("reset_timing", run!(|me, _| me.play.reset_timing())),
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
    playback::ARGS[0],
    playback::ARGS[1],
    playback::ARGS[2],
    keyword("FORCE_IP"),
    keyword("END_CALL"),
    keyword("FILEPOS"),
    keyword("MMAP"),
];

fn build(a: &mut Args<'_>) -> Built {
    let (filename, window) = (a.need::<String>("FILENAME"), Window::of(a));
    let (play, force_ip) = (Playback::of(a), a.or("FORCE_IP", false));
    let (end_call, filepos) = (a.opt("END_CALL"), a.or("FILEPOS", 0u64));
    a.or("MMAP", false)?;
    let (play, end_call) = (play?, end_call?);
    if play.stop && end_call.is_some() {
        a.error("END_CALL", "expected one of END_CALL and STOP, got both");
        return None;
    }
    let (filename, filepos) = (filename?, filepos?);
    let file = start(a, &filename, filepos).map_err(|e| a.error("FILENAME", e));
    let (file, force_ip) = (file.ok()?, force_ip?);
    if let (true, Err(message)) = (force_ip, file.link.check()) {
        a.error("FORCE_IP", message);
    }
    Some(Box::new(FromDump {
        filename,
        link: file.link,
        size: file.source.size(),
        file: Some(file),
        window: window?,
        play,
        force_ip,
        end_call,
        packet_filepos: filepos,
        pending: None,
    }))
}

/// The file, open and at its place; those that ask for its link type can do so from the start.
fn start(a: &Args<'_>, filename: &str, at: u64) -> Result<Pcap, String> {
    let source = Source::open(a.environment().host.as_ref(), filename)?;
    let mut file = Pcap::new(source).map_err(|e| format!("{filename}: {e}"))?;
    file.skip_to(at);
    Ok(file)
}

#[derive(Default)]
struct FromDump {
    filename: String,
    size: Option<u64>,
    file: Option<Pcap>,
    link: Link,
    window: Window,
    play: Playback,
    force_ip: bool,
    end_call: Option<HandlerCall>,
    packet_filepos: u64,
    /// A packet for which there was no buffer.
    pending: Option<Record>,
}

impl FromDump {
    /// The header of the window's next packet; `None` at its end.
    fn record(&mut self, ctx: &mut Context<'_>) -> Option<Record> {
        while self.play.active {
            let file = self.file.as_mut()?;
            self.packet_filepos = file.source.at();
            let Some(record) = file.record() else {
                self.end_of_file(ctx);
                return None;
            };
            let mut verdict = self.window.judge(record.time_ns, ctx);
            if verdict == Verdict::End {
                self.end(ctx);
                verdict = match self.play.active {
                    true => self.window.judge(record.time_ns, ctx),
                    false => Verdict::Skip,
                };
            }
            match verdict {
                Verdict::Take => return Some(record),
                _ => self.file.as_mut()?.pass_over(&record),
            }
        }
        None
    }

    fn end_of_file(&mut self, ctx: &mut Context<'_>) {
        if let Some(mut file) = self.file.take() {
            say_failure(ctx, &mut file.source);
        }
        self.end(ctx);
    }

    /// The file, or the window, is at its end.
    fn end(&mut self, ctx: &mut Context<'_>) {
        match self.end_call.clone() {
            Some(call) => call.make_from(ctx, self),
            None => self.play.active &= !(self.play.stop || self.window.has_end()),
        }
        if self.play.stop {
            ctx.stop();
        }
    }
}

impl Player for FromDump {
    fn playback(&mut self) -> &mut Playback {
        &mut self.play
    }

    fn fetch(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let pending = self.pending.take();
        let record = pending.or_else(|| self.record(ctx))?;
        let Some(buffer) = ctx.pool().alloc(record.stored) else {
            ctx.set_timer(ctx.now_ns() + playback::RETRY_NS);
            self.pending = Some(record);
            return None;
        };
        let packet = self.file.as_mut()?.packet(&record, buffer);
        if packet.is_none() {
            self.end_of_file(ctx);
        }
        packet
    }

    fn calls(&self) -> bool {
        self.end_call.is_some()
    }

    fn admit(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Option<Packet> {
        if !self.force_ip || self.link.mark_ip(&mut packet) {
            return Some(packet);
        }
        ctx.push_one(1, packet);
        None
    }
}

impl FromDump {
    fn filepos_text(&self) -> Text {
        let file = self.file.as_ref();
        text(file.map_or(self.packet_filepos, |file| file.source.at()))
    }
}

impl Element for FromDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.end_call.iter().try_for_each(|c| c.check(ctx))?;
        self.wake(ctx);
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        self.play(ctx)
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.wake(ctx);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        self.play_pulled(ctx, max)
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }
}
