// SPDX-License-Identifier: Apache-2.0
//! What an element does.
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::Cell;

use crate::config::args::ArgContext;
use crate::config::value::FromArg;
use crate::engine::Engine;
use crate::engine::context::Context;
use crate::error::HandlerError;
use crate::handler_info::HandlerInfo;
use click_packet::{Batch, Packet};

/// Casts for handlers and hot swap.
pub trait AsAny: Any {
    /// The element as `Any`.
    fn as_any(&self) -> &dyn Any;
    /// The element as `Any`, to change.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// How an element tells its neighbors that they need not try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It has nothing to say; what is behind it counts.
    PassThrough,
    /// It calls `Context::set_readable` and `set_writable`.
    Own,
    /// It must be tried.
    Always,
}

/// An element; `push` and `pull` process its packets.
pub trait Element: AsAny {
    /// Called once, when all elements exist and are connected.
    ///
    /// # Errors
    /// Why the element cannot run; the configuration is refused.
    fn initialize(&mut self, _ctx: &mut Context<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Takes packets at a push input; unless it says otherwise they go on.
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        ctx.push(0, batch);
    }

    /// Gives at most `max` packets at a pull output; unless it says otherwise those it gets.
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        ctx.pull(0, max)
    }

    /// Does a little work; returns whether there was any. Called after `Context::schedule`.
    fn run_task(&mut self, _ctx: &mut Context<'_>) -> bool {
        false
    }

    /// Called when the time set by `Context::set_timer` has come.
    fn run_timer(&mut self, _ctx: &mut Context<'_>) {}

    /// The signal on which elements that pull from it, or push to it, can rely.
    fn signal(&self) -> Signal {
        Signal::PassThrough
    }

    /// True if it only passes pushed packets on in their order, changes or drops them. A plain
    /// element wakes no task, calls no handler and draws no random numbers. It makes at most one
    /// copy for each output, and the order of the outputs shows nowhere.
    fn is_plain(&self) -> bool {
        false
    }

    /// True if a pull gives nothing while the element is not readable, as of a store: others then spare the pull.
    fn tells_when_empty(&self) -> bool {
        self.storage().is_some()
    }

    /// The storage of an element whose purpose is to store packets.
    fn storage(&self) -> Option<&dyn Storage> {
        None
    }

    /// The same, to change.
    fn storage_mut(&mut self) -> Option<&mut dyn Storage> {
        None
    }

    /// The number of next task runs that each only take one packet from storage, or make one, and
    /// push it.
    fn steady_runs(&self) -> usize {
        0
    }

    /// Packets that found no room in a queue, if an element keeps them until there is some.
    fn held(&mut self) -> Option<&mut Batch> {
        None
    }

    /// Handlers that this element has beyond its class's, which `Family::Any` answers.
    ///
    /// `asked` is the name that the engine looks for, and empty for a list. An element may answer to
    /// any name.
    fn dynamic_handlers(&self, _asked: &str) -> Vec<HandlerInfo> {
        Vec::new()
    }

    /// A request to stop the router came, and this element manages such requests
    /// (`Context::manage_stops`).
    fn stop_requested(&mut self, _ctx: &mut Context<'_>) {}

    /// Takes over what `old`, of the same name in the configuration before, has stored. The same for a
    /// new configuration of this element alone (`Context::is_reconfigured`).
    fn take_state(&mut self, _ctx: &mut Context<'_>, _old: &mut dyn Element) {}
}

/// What only elements do whose purpose is to store packets.
pub trait Storage {
    /// Packets in storage.
    fn stored(&self) -> usize;

    /// Packets that it can store at its end and still have room.
    fn room(&self) -> usize;

    /// Several packets come in one batch which would each have come after the one before was taken.
    fn expect_one_by_one(&mut self);

    /// Does what `Element::pull` does for one packet.
    fn pull_one(&mut self, ctx: &mut Context<'_>) -> Option<Packet>;

    /// Does the same for the oldest packets, at most `most`, that together have at most `bytes` bytes; appends them and
    /// returns how many bytes they have.
    fn pull_fitting(
        &mut self,
        ctx: &mut Context<'_>,
        most: usize,
        bytes: usize,
        into: &mut Batch,
    ) -> usize;
}

/// The router as a handler sees it, and the request.
pub struct View<'a> {
    /// The handler's name, without a port's number.
    pub handler: &'a str,
    /// The port, of a handler that exists once per port; 0 otherwise.
    pub port: usize,
    pub(crate) param: &'a str,
    /// True once the getter asked for the parameter.
    pub(crate) takes_param: Cell<bool>,
    pub(crate) engine: &'a mut Engine,
    pub(crate) me: usize,
}

impl<'a> View<'a> {
    /// The parameter of a read; empty for most. A read whose getter does not ask for a parameter
    /// that came is refused.
    pub fn param(&self) -> &'a str {
        self.takes_param.set(true);
        self.param
    }
}

impl View<'_> {
    /// Parses a handler's value as an argument of type `T`.
    ///
    /// # Errors
    /// The expected form and the value found.
    #[inline(never)]
    pub fn parse<T: FromArg>(&self, value: &str) -> Result<T, HandlerError> {
        T::from_arg(value, self.arg_context()).map_err(HandlerError::rejected)
    }

    /// The element's context, for a getter that does more than look.
    pub fn ctx(&mut self) -> Context<'_> {
        Context::new(self.engine, self.me)
    }

    /// The time in nanoseconds since the epoch.
    pub fn now_ns(&self) -> u64 {
        self.engine.now_ns
    }

    /// The element's configuration string.
    pub fn config(&self) -> &str {
        self.engine.config(self.me)
    }

    /// Names, devices, limits.
    pub fn arg_context(&self) -> ArgContext<'_> {
        ArgContext {
            environment: &self.engine.environment,
            names: &self.engine.names,
            element: &self.engine.slots[self.me].name,
        }
    }

    /// How many handlers were read.
    pub fn reads(&self) -> u64 {
        self.engine.reads
    }

    /// How many handlers were written.
    pub fn writes(&self) -> u64 {
        self.engine.writes
    }

    /// Numbers of inputs and outputs.
    pub fn ports(&self) -> (usize, usize) {
        let slot = &self.engine.slots[self.me];
        (slot.inputs.len(), slot.outputs.len())
    }
}
