// SPDX-License-Identifier: Apache-2.0
//! A configuration whose elements run on several threads, each of which has a router.
//!
//! Each router has all elements by name and number. Those of other threads are empty ones in it, and
//! calls of their handlers go to the thread that has them.
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use click_lang::{ConfigError, Phase, Scope, Sources, Subject};
use click_packet::{Batch, PacketPool};
pub use click_packet::{InTransit, Underway, memory};

pub use crate::asked::{MAX_CAPACITY, QUEUES};
use crate::build::{assemble, initialize};
use crate::config::environment::Environment;
use crate::engine::Engine;
use crate::engine::class::Class;
use crate::engine::context::Context;
use crate::engine::element::Element;
pub use crate::engine::elsewhere::{Answer, Answered, Call, Threads};
use crate::error::HandlerError;
use crate::handler_info::{HandlerInfo, Kind};
pub use crate::judge::TOGETHER;
use crate::registry::Registry;
use crate::router::Router;
pub use crate::spread::Directory;

/// Classes whose elements start on each thread, since they tell a router something about all of its elements.
const EVERYWHERE: [&str; 1] = ["ScheduleInfo"];

/// An element of another thread.
struct Elsewhere {
    /// It answers to any name of a handler.
    has_any: bool,
}

impl Element for Elsewhere {
    fn dynamic_handlers(&self, asked: &str) -> Vec<HandlerInfo> {
        let has_it = self.has_any && !asked.is_empty();
        let handler = has_it.then(|| HandlerInfo {
            name: asked.to_string(),
            read: true,
            write: true,
            kind: Kind::of(asked),
        });
        handler.into_iter().collect()
    }
}

/// Packets of a queue, on their way to the thread that continues with it.
pub struct Leftover {
    element: String,
    class: &'static str,
    /// The packets, the oldest one first.
    pub packets: Vec<InTransit>,
    /// They had not come into the queue, so they are newer than those in it.
    pub is_newest: bool,
}

/// Sends what an element has.
type Send = fn(&mut dyn Element, &mut Context<'_>) -> Vec<InTransit>;

fn send_stored(element: &mut dyn Element, ctx: &mut Context<'_>) -> Vec<InTransit> {
    let mut sent = Vec::new();
    let mut batch = ctx.batch();
    while let Some(storage) = element.storage_mut() {
        storage.pull_fitting(ctx, MOVED, usize::MAX, &mut batch);
        if batch.is_empty() {
            break;
        }
        send_all(&mut batch, ctx, &mut sent);
    }
    ctx.recycle(batch);
    sent
}

fn send_held(element: &mut dyn Element, ctx: &mut Context<'_>) -> Vec<InTransit> {
    let mut sent = Vec::new();
    if let Some(held) = element.held() {
        send_all(held, ctx, &mut sent);
    }
    sent
}

fn send_all(batch: &mut Batch, ctx: &mut Context<'_>, sent: &mut Vec<InTransit>) {
    // they count again where they arrive
    let mut underway = Underway::default();
    let all = batch.len();
    ctx.pool()
        .send(batch, all, &mut underway, |packet| sent.push(packet));
}

/// Packets that are taken out of a queue at a time.
const MOVED: usize = 32;

/// A router whose elements are built and connected, and have not started.
pub struct Assembled {
    engine: Engine,
    globals: Scope,
}

/// An element of it.
pub struct Place<'a> {
    /// Its full name.
    pub name: &'a str,
    /// Its class.
    pub class: &'static Class,
    /// The name that the configuration has for the class.
    pub class_name: &'a str,
    /// Its configuration.
    pub config: &'a str,
    /// How many outputs are connected.
    pub outputs: usize,
}

/// A connection.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Element and output.
    pub from: (usize, usize),
    /// Element and input.
    pub to: (usize, usize),
}

impl Assembled {
    /// Builds and connects the elements of a configuration.
    ///
    /// # Errors
    /// All errors of the configuration that are found before elements start, in the order of their places.
    pub fn new(
        sources: Sources,
        registry: &Registry,
        environment: Environment,
        variables: &[(String, String)],
        now_ns: u64,
    ) -> Result<Self, Vec<ConfigError>> {
        let pool = PacketPool::new(environment.limits.packet_buffers);
        let globals = Scope::global(variables);
        let assembled = assemble(sources, registry, environment, &globals, pool, now_ns);
        let engine = assembled.map_err(|(errors, _)| errors)?;
        Ok(Self { engine, globals })
    }

