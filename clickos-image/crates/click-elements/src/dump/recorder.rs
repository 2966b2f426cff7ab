// SPDX-License-Identifier: Apache-2.0
//! What elements that write files about packets have in common: packets come and pass, and a file that
//! cannot be written is closed with a message.
use crate::files::Sink;
use crate::prelude::*;

/// An element that writes a file.
pub trait Recorder {
    /// The file; none once it could not be written.
    fn sink(&mut self) -> &mut Option<Sink>;
    /// Writes a packet to the file.
    fn record(&mut self, packet: &Packet) -> Result<(), String>;

    /// Begins: what is pulled is asked for where nobody else does.
    fn start(&mut self, ctx: &mut Context<'_>, sink: Sink) {
        *self.sink() = Some(sink);
        if ctx.outputs() == 0 && ctx.input_is_pull(0) {
            ctx.schedule();
        }
    }

    /// Writes all packets.
    fn record_batch(&mut self, ctx: &mut Context<'_>, batch: &Batch) {
        for packet in batch.iter() {
            if self.sink().is_none() {
                return;
            }
            let written = self.record(packet);
            self.close_if_failed(ctx, written);
        }
    }

    /// Writes what waits.
    fn flush(&mut self, ctx: &mut Context<'_>) {
        let flushed = self.sink().as_mut().map_or(Ok(()), Sink::flush);
        self.close_if_failed(ctx, flushed);
    }

    /// Closes the file after an error.
    fn close_if_failed(&mut self, ctx: &mut Context<'_>, written: Result<(), String>) {
        if let Err(message) = written {
            let line = format!("{}: {message}", ctx.name());
            ctx.print(&line);
            *self.sink() = None;
        }
    }

    /// `Element::push`.
    fn record_pushed(&mut self, ctx: &mut Context<'_>, batch: Batch) {
        self.record_batch(ctx, &batch);
        ctx.push(0, batch);
    }

    /// `Element::pull`.
    fn record_pulled(&mut self, ctx: &mut Context<'_>, max: usize) -> Batch {
        let batch = ctx.pull(0, max);
        self.record_batch(ctx, &batch);
        batch
    }

    /// `Element::run_task`.
    fn record_one(&mut self, ctx: &mut Context<'_>) -> bool {
        let batch = ctx.pull(0, 1);
        let worked = !batch.is_empty();
        self.record_batch(ctx, &batch);
        ctx.recycle(batch);
        if worked || ctx.readable(0) {
            ctx.schedule();
        }
        worked
    }
}
