// SPDX-License-Identifier: Apache-2.0
//! The running graph: element slots, the batches under way, tasks and timers.
pub mod apart;
pub mod class;
pub mod context;
#[cfg(feature = "threads")]
mod copied;
pub mod element;
#[cfg(feature = "threads")]
pub mod elsewhere;
pub mod graph;
pub mod handler;
pub mod reachability;
#[cfg(feature = "threads")]
mod together;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::ops::Range;

use click_lang::{Flat, SourcePos, Sources};

use crate::config::environment::Environment;
use crate::config::names::Names;
use crate::console::Console;
use crate::engine::class::Class;
use crate::engine::context::Context;
use crate::engine::element::Element;
use crate::engine::graph::Graph;
use crate::engine::reachability::Reachability;
use crate::random::Random;
use crate::sched::{Tasks, Timers};
use crate::spread::Spread;
use crate::traffic::Traffic;
use apart::Apart;
use click_packet::PacketPool;
use click_packet::{Batch, Packet};

/// The element and port at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub element: usize,
    pub port: usize,
}

/// Elements whose signals tell if a port is worth a try.
pub struct Watch {
    /// One of the elements behind the port has to be tried always.
    pub always: bool,
    pub signals: Vec<usize>,
}

/// An element's configuration. Most are parts of the router's text, which are not kept twice.
pub enum Config {
    Part(Range<usize>),
    Own(Box<str>),
}

impl Config {
    /// The configuration of an element declared at `place`.
    pub fn new(config: &str, place: SourcePos, sources: &Sources) -> Self {
        match sources.find(place, config) {
            Some(part) => Self::Part(part),
            None => Self::Own(config.into()),
        }
    }

    pub fn text<'a>(&'a self, sources: &'a Sources) -> &'a str {
        match self {
            Self::Part(range) => &sources.text()[range.clone()],
            Self::Own(text) => text,
        }
    }
}

impl From<String> for Config {
    fn from(text: String) -> Self {
        Self::Own(text.into())
    }
}

/// One element and its place in the graph.
pub struct ElementSlot {
    pub name: String,
    pub config: Config,
    /// Away while it runs.
    pub element: Option<Box<dyn Element>>,
    /// Where pushed packets go, by output; `None` for pull outputs.
    pub outputs: Vec<Option<Edge>>,
    /// Where packets are pulled from, by input; `None` for push inputs.
    pub inputs: Vec<Option<Edge>>,
    pub readable: bool,
    pub writable: bool,
    /// Elements whose tasks wait until this one is readable, or writable.
    pub readers: Vec<usize>,
    pub writers: Vec<usize>,
    pub upstream: Vec<Option<Watch>>,
    pub downstream: Vec<Option<Watch>>,
    /// Turns of the task until the engine again looks for several turns to join.
    pub backoff: u8,
    /// Elements that turns of its task meet, once the engine looked for them.
    pub reach: Option<Box<Reachability>>,
    /// What becomes of packets of different outputs, once the engine looked.
    pub apart: Option<Apart>,
}

/// Memory to divide a batch by outputs.
#[derive(Default)]
pub struct Distributed {
    /// By output; all are empty between two calls.
    pub runs: Vec<Batch>,
    /// The outputs in the order of their first packets.
    pub order: Vec<usize>,
}

/// A batch on its way. An empty one stands for a call of a handler; the port is the call's number.
struct Work {
    to: Edge,
    batch: Batch,
}

/// A handler write that waits until the element that asked for it has returned.
struct Call {
    handler: String,
    value: String,
}

/// Batches kept for reuse at most.
const SPARE: usize = 256;

/// The configuration, which does not change while the router runs.
pub struct Plan {
    /// The texts of the configuration.
    pub sources: Sources,
    pub flat: Flat,
    /// How many of its elements the configuration wrote; those of the environment follow.
    pub written: usize,
    /// What is to have copies on all threads.
    pub(crate) spread: Spread,
    pub graph: Graph,
    /// The class of each element.
    pub classes: Vec<&'static Class>,
    /// All classes there are.
    pub class_names: Vec<&'static str>,
    /// Elements that have copies on other threads.
    #[cfg(feature = "threads")]
    pub copies: crate::copies::Copies,
}