    /// Lets packets move to other threads from now on; to be called before there is one.
    pub fn let_packets_migrate(&mut self) {
        self.engine.pool = PacketPool::migrating(self.engine.pool.limit());
    }

    /// All elements, by number.
    pub fn elements(&self) -> Vec<Place<'_>> {
        let (plan, slots) = (&self.engine.plan, &self.engine.slots);
        let mut outputs = vec![0; slots.len()];
        for c in &plan.flat.connections {
            let (element, port) = c.from;
            outputs[element] = outputs[element].max(port + 1);
        }
        let place = |index: usize| Place {
            name: &slots[index].name,
            class: plan.classes[index],
            class_name: &plan.flat.elements[index].class,
            config: self.engine.config(index),
            outputs: outputs[index],
        };
        (0..slots.len()).map(place).collect()
    }

    /// All connections.
    pub fn connections(&self) -> Vec<Link> {
        let all = self.engine.plan.flat.connections.iter();
        all.map(|c| Link {
            from: c.from,
            to: c.to,
        })
        .collect()
    }

    /// True for a connection whose packets are pulled.
    pub fn is_pulled(&self, link: &Link) -> bool {
        let (element, output) = link.from;
        self.engine.plan.graph.output_is_pull(element, output)
    }

    /// The elements behind the first output of an element that report whether they have room; none if others there
    /// have room always.
    pub fn room_behind(&self, element: usize) -> Vec<usize> {
        self.engine.heeded_behind(element, 0)
    }

    /// An error about an element.
    pub fn error(&self, element: usize, message: String) -> ConfigError {
        let plan = &self.engine.plan;
        ConfigError {
            place: plan
                .sources
                .locate(plan.flat.elements[element].place, &plan.flat.directives),
            subject: Some(Subject {
                phase: Phase::Initializing,
                element: plan.flat.elements[element].label(),
            }),
            message,
            note: None,
        }
    }

    /// Whether the memory takes `bytes` besides what an installation leaves free.
    ///
    /// # Errors
    /// The limit that would not hold.
    pub fn has_memory(&self, bytes: usize) -> Result<(), String> {
        let reserve = self.engine.environment.limits.reserve_bytes;
        if reserve == 0 || memory::has_room(bytes.saturating_add(reserve)) {
            return Ok(());
        }
        let reserve = reserve >> 10;
        Err(format!(
            "leaves less than {reserve} KiB of the memory, the limit"
        ))
    }

    /// Knows the program's threads from now on; elements of others are empty ones.
    pub fn set_threads(&mut self, threads: Rc<dyn Threads>) {
        if let Some(own) = threads.own() {
            for (index, slot) in self.engine.slots.iter_mut().enumerate() {
                let class = self.engine.plan.classes[index];
                if threads.home(index) != own && !EVERYWHERE.contains(&class.name) {
                    let listed = |e: Box<dyn Element>| e.dynamic_handlers("*");
                    let listed = slot.element.take().map_or_else(Vec::new, listed);
                    let has_any = listed.iter().any(|handler| handler.name == "*");
                    slot.element = Some(Box::new(Elsewhere { has_any }));
                }
            }
        }
        self.engine.threads = Some(threads);
    }

    /// Replaces an element by another, with its handlers if it has some.
    pub fn replace(&mut self, index: usize, class: Option<&'static Class>, by: Box<dyn Element>) {
        self.engine.slots[index].element = Some(by);
        if let (Some(class), Some(plan)) = (class, Rc::get_mut(&mut self.engine.plan)) {
            plan.classes[index] = class;
        }
    }

    /// Makes a call of another thread.
    ///
    /// # Errors
    /// The call's.
    pub fn answer(&mut self, call: Call) -> Answered {
        self.engine.answer(call)
    }

    /// Starts the elements.
    ///
    /// # Errors
    /// Why elements cannot start.
    pub fn start(mut self) -> Result<Router, Vec<ConfigError>> {
        initialize(&mut self.engine)?;
        let own = self.engine.threads.as_ref().and_then(|t| t.own());
        if let (Some(manager), Some(own @ 1..)) = (self.engine.manager, own) {
            let message = format!("runs on thread 0 only, not on thread {own}");
            return Err(vec![self.error(manager, message)]);
        }
        Ok(Router::of(self.engine, self.globals))
    }
}

