// SPDX-License-Identifier: Apache-2.0
//! Handlers as the control socket's peers see them, and the hot swap they can ask for.
use click_core::{HandlerError, Registry, Router};

use crate::control::Service;

/// The router at a time.
pub struct Handlers<'a> {
    /// The router.
    pub router: &'a mut Router,
    /// What a new configuration may use; `None` if there is to be none.
    pub registry: Option<&'a Registry>,
    /// The time.
    pub now_ns: u64,
}

/// Handlers that reach files: for configurations, not for peers.
const PRIVATE: [&str; 2] = ["cat", "catq"];

fn failure(error: &HandlerError) -> (u16, String) {
    let name = error.name();
    let text = match error {
        HandlerError::NoSuchElement { .. } => {
            let element = name.rsplit_once('.').map_or(name, |(element, _)| element);
            format!("No element named '{element}'")
        }
        HandlerError::NoSuchHandler { .. } => format!("No handler named '{name}'"),
        other => other.to_string(),
    };
    (error.code(), text)
}

fn public(name: &str) -> Result<(), (u16, String)> {
    let handler = name.rsplit_once('.').map_or("", |(_, handler)| handler);
    if PRIVATE.contains(&handler) {
        return Err((511, format!("No handler named '{name}'")));
    }
    Ok(())
}

impl Service for Handlers<'_> {
    fn read(&mut self, name: &str, param: &str) -> Result<Vec<u8>, (u16, String)> {
        public(name)?;
        let value = self.router.read_handler(name, param, self.now_ns);
        value.map_err(|e| failure(&e))
    }

    fn write(&mut self, name: &str, value: &[u8]) -> Result<(), (u16, String)> {
        if name != "hotconfig" {
            let written = self.router.write_handlers(&[(name, value)], self.now_ns);
            return written.map_err(|e| failure(&e));
        }
        self.check(name, true)?;
        let registry = self.registry.ok_or((530, String::new()))?;
        let text = std::str::from_utf8(value).map_err(|e| (520, e.to_string()))?;
        let swapped = self
            .router
            .hotswap("hotconfig", text, registry, self.now_ns);
        swapped.map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            (520, lines.join("\n"))
        })
    }

    fn check(&mut self, name: &str, write: bool) -> Result<(), (u16, String)> {
        public(name)?;
        if name == "hotconfig" {
            return match (write, self.registry) {
                (true, Some(_)) => Ok(()),
                _ => Err((
                    530,
                    "hotconfig: the program was started without -R".to_string(),
                )),
            };
        }
        let handlers = self.router.handlers();
        match handlers.iter().find(|h| h.name == name) {
            Some(h) if (write && h.write) || (!write && h.read) => Ok(()),
            Some(_) => Err((530, format!("Permission denied for '{name}'"))),
            None => Err((511, format!("No handler named '{name}'"))),
        }
    }
}
