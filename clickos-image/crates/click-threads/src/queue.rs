// SPDX-License-Identifier: Apache-2.0
//! A queue between threads: an inlet at each thread that pushes, the outlet at the one that pulls.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use click_core::class::{Arg, optional};
use click_core::handler::{command, read, read_write};
use click_core::text::count_args;
use click_core::{
    Args, Batch, Change, Class, Context, Element, Handler, HandlerError, Packet, Ring, Signal,
    Storage, View,
};
use vale_handoff::{Receiver, Sender};

use crate::gauge::Gauge;
use crate::letters::Shared;
use crate::watch::{Far, Out, Slot, Watch};

/// Where a thread pushes.
pub struct Inlet {
    gauge: Arc<Gauge>,
    /// Packets that left the queue, as last read.
    left: usize,
    out: Rc<RefCell<Out>>,
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
        let out = Rc::new(RefCell::new(Out::new(sender)));
        let watch = Watch {
            element,
            waits: Rc::clone(&waits),
            far: Far::Room(Arc::clone(&gauge), Cell::new(0), Rc::clone(&out)),
        };
        let inlet = Self {
            gauge,
            left: 0,
            out,
            shared,
            to,
            waits,
            held: Batch::new(),
            is_measured,
        };
        (inlet, watch)
    }

    /// Sends as many packets as there is room for to the other thread. Those are dropped that would be on their way
    /// beyond the limit of this thread: room for them may not come soon.
    fn send(&mut self, ctx: &mut Context<'_>, batch: &mut Batch) {
        let mut out = self.out.borrow_mut();
        if batch.len() > ctx.pool().may_leave() {
            out.settle();
        }
        let may_leave = batch.len().min(ctx.pool().may_leave());
        // who knows of room may push; the others rest
        let fair = match self.waits.get() {
            true => out.fair(&self.gauge, may_leave, true),
            false => may_leave,
        };
        let fits = self.gauge.reserve(fair, &mut self.left);
        let Out { sender, underway } = &mut *out;
        let lost = ctx.pool().send(batch, fits, underway, |packet| {
            // each ring has a slot for every packet that the queue may have, and the receiver leaves slots empty
            sender.push(|slot| std::mem::forget(slot.replace(packet)));
        });
        if lost > 0 {
            self.gauge.cancel(lost);
            self.gauge.count_drops(ctx, lost);
        }
        if out.sender.publish() {
            self.shared.wake(self.to);
        }
        if ctx.pool().in_use() > ctx.pool().limit() / 2 {
            out.settle();
        }
        if fits == may_leave && !batch.is_empty() {
            self.gauge.count_drops(ctx, batch.len());
            batch.clear();
        }
    }

    /// True if there is no room for this thread.
    fn is_full(&mut self) -> bool {
        let waits = self.waits.get();
        self.gauge.is_full(&mut self.left) || self.out.borrow_mut().fair(&self.gauge, 1, waits) == 0
    }

    fn set_waits(&self, ctx: &mut Context<'_>, waits: bool) {
        if self.waits.replace(waits) != waits {
            match waits {
                true => self.gauge.begin_wait(),
                false => {
                    self.gauge.end_wait();
                    self.shared.wake(self.to);
                }
            }
        }
        ctx.set_writable(!waits);
    }
}

/// Packets of one batch that wait at an inlet for room, at most.
const MAX_HELD: usize = 64;

