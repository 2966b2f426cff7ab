// SPDX-License-Identifier: Apache-2.0
//! A queue between threads: an inlet at each thread that pushes, the outlet at the one that pulls.
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use click_core::class::{Arg, optional};
use click_core::handler::{command, read, read_write};
use click_core::{
    Batch, Change, Class, Context, Element, Handler, HandlerError, Packet, Ring, Signal, Storage,
};
use vale_handoff::{Receiver, Sender};

use crate::letters::Shared;
use crate::slot::Slot;

/// Room of each ring at least, so that a small queue can be made larger while it runs.
const LEAST: usize = 1024;

/// What all ends of a queue count together.
pub struct Gauge {
    class: &'static str,
    /// Packets in all rings and at the outlet, and those that are being copied.
    length: AtomicUsize,
    capacity: AtomicUsize,
    highwater: AtomicUsize,
    drops: AtomicU64,
    /// Slots of each ring.
    slots: usize,
}

impl Gauge {
    /// The gauge of a queue of this class.
    pub fn new(class: &'static str, capacity: usize) -> Self {
        Self {
            class,
            length: AtomicUsize::new(0),
            capacity: AtomicUsize::new(capacity),
            highwater: AtomicUsize::new(0),
            drops: AtomicU64::new(0),
            slots: capacity.max(LEAST).next_power_of_two(),
        }
    }

    /// Slots that each ring needs.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// True if those that push rest while it is full.
    fn is_told(&self) -> bool {
        self.class != "SimpleQueue"
    }

    fn length(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    fn has_room(&self) -> bool {
        self.length() < self.capacity.load(Ordering::Relaxed)
    }

    /// Reserves places for at most `n` packets; returns their number, and the length before.
    fn reserve(&self, n: usize) -> (usize, usize) {
        let capacity = self.capacity.load(Ordering::Relaxed);
        let mut length = self.length.load(Ordering::Relaxed);
        loop {
            let fits = n.min(capacity.saturating_sub(length));
            let reserved = self.length.compare_exchange_weak(
                length,
                length + fits,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            match reserved {
                Ok(_) => {
                    // it seldom grows, and a write would take the line from the other side
                    if length + fits > self.highwater.load(Ordering::Relaxed) {
                        self.highwater.fetch_max(length + fits, Ordering::Relaxed);
                    }
                    return (fits, length);
                }
                Err(other) => length = other,
            }
        }
    }

    /// Counts what had no room; the first time with a message.
    #[cold]
    fn count_drops(&self, ctx: &mut Context<'_>, packets: usize) {
        let before = self.drops.fetch_add(packets as u64, Ordering::Relaxed);
        if before == 0 && self.capacity.load(Ordering::Relaxed) > 0 {
            let line = format!("{} :: {}: overflow", ctx.name(), self.class);
            ctx.print(&line);
        }
    }
}

/// Tells the thread's loop that an end waits for the other side.
pub struct Watch {
    /// The end's element.
    pub element: usize,
    waits: Rc<Cell<bool>>,
    gauge: Arc<Gauge>,
    is_inlet: bool,
}

impl Watch {
    /// True if what it waits for is there, and the element has to run.
    pub fn is_due(&self) -> bool {
        self.waits.get()
            && match self.is_inlet {
                true => self.gauge.has_room(),
                false => self.gauge.length() > 0,
            }
    }
}

/// Where a thread pushes.
pub struct Inlet {
    gauge: Arc<Gauge>,
    sender: Sender<Slot>,
    shared: Arc<Shared>,
    /// The thread that pulls.
    to: usize,
    waits: Rc<Cell<bool>>,
    /// The end of a batch that found no room.
    held: Batch,
    /// True if an element before it measures what is stored.
    is_measured: bool,
}

impl Inlet {
    /// The inlet for an element, and what the loop watches.
    pub fn new(
        element: usize,
        gauge: Arc<Gauge>,
        sender: Sender<Slot>,
        shared: Arc<Shared>,
        to: usize,
        is_measured: bool,
    ) -> (Self, Watch) {
        let waits = Rc::new(Cell::new(false));
        let watch = Watch {
            element,
            waits: Rc::clone(&waits),
            gauge: Arc::clone(&gauge),
            is_inlet: true,
        };
        let inlet = Self {
            gauge,
            sender,
            shared,
            to,
            waits,
            held: Batch::new(),
            is_measured,
        };
        (inlet, watch)
    }

    /// Copies as many packets as there is room for to the other thread.
    fn send(&mut self, batch: &mut Batch) {
        let (fits, before) = self.gauge.reserve(batch.len());
        for packet in batch.drain_front(fits) {
            // each ring has a slot for every packet that the queue may have
            self.sender.push(|slot| slot.fill(&packet));
        }
        // who sleeps found the queue empty
        if self.sender.publish() && before == 0 {
            self.shared.wake(self.to);
        }
    }
}

/// Packets of one batch that wait at an inlet for room, at most.
const MAX_HELD: usize = 64;

impl Element for Inlet {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let several = batch.len() > 1;
        if self.held.is_empty() {
            self.send(&mut batch);
        }
        // the runs of a task that the engine joined would each have seen that the queue is full
        if several && self.gauge.is_told() && self.held.is_empty() && batch.len() <= MAX_HELD {
            self.held.append(&mut batch);
        }
        if !batch.is_empty() {
            self.gauge.count_drops(ctx, batch.len());
        }
        ctx.recycle(batch);
        if self.gauge.is_told() && !(self.held.is_empty() && self.gauge.has_room()) {
            self.waits.set(true);
            ctx.set_writable(false);
        }
    }

    /// Room has come.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut held = std::mem::take(&mut self.held);
        self.send(&mut held);
        self.held = held;
        if self.held.is_empty() && self.gauge.has_room() {
            self.waits.set(false);
            ctx.set_writable(true);
        }
        false
    }

