// SPDX-License-Identifier: Apache-2.0
//! The element that writes a file about packets, which come and pass; what is written is its format's affair. A file that
//! cannot be written is closed with a message.
use crate::files::Sink;
use crate::prelude::*;

/// The records of packets in a file.
pub trait Format: 'static {
    /// The start of the file.
    fn header(&mut self, ctx: &mut Context<'_>) -> Result<Vec<u8>, String>;

    /// Writes a packet; returns how much the handler `count` grows.
    fn record(&mut self, sink: &mut Sink, packet: &Packet) -> Result<u64, String>;
}

/// An element that writes a file.
pub struct Recorder<F> {
    filename: String,
    format: F,
    /// None once it could not be written.
    sink: Option<Sink>,
    count: u64,
}

impl<F: Format> Recorder<F> {
    /// The handler `count`.
    pub const COUNT: Handler<Self> = read("count", |me, _| text(me.count));
    /// The handler `filename`.
    pub const FILENAME: Handler<Self> = read("filename", |me, _| text(&me.filename));
    /// The handler `reset_counts`.
    pub const RESET_COUNTS: Handler<Self> = command("reset_counts", run!(|me, _| me.count = 0));
    /// The handler `flush`.
    pub const FLUSH: Handler<Self> = command("flush", run!(|me, ctx| me.flush(ctx)));

    /// The element that writes the file with this name.
    pub fn element(filename: String, format: F) -> Built {
        Some(Box::new(Self {
            filename,
            format,
            sink: None,
            count: 0,
        }))
    }

    /// Writes all packets.
    fn record(&mut self, ctx: &mut Context<'_>, batch: &Batch) {
        for packet in batch.iter() {
            let Some(sink) = &mut self.sink else { return };
            match self.format.record(sink, packet) {
                Ok(written) => self.count += written,
                Err(message) => self.close(ctx, &message),
            }
        }
    }

    fn flush(&mut self, ctx: &mut Context<'_>) {
        let flushed = self.sink.as_mut().map_or(Ok(()), Sink::flush);
        if let Err(message) = flushed {
            self.close(ctx, &message);
        }
    }

    fn close(&mut self, ctx: &mut Context<'_>, message: &str) {
        let line = format!("{}: {message}", ctx.name());
        ctx.print(&line);
        self.sink = None;
    }
}

impl<F: Format> Element for Recorder<F> {
    /// The element pulls packets itself if no other element does.
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let header = self.format.header(ctx)?;
        let mut sink = Sink::create(ctx.host().as_ref(), &self.filename)?;
        sink.write(&header)?;
        sink.flush()?;
        self.sink = Some(sink);
        let is_last = ctx.outputs() == 0 || ctx.output_is_push(0);
        if is_last && ctx.input_is_pull(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.record(ctx, &batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = ctx.pull(0, max);
        self.record(ctx, &batch);
        batch
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let batch = ctx.pull(0, 1);
        let worked = !batch.is_empty();
        self.record(ctx, &batch);
        ctx.push(0, batch);
        if worked || ctx.readable(0) {
            ctx.schedule();
        }
        worked
    }
}
