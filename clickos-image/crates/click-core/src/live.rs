// SPDX-License-Identifier: Apache-2.0
//! A new configuration of one element while the router runs.
//!
//! The engine builds the element as for a new router, so a configuration is refused before anything
//! changes. Then it starts the new element, lets it take the state of the old one, and puts it in
//! the old one's place.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use click_lang::text;
use click_packet::memory::has_room;

use crate::build::ELEMENT_BYTES;
use crate::config::args::{ArgContext, Args};
use crate::engine::Engine;
use crate::engine::context::Context;
use crate::engine::element::Element;
use crate::error::HandlerError;
use crate::spread::{Directory, NAME_BYTES};

/// What an element has told the engine once it has started. It holds from when the element is in its place.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told {
    readable: bool,
    writable: bool,
    /// When its timer expires, if it has set it; otherwise that of the old element may do something for it.
    timer_ns: Option<u64>,
}

impl Engine {
    /// The element's configuration as it runs.
    pub(crate) fn config_text(&self, index: usize) -> String {
        self.config(index).into()
    }

    /// Builds the element again under another configuration.
    ///
    /// # Errors
    /// The faults of the configuration, one a line; or the element is running.
    pub(crate) fn rebuilt(
        &self,
        index: usize,
        config: &str,
    ) -> Result<Box<dyn Element>, HandlerError> {
        let (slot, class) = (&self.slots[index], self.plan.classes[index]);
        if slot.element.is_none() {
            return Err(busy());
        }
        self.has_room_for(config)?;
        self.check_names(index, config)?;
        let arg_context = ArgContext {
            environment: &self.environment,
            names: &self.names,
            element: &slot.name,
        };
        let ports = (slot.inputs.len(), slot.outputs.len());
        let mut args = Args::bind(class.args, config, ports, arg_context);
        let built = (class.build)(&mut args);
        args.checked(built).map_err(HandlerError::rejected)
    }

    /// Checks the limits that hold for an element of a new router.
    fn has_room_for(&self, config: &str) -> Result<(), HandlerError> {
        let limits = &self.environment.limits;
        let (given, most) = (text::count_args(config), limits.table_entries);
        if given > most {
            let message = format!("{given} arguments, the limit is {most}");
            return Err(HandlerError::rejected(message));
        }
        let names = match self.plan.spread.is_empty() {
            true => 0,
            false => self.slots.len() * NAME_BYTES,
        };
        let bytes = ELEMENT_BYTES + text::bytes_to_build(config) + names;
        let reserve = limits.reserve_bytes;
        if reserve > 0 && !has_room(bytes.saturating_add(reserve)) {
            let message = format!("no memory: the element may take {bytes} bytes");
            return Err(HandlerError::rejected(message));
        }
        Ok(())
    }

    /// Names must not lead out of an element with copies, nor into it, as in a new router.
    fn check_names(&self, index: usize, config: &str) -> Result<(), HandlerError> {
        let spread = &self.plan.spread;
        if spread.is_empty() {
            return Ok(());
        }
        let directory = Directory::new(self.slots.iter().map(|slot| slot.name.as_str()));
        let element = (
            self.slots[index].name.as_str(),
            self.plan.classes[index].name,
            config,
        );
        let misled = spread.misled(element, &directory, |other| self.slots[other].name.as_str());
        misled.map_or(Ok(()), |message| Err(HandlerError::rejected(message)))
    }

    /// Starts an element that is not yet in its place; returns what it told, which does not hold yet.
    ///
    /// # Errors
    /// It cannot run.
    pub(crate) fn start_one(
        &mut self,
        index: usize,
        element: &mut dyn Element,
    ) -> Result<Told, String> {
        let slot = &self.slots[index];
        let (readable, writable) = (slot.readable, slot.writable);
        let timer_ns = self.timers.expiry(index);
        self.timers.set(index, None);
        let started = element.initialize(&mut Context::new(self, index));
        let slot = &mut self.slots[index];
        let told = Told {
            readable: core::mem::replace(&mut slot.readable, readable),
            writable: core::mem::replace(&mut slot.writable, writable),
            timer_ns: self.timers.expiry(index),
        };
        self.timers.set(index, timer_ns);
        started.map(|()| told)
    }

    /// Replaces the old element by another, which takes its state.
    pub(crate) fn put_in_place(
        &mut self,
        index: usize,
        new: Box<dyn Element>,
        told: Told,
        config: String,
    ) {
        let slot = &mut self.slots[index];
        slot.config = config.into();
        let Some(mut old) = slot.element.replace(new) else {
            return;
        };
        self.reconfiguring = true;
        self.with(index, |element, ctx| {
            ctx.tell(told);
            element.take_state(ctx, &mut *old);
        });
        self.reconfiguring = false;
    }
}

impl Context<'_> {
    /// Tells what the element told while it started.
    fn tell(&mut self, told: Told) {
        // also what was the case then: other writes may have changed it since
        self.set_readable(told.readable);
        self.set_writable(told.writable);
        if let Some(at_ns) = told.timer_ns {
            self.set_timer(at_ns);
        }
    }
}

/// An element cannot be called by what it has called itself.
pub(crate) fn busy() -> HandlerError {
    HandlerError::rejected("the element is running: its handlers cannot be called now")
}