    /// Packets that waited for room go to the outlet of the new configuration.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        self.held.append(&mut old.held);
        if !self.held.is_empty() {
            self.waits.set(true);
            ctx.set_writable(false);
        }
    }

    /// Nothing on this thread sees what becomes of the packets, unless it measures the queue. One that is
    /// smaller than a batch would be full after each.
    fn is_plain(&self) -> bool {
        !self.is_measured && self.gauge.capacity.load(Ordering::Relaxed) >= MAX_HELD
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    fn storage(&self) -> Option<&dyn Storage> {
        self.is_measured.then_some(self)
    }
}

/// An inlet is only asked how many packets are stored.
impl Storage for Inlet {
    fn stored(&self) -> usize {
        self.gauge.length()
    }

    fn room(&self) -> usize {
        0
    }

    fn expect_one_by_one(&mut self) {}

    fn pull_one(&mut self, _ctx: &mut Context<'_>) -> Option<Packet> {
        None
    }

    fn pull_fitting(&mut self, _: &mut Context<'_>, _: usize, _: usize, _: &mut Batch) -> usize {
        0
    }
}

/// Packets that the outlet takes from rings before it knows which of them leave.
const AHEAD: usize = 32;

/// Where the one thread pulls that the queue belongs to. It may push, too.
pub struct Outlet {
    gauge: Arc<Gauge>,
    receivers: Vec<Receiver<Slot>>,
    /// Whose turn it is.
    next: usize,
    stored: Ring,
    shared: Arc<Shared>,
    /// The threads that push.
    from: Vec<usize>,
    waits: Rc<Cell<bool>>,
}

impl Outlet {
    /// The outlet for an element, and what the loop watches.
    pub fn new(
        element: usize,
        gauge: Arc<Gauge>,
        receivers: Vec<Receiver<Slot>>,
        shared: Arc<Shared>,
        from: Vec<usize>,
    ) -> (Self, Watch) {
        let waits = Rc::new(Cell::new(true));
        let watch = Watch {
            element,
            waits: Rc::clone(&waits),
            gauge: Arc::clone(&gauge),
            is_inlet: false,
        };
        let outlet = Self {
            gauge,
            receivers,
            next: 0,
            stored: Ring::default(),
            shared,
            from,
            waits,
        };
        (outlet, watch)
    }

    /// Takes up to `max` packets out of rings, of each in turn.
    fn receive(&mut self, ctx: &mut Context<'_>, max: usize, into: &mut Batch) {
        let (mut left, mut lost) = (max, 0);
        for _ in 0..self.receivers.len() {
            let receiver = &mut self.receivers[self.next];
            while left > 0 {
                let Some(packet) = receiver.pop(|slot| slot.take(ctx.pool())) else {
                    break;
                };
                match packet {
                    Some(packet) => {
                        into.push_back(packet);
                        left -= 1;
                    }
                    None => lost += 1,
                }
            }
            receiver.release();
            self.next = (self.next + 1) % self.receivers.len();
            if left == 0 {
                break;
            }
        }
        if lost > 0 {
            self.left(ctx, lost);
            self.gauge.count_drops(ctx, lost);
        }
    }

    /// Counts packets that left; half empty it wakes those that push.
    fn left(&mut self, ctx: &mut Context<'_>, n: usize) {
        let before = self.gauge.length.fetch_sub(n, Ordering::SeqCst);
        let half = self.gauge.capacity.load(Ordering::Relaxed) / 2;
        if self.gauge.is_told() && before > half && before - n <= half {
            self.wake_senders();
        }
        self.tell_room(ctx);
    }

    fn wake_senders(&self) {
        self.from
            .iter()
            .for_each(|thread| self.shared.wake(*thread));
    }

    /// Notifies those that push on this thread whether there is room.
    fn tell_room(&self, ctx: &mut Context<'_>) {
        ctx.set_writable(!self.gauge.is_told() || self.gauge.has_room());
    }

