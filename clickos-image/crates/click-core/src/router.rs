// SPDX-License-Identifier: Apache-2.0
//! A running configuration.
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use click_lang::{ConfigError, Scope, Sources};

use crate::build::{assemble, initialize};
use crate::config::environment::Environment;
use crate::device::Device;
use crate::engine::Engine;
use crate::error::HandlerError;
use crate::handler_info::{HandlerInfo, Kind};
use crate::registry::Registry;
use click_packet::PacketPool;

/// The result of a slice of `Router::run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something was done; call again soon.
    Worked,
    /// Nothing to do before `until_ns` unless a device receives something.
    Idle {
        /// When the next timer expires, if there is one.
        until_ns: Option<u64>,
    },
}

/// A running configuration.
pub struct Router {
    pub(crate) engine: Engine,
    globals: Scope,
}

/// Task runs and element entries of one slice.
const SLICE_TASKS: usize = 64;
const SLICE_ENTRIES: usize = 16_384;
const SLICE_TIMERS: usize = 256;
/// Batches a write may set in motion before it returns; what is left moves in the next slice.
const WRITE_ENTRIES: usize = 16_384;

impl Router {
    /// Builds and starts a configuration named `name`.
    ///
    /// # Errors
    /// All errors of the configuration, in the order of their places.
    pub fn build(
        name: &str,
        config: &str,
        registry: &Registry,
        environment: Environment,
        now_ns: u64,
    ) -> Result<Self, Vec<ConfigError>> {
        Self::build_with(name, config, registry, environment, &[], now_ns)
    }

    /// Like `build`, with variables defined around the configuration.
    ///
    /// # Errors
    /// As `build`.
    pub fn build_with(
        name: &str,
        config: &str,
        registry: &Registry,
        environment: Environment,
        variables: &[(String, String)],
        now_ns: u64,
    ) -> Result<Self, Vec<ConfigError>> {
        let sources = Sources::new(name, config.to_string());
        Self::build_from(sources, registry, environment, variables, now_ns)
    }

    /// Like `build_with`, with whatever libraries the configuration requires.
    ///
    /// # Errors
    /// As `build`.
    pub fn build_from(
        sources: Sources,
        registry: &Registry,
        environment: Environment,
        variables: &[(String, String)],
        now_ns: u64,
    ) -> Result<Self, Vec<ConfigError>> {
        let pool = PacketPool::new(environment.limits.packet_buffers);
        let globals = Scope::global(variables);
        let mut engine = assemble(sources, registry, environment, &globals, pool, now_ns)
            .map_err(|(errors, _)| errors)?;
        initialize(&mut engine)?;
        Ok(Self { engine, globals })
    }

    #[cfg(feature = "threads")]
    pub(crate) fn of(engine: Engine, globals: Scope) -> Self {
        Self { engine, globals }
    }

    /// Moves what handlers set in motion.
    #[cfg(feature = "threads")]
    pub(crate) fn drain_writes(&mut self) {
        self.engine.drain(&mut { WRITE_ENTRIES });
    }

    /// The devices that a swapped-in configuration can use, by vif number.
    pub fn set_devices(&mut self, devices: BTreeMap<u32, Rc<RefCell<dyn Device>>>) {
        self.engine.environment.devices = devices;
    }

    /// Checks a configuration without starting its elements; returns it flat.
    ///
    /// # Errors
    /// As `build`, but for what elements find when they start.
    pub fn check(
        sources: Sources,
        registry: &Registry,
        environment: Environment,
        variables: &[(String, String)],
    ) -> Result<String, Vec<ConfigError>> {
        let pool = PacketPool::new(environment.limits.packet_buffers);
        let globals = Scope::global(variables);
        let assembled = assemble(sources, registry, environment, &globals, pool, 0);
        let engine = assembled.map_err(|(errors, _)| errors)?;
        Ok(engine.flat_text_of(engine.slots.len()))
    }

    /// Replaces the configuration and keeps queues and counters of elements with the same name and class.
    ///
    /// # Errors
    /// As `build`; the old configuration keeps running then.
    pub fn hotswap(
        &mut self,
        name: &str,
        config: &str,
        registry: &Registry,
        now_ns: u64,
    ) -> Result<(), Vec<ConfigError>> {
        let sources = Sources::new(name, config.to_string());
        self.hotswap_from(sources, registry, now_ns)
    }

    /// Like `hotswap`, with whatever libraries the configuration requires.
    ///
    /// # Errors
    /// As `hotswap`.
    pub fn hotswap_from(
        &mut self,
        sources: Sources,
        registry: &Registry,
        now_ns: u64,
    ) -> Result<(), Vec<ConfigError>> {
        let environment = self.engine.environment.clone();
        let pool = core::mem::replace(&mut self.engine.pool, PacketPool::new(0));
        match assemble(sources, registry, environment, &self.globals, pool, now_ns) {
            Err((errors, pool)) => {
                self.engine.pool = pool;
                Err(errors)
            }
            Ok(mut new) => {
                if let Err(errors) = initialize(&mut new) {
                    self.engine.pool = core::mem::replace(&mut new.pool, PacketPool::new(0));
                    return Err(errors);
                }
                self.hand_over(&mut new);
                self.engine = new;
                Ok(())
            }
        }
    }

