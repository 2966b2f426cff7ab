// SPDX-License-Identifier: Apache-2.0
//! Makes packets of the lines of an IP summary dump.
//!
//! # Synopsis
//! `FromIPSummaryDump([FILENAME, STOP, TIMING, ACTIVE, ZERO, CHECKSUM, PROTO,
//! MULTIPACKET, SAMPLE, FIELDS, CONTENTS, FLOWID, DATA, ALLOW_NONEXISTENT])`: reads FILENAME (`-`:
//! standard input), or the text DATA. Lines that begin with `!` say which fields follow (`!data`;
//! FIELDS, or CONTENTS, until then), the addresses and ports of packets without any (`!flowid`;
//! FLOWID), their protocol (`!proto`; PROTO, default 6) and aggregate (`!aggregate`), and that
//! binary records follow (`!binary`). With STOP the router stops at the end. With TIMING packets
//! keep their distances in time. With CHECKSUM checksums are right and the data complete; else the
//! packet ends with what is known. With MULTIPACKET a line with a count becomes as many packets.
//! Each packet leaves with probability SAMPLE (default 1). Fields without a value are zero for any
//! value of ZERO. It reads only while ACTIVE (default true). With ALLOW_NONEXISTENT a missing file
//! is empty.
//! # Ports
//! 0/1, agnostic. The network header and the destination annotation are set.
//! # Handlers
//! * `active` (read, write): ACTIVE. `count` (read): packets made. `encap` (read): `IP`. `sampling_prob` (read): SAMPLE.
//! * `filename`, `filesize`, `filepos` (read): the file, its size (`-`: unknown) and the place in it.
//! * `stop` (write): ends reading and stops the router.
//! # Differences from Click
//! No gzip. The times have microseconds (`ntimestamp`, `first_ntimestamp` are missing). Binary
//! records hold options as they are in the packet.
//! # Example
//! `FromIPSummaryDump(DATA "!data src dst\n1.0.0.1 1.0.0.2", STOP true) -> IPPrint -> Discard;`
use click_core::value::Verbatim;

use crate::dump::playback::{self, Playback, Player, say_failure, size_text};
use crate::files::Source;
use crate::ip_summary::{Defaults, EXTRA_PACKETS, Field, Record, binary, fields, protocol};
use crate::prelude::*;
use crate::standard::probability::Probability;

pub static ELEMENT: Class = Class {
    name: "FromIPSummaryDump",
    ports: "0/1",
    args: &[
        optional("FILENAME"),
        playback::ARGS[0],
        playback::ARGS[1],
        playback::ARGS[2],
        keyword("ZERO"),
        keyword("CHECKSUM"),
        keyword("PROTO"),
        keyword("MULTIPACKET"),
        keyword("SAMPLE"),
        keyword("FIELDS"),
        keyword("CONTENTS"),
        keyword("FLOWID"),
        keyword("DATA"),
        keyword("ALLOW_NONEXISTENT"),
    ],
    handlers: &[
        read_write(
            "active",
            |me: &mut FromIPSummaryDump, _| text(me.play.active),
            FromIPSummaryDump::set_active,
        ),
        read("count", |me, _| text(me.play.count)),
        read("encap", |_, _| text("IP")),
        read("sampling_prob", |me, _| text(me.sample)),
        read("filename", |me, _| match &me.from {
            Origin::File { path, .. } => text(path),
            Origin::Text(_) => text(""),
        }),
        read("filesize", |me, _| {
            size_text(me.source.as_ref().and_then(Source::size))
        }),
        read("filepos", |me, _| {
            text(me.source.as_ref().map_or(0, Source::at))
        }),
        command("stop", FromIPSummaryDump::stop_all),
    ],
    build,
    task: true,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (from, play) = (origin(a), Playback::of(a));
    let (zero, multipacket) = (a.or("ZERO", true), a.or("MULTIPACKET", false));
    let sample = a.or("SAMPLE", Probability(1.0));
    let list = a.or("CONTENTS", Verbatim(String::new()));
    let list = list.and_then(|older| a.or("FIELDS", older));
    let defaults = defaults(a);
    let fields = fields(&list?.0).map_err(|e| a.error("FIELDS", e)).ok()?;
    zero?;
    Some(Box::new(FromIPSummaryDump {
        from: from?,
        source: None,
        ended: false,
        binary: false,
        fields,
        defaults: defaults?,
        play: play?,
        multipacket: multipacket?,
        sample: sample?,
        repeated: None,
    }))
}

/// Where the dump is.
enum Origin {
    File { path: String, may_be_missing: bool },
    Text(Vec<u8>),
}

fn origin(a: &mut Args<'_>) -> Option<Origin> {
    let (path, data) = (a.opt::<String>("FILENAME"), a.opt::<Bytes>("DATA"));
    let may_be_missing = a.or("ALLOW_NONEXISTENT", false);
    match (path?, data?, may_be_missing?) {
        (Some(path), None, may_be_missing) => Some(Origin::File {
            path,
            may_be_missing,
        }),
        (None, Some(data), _) => Some(Origin::Text(data.0)),
        (path, ..) => {
            let got = if path.is_some() { "both" } else { "none" };
            a.error(
                "FILENAME",
                format!("expected one of FILENAME and DATA, got {got}"),
            );
            None
        }
    }
}