    /// Notifies those that pull of what there is after a pull, which may have been without result.
    fn pulled(&mut self, ctx: &mut Context<'_>, n: usize) {
        if n > 0 {
            self.left(ctx, n);
        }
        if n == 0 || (self.gauge.class == "QuickNoteQueue" && self.gauge.length() == 0) {
            ctx.set_readable(false);
            self.waits.set(true);
        }
    }

    /// Moves packets from rings to the store, so that it has at least one if there is one.
    fn refill(&mut self, ctx: &mut Context<'_>) {
        if self.stored.is_empty() {
            let mut batch = ctx.batch();
            self.receive(ctx, AHEAD, &mut batch);
            self.stored.append_front(&mut batch, usize::MAX, AHEAD);
            ctx.recycle(batch);
        }
    }

    fn reset(&mut self, ctx: &mut Context<'_>) {
        let mut all = ctx.batch();
        self.stored.take_front(usize::MAX, &mut all);
        self.receive(ctx, usize::MAX, &mut all);
        let n = all.len();
        ctx.recycle(all);
        self.pulled(ctx, n);
    }
}

impl Element for Outlet {
    /// Packets of its own thread.
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let (fits, _) = self.gauge.reserve(batch.len());
        self.stored.append_front(&mut batch, fits, self.gauge.slots);
        if !batch.is_empty() {
            self.gauge.count_drops(ctx, batch.len());
        }
        ctx.recycle(batch);
        self.waits.set(false);
        ctx.set_readable(true);
        self.tell_room(ctx);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        self.stored.take_front(max, &mut batch);
        let left = max - batch.len();
        self.receive(ctx, left, &mut batch);
        self.pulled(ctx, batch.len());
        batch
    }

    /// Packets have come.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.gauge.length() > 0 {
            self.waits.set(false);
            ctx.set_readable(true);
        }
        false
    }

    /// Takes what is stored, and what other threads have sent: all threads of the old configuration rest.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        let mut all = ctx.batch();
        old.stored.take_front(usize::MAX, &mut all);
        old.receive(ctx, usize::MAX, &mut all);
        let drops = old.gauge.drops.load(Ordering::Relaxed);
        self.gauge.drops.fetch_add(drops, Ordering::Relaxed);
        self.push(ctx, 0, all);
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    fn storage_mut(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

impl Storage for Outlet {
    fn stored(&self) -> usize {
        self.gauge.length()
    }

    fn room(&self) -> usize {
        0
    }

    fn expect_one_by_one(&mut self) {}

    fn pull_one(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        self.refill(ctx);
        let packet = self.stored.pop_front();
        self.pulled(ctx, usize::from(packet.is_some()));
        packet
    }

    fn pull_fitting(
        &mut self,
        ctx: &mut Context<'_>,
        most: usize,
        bytes: usize,
        into: &mut Batch,
    ) -> usize {
        self.refill(ctx);
        let (count, bytes) = self.stored.fitting(most, bytes);
        if count > 0 {
            self.stored.take_front(count, into);
            self.pulled(ctx, count);
        }
        bytes
    }
}

const ARGS: &[Arg] = &[optional("CAPACITY")];

fn text(n: impl ToString) -> Result<String, HandlerError> {
    Ok(n.to_string())
}

/// The handlers of a queue.
static HANDLERS: [Handler<Outlet>; 6] = [
    read("length", |me, _| text(me.gauge.length())),
    read("highwater_length", |me, _| {
        text(me.gauge.highwater.load(Ordering::Relaxed))
    }),
    read_write(
        "capacity",
        |me, _| text(me.gauge.capacity.load(Ordering::Relaxed)),
        |me, view, value| {
            let (capacity, most) = (view.parse::<usize>(value)?, me.gauge.slots);
            if capacity > most {
                let message = format!("expected at most {most} between threads, got {capacity}");
                return Err(HandlerError::rejected(message));
            }
            Ok(Change::of(move |me: &mut Outlet, ctx| {
                me.gauge.capacity.store(capacity, Ordering::SeqCst);
                me.wake_senders();
                me.tell_room(ctx);
            }))
        },
    ),
    read("drops", |me, _| {
        text(me.gauge.drops.load(Ordering::Relaxed))
    }),
    command("reset_counts", |_, _, _| {
        Ok(Change::of(|me: &mut Outlet, _| {
            me.gauge.drops.store(0, Ordering::Relaxed);
            me.gauge
                .highwater
                .store(me.gauge.length(), Ordering::Relaxed);
        }))
    }),
    command("reset", |_, _, _| Ok(Change::of(Outlet::reset))),
];

const CLASS: Class = Class {
    ports: "1/1",
    processing: "h/l",
    args: ARGS,
    handlers: &HANDLERS,
    quiet: true,
    ..Class::DEFAULT
};

static CLASSES: [Class; 3] = [
    Class {
        name: "Queue",
        ..CLASS
    },
    Class {
        name: "SimpleQueue",
        ..CLASS
    },
    Class {
        name: "QuickNoteQueue",
        ..CLASS
    },
];

/// The class of an outlet, by that of its queue.
pub fn class(name: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|class| class.name == name)
}
