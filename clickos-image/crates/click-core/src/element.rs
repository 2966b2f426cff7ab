// SPDX-License-Identifier: Apache-2.0
//! What an element does.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use crate::args::Surroundings;
use crate::context::Context;
use crate::error::HandlerError;
use crate::handlers::HandlerInfo;
use crate::value::FromArg;
use click_packet::Batch;

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

/// How an element tells its neighbours that they need not try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It has nothing to say; what is behind it counts.
    PassThrough,
    /// It calls `Context::set_readable` and `set_writable`.
    Own,
    /// It must be tried.
    Always,
}

/// The effect of a write handler. The engine applies it once it knows that every write of the call
/// is good.
pub struct Change(ChangeFn);

/// The effect of a write handler.
type ChangeFn = Box<dyn FnOnce(&mut dyn Element, &mut Context<'_>)>;

impl Change {
    /// A change of an element of type `T`, the one whose `write` returns it.
    pub fn of<T: Element>(apply: impl FnOnce(&mut T, &mut Context<'_>) + 'static) -> Self {
        Self(Box::new(move |element, ctx| {
            let element = element
                .as_any_mut()
                .downcast_mut()
                .expect("a change is applied to the element that made it");
            apply(element, ctx);
        }))
    }

    pub(crate) fn apply(self, element: &mut dyn Element, ctx: &mut Context<'_>) {
        (self.0)(element, ctx);
    }
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

    /// Packets in store, of an element whose purpose is to store them.
    fn stored(&self) -> Option<usize> {
        None
    }

    /// Packets that it can store at its end and still have room.
    fn room(&self) -> usize {
        0
    }

    /// Several packets come in one batch which would each have come after the one before was taken.
    fn expect_one_by_one(&mut self) {}

    /// The number of next task runs that each only take one packet from a store, or make one, and
    /// push it.
    fn steady_runs(&self) -> usize {
        0
    }

    /// Calls a read handler of the class; `param` is empty for most.
    ///
    /// # Errors
    /// The parameter is wrong.
    fn read(&self, _ctx: &View<'_>, handler: &str, _param: &str) -> Result<String, HandlerError> {
        Err(HandlerError::rejected(format!(
            "{handler} is declared but not implemented"
        )))
    }

    /// Checks a value for a write handler of the class without any effect.
    ///
    /// # Errors
    /// The value is wrong.
    fn write(&self, _ctx: &View<'_>, handler: &str, _value: &str) -> Result<Change, HandlerError> {
        Err(HandlerError::rejected(format!(
            "{handler} is declared but not implemented"
        )))
    }

    /// Calls a read handler that does more than look, such as a script; `None` leaves it to `read`.
    fn call(
        &mut self,
        _ctx: &mut Context<'_>,
        _handler: &str,
        _param: &str,
    ) -> Option<Result<String, HandlerError>> {
        None
    }

    /// Handlers that this element has beyond its class's. `asked` is the name that the engine looks
    /// for, and empty for a list. An element may answer to any name.
    fn more_handlers(&self, _asked: &str) -> Vec<HandlerInfo> {
        Vec::new()
    }

    /// A request to stop the router came, and this element manages such requests
    /// (`Context::manage_stops`).
    fn stop_requested(&mut self, _ctx: &mut Context<'_>) {}

    /// Takes over what `old`, of the same name in the configuration before, has stored.
    fn take_state(&mut self, _ctx: &mut Context<'_>, _old: &mut dyn Element) {}
}

/// The router as a handler sees it.
pub struct View<'a> {
    /// The time in nanoseconds since the epoch.
    pub now_ns: u64,
    /// The element's configuration string.
    pub config: &'a str,
    /// Names, devices, limits.
    pub surroundings: Surroundings<'a>,
    /// How many handlers were read.
    pub reads: u64,
    /// How many handlers were written.
    pub writes: u64,
    /// Numbers of inputs and outputs.
    pub ports: (usize, usize),
}

impl View<'_> {
    /// Parses a handler's value as an argument of type `T`.
    ///
    /// # Errors The expected form and the value found.
    pub fn parse<T: FromArg>(&self, value: &str) -> Result<T, HandlerError> {
        T::from_arg(value, self.surroundings).map_err(HandlerError::rejected)
    }
}