fn defaults(a: &mut Args<'_>) -> Option<Defaults> {
    let (number, checksum) = (a.or("PROTO", 6u8), a.or("CHECKSUM", false));
    let flow = a.or("FLOWID", String::new())?;
    let mut defaults = Defaults {
        source: Ipv4Addr::UNSPECIFIED,
        destination: Ipv4Addr::UNSPECIFIED,
        ports: (0, 0),
        protocol: number?,
        aggregate: None,
        checksum: checksum?,
    };
    if !flow.is_empty() && flow_id(&flow, &mut defaults).is_none() {
        let got = flow.shown();
        a.error(
            "FLOWID",
            format!("expected SRC SPORT DST DPORT [PROTO], got \"{got}\""),
        );
        return None;
    }
    Some(defaults)
}

/// Octets of a line at most; what is longer is cut.
const MAX_LINE: usize = 1 << 18;

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
    from: Origin,
    source: Option<Source>,
    /// True if the dump was read to its end.
    ended: bool,
    /// True if binary records follow.
    binary: bool,
    fields: Vec<Field>,
    defaults: Defaults,
    play: Playback,
    multipacket: bool,
    sample: Probability,
    /// A record of which packets are left, and how many.
    repeated: Option<(Record, u32)>,
}

impl FromIPSummaryDump {
    fn open(&self, ctx: &Context<'_>) -> Result<Source, String> {
        match &self.from {
            Origin::Text(text) => Ok(Source::of_bytes(text.clone())),
            Origin::File {
                path,
                may_be_missing,
            } => match Source::open(ctx.host().as_ref(), path) {
                Err(_) if *may_be_missing => Ok(Source::of_bytes(Vec::new())),
                opened => opened,
            },
        }
    }

    /// The next record of the dump; nothing at its end.
    fn record(&mut self) -> Option<Record> {
        while !self.ended {
            let found = if self.binary {
                self.binary_record()?
            } else {
                let line = self.source.as_mut()?.line(MAX_LINE)?;
                self.text_record(&line)
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// A binary record, or nothing from a line between them; `None` at the end.
    fn binary_record(&mut self) -> Option<Option<Record>> {
        let (source, mut header) = (self.source.as_mut()?, [0; binary::HEADER]);
        if !source.read_exact(&mut header) {
            return None;
        }
        let (is_text, length) = binary::unframe(header)?;
        let mut bytes = vec![0; length];
        if !source.read_exact(&mut bytes) {
            return None;
        }
        Some(match is_text {
            true => self.text_record(&bytes),
            false => Some(Record::of_binary(&bytes, &self.fields, &self.defaults)),
        })
    }

    fn text_record(&mut self, line: &[u8]) -> Option<Record> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if let Some(rest) = line.strip_prefix('!') {
            self.directive(rest);
            return None;
        }
        if line.starts_with('#') {
            return None;
        }
        Record::parse(line, &self.fields, &self.defaults)
    }

    /// The reader skips unreadable lines: dumps carry comments of other programs.
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
            "binary" => self.binary = true,
            _ => {}
        }
    }

    /// The next record and the number of its packets; `None` at the end.
    fn next_record(&mut self, ctx: &mut Context<'_>) -> Option<(Record, u32)> {
        let repeated = self.repeated.take();
        let next = repeated.or_else(|| {
            let record = self.record()?;
            let times = if self.multipacket { record.count } else { 1 };
            Some((record, times))
        });
        if next.is_none() {
            self.end(ctx);
        }
        next
    }

    fn end(&mut self, ctx: &mut Context<'_>) {
        let ended_before = core::mem::replace(&mut self.ended, true);
        if let Some(source) = &mut self.source {
            say_failure(ctx, source);
        }
        if self.play.stop && !ended_before {
            ctx.stop();
        }
    }
}

impl Player for FromIPSummaryDump {
    fn playback(&mut self) -> &mut Playback {
        &mut self.play
    }

    fn fetch(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let (record, times) = self.next_record(ctx)?;
            let Some(mut packet) = record.packet(ctx.pool(), &self.defaults) else {
                ctx.set_timer(ctx.now_ns() + playback::RETRY_NS);
                self.repeated = Some((record, times));
                return None;
            };
            if self.multipacket {
                packet.anno_mut().set_u32(EXTRA_PACKETS, 0);
            }
            if times > 1 {
                self.repeated = Some((record, times - 1));
            }
            if self.sample.0 >= 1.0 || self.sample.happens(ctx.random_u32()) {
                return Some(packet);
            }
        }
    }
}

impl Element for FromIPSummaryDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.source = Some(self.open(ctx)?);
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
