// SPDX-License-Identifier: Apache-2.0
//! Writes packets to a pcap file.
//!
//! # Synopsis
//! `ToDump(FILENAME [, SNAPLEN, ENCAP, USE_ENCAP_FROM, EXTRA_LENGTH, UNBUFFERED, NANO])`: at most SNAPLEN bytes of a packet
//! (default 2000; 0: all) are written to FILENAME (`-`: standard output), which is made anew. ENCAP says what packets begin
//! with: ETHER (default), IP, PPP, SLL, 802_11 and the like, or `#` and a number of the format; with USE_ENCAP_FROM the
//! handlers `encap` of the elements named there say it, and have to agree. The length of a packet includes its extra length
//! annotation unless EXTRA_LENGTH is false. UNBUFFERED (default false) writes each packet at once; NANO (default false)
//! writes nanoseconds instead of microseconds.
//! # Ports
//! 1/0-1, agnostic. Output 0, if it is connected, gets the packets.
//! # Handlers
//! * `count` (read): packets written; `reset_counts` (write) sets it to 0. `filename` (read).
//! # Example
//! `FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> ToDump(ok.pcap);`
use std::fs::File;
use std::io::{self, BufWriter, Write, stdout};

use click_core::anno::EXTRA_LENGTH;
use click_core::text::split_words;

use crate::dump::link::Link;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ToDump",
    ports: "1/0-1",
    args: &[
        mandatory("FILENAME"),
        optional("SNAPLEN"),
        optional("ENCAP"),
        keyword("USE_ENCAP_FROM"),
        keyword("EXTRA_LENGTH"),
        keyword("UNBUFFERED"),
        keyword("NANO"),
    ],
    handlers: &[read("count"), write("reset_counts"), read("filename")],
    build,
    task: true,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (filename, snap) = (a.need::<String>("FILENAME"), a.or("SNAPLEN", 2000usize));
    let (encap, from) = (a.opt("ENCAP"), a.opt::<String>("USE_ENCAP_FROM"));
    let (extra, unbuffered) = (a.or("EXTRA_LENGTH", true), a.or("UNBUFFERED", false));
    let nano = a.or("NANO", false);
    let (encap, from) = (encap?, from?);
    if encap.is_some() && from.is_some() {
        a.error("USE_ENCAP_FROM", "give one of ENCAP and USE_ENCAP_FROM");
        return None;
    }
    let snap = match snap? {
        0 => usize::from(u16::MAX),
        n => n.min(usize::from(u16::MAX)),
    };
    Some(Box::new(ToDump {
        filename: filename?,
        snap,
        link: encap.unwrap_or(Link::ETHER),
        encap_from: split_words(&from.unwrap_or_default()),
        extra_length: extra?,
        unbuffered: unbuffered?,
        nano: nano?,
        file: None,
        count: 0,
    }))
}

struct ToDump {
    filename: String,
    snap: usize,
    link: Link,
    /// Elements that know what packets begin with.
    encap_from: Vec<String>,
    extra_length: bool,
    unbuffered: bool,
    nano: bool,
    file: Option<BufWriter<Box<dyn Write>>>,
    count: u64,
}

/// Sizes and numbers in the header of a file: version 2.4, times in UTC.
const VERSION: [u8; 12] = [2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl ToDump {
    fn open(&self) -> io::Result<BufWriter<Box<dyn Write>>> {
        let file: Box<dyn Write> = match self.filename.as_str() {
            "-" => Box::new(stdout()),
            filename => Box::new(File::create(filename)?),
        };
        let mut file = BufWriter::new(file);
        let magic = if self.nano {
            0xa1b2_3c4du32
        } else {
            0xa1b2_c3d4
        };
        file.write_all(&magic.to_le_bytes())?;
        file.write_all(&VERSION)?;
        file.write_all(&low(self.snap as u64).to_le_bytes())?;
        file.write_all(&self.link.0.to_le_bytes())?;
        file.flush()?;
        Ok(file)
    }

    /// What the elements of USE_ENCAP_FROM agree on.
    fn learn_encap(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let mut agreed = None;
        for name in &self.encap_from {
            let value = ctx.read_handler(&format!("{name}.encap"), "");
            let value = value.map_err(|e| format!("USE_ENCAP_FROM: {e}"))?;
            let link = Link::from_arg(value.trim(), ctx.surroundings())?;
            if *agreed.get_or_insert(link) != link {
                return Err(format!(
                    "USE_ENCAP_FROM: {name} has {link}, others have not"
                ));
            }
        }
        self.link = agreed.unwrap_or(self.link);
        Ok(())
    }

    fn write_packet(&mut self, packet: &Packet) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let data = &packet.data()[..packet.len().min(self.snap)];
        let ns = packet.timestamp_ns();
        let unit = if self.nano { 1 } else { 1000 };
        let lost = match self.extra_length {
            true => packet.anno().u32(EXTRA_LENGTH),
            false => 0,
        };
        let fields = [
            ns / 1_000_000_000,
            ns % 1_000_000_000 / unit,
            data.len() as u64,
            packet.len() as u64 + u64::from(lost),
        ];
        for field in fields {
            file.write_all(&low(field).to_le_bytes())?;
        }
        file.write_all(data)?;
        if self.unbuffered {
            file.flush()
        } else {
            Ok(())
        }
    }

    /// Writes all packets; a file that cannot be written is closed with a message.
    fn write_batch(&mut self, ctx: &mut Context<'_>, batch: &Batch) {
        for packet in batch.iter() {
            if self.file.is_none() {
                return;
            }
            match self.write_packet(packet) {
                Ok(()) => self.count += 1,
                Err(error) => {
                    ctx.print(&format!("{}: {error}", self.filename));
                    self.file = None;
                }
            }
        }
    }
}

/// The lower 32 bits.
fn low(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).expect("masked")
}

impl Element for ToDump {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.learn_encap(ctx)?;
        self.file = Some(self.open().map_err(|e| format!("{}: {e}", self.filename))?);
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
            "reset_counts" => on_write(|me: &mut Self, _| me.count = 0),
            _ => undeclared(handler),
        }
    }
}