impl Router {
    /// Makes a call of another thread.
    ///
    /// # Errors
    /// The call's.
    pub fn answer(&mut self, call: Call, now_ns: u64) -> Answered {
        self.engine.begin(now_ns);
        let answer = self.engine.answer(call);
        self.drain_writes();
        answer
    }

    /// What the handler of this name is, on whatever thread.
    ///
    /// # Errors
    /// There is no such handler, or its thread does not answer.
    pub fn handler_info(&mut self, name: &str) -> Result<HandlerInfo, HandlerError> {
        let Some((threads, home)) = self.engine.thread_of(name) else {
            return self.engine.info(name);
        };
        let call = Call::Info(name.to_string());
        let engine = &mut self.engine;
        match threads.call(home, call, &mut |call| engine.answer(call))? {
            Answer::Info(info) => Ok(info),
            Answer::Text(_) | Answer::Written => Err(HandlerError::no_handler(name)),
        }
    }

    /// Replaces the router by a new one, whose elements take the state of those of the same name and class. Returns what
    /// they did not take, as a queue may have come to another thread.
    pub fn replace_by(&mut self, mut new: Self) -> Vec<Leftover> {
        self.engine.catch_up();
        self.hand_over(&mut new.engine);
        let left = self.leftovers();
        *self = new;
        left
    }

    /// Takes all packets that elements store.
    pub fn leftovers(&mut self) -> Vec<Leftover> {
        let plan = Rc::clone(&self.engine.plan);
        let mut left = Vec::new();
        for (index, class) in plan.classes.iter().enumerate() {
            for (send, is_newest) in [(send_stored as Send, false), (send_held, true)] {
                let packets = self.engine.with(index, send).unwrap_or_default();
                if !packets.is_empty() {
                    left.push(Leftover {
                        element: self.engine.slots[index].name.clone(),
                        class: class.name,
                        packets,
                        is_newest,
                    });
                }
            }
        }
        left
    }

    /// The element that continues with what one of the same name and class has left.
    pub fn heir(&self, left: &Leftover) -> Option<usize> {
        let (classes, slots) = (&self.engine.plan.classes, &self.engine.slots);
        (0..slots.len()).find(|i| slots[*i].name == left.element && classes[*i].name == left.class)
    }

    /// Pushes packets of a former queue to an element.
    pub fn take_in(&mut self, element: usize, packets: Vec<InTransit>, now_ns: u64) {
        self.engine.begin(now_ns);
        let mut packets = packets.into_iter();
        self.engine.with(element, |e, ctx| {
            let mut batch = ctx.batch();
            ctx.pool()
                .receive_all(usize::MAX, &mut batch, || packets.next());
            e.push(ctx, 0, batch);
        });
    }

    /// Variables and devices as the router has them, for one that replaces it.
    pub fn environment(&self) -> &Environment {
        &self.engine.environment
    }

    /// Runs the task of an element that learns something from other threads.
    pub fn poke(&mut self, element: usize, now_ns: u64) {
        self.engine.begin(now_ns);
        self.engine.with(element, |e, ctx| e.run_task(ctx));
    }

    /// True if more than half of the packets that this thread may have are in use.
    pub fn is_short_of_packets(&self) -> bool {
        let pool = &self.engine.pool;
        pool.in_use() > pool.limit() / 2
    }

    /// True if this thread may have one more packet of another one.
    pub fn takes_packets(&self) -> bool {
        self.engine.pool.may_arrive() > 0
    }

    /// Requests to stop, which thread 0 decides about.
    pub fn take_stops(&mut self) -> u32 {
        core::mem::take(&mut self.engine.stops)
    }
}
