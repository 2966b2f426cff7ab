// SPDX-License-Identifier: Apache-2.0
//! A running configuration.
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::{ConfigError, Environment, HandlerError, Registry};

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

/// A handler as `Router::handlers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// `element.handler`, or a global handler's name.
    pub name: String,
    /// Whether it can be read.
    pub read: bool,
    /// Whether it can be written.
    pub write: bool,
}

/// A running configuration.
pub struct Router {
    _environment: Environment,
}

impl Router {
    /// Builds and starts a configuration named `name`.
    ///
    /// # Errors
    /// All errors of the configuration, in the order of their places.
    pub fn build(
        name: &str,
        _config: &str,
        _registry: &Registry,
        _environment: Environment,
        _now_ns: u64,
    ) -> Result<Self, Vec<ConfigError>> {
        let message = "this build has no element classes".into();
        Err(vec![ConfigError {
            file: name.into(),
            line: 1,
            column: 1,
            message,
        }])
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
        *self = Self::build(name, config, registry, self._environment.clone(), now_ns)?;
        Ok(())
    }

    /// Runs tasks and expired timers for one bounded slice; `now_ns` counts from the epoch and never goes back.
    pub fn run(&mut self, _now_ns: u64) -> Progress {
        Progress::Idle { until_ns: None }
    }

    /// All handlers, of all elements and the global ones.
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        Vec::new()
    }

    /// Calls a read handler.
    ///
    /// # Errors
    /// There is no such handler, it cannot be read, or it refused `param`.
    pub fn read_handler(
        &mut self,
        name: &str,
        _param: &str,
        _now_ns: u64,
    ) -> Result<Vec<u8>, HandlerError> {
        Err(HandlerError::NoSuchElement { name: name.into() })
    }

    /// Calls write handlers in order: all of them or, on an error, none.
    ///
    /// # Errors
    /// The first write that is not possible; its name is in the error.
    pub fn write_handlers(
        &mut self,
        writes: &[(&str, &[u8])],
        _now_ns: u64,
    ) -> Result<(), HandlerError> {
        match writes.first() {
            Some((name, _)) => Err(HandlerError::NoSuchElement {
                name: (*name).into(),
            }),
            None => Ok(()),
        }
    }
}
