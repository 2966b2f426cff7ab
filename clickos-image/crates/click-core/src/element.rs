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

/// What a write handler will do once every write of the call is known to be good.
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

/// An element. What it does to packets is in `push` and `pull`.
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

    /// What those that pull from it, and those that push to it, can rely on.
    fn signal(&self) -> Signal {
        Signal::PassThrough
    }

    /// Whether it does no more to packets that are pushed to it than to pass them on in their order, change or drop
    /// them: it sets nothing in motion, calls and tells nobody, and draws no random numbers. Copies are at most one for
    /// each output, and nobody can tell in which order outputs got theirs.
    fn is_plain(&self) -> bool {
        false
    }

    /// How many packets it stores, if that is what it is for.
    fn stored(&self) -> Option<usize> {
        None
    }

    /// How many more packets it can store at its end and have room still.
    fn room(&self) -> usize {
        0
    }

    /// More packets than one come at once, each of which would come after the one before was taken.
    fn expect_one_by_one(&mut self) {}

    /// How many of its task's next turns do no more than to take one packet right from where it is stored, if there is
    /// one, or to make one, and to push it.
    fn sure_turns(&self) -> usize {
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

    /// Handlers this element has beyond its class's. `asked` is the name that is looked for, so that
    /// an element can answer to any; it is empty for a list.
    fn more_handlers(&self, _asked: &str) -> Vec<HandlerInfo> {
        Vec::new()
    }

    /// The router was asked to stop, and this element manages that (`Context::manage_stops`).
    fn stop_requested(&mut self, _ctx: &mut Context<'_>) {}

    /// Takes over what `old`, of the same name in the configuration before, has stored.
    fn take_state(&mut self, _ctx: &mut Context<'_>, _old: &mut dyn Element) {}
}

/// What a handler can see of the router.
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
    /// # Errors
    /// What was expected and what was found.
    pub fn parse<T: FromArg>(&self, value: &str) -> Result<T, HandlerError> {
        T::from_arg(value, self.surroundings).map_err(HandlerError::rejected)
    }
}
