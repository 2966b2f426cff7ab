// SPDX-License-Identifier: Apache-2.0
//! What an element can do while it is called.
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::cell::{Cell, RefCell};

use crate::config::args::ArgContext;
use crate::config::environment::{Host, Limits};
use crate::device::Device;
use crate::engine::apart::Apart;
use crate::engine::element::{Element, View};
use crate::engine::{Edge, Engine};
use crate::error::HandlerError;
use crate::handler_info::HandlerInfo;
use click_packet::Batch;
use click_packet::Packet;
use click_packet::PacketPool;

/// The output port of a packet that is dropped.
pub const DROPPED: usize = usize::MAX;

/// The router as the element that is being called sees it.
pub struct Context<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) me: usize,
}

/// The port that all packets of a batch leave by, if that is the same one.
#[inline]
fn one_port(ports: &[usize]) -> Option<usize> {
    let to = ports.first().copied().unwrap_or(DROPPED);
    // all of them, as that needs no decisions
    let differences = ports.iter().fold(0, |bits, port| bits | (port ^ to));
    (differences == 0).then_some(to)
}

impl<'a> Context<'a> {
    pub(crate) fn new(engine: &'a mut Engine, me: usize) -> Self {
        Self { engine, me }
    }

    /// The time in nanoseconds since the epoch; it stands still during a slice.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.engine.now_ns
    }

    /// The element's name.
    pub fn name(&self) -> &str {
        &self.engine.slots[self.me].name
    }

    /// Sends packets out of a push output; where nothing is connected they are dropped.
    #[inline]
    pub fn push(&mut self, port: usize, batch: Batch) {
        match self.engine.slots[self.me].outputs.get(port) {
            Some(Some(to)) if !batch.is_empty() => {
                let to = *to;
                let element = self.me;
                self.engine.count(element, port, batch.packets());
                self.engine.send(to, batch);
            }
            _ => self.engine.recycle(batch),
        }
    }

    /// Sends one packet out of a push output.
    #[inline]
    pub fn push_one(&mut self, port: usize, packet: Packet) {
        let mut batch = self.batch();
        batch.push_back(packet);
        self.push(port, batch);
    }

    /// Sends each packet of a batch out of the output port that `ports` has for it, in runs of packets
    /// for the same port. A port that does not exist, such as [`DROPPED`], drops the packet. Where packets of
    /// different outputs never meet again and no one sees their order, those of an output leave in one batch.
    pub fn push_runs(&mut self, batch: Batch, ports: &[usize]) {
        match one_port(ports) {
            Some(to) => self.push(to, batch),
            None => self.push_mixed(batch, ports, &[Apart::Unseen]),
        }
    }

    /// As `push_runs`, for an element whose outputs lead separate packets: their order may show on the console.
    #[inline]
    pub fn push_apart(&mut self, batch: Batch, ports: &[usize]) {
        match one_port(ports) {
            Some(to) => self.push(to, batch),
            None => self.push_mixed(batch, ports, &[Apart::Unseen, Apart::Disjoint]),
        }
    }

    #[inline(never)]
    fn push_mixed(&mut self, batch: Batch, ports: &[usize], distributed: &[Apart]) {
        if distributed.contains(&self.engine.outputs_apart(self.me)) {
            self.distribute(batch, ports);
        } else {
            self.push_each_run(batch, ports);
        }
    }

    fn push_each_run(&mut self, mut batch: Batch, ports: &[usize]) {
        let mut to = ports.first().copied().unwrap_or(DROPPED);
        let mut run = self.batch();
        for same in ports.chunk_by(|a, b| a == b) {
            let port = same[0];
            if port >= self.outputs() {
                batch.drain_front(same.len());
                continue;
            }
            if port != to && !run.is_empty() {
                let next = self.batch();
                self.push_run(to, core::mem::replace(&mut run, next));
            }
            to = port;
            run.append_front(&mut batch, same.len());
        }
        self.push_run(to, run);
        self.recycle(batch);
    }

    /// Sends the packets of each output in one batch, the output of the first packet first.
    fn distribute(&mut self, mut batch: Batch, ports: &[usize]) {
        let outputs = self.outputs();
        let mut distributed = core::mem::take(&mut self.engine.distributed);
        if distributed.runs.len() < outputs {
            distributed.runs.resize_with(outputs, Batch::new);
        }
        batch.distribute(ports, &mut distributed.runs[..outputs], |port| {
            distributed.order.push(port)
        });
        self.recycle(batch);
        for port in distributed.order.drain(..) {
            let run = core::mem::replace(&mut distributed.runs[port], self.engine.batch());
            self.push_run(port, run);
        }
        self.engine.distributed = distributed;
    }

    /// As `push`, where it is called often: its code stands here once.
    #[inline(never)]
    fn push_run(&mut self, port: usize, batch: Batch) {
        self.push(port, batch);
    }

    /// An empty list for `push_runs`, with memory of an earlier one.
    pub fn take_ports(&mut self) -> Vec<usize> {
        core::mem::take(&mut self.engine.ports)
    }

    /// Keeps the memory of a list of ports.
    pub fn recycle_ports(&mut self, mut ports: Vec<usize>) {
        ports.clear();
        self.engine.ports = ports;
    }

    /// Fetches at most `max` packets at a pull input; none if there is none.
    #[inline]
    pub fn pull(&mut self, port: usize, max: usize) -> Batch {
        let max = max.min(self.engine.max_batch);
        let Some(edge) = self.engine.slots[self.me]
            .inputs
            .get(port)
            .copied()
            .flatten()
        else {
            return self.batch();
        };
        let pulled = self.engine.pass(edge.element, |element, ctx| {
            element.pull(ctx, edge.port, max)
        });
        let pulled = pulled.unwrap_or_default();
        self.engine.count(edge.element, edge.port, pulled.packets());
        self.engine.moved |= !pulled.is_empty();
        pulled
    }

    /// True if a pull at an input would be without result, because the element before it told so and got nothing since.
    #[inline]
    pub fn is_known_empty(&self, port: usize) -> bool {
        let edge = self.engine.slots[self.me].inputs.get(port).copied();
        edge.flatten()
            .is_some_and(|edge| self.engine.is_known_empty(edge.element))
    }

    /// Fetches a packet at a pull input, if there is one.
    #[inline]
    pub fn pull_one(&mut self, port: usize) -> Option<Packet> {
        let edge = (*self.engine.slots[self.me].inputs.get(port)?)?;
        if self.engine.is_known_empty(edge.element) {
            return None;
        }
        let pulled = self.engine.pass(edge.element, |element, ctx| {
            if let Some(storage) = element.storage_mut() {
                return storage.pull_one(ctx);
            }
            let mut batch = element.pull(ctx, edge.port, 1);
            let packet = batch.pop_front();
            ctx.recycle(batch);
            packet
        });
        let packet = pulled.flatten()?;
        self.engine
            .count(edge.element, edge.port, core::slice::from_ref(&packet));
        self.engine.moved = true;
        Some(packet)
    }

    /// Fetches the next packets of a store right before an input, at most `most`, that together have at most `bytes`
    /// bytes; appends them and returns how many bytes they have. Behind other elements there is nothing.
    pub fn pull_fitting(
        &mut self,
        port: usize,
        most: usize,
        bytes: usize,
        into: &mut Batch,
    ) -> usize {
        let Some(edge) = self.engine.slots[self.me]
            .inputs
            .get(port)
            .copied()
            .flatten()
        else {
            return 0;
        };
        let before = into.len();
        let pulled = self.engine.pass(edge.element, |element, ctx| {
            let storage = element.storage_mut()?;
            Some(storage.pull_fitting(ctx, most, bytes, into))
        });
        let new = &into.packets()[before..];
        self.engine.count(edge.element, edge.port, new);
        self.engine.moved |= !new.is_empty();
        pulled.flatten().unwrap_or(0)
    }

    /// An empty batch, with memory of an earlier one if possible.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.engine.batch()
    }

    /// Drops what is left in a batch and keeps its memory.
    #[inline]
    pub fn recycle(&mut self, batch: Batch) {
        self.engine.recycle(batch);
    }

    /// Where packets come from.
    #[inline]
    pub fn pool(&mut self) -> &mut PacketPool {
        &mut self.engine.pool
    }

    /// Schedules the element's task.
    #[inline]
    pub fn schedule(&mut self) {
        self.engine.tasks.schedule(self.me);
    }

    /// Sets the element's timer.
    pub fn set_timer(&mut self, at_ns: u64) {
        self.engine.timers.set(self.me, Some(at_ns));
    }

    /// Clears the element's timer.
    pub fn clear_timer(&mut self) {
        self.engine.timers.set(self.me, None);
    }

    /// Says whether there is something to pull; wakes those that wait for it.
    #[inline]
    pub fn set_readable(&mut self, readable: bool) {
        let slot = &mut self.engine.slots[self.me];
        if core::mem::replace(&mut slot.readable, readable) == readable || !readable {
            return;
        }
        let Engine { slots, tasks, .. } = &mut *self.engine;
        slots[self.me]
            .readers
            .iter()
            .for_each(|reader| tasks.schedule(*reader));
    }

    /// Says whether there is room to push; wakes those that wait for it.
    #[inline]
    pub fn set_writable(&mut self, writable: bool) {
        let slot = &mut self.engine.slots[self.me];
        if core::mem::replace(&mut slot.writable, writable) == writable || !writable {
            return;
        }
        let Engine { slots, tasks, .. } = &mut *self.engine;
        slots[self.me]
            .writers
            .iter()
            .for_each(|writer| tasks.schedule(*writer));
    }

    /// True if a pull at an input can give packets. If not, the engine schedules the task when it can.
    pub fn readable(&mut self, port: usize) -> bool {
        self.engine.is_readable(self.me, port)
    }

    /// True if the elements behind an output have room for packets. If not, the engine schedules the task
    /// when they have.
    pub fn writable(&mut self, port: usize) -> bool {
        self.engine.is_writable(self.me, port)
    }

    /// Writes a line to the console; too many a second are counted instead.
    pub fn print(&mut self, line: &str) {
        let now = self.engine.now_ns;
        self.engine.console.print(now, line);
    }

    /// Writes text to standard output or, where there is none, to the console.
    pub fn print_out(&mut self, text: &str) {
        if !self.host().is_some_and(|host| host.print(text)) {
            text.lines().for_each(|line| self.print(line));
        }
    }

    /// A random number for keys and the like, which nothing in a configuration leads to.
    pub fn random(&mut self) -> u64 {
        self.engine.random.bits()
    }

    /// A random key, likewise.
    pub fn random_key(&mut self) -> [u8; 32] {
        self.engine.random.key()
    }

    /// A random number of 31 bits for packets and handlers; it follows RandomSeed's seed as Click's do.
    pub fn random_u32(&mut self) -> u32 {
        self.engine.random.random_u32()
    }

    /// The same from `low` to `high`.
    pub fn random_range(&mut self, low: u32, high: u32) -> u32 {
        self.engine.random.random_range(low, high)
    }

    /// Lets the random numbers follow from `seed`, or be unforeseeable again.
    pub fn set_random_seed(&mut self, seed: Option<u32>) {
        self.engine.random.seed(seed);
    }

    /// Stops the router after this slice.
    pub fn stop(&mut self) {
        self.engine.stops = self.engine.stops.saturating_add(1);
    }

    /// Files and standard output, where there are any.
    pub fn host(&self) -> Option<Rc<dyn Host>> {
        self.engine.environment.host.clone()
    }

    /// Makes this element the one that decides what a request to stop means. Returns whether it is
    /// the only one.
    pub fn manage_stops(&mut self) -> bool {
        let first = self.engine.manager.is_none();
        self.engine.manager.get_or_insert(self.me);
        first
    }

    /// Leaves requests to stop to the router again.
    pub fn leave_stops(&mut self) {
        if self.engine.manager == Some(self.me) {
            self.engine.manager = None;
        }
    }

    /// Calls a read handler; `name` is looked up from the element's compound outwards.
    ///
    /// # Errors
    /// There is no such handler, it cannot be read, or it refused `param`.
    pub fn read_handler(&mut self, name: &str, param: &str) -> Result<String, HandlerError> {
        let name = self.engine.resolve(self.me, name)?;
        self.engine.read(&name, param)
    }

    /// Calls a write handler; `name` is looked up from the element's compound outwards. Packets that
    /// it sets in motion move after the caller has returned.
    ///
    /// # Errors
    /// There is no such handler, it cannot be written, or it refused `value`.
    pub fn write_handler(&mut self, name: &str, value: &str) -> Result<(), HandlerError> {
        let name = self.engine.resolve(self.me, name)?;
        self.engine.write(&[(&name, value.as_bytes())])
    }

    /// Calls a write handler once this element and those that called it have returned, before the
    /// packets that it sends after this. An error goes to the console.
    pub fn call_later(&mut self, handler: &str, value: &str) {
        let (handler, value) = (handler.to_string(), value.to_string());
        self.engine.call_later(self.me, handler, value);
    }

    /// Sends packets that a push input took back to it, behind all that was sent so far.
    pub fn push_again(&mut self, input: usize, batch: Batch) {
        let (element, port) = (self.me, input);
        match batch.is_empty() {
            true => self.engine.recycle(batch),
            false => self.engine.send(Edge { element, port }, batch),
        }
    }

    /// True while this element takes over from the one that it replaces under a new configuration.
    /// An element then keeps all state that Click's element keeps, which is more than after a hot swap.
    pub fn is_reconfigured(&self) -> bool {
        self.engine.reconfiguring
    }

    /// Calls something that may come back to this element: `me` is in its place meanwhile.
    pub fn with_me<T: Element + Default, R>(
        &mut self,
        me: &mut T,
        call: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let index = self.me;
        self.engine.slots[index].element = Some(Box::new(core::mem::take(me)));
        let result = call(self);
        let element = self.engine.slots[index].element.as_deref_mut();
        let own = element.and_then(|e| e.as_any_mut().downcast_mut::<T>());
        core::mem::swap(me, own.expect("calls leave elements in their places"));
        self.engine.slots[index].element = None;
        result
    }

    /// A request to one of the element's own handlers.
    pub fn view<'v>(&'v mut self, handler: &'v str, param: &'v str) -> View<'v> {
        View {
            handler,
            port: 0,
            param,
            takes_param: Cell::new(false),
            engine: self.engine,
            me: self.me,
        }
    }

    /// The handler of this name as seen from the element, if there is one.
    pub fn handler_info(&self, name: &str) -> Option<HandlerInfo> {
        let name = self.engine.resolve(self.me, name).ok()?;
        self.engine.info(&name).ok()
    }

    /// Looks at another element; its name is looked up from this element's compound outwards. `None` if
    /// there is no such element, or it is running.
    pub fn peer<R>(&mut self, name: &str, look: impl FnOnce(&mut dyn Element) -> R) -> Option<R> {
        let index = self.engine.find_element(self.me, name)?;
        self.engine.slots[index].element.as_deref_mut().map(look)
    }

    /// Something of which a router has one of each type, shared by its elements; made when it is first asked for.
    pub fn shared<T: Default + 'static>(&mut self) -> Rc<RefCell<T>> {
        let shared = &mut self.engine.shared;
        let made = || -> Rc<dyn Any> { Rc::new(RefCell::new(T::default())) };
        let found = shared.entry(TypeId::of::<T>()).or_insert_with(made);
        let typed = Rc::clone(found).downcast();
        typed.expect("it was put there under its type")
    }

    /// True if an element has work: its task is scheduled, or its timer is set. Its name is looked up
    /// from this element's compound outwards; `None` if there is no such element.
    pub fn has_work(&self, name: &str) -> Option<bool> {
        let index = self.engine.find_element(self.me, name)?;
        Some(self.engine.tasks.is_scheduled(index) || self.engine.timers.is_set(index))
    }

    /// Multiplies the shares of tasks by `milli` thousandths, for all elements whose full names begin
    /// with `prefix`.
    pub fn scale_tickets(&mut self, prefix: &str, milli: u64) {
        let Engine { slots, tasks, .. } = &mut *self.engine;
        for (index, slot) in slots.iter().enumerate() {
            let rest = slot.name.strip_prefix(prefix);
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                tasks.scale_tickets(index, milli);
            }
        }
    }

    /// How many threads the program has.
    #[cfg(not(feature = "threads"))]
    pub fn threads(&self) -> usize {
        1
    }

    /// The number of the thread that runs the element.
    #[cfg(not(feature = "threads"))]
    pub fn thread(&self) -> usize {
        0
    }

    /// The number of the element.
    pub fn index(&self) -> usize {
        self.me
    }

    /// Class and configuration of an element by its number.
    pub fn class_and_config(&self, index: usize) -> Option<(&'static str, &str)> {
        let class = self.engine.plan.classes.get(index)?;
        Some((class.name, self.engine.config(index)))
    }

    /// The name of an element by its number.
    pub fn name_of(&self, index: usize) -> &str {
        &self.engine.slots[index].name
    }

    /// The element and the input that get what an element pushes.
    pub fn downstream_of(&self, index: usize, output: usize) -> Option<(usize, usize)> {
        let edge = (*self.engine.slots.get(index)?.outputs.get(output)?)?;
        Some((edge.element, edge.port))
    }

    /// A device by its number.
    pub fn device(&self, id: u32) -> Option<Rc<RefCell<dyn Device>>> {
        self.engine.environment.devices.get(&id).cloned()
    }

    /// Counts steps of a script's work. False beyond the limit of one slice of the router, of one
    /// call of a handler or of one installation ([`Limits::steps`]).
    pub fn charge_steps(&mut self, steps: usize) -> bool {
        let left = self.engine.steps_left.checked_sub(steps);
        self.engine.steps_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Limits of the configuration.
    pub fn limits(&self) -> Limits {
        self.engine.environment.limits
    }

    /// True for an element that is one of several copies, and that the configuration does not declare.
    pub fn is_copy(&self, index: usize) -> bool {
        #[cfg(feature = "threads")]
        return self.engine.plan.copies.made(self.name_of(index));
        #[cfg(not(feature = "threads"))]
        {
            let _ = index;
            false
        }
    }

    /// All packets that another kind of queue has, which the element replaces.
    pub fn take_stored(&mut self, old: &mut dyn Element) -> Batch {
        let mut all = self.batch();
        while let Some(storage) = old.storage_mut() {
            let before = all.len();
            storage.pull_fitting(self, usize::MAX, usize::MAX, &mut all);
            if all.len() == before {
                break;
            }
        }
        all
    }

    /// Names, devices, limits.
    pub fn arg_context(&self) -> ArgContext<'_> {
        ArgContext {
            environment: &self.engine.environment,
            names: &self.engine.names,
            element: &self.engine.slots[self.me].name,
        }
    }

    /// True if the element pulls at this input.
    pub fn input_is_pull(&self, port: usize) -> bool {
        self.engine.slots[self.me]
            .inputs
            .get(port)
            .is_some_and(Option::is_some)
    }

    /// True if the element pushes at this output.
    pub fn output_is_push(&self, port: usize) -> bool {
        self.engine.slots[self.me]
            .outputs
            .get(port)
            .is_some_and(Option::is_some)
    }

    /// True if the order in which the outputs get packets shows nowhere: all but the last only store or
    /// drop. A batch may then leave output by output.
    pub fn outputs_are_independent(&self) -> bool {
        self.engine.outputs_are_independent(self.me)
    }

    /// True if no element can observe the order of packets that leave by different outputs, or whether those of one
    /// output leave in one batch.
    #[inline]
    pub fn outputs_are_unseen(&mut self) -> bool {
        self.engine.outputs_apart(self.me) == Apart::Unseen
    }

    /// How many outputs the element has.
    pub fn outputs(&self) -> usize {
        self.engine.slots[self.me].outputs.len()
    }

    /// How many inputs the element has.
    pub fn inputs(&self) -> usize {
        self.engine.slots[self.me].inputs.len()
    }
}
