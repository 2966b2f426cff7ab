// SPDX-License-Identifier: Apache-2.0
//! What sources that read files of packets have in common: when the next packet is due, who takes it,
//! and what happens at the end.
use click_core::class::Arg;

use crate::files::Source;
use crate::prelude::*;

/// The arguments of `Playback::of`.
pub const ARGS: [Arg; 3] = [keyword("STOP"), keyword("TIMING"), keyword("ACTIVE")];

/// Between tries to get a buffer for a packet.
pub const RETRY_NS: u64 = 1_000_000;

/// A file of packets that is played.
#[derive(Default)]
pub struct Playback {
    pub active: bool,
    pub stop: bool,
    timing: bool,
    /// A packet that is not due yet.
    waiting: Option<Packet>,
    /// From a packet's timestamp to the time it is due, for TIMING.
    offset_ns: Option<i128>,
    /// Packets that left.
    pub count: u64,
}

impl Playback {
    /// The values of the arguments `ARGS`.
    pub fn of(a: &mut Args<'_>) -> Option<Self> {
        let (stop, timing) = (a.or("STOP", false), a.or("TIMING", false));
        let active = a.or("ACTIVE", true);
        Some(Self {
            active: active?,
            stop: stop?,
            timing: timing?,
            ..Self::default()
        })
    }

    fn due_ns(&mut self, time_ns: u64, now_ns: u64) -> u64 {
        if !self.timing {
            return now_ns;
        }
        let time = i128::from(time_ns);
        let offset = *self.offset_ns.get_or_insert(i128::from(now_ns) - time);
        u64::try_from((time + offset).max(0)).unwrap_or(u64::MAX)
    }

    /// The next packet counts its time from when it leaves.
    pub fn reset_timing(&mut self) {
        self.offset_ns = None;
    }
}

/// An element that plays a file.
pub trait Player: Element + Sized {
    /// Its playback.
    fn playback(&mut self) -> &mut Playback;
    /// The next packet of the file, whenever it is due; nothing at the end.
    fn fetch(&mut self, ctx: &mut Context<'_>) -> Option<Packet>;

    /// Looks at a packet that is due; nothing if it does not leave by output 0.
    fn admit(&mut self, _ctx: &mut Context<'_>, packet: Packet) -> Option<Packet> {
        Some(packet)
    }

    /// The next packet, if it is due; sets the timer if it is not.
    fn next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        while self.playback().active {
            let waiting = self.playback().waiting.take();
            let packet = waiting.or_else(|| self.fetch(ctx))?;
            let (play, now) = (self.playback(), ctx.now_ns());
            let due = play.due_ns(packet.timestamp_ns(), now);
            if due > now {
                ctx.set_timer(due);
                play.waiting = Some(packet);
                return None;
            }
            if let Some(packet) = self.admit(ctx, packet) {
                self.playback().count += 1;
                return Some(packet);
            }
        }
        None
    }

    /// True if a handler is called at the end.
    fn calls(&self) -> bool {
        false
    }

    /// How many packets to push now: one a turn. Packets of several turns leave together only if nothing else has a
    /// turn before the end, and nothing is called there.
    fn turns(&mut self, ctx: &mut Context<'_>) -> usize {
        match self.playback().timing || self.calls() || ctx.outputs() > 1 || !ctx.is_alone() {
            true => 1,
            false => ctx.batch_runs(1, |_| usize::MAX),
        }
    }

    /// Pushes the packets of its turn that are due.
    fn play(&mut self, ctx: &mut Context<'_>) -> bool {
        let (turns, mut batch) = (self.turns(ctx), ctx.batch());
        batch.extend((0..turns).map_while(|_| self.next(ctx)));
        let sent = batch.len();
        ctx.push(0, batch);
        if sent == turns {
            ctx.schedule();
        }
        sent > 0
    }

    /// Gives at most `max` packets that are due.
    fn play_pulled(&mut self, ctx: &mut Context<'_>, max: usize) -> Batch {
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

    /// Continues, or begins.
    fn wake(&mut self, ctx: &mut Context<'_>) {
        if ctx.output_is_push(0) {
            ctx.schedule();
        } else {
            ctx.set_readable(true);
        }
    }

    /// The setter of the handler `active`.
    fn set_active(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        on_value(self, view, value, |me, active, ctx| {
            me.playback().active = active;
            me.wake(ctx);
        })
    }

    /// The setter of the handler `stop`.
    fn stop_all(&self, _view: &View<'_>, _value: &str) -> Result<Change, HandlerError> {
        on_write(self, |me, ctx| {
            me.playback().active = false;
            ctx.stop();
        })
    }
}

/// Says on the console why a file ended early, if it did.
pub fn say_failure(ctx: &mut Context<'_>, source: &mut Source) {
    if let Some(message) = source.take_failure() {
        let line = format!("{}: {message}", ctx.name());
        ctx.print(&line);
    }
}

/// The value of the handler `filesize`.
pub fn size_text(size: Option<u64>) -> Text {
    size.map_or_else(|| text("-"), text)
}
