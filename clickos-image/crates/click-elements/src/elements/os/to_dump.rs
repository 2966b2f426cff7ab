// SPDX-License-Identifier: Apache-2.0
//! Writes packets to a pcap file.
//!
//! # Synopsis
//! `ToDump(FILENAME [, SNAPLEN, ENCAP])`: at most SNAPLEN bytes of a packet (default 2000; 0: all); ENCAP says what
//! packets begin with, ETHER (default) or IP. Microseconds, the file is made anew.
//! # Ports
//! 1/0-1, agnostic. Output 0, if it is connected, gets the packets.
//! # Handlers
//! * `count` (read): packets written. `filename` (read).
//! # Example
//! `FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> ToDump(ok.pcap);`
use std::fs::File;
use std::io::{BufWriter, Write};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ToDump",
    ports: "1/0-1",
    args: &[mandatory("FILENAME"), optional("SNAPLEN"), keyword("ENCAP")],
    handlers: &[read("count"), read("filename")],
    build: |a| {
        let (filename, snap) = (a.need::<String>("FILENAME"), a.or("SNAPLEN", 2000usize));
        let encap = a.or("ENCAP", "ETHER".to_string())?;
        let link_type = match encap.to_ascii_uppercase().as_str() {
            "ETHER" => 1u32,
            "IP" => 12,
            _ => {
                a.error("ENCAP", format!("expected ETHER or IP, got \"{encap}\""));
                return None;
            }
        };
        let snap = match snap? {
            0 => usize::from(u16::MAX),
            n => n.min(usize::from(u16::MAX)),
        };
        Some(Box::new(ToDump {
            filename: filename?,
            snap,
            link_type,
            file: None,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct ToDump {
    filename: String,
    snap: usize,
    link_type: u32,
    file: Option<BufWriter<File>>,
    count: u64,
}

impl ToDump {
    fn open(&self) -> std::io::Result<BufWriter<File>> {
        let mut file = BufWriter::new(File::create(&self.filename)?);
        file.write_all(&0xa1b2_c3d4u32.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        file.write_all(&low(self.snap as u64).to_le_bytes())?;
        file.write_all(&self.link_type.to_le_bytes())?;
        file.flush()?;
        Ok(file)
    }

    fn write_packet(&mut self, packet: &Packet) -> std::io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let data = &packet.data()[..packet.len().min(self.snap)];
        let ns = packet.timestamp_ns();
        let fields = [
            ns / 1_000_000_000,
            ns % 1_000_000_000 / 1000,
            data.len() as u64,
            packet.len() as u64,
        ];
        for field in fields {
            file.write_all(&low(field).to_le_bytes())?;
        }
        file.write_all(data)
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
}