pub struct Engine {
    pub plan: Rc<Plan>,
    pub slots: Vec<ElementSlot>,
    /// The batch that goes next; most elements send one, and it is found here again sooner than in a list.
    next: Option<Work>,
    /// Those that go after it, the last one first.
    work: Vec<Work>,
    spare: Vec<Batch>,
    /// Memory for `Context::take_ports`.
    pub ports: Vec<usize>,
    pub distributed: Distributed,
    pub pool: PacketPool,
    pub tasks: Tasks,
    pub timers: Timers,
    pub environment: Environment,
    pub names: Names,
    pub console: Console,
    pub now_ns: u64,
    pub random: Random,
    /// Requests to stop that no element has dealt with.
    pub stops: u32,
    /// The element that decides about a request to stop.
    pub manager: Option<usize>,
    /// Elements that are running now, one in another.
    depth: usize,
    /// True if an element pulled packets, even if none of them arrived at the task that wanted them.
    pub moved: bool,
    pub max_batch: usize,
    /// Turns of tasks that are left of the slice.
    pub runs_left: usize,
    /// Steps of work that scripts may still take in this slice, or in this call of a handler.
    pub steps_left: usize,
    /// Counts for a reader of `graph`, while there is one.
    pub traffic: Option<Box<Traffic>>,
    pub reads: u64,
    pub writes: u64,
    /// Values that elements share, by type.
    pub shared: BTreeMap<TypeId, Rc<dyn Any>>,
    /// Calls that wait in `work`, by number.
    calls: Vec<Option<Call>>,
    /// True while an element takes over from the one that it replaces under a new configuration.
    pub reconfiguring: bool,
    /// The threads that run the configuration's other elements, if there are any.
    #[cfg(feature = "threads")]
    pub threads: Option<Rc<dyn elsewhere::Threads>>,
    /// Writes that wait for those of other threads.
    #[cfg(feature = "threads")]
    waiting: together::Waiting,
}

impl Engine {
    /// The configuration of an element as it runs.
    pub fn config(&self, index: usize) -> &str {
        self.slots[index].config.text(&self.plan.sources)
    }

    pub fn new(
        plan: Plan,
        slots: Vec<ElementSlot>,
        environment: Environment,
        names: Names,
        pool: PacketPool,
        now_ns: u64,
    ) -> Self {
        let limits = environment.limits;
        let console = Console::new(environment.console.clone(), limits.console_lines_per_s);
        Self {
            plan: Rc::new(plan),
            tasks: Tasks::new(slots.len()),
            timers: Timers::new(slots.len()),
            slots,
            next: None,
            work: Vec::new(),
            spare: Vec::new(),
            ports: Vec::new(),
            distributed: Distributed::default(),
            pool,
            random: Random::new(&environment.entropy.key()),
            environment,
            names,
            console,
            now_ns,
            stops: 0,
            manager: None,
            depth: 0,
            moved: false,
            max_batch: limits.batch.max(1),
            runs_left: 0,
            steps_left: limits.steps,
            traffic: None,
            reads: 0,
            writes: 0,
            shared: BTreeMap::new(),
            calls: Vec::new(),
            reconfiguring: false,
            #[cfg(feature = "threads")]
            threads: None,
            #[cfg(feature = "threads")]
            waiting: together::Waiting::default(),
        }
    }

    /// Runs `call` on an element; `None` if the element is running already.
    #[inline]
    pub fn with<R>(
        &mut self,
        me: usize,
        call: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let mut element = self.slots[me].element.take()?;
        let mark = self.work.len();
        self.depth += 1;
        let result = call(&mut *element, &mut Context::new(self, me));
        self.depth -= 1;
        // its place is empty, so `forget` drops nothing and saves a test
        core::mem::forget(self.slots[me].element.replace(element));
        // what was sent first goes first, and all the way before what was sent next
        if self.work.len() > mark + 1 && self.depth == 0 {
            self.work[mark..].reverse();
        }
        Some(result)
    }

