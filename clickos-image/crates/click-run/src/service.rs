// SPDX-License-Identifier: Apache-2.0
//! Handlers as the control socket's peers see them, and the hot swap they can ask for.
use click_core::{HandlerError, Registry, Router};

use crate::control::{Service, code};
use crate::host::Machine;
use crate::library::Reader;
use crate::report::report;

/// The router at a time.
pub struct Handlers<'a> {
    /// The router.
    pub router: &'a mut Router,
    /// The classes for a new configuration.
    pub registry: &'a Registry,
    /// How new configurations are completed.
    pub reader: &'a Reader,
    /// The machine that the router reaches.
    pub machine: &'a Machine,
}

/// Handlers that reach files and processes: for configurations, not for peers.
const PRIVATE: [&str; 3] = ["cat", "catq", "kill"];

/// Code and text of a refusal.
fn failure(error: &HandlerError, what: &str) -> (u16, String) {
    let name = error.name();
    let text = match error {
        HandlerError::NoSuchElement { .. } => {
            let element = name.rsplit_once('.').map_or(name, |(element, _)| element);
            format!("No element named '{element}'")
        }
        HandlerError::NoSuchHandler { .. } => format!("No handler named '{name}'"),
        HandlerError::Rejected { message, .. } => {
            format!("{what} handler '{name}' error:\n{message}")
        }
        other => other.to_string(),
    };
    // the one code of a guest's answers that ControlSocket has another for
    let code = match error {
        HandlerError::Syntax { .. } => code::SYNTAX,
        other => other.code(),
    };
    (code, text)
}

fn public(name: &str) -> Result<(), (u16, String)> {
    let handler = name.rsplit_once('.').map_or("", |(_, handler)| handler);
    if PRIVATE.contains(&handler) {
        return Err((code::NO_SUCH_HANDLER, format!("No handler named '{name}'")));
    }
    Ok(())
}

impl Handlers<'_> {
    /// Replaces the configuration.
    ///
    /// # Errors The faults of the configuration, a line each; the old one keeps running then.
    pub fn swap(&mut self, text: &str) -> Result<(), String> {
        let sources = self.reader.complete("hotconfig", text.to_string());
        let now = self.machine.clock.now_ns();
        let swapped = self.router.hotswap_from(sources, self.registry, now);
        let elements = self.elements();
        self.machine
            .keep_elements(|name| elements.iter().any(|e| e == name));
        swapped.map_err(|errors| report(&errors))
    }

    fn elements(&mut self) -> Vec<String> {
        let now = self.machine.clock.now_ns();
        let list = self
            .router
            .read_handler("list", "", now)
            .unwrap_or_default();
        let list = String::from_utf8_lossy(&list).into_owned();
        list.lines().skip(1).map(str::to_string).collect()
    }
}

impl Service for Handlers<'_> {
    fn read(&mut self, name: &str, param: &str) -> Result<Vec<u8>, (u16, String)> {
        public(name)?;
        let now = self.machine.clock.now_ns();
        let value = self.router.read_handler(name, param, now);
        value.map_err(|e| failure(&e, "Read"))
    }

    fn write(&mut self, name: &str, value: &[u8]) -> Result<(), (u16, String)> {
        let now = self.machine.clock.now_ns();
        let written = self.router.write_handlers(&[(name, value)], now);
        written.map_err(|e| failure(&e, "Write"))?;
        // the peer gets the faults of its configuration
        match self.machine.wanted.take() {
            Some(text) => self.swap(&text).map_err(|errors| {
                let text = format!("Write handler '{name}' error:\n{errors}");
                (code::HANDLER_ERROR, text)
            }),
            None => Ok(()),
        }
    }

    fn check(&mut self, name: &str, write: bool) -> Result<(), (u16, String)> {
        public(name)?;
        match self.router.handler_info(name) {
            Ok(h) if (write && h.write) || (!write && h.read) => Ok(()),
            Ok(_) if write => Err((
                code::NO_SUCH_HANDLER,
                format!("Handler '{name}' not writable"),
            )),
            Ok(_) => Err((
                code::NO_SUCH_HANDLER,
                format!("Handler '{name}' not readable"),
            )),
            Err(_) => Err((code::NO_SUCH_HANDLER, format!("No handler named '{name}'"))),
        }
    }

    fn element(&mut self, number: usize) -> Option<String> {
        let elements = self.elements();
        elements.get(number.checked_sub(1)?).cloned()
    }

    fn say(&mut self, text: &str) {
        eprintln!("{text}");
    }
}