impl Element for Inlet {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if self.held.is_empty() {
            self.send(ctx, &mut batch);
        }
        // who pushed knew of room, which another thread took; and the runs of a task that the engine joined would
        // each have seen that the queue is full
        if self.gauge.is_told() && self.held.is_empty() && batch.len() <= MAX_HELD {
            self.held.append(&mut batch);
        }
        if !batch.is_empty() {
            self.gauge.count_drops(ctx, batch.len());
        }
        ctx.recycle(batch);
        if self.gauge.is_told() && (!self.held.is_empty() || self.is_full()) {
            self.set_waits(ctx, true);
        }
    }

    /// Room has come.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut held = std::mem::take(&mut self.held);
        self.send(ctx, &mut held);
        self.held = held;
        if self.held.is_empty() && !self.is_full() {
            self.set_waits(ctx, false);
        }
        false
    }

    /// Packets that waited for room go to the outlet of the new configuration.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        match old.as_any_mut().downcast_mut::<Self>() {
            Some(old) => self.held.append(&mut old.held),
            // the queue was this thread's
            None => self.held.append(&mut ctx.take_stored(old)),
        }
        if !self.held.is_empty() {
            self.set_waits(ctx, true);
        }
    }

    /// Nothing on this thread sees what becomes of the packets, unless it measures the queue. One that is
    /// smaller than a batch would be full after each.
    fn is_plain(&self) -> bool {
        !self.is_measured && self.gauge.capacity() >= MAX_HELD
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    fn storage(&self) -> Option<&dyn Storage> {
        self.is_measured.then_some(self)
    }

    fn held(&mut self) -> Option<&mut Batch> {
        Some(&mut self.held)
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
    receivers: Rc<RefCell<Vec<Receiver<Slot>>>>,
    /// Whose turn it is: a receiver's, or `own`'s behind them.
    next: usize,
    /// Packets that are ahead of all others.
    stored: Ring,
    /// Packets that this thread pushed.
    own: Ring,
    /// The end of a batch of this thread that found no room.
    held: Batch,
    shared: Arc<Shared>,
    /// The threads that push.
    from: Vec<usize>,
    waits: Rc<Cell<bool>>,
    /// True if those that push on this thread rest because others wait for room.
    leaves_room: Rc<Cell<bool>>,
    /// Packets that left the queue, as last read; none if this thread does not push.
    own_left: Option<usize>,
    /// True if an element measures what is stored.
    is_measured: bool,
}

impl Outlet {
    /// The outlet for an element, and what the loop watches.
    pub fn new(
        element: usize,
        gauge: Arc<Gauge>,
        receivers: Vec<Receiver<Slot>>,
        shared: Arc<Shared>,
        from: Vec<usize>,
        is_measured: bool,
    ) -> (Self, Watch) {
        let waits = Rc::new(Cell::new(true));
        let receivers = Rc::new(RefCell::new(receivers));
        let leaves_room = Rc::new(Cell::new(false));
        let (ends, leaves) = (Rc::clone(&receivers), Rc::clone(&leaves_room));
        let watch = Watch {
            element,
            waits: Rc::clone(&waits),
            far: Far::Packets(ends, Arc::clone(&gauge), leaves),
        };
        let outlet = Self {
            gauge,
            receivers,
            next: 0,
            stored: Ring::default(),
            own: Ring::default(),
            held: Batch::new(),
            shared,
            from,
            waits,
            leaves_room,
            own_left: None,
            is_measured,
        };
        (outlet, watch)
    }

    /// Takes what is stored, and all packets out of rings: also more than this thread may have.
    fn take_all(&mut self, ctx: &mut Context<'_>) -> Batch {
        let mut all = ctx.batch();
        self.stored.take_front(usize::MAX, &mut all);
        self.own.take_front(usize::MAX, &mut all);
        all.append(&mut self.held);
        for receiver in self.receivers.borrow_mut().iter_mut() {
            ctx.pool().receive_all(usize::MAX, &mut all, || {
                receiver.pop(Option::take).flatten()
            });
            receiver.release();
        }
        all
    }

    /// Takes up to `max` packets out of rings and of this thread's own, of each in turn.
    fn receive(&mut self, ctx: &mut Context<'_>, max: usize, into: &mut Batch) {
        let mut left = max;
        let mut receivers = self.receivers.borrow_mut();
        for _ in 0..=receivers.len() {
            let before = into.len();
            if let Some(receiver) = receivers.get_mut(self.next) {
                self.next += 1;
                ctx.pool()
                    .receive(left, into, || receiver.pop(Option::take).flatten());
                receiver.release();
                // their bytes are in the other processor's cache
                into.packets()[before..].iter().for_each(Packet::prefetch);
            } else {
                self.next = 0;
                if !self.own.is_empty() {
                    self.own.take_front(left, into);
                }
            }
            left -= into.len() - before;
            if left == 0 {
                break;
            }
        }
    }

    /// Counts packets that left; half empty it wakes those that push.
    fn left(&mut self, ctx: &mut Context<'_>, n: usize) {
        if self.gauge.leave(n) {
            self.wake_senders();
        }
        self.store_held();
        self.tell_room(ctx);
    }

    /// Stores packets of this thread that waited for room.
    fn store_held(&mut self) {
        if !self.held.is_empty() {
            let mut held = std::mem::take(&mut self.held);
            self.store(&mut held);
            self.held = held;
        }
    }

    /// Stores as many packets of this thread as there is room for.
    fn store(&mut self, batch: &mut Batch) {
        // who knows of room may push; the others rest
        let fair = match self.leaves_room.get() {
            true => self.fair(batch.len()),
            false => batch.len(),
        };
        let left = self.own_left.get_or_insert_default();
        let fits = self.gauge.reserve(fair, left);
        // without others of this thread, what comes here is of a former queue, and older than all that rings bring
        let to = match self.gauge.pushers > self.from.len() {
            true => &mut self.own,
            false => &mut self.stored,
        };
        to.append_front(batch, fits, self.gauge.slots);
    }

    fn wake_senders(&self) {
        self.from
            .iter()
            .for_each(|thread| self.shared.wake(*thread));
    }

    /// Notifies those that push on this thread whether there is room.
    fn tell_room(&self, ctx: &mut Context<'_>) {
        if self.own_left.is_some() {
            let has_room = !self.gauge.is_told() || self.gauge.has_room();
            let leaves_room = self.gauge.is_told() && self.fair(1) == 0;
            self.leaves_room.set(leaves_room);
            ctx.set_writable(has_room && !leaves_room && self.held.is_empty());
        }
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

    /// How many of `n` packets this thread may push, by what others wait for.
    fn fair(&self, n: usize) -> usize {
        self.gauge.fair(n, false, || self.own.len())
    }

    /// The change to another capacity, for which the rings have room.
    fn resized(&self, capacity: usize) -> Result<Change, HandlerError> {
        let most = self.gauge.slots;
        if capacity > most {
            let message = format!("expected at most {most} between threads, got {capacity}");
            return Err(HandlerError::rejected(message));
        }
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.gauge.set_capacity(capacity);
            me.wake_senders();
            me.store_held();
            me.tell_room(ctx);
        }))
    }

    fn reset(&mut self, ctx: &mut Context<'_>) {
        let held = self.held.len();
        let all = self.take_all(ctx);
        let n = all.len() - held;
        ctx.recycle(all);
        self.pulled(ctx, n);
    }
}