    /// As `with`, for the calls that move packets: finds drops while a reader watches.
    #[inline]
    pub fn pass<R>(
        &mut self,
        me: usize,
        call: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let pool = &self.pool;
        let entered = self.traffic.as_mut().map(|t| t.enter(pool.in_use()));
        let result = self.with(me, call);
        if let (Some(entered), Some(traffic)) = (entered, &mut self.traffic) {
            traffic.leave(me, &entered, self.pool.in_use());
        }
        result
    }

    /// Counts a batch that leaves an output, while a reader watches.
    #[inline]
    pub fn count(&mut self, element: usize, output: usize, packets: &[Packet]) {
        if let Some(traffic) = &mut self.traffic {
            traffic.count(element, output, packets);
        }
    }

    /// True if an element told that it is empty, and got nothing since.
    #[inline]
    fn is_known_empty(&self, element: usize) -> bool {
        let slot = &self.slots[element];
        !slot.readable && slot.element.as_ref().is_some_and(|e| e.tells_when_empty())
    }

    /// How many elements are running, one in another.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// An empty batch with memory, if there is one.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the memory of a batch.
    #[inline]
    pub fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        if self.spare.len() < SPARE && batch.has_memory() {
            self.spare.push(batch);
        }
    }

    /// Sends a batch along a connection.
    #[inline]
    pub fn send(&mut self, to: Edge, batch: Batch) {
        let work = Work { to, batch };
        match &mut self.next {
            next @ None => *next = Some(work),
            Some(_) => self.work.push(work),
        }
    }

    /// True if batches are under way.
    pub fn has_work(&self) -> bool {
        self.next.is_some() || !self.work.is_empty()
    }

    /// True if an element is away, since it runs.
    #[cfg(feature = "threads")]
    pub fn is_running(&self, element: usize) -> bool {
        self.slots[element].element.is_none()
    }

    /// Begins a slice, or a call of a handler.
    pub fn begin(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        #[cfg(feature = "threads")]
        self.catch_up();
        if self
            .traffic
            .as_ref()
            .is_some_and(|t| t.is_over(self.now_ns))
        {
            self.traffic = None;
        }
        self.steps_left = self.environment.limits.steps;
    }

    /// Moves batches on until none is under way or `budget` elements were entered; returns whether none is.
    pub fn drain(&mut self, budget: &mut usize) -> bool {
        while let Some(mut work) = self.next.take().or_else(|| self.work.pop()) {
            if *budget == 0 {
                self.next = Some(work);
                return false;
            }
            *budget -= 1;
            // true for 0, too
            if work.batch.len().wrapping_sub(1) >= self.max_batch {
                if work.batch.is_empty() {
                    self.call(work.to);
                    continue;
                }
                work = self.split(work);
            }
            let Work { to, batch } = work;
            self.pass(to.element, |element, ctx| element.push(ctx, to.port, batch))
                .expect("no element runs while batches are moved");
        }
        true
    }

    /// Makes a handler write of an element before anything that is sent after this.
    #[cold]
    pub fn call_later(&mut self, element: usize, handler: String, value: String) {
        let call = Some(Call { handler, value });
        let port = match self.calls.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.calls.push(None);
                self.calls.len() - 1
            }
        };
        self.calls[port] = call;
        let to = Edge { element, port };
        self.send(to, Batch::default());
    }

    /// Makes the call that an element asked for; an error goes to the console.
    #[cold]
    fn call(&mut self, by: Edge) {
        let Some(Call { handler, value }) = self.calls[by.port].take() else {
            return;
        };
        let mut ctx = Context::new(self, by.element);
        if let Err(error) = ctx.write_handler(&handler, &value) {
            let line = format!("{}: {error}", ctx.name());
            ctx.print(&line);
        }
    }

    /// Takes the first `max_batch` packets; the rest goes next.
    #[cold]
    fn split(&mut self, mut work: Work) -> Work {
        let mut batch = self.batch();
        batch.append_front(&mut work.batch, self.max_batch);
        let to = work.to;
        self.work.push(work);
        Work { to, batch }
    }
}
