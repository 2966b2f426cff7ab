// SPDX-License-Identifier: Apache-2.0
//! Writes packets to a pcap file.
//!
//! # Synopsis
//! `ToDump(FILENAME [, SNAPLEN, ENCAP, USE_ENCAP_FROM, EXTRA_LENGTH, UNBUFFERED, NANO])`: at most SNAPLEN bytes of a packet
//! (default 2000; 0: all) are written to FILENAME (`-`: standard output), which is overwritten. ENCAP says what packets begin
//! with: ETHER (default), IP, PPP, SLL, 802_11 and the like, or `#` and a number of the format; with USE_ENCAP_FROM the
//! handlers `encap` of the elements named there say it, and have to agree. The length of a packet includes its extra length
//! annotation unless EXTRA_LENGTH is false. UNBUFFERED (default false) writes each packet at once; NANO (default false)
//! writes nanoseconds instead of microseconds.
//! # Ports
//! 1/0-1, agnostic. Output 0, if it is connected, gets the packets.
//! # Handlers
//! * `count` (read): packets written; `reset_counts` (write) sets it to 0. `filename` (read).
//! # Differences from Click
//! Plain pcap only, not compressed. The file is opened when the element is built. NANO is false by
//! default.
//! # Example
//! `FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> ToDump(ok.pcap);`
use click_core::anno::EXTRA_LENGTH;
use click_core::text::split_words;

use crate::dump::link::Link;
use crate::dump::recorder::{Format, Recorder};
use crate::files::Sink;
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
    handlers: &[
        Recorder::<Pcap>::COUNT,
        Recorder::RESET_COUNTS,
        Recorder::FILENAME,
    ],
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
        a.error(
            "USE_ENCAP_FROM",
            "expected one of ENCAP and USE_ENCAP_FROM, got both",
        );
        return None;
    }
    let snap = match snap? {
        0 => usize::from(u16::MAX),
        n => n.min(usize::from(u16::MAX)),
    };
    let format = Pcap {
        snap,
        link: encap.unwrap_or(Link::ETHER),
        encap_from: split_words(&from.unwrap_or_default()),
        extra_length: extra?,
        unbuffered: unbuffered?,
        nano: nano?,
    };
    Recorder::element(filename?, format)
}

struct Pcap {
    snap: usize,
    link: Link,
    /// Elements that know what packets begin with.
    encap_from: Vec<String>,
    extra_length: bool,
    unbuffered: bool,
    nano: bool,
}

/// Sizes and numbers in the header of a file: version 2.4, times in UTC.
const VERSION: [u8; 12] = [2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Pcap {
    fn file_header(&self) -> Vec<u8> {
        let magic = match self.nano {
            true => 0xa1b2_3c4du32,
            false => 0xa1b2_c3d4,
        };
        let snap = low(self.snap as u64);
        let words = [snap, self.link.0].map(u32::to_le_bytes).concat();
        [&magic.to_le_bytes()[..], &VERSION, &words].concat()
    }

    /// The encapsulation that the elements of USE_ENCAP_FROM agree on.
    fn learn_encap(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let mut agreed = None;
        for name in &self.encap_from {
            let value = ctx.read_handler(&format!("{name}.encap"), "");
            let value = value.map_err(|e| format!("USE_ENCAP_FROM: {e}"))?;
            let link = Link::from_arg(value.trim(), ctx.arg_context())?;
            if *agreed.get_or_insert(link) != link {
                return Err(format!(
                    "USE_ENCAP_FROM: {name} has {link}, others have not"
                ));
            }
        }
        self.link = agreed.unwrap_or(self.link);
        Ok(())
    }

    /// What a packet's record begins with, if that many of its octets are written.
    fn record_header(&self, packet: &Packet, written: usize) -> [u8; 16] {
        let ns = packet.timestamp_ns();
        let unit = if self.nano { 1 } else { 1000 };
        let lost = match self.extra_length {
            true => packet.anno().u32(EXTRA_LENGTH),
            false => 0,
        };
        let fields = [
            ns / 1_000_000_000,
            ns % 1_000_000_000 / unit,
            written as u64,
            packet.len() as u64 + u64::from(lost),
        ];
        let mut header = [0; 16];
        for (place, field) in header.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&low(field).to_le_bytes());
        }
        header
    }
}

impl Format for Pcap {
    fn header(&mut self, ctx: &mut Context<'_>) -> Result<Vec<u8>, String> {
        self.learn_encap(ctx)?;
        Ok(self.file_header())
    }

    fn record(&mut self, sink: &mut Sink, packet: &Packet) -> Result<u64, String> {
        let data = &packet.data()[..packet.len().min(self.snap)];
        sink.write(&self.record_header(packet, data.len()))?;
        sink.write(data)?;
        if self.unbuffered {
            sink.flush()?;
        }
        Ok(1)
    }
}

/// The lower 32 bits.
fn low(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).expect("masked")
}