impl Element for Outlet {
    /// Packets of its own thread.
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if self.held.is_empty() {
            self.store(&mut batch);
        }
        // another thread took the room that this one knew of
        if self.gauge.is_told() && self.held.is_empty() && batch.len() <= MAX_HELD {
            self.held.append(&mut batch);
        }
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

    /// Packets have come, or no other thread waits for room any more.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        self.store_held();
        self.tell_room(ctx);
        if self.gauge.length() > 0 {
            self.waits.set(false);
            ctx.set_readable(true);
        }
        false
    }

    /// Takes what is stored, and what other threads have sent: all threads of the old configuration rest.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let all = match old.as_any_mut().downcast_mut::<Self>() {
            Some(old) => {
                self.gauge.add_drops(old.gauge.drops());
                old.take_all(ctx)
            }
            None => ctx.take_stored(old),
        };
        let pushes = self.own_left;
        self.push(ctx, 0, all);
        // they are older than all that rings bring
        if self.stored.is_empty() {
            std::mem::swap(&mut self.stored, &mut self.own);
        }
        self.own_left = pushes;
        if pushes.is_none() {
            // no pull would tell those that begin to push here of room
            ctx.set_writable(true);
        }
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
    /// Enough for a burst is enough to know for those that do not measure: who asks takes no more at a time.
    fn stored(&self) -> usize {
        let receivers = self.receivers.borrow();
        let here = self.stored.len() + self.own.len();
        let known = receivers.iter().map(Receiver::known).sum::<usize>() + here;
        match known < AHEAD || self.is_measured {
            true => self.gauge.length(),
            false => known,
        }
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
/// The capacity of a queue that does not say it, as on one thread.
const CAPACITY: usize = 1000;

/// What a configuration says.
fn given_capacity(view: &View<'_>, config: &str) -> Result<usize, HandlerError> {
    // the last one may be empty
    if count_args(config) > 2 {
        return Err(HandlerError::rejected("too many arguments, the limit is 1"));
    }
    let mut args = Args::bind(ARGS, config, (1, 1), view.arg_context());
    let capacity = args.or("CAPACITY", CAPACITY);
    args.checked(capacity).map_err(HandlerError::rejected)
}

fn text(n: impl ToString) -> Result<String, HandlerError> {
    Ok(n.to_string())
}

/// The handlers of a queue.
static HANDLERS: [Handler<Outlet>; 7] = [
    read("length", |me, _| text(me.gauge.length())),
    read("highwater_length", |me, _| text(me.gauge.highwater())),
    read_write(
        "capacity",
        |me, _| text(me.gauge.capacity()),
        |me, view, value| me.resized(view.parse(value)?),
    ),
    read_write(
        "config",
        |_, view| text(view.config()),
        |me, view, value| me.resized(given_capacity(view, value)?),
    ),
    read("drops", |me, _| text(me.gauge.drops())),
    command("reset_counts", |_, _, _| {
        Ok(Change::of(|me: &mut Outlet, _| {
            me.gauge.reset_counts();
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

static CLASSES: [Class; 4] = [
    Class {
        name: "CPUQueue",
        ..CLASS
    },
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
