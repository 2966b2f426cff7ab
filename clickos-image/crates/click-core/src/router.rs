// SPDX-License-Identifier: Apache-2.0
//! A running configuration.
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use click_lang::{ConfigError, Flat, Scope};

use crate::build::{Assembled, assemble, initialize};
use crate::class::Class;
use crate::engine::Engine;
use crate::environment::Environment;
use crate::graph::Graph;
use crate::pool::PacketPool;
use crate::registry::Registry;

/// What a slice of `Router::run` came to.
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
    pub(crate) text: String,
    pub(crate) flat: Flat,
    pub(crate) graph: Graph,
    pub(crate) classes: Vec<&'static Class>,
    pub(crate) class_names: Vec<&'static str>,
    pub(crate) engine: Engine,
    globals: Scope,
}

/// Task runs and element entries of one slice.
const SLICE_TASKS: usize = 64;
const SLICE_ENTRIES: usize = 16_384;
const SLICE_TIMERS: usize = 256;

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
        let pool = PacketPool::new(environment.limits.packet_buffers);
        let globals = Scope::global(variables);
        let mut assembled = assemble(name, config, registry, environment, &globals, pool, now_ns)
            .map_err(|(errors, _)| errors)?;
        initialize(&mut assembled)?;
        Ok(Self::running(assembled, config, registry, globals))
    }

    fn running(assembled: Assembled, text: &str, registry: &Registry, globals: Scope) -> Self {
        let Assembled {
            flat,
            graph,
            classes,
            engine,
        } = assembled;
        let class_names = registry.iter().map(|(name, _)| name).collect();
        Self {
            text: text.to_string(),
            flat,
            graph,
            classes,
            class_names,
            engine,
            globals,
        }
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
        let environment = self.engine.environment.clone();
        let pool = core::mem::replace(&mut self.engine.pool, PacketPool::new(0));
        let globals = self.globals.clone();
        match assemble(name, config, registry, environment, &globals, pool, now_ns) {
            Err((errors, pool)) => {
                self.engine.pool = pool;
                Err(errors)
            }
            Ok(mut assembled) => {
                if let Err(errors) = initialize(&mut assembled) {
                    self.engine.pool =
                        core::mem::replace(&mut assembled.engine.pool, PacketPool::new(0));
                    return Err(errors);
                }
                self.hand_over(&mut assembled);
                *self = Self::running(assembled, config, registry, globals);
                Ok(())
            }
        }
    }

    /// Lets each new element take the state of the old one of its name and class.
    fn hand_over(&mut self, new: &mut Assembled) {
        for index in 0..new.classes.len() {
            let same = |i: &usize| {
                self.classes[*i].name == new.classes[index].name
                    && self.engine.slots[*i].name == new.engine.slots[index].name
            };
            let Some(old) = (0..self.classes.len()).find(same) else {
                continue;
            };
            if let Some(old) = &mut self.engine.slots[old].element {
                new.engine
                    .with(index, |element, ctx| element.take_state(ctx, &mut **old));
            }
        }
    }

    /// Runs tasks and expired timers for one bounded slice; `now_ns` counts from the epoch and never goes back.
    pub fn run(&mut self, now_ns: u64) -> Progress {
        self.engine.now_ns = self.engine.now_ns.max(now_ns);
        if self.engine.stopped {
            return Progress::Idle { until_ns: None };
        }
        let mut entries = SLICE_ENTRIES;
        let had_batches = self.engine.has_work();
        if !self.engine.drain(&mut entries) {
            return Progress::Worked;
        }
        let timers = self.run_timers(&mut entries);
        let tasks = self.run_tasks(&mut entries);
        if had_batches || timers || tasks {
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
        let most = SLICE_TASKS.max(self.engine.tasks.len() + 1);
        for _ in 0..most {
            if idle > self.engine.tasks.len() || self.engine.stopped {
                break;
            }
            let Some(element) = self.engine.tasks.next() else {
                break;
            };
            let mut worked = self.engine.with(element, |e, ctx| e.run_task(ctx)) == Some(true);
            worked |= core::mem::take(&mut self.engine.moved);
            any |= worked;
            idle = if worked { 0 } else { idle + 1 };
            if !self.engine.drain(entries) {
                return true;
            }
        }
        any
    }

    /// Whether an element or the `stop` handler stopped the router.
    pub fn is_stopped(&self) -> bool {
        self.engine.stopped
    }

    /// Packet buffers in use.
    pub fn packets_in_use(&self) -> usize {
        self.engine.pool.in_use()
    }
}