    /// Lets each new element take the state of the old one of its name and class.
    pub(crate) fn hand_over(&mut self, new: &mut Engine) {
        let (before, after) = (Rc::clone(&self.engine.plan), Rc::clone(&new.plan));
        for index in 0..after.classes.len() {
            let same = |i: &usize| {
                before.classes[*i].name == after.classes[index].name
                    && self.engine.slots[*i].name == new.slots[index].name
            };
            let Some(old) = (0..before.classes.len()).find(same) else {
                continue;
            };
            if let Some(old) = &mut self.engine.slots[old].element {
                new.with(index, |element, ctx| element.take_state(ctx, &mut **old));
            }
        }
    }

    /// Runs tasks and expired timers for one bounded slice; `now_ns` counts from the epoch and never goes back.
    pub fn run(&mut self, now_ns: u64) -> Progress {
        self.engine.begin(now_ns);
        if self.is_stopped() {
            return Progress::Idle { until_ns: None };
        }
        let mut entries = SLICE_ENTRIES;
        let had_batches = self.engine.has_work();
        if !self.engine.drain(&mut entries) {
            return Progress::Worked;
        }
        let timers = self.run_timers(&mut entries);
        let tasks = self.run_tasks(&mut entries);
        let asked = self.ask_manager();
        if had_batches || timers || tasks || asked {
            return Progress::Worked;
        }
        Progress::Idle {
            until_ns: self.engine.timers.next_expiry(),
        }
    }

    fn run_timers(&mut self, entries: &mut usize) -> bool {
        let mut any = false;
        for _ in 0..SLICE_TIMERS {
            let Some(element) = self.engine.timers.expired(self.engine.now_ns) else {
                break;
            };
            self.engine.with(element, |e, ctx| e.run_timer(ctx));
            any = true;
            if !self.engine.drain(entries) {
                break;
            }
        }
        any
    }

    /// Runs tasks until the slice is over or all of them found nothing to do.
    fn run_tasks(&mut self, entries: &mut usize) -> bool {
        let (mut any, mut idle) = (false, 0);
        self.engine.runs_left = SLICE_TASKS.max(self.engine.tasks.len() + 1);
        while self.engine.runs_left > 0 {
            self.engine.runs_left -= 1;
            if self.engine.stops > 0 {
                break;
            }
            let Some(element) = self.engine.tasks.next() else {
                break;
            };
            let mut worked = self.engine.with(element, |e, ctx| e.run_task(ctx)) == Some(true);
            worked |= core::mem::take(&mut self.engine.moved);
            any |= worked;
            if !self.engine.drain(entries) {
                return true;
            }
            idle = if worked { 0 } else { idle + 1 };
            if idle > self.engine.tasks.len() {
                break;
            }
        }
        any
    }

    /// Tells the element that manages stops of each of them; returns whether there was one.
    fn ask_manager(&mut self) -> bool {
        let asked = self.engine.stops > 0 && self.engine.manager.is_some();
        while let (true, Some(manager)) = (self.engine.stops > 0, self.engine.manager) {
            self.engine.stops -= 1;
            self.engine
                .with(manager, |element, ctx| element.stop_requested(ctx));
        }
        asked
    }

    /// Asks the router to stop, as its handler `stop` does: an element may manage such requests.
    pub fn request_stop(&mut self) {
        self.engine.stops = self.engine.stops.saturating_add(1);
    }

    /// True if an element or the `stop` handler stopped the router, and no element manages stops.
    pub fn is_stopped(&self) -> bool {
        self.engine.stops > 0 && self.engine.manager.is_none()
    }

    /// Packet buffers in use.
    pub fn packets_in_use(&self) -> usize {
        self.engine.pool.in_use()
    }
}

impl Router {
    /// All handlers, of all elements and the global ones.
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        self.engine.handlers()
    }

    /// Calls a read handler.
    ///
    /// # Errors
    /// There is no such handler, it cannot be read, or it refused `param`.
    pub fn read_handler(
        &mut self,
        name: &str,
        param: &str,
        now_ns: u64,
    ) -> Result<Vec<u8>, HandlerError> {
        self.engine.begin(now_ns);
        let text = self.engine.read(name, param);
        self.engine.drain(&mut { WRITE_ENTRIES });
        text.map(String::into_bytes)
    }

    /// Tells what a write of a handler is: a value if there is no such handler.
    pub fn handler_kind(&self, name: &str) -> Kind {
        self.engine.info(name).map_or(Kind::Value, |info| info.kind)
    }

    /// Calls write handlers in order: all of them or, on an error, none.
    ///
    /// # Errors
    /// The first write that is not possible; its name is in the error.
    pub fn write_handlers(
        &mut self,
        writes: &[(&str, &[u8])],
        now_ns: u64,
    ) -> Result<(), HandlerError> {
        self.engine.begin(now_ns);
        let written = self.engine.write(writes);
        self.engine.drain(&mut { WRITE_ENTRIES });
        written
    }

    /// The configuration as it runs now, flat: handlers may have changed arguments.
    pub fn flat_text(&self) -> String {
        self.engine.flat_text()
    }
}
