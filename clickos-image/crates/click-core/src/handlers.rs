// SPDX-License-Identifier: Apache-2.0
//! Handlers of elements: finding, reading, writing all or none.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::args::Surroundings;
use crate::class::{Handler, read};
use crate::element::{Change, View};
use crate::error::HandlerError;
use crate::globals::{self, Global};
use crate::router::Router;

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

/// What every element has.
pub const COMMON: [Handler; 5] = [
    read("class"),
    read("name"),
    read("config"),
    read("ports"),
    read("handlers"),
];

/// Where a name leads.
enum Target {
    Global(Global),
    Element(usize, HandlerInfo),
}

/// A write that is known to be good.
enum Prepared {
    Global(Global),
    Element {
        index: usize,
        change: Change,
        config: Option<String>,
    },
}

/// Batches a write may set in motion before it returns; what is left moves in the next slice.
const ENTRIES: usize = 16_384;

impl Handler {
    /// The handler under this name.
    pub(crate) fn named(&self, name: String) -> HandlerInfo {
        HandlerInfo {
            name,
            read: self.read,
            write: self.write,
        }
    }
}

impl Router {
    /// All handlers, of all elements and the global ones.
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        let mut list: Vec<_> = globals::ALL
            .iter()
            .map(|(h, _)| h.named(h.name.to_string()))
            .collect();
        for index in 0..self.classes.len() {
            let element = &self.engine.slots[index].name;
            for mut handler in self.handlers_of(index) {
                handler.name = format!("{element}.{}", handler.name);
                list.push(handler);
            }
        }
        list
    }

    /// The handlers of one element: those every element has, its class's, and those of its ports.
    pub(crate) fn handlers_of(&self, index: usize) -> Vec<HandlerInfo> {
        let own = self.classes[index].handlers;
        let common = COMMON
            .iter()
            .filter(|c| own.iter().all(|h| h.name != c.name));
        let fixed = common.chain(own).map(|h| h.named(h.name.to_string()));
        let of_ports = self.classes[index].port_handlers.iter().flat_map(|h| {
            (0..self.ports_of(index)).map(move |port| h.named(format!("{}{port}", h.name)))
        });
        fixed.chain(of_ports).collect()
    }

    /// Inputs or outputs of an element, whichever are more.
    fn ports_of(&self, index: usize) -> usize {
        let slot = &self.engine.slots[index];
        slot.inputs.len().max(slot.outputs.len())
    }

    fn find(&self, full: &str) -> Result<Target, HandlerError> {
        let Some((element, handler)) = full.rsplit_once('.').filter(|(e, _)| !e.is_empty()) else {
            let name = full.strip_prefix('.').unwrap_or(full);
            return match globals::ALL.iter().find(|(h, _)| h.name == name) {
                Some((_, global)) => Ok(Target::Global(*global)),
                None => Err(HandlerError::NoSuchHandler {
                    name: full.to_string(),
                }),
            };
        };
        let Some(index) = self.engine.slots.iter().position(|s| s.name == element) else {
            return Err(HandlerError::NoSuchElement {
                name: full.to_string(),
            });
        };
        match self
            .handlers_of(index)
            .into_iter()
            .find(|h| h.name == handler)
        {
            Some(handler) => Ok(Target::Element(index, handler)),
            None => Err(HandlerError::NoSuchHandler {
                name: full.to_string(),
            }),
        }
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
        self.engine.now_ns = self.engine.now_ns.max(now_ns);
        self.engine.reads += 1;
        let text = match self.find(name)? {
            Target::Global(global) => global
                .read(self)
                .ok_or_else(|| not_permitted(name, "read"))?,
            Target::Element(_, handler) if !handler.read => {
                return Err(not_permitted(name, "read"));
            }
            Target::Element(index, handler) => self
                .read_of(index, &handler.name, param)
                .map_err(|e| e.named(name))?,
        };
        Ok(text.into_bytes())
    }

    fn read_of(&self, index: usize, handler: &str, param: &str) -> Result<String, HandlerError> {
        let slot = &self.engine.slots[index];
        match handler {
            "class" => Ok(self.flat.elements[index].class.to_string()),
            "name" => Ok(slot.name.clone()),
            "config" if slot.config.is_empty() => Ok(String::new()),
            "config" => Ok(format!("{}\n", slot.config)),
            "ports" => Ok(self.ports_text(index)),
            "handlers" => Ok(self.handlers_text(index)),
            _ => {
                let element = slot
                    .element
                    .as_ref()
                    .expect("no element runs while handlers are called");
                element.read(&self.view(index), handler, param)
            }
        }
    }

    fn view(&self, index: usize) -> View<'_> {
        let slot = &self.engine.slots[index];
        View {
            now_ns: self.engine.now_ns,
            config: &slot.config,
            surroundings: Surroundings {
                environment: &self.engine.environment,
                names: &self.engine.names,
                element: &slot.name,
            },
            reads: self.engine.reads,
            writes: self.engine.writes,
            ports: (slot.inputs.len(), slot.outputs.len()),
        }
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
        self.engine.now_ns = self.engine.now_ns.max(now_ns);
        let prepared: Result<Vec<_>, _> = writes
            .iter()
            .map(|(name, value)| self.prepare(name, value))
            .collect();
        for write in prepared? {
            self.engine.writes += 1;
            self.commit(write);
        }
        self.engine.drain(&mut { ENTRIES });
        Ok(())
    }

    fn prepare(&self, name: &str, value: &[u8]) -> Result<Prepared, HandlerError> {
        let limit = self.engine.environment.limits.handler_bytes;
        let reject = |message: String| HandlerError::Rejected {
            name: name.to_string(),
            message,
        };
        if value.len() > limit {
            return Err(reject(format!(
                "the value has {} bytes, the limit is {limit}",
                value.len()
            )));
        }
        let text = core::str::from_utf8(value)
            .map_err(|_| reject("the value is not UTF-8 text".into()))?;
        match self.find(name)? {
            Target::Global(global) if global.is_writable() => Ok(Prepared::Global(global)),
            Target::Global(_) => Err(not_permitted(name, "written")),
            Target::Element(_, handler) if !handler.write => Err(not_permitted(name, "written")),
            Target::Element(index, handler) => {
                let element = self.engine.slots[index].element.as_ref();
                let element = element.expect("no element runs while handlers are called");
                let change = element
                    .write(&self.view(index), &handler.name, text.trim())
                    .map_err(|e| e.named(name))?;
                let config = (handler.name == "config").then(|| text.trim().to_string());
                Ok(Prepared::Element {
                    index,
                    change,
                    config,
                })
            }
        }
    }

    fn commit(&mut self, write: Prepared) {
        match write {
            Prepared::Global(global) => global.write(self),
            Prepared::Element {
                index,
                change,
                config,
            } => {
                self.engine
                    .with(index, |element, ctx| change.apply(element, ctx));
                if let Some(config) = config {
                    self.engine.slots[index].config = config;
                }
            }
        }
    }
}

fn not_permitted(name: &str, what: &str) -> HandlerError {
    HandlerError::NotPermitted {
        name: name.to_string(),
        message: format!("the handler cannot be {what}"),
    }
}
