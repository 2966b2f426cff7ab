// SPDX-License-Identifier: Apache-2.0
//! Handlers of elements: finding, reading, writing all or none.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::args::Surroundings;
use crate::class::{Handler, read, read_write};
use crate::element::{Change, View};
use crate::engine::Engine;
use crate::error::HandlerError;
use crate::globals::{self, Global};
use crate::reconfigure::with_argument;
use crate::router::Router;

/// A handler as `Router::handlers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// `element.handler`, or a global handler's name.
    pub name: String,
    /// True if programs can read it.
    pub read: bool,
    /// True if programs can write it.
    pub write: bool,
}

/// Handlers of every element.
pub const COMMON: [Handler; 5] = [
    read("class"),
    read("name"),
    read("config"),
    read("ports"),
    read("handlers"),
];

/// Handlers of elements with a task.
pub const OF_TASKS: [Handler; 3] = [
    read("scheduled"),
    read_write("tickets"),
    read("home_thread"),
];

/// The number of the one thread a router runs on.
const HOME_THREAD: &str = "0";

/// Where a name leads.
enum Target {
    Global(Global),
    Host(HandlerInfo),
    Element(usize, HandlerInfo),
}

/// A write that is known to be good.
enum Prepared {
    Global(Global),
    Host {
        name: String,
        value: String,
    },
    Element {
        index: usize,
        change: Change,
        config: Option<String>,
    },
    Tickets {
        index: usize,
        tickets: u32,
    },
}

/// Batches a write may set in motion before it returns; what is left moves in the next slice.
const ENTRIES: usize = 16_384;

/// How deep handlers may call handlers.
const MAX_CALLS: usize = 32;

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
        self.engine.drain(&mut { ENTRIES });
        text.map(String::into_bytes)
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
        self.engine.drain(&mut { ENTRIES });
        written
    }
}

impl Engine {
    fn handlers(&self) -> Vec<HandlerInfo> {
        let mut list: Vec<_> = self.global_handlers().collect();
        for index in 0..self.plan.written {
            let element = &self.slots[index].name;
            for mut handler in self.handlers_of(index, "") {
                handler.name = format!("{element}.{}", handler.name);
                list.push(handler);
            }
        }
        list
    }

    /// The router's own handlers and its host's.
    pub(crate) fn global_handlers(&self) -> impl Iterator<Item = HandlerInfo> + '_ {
        let globals = globals::ALL.iter().map(|(h, _)| h);
        let all = globals.chain(self.host_handlers());
        all.map(|h| h.named(h.name.to_string()))
    }

    /// The handlers of one element: common ones, its class's, its ports' and its own. `asked` is
    /// the name that the caller looks for.
    pub(crate) fn handlers_of(&self, index: usize, asked: &str) -> Vec<HandlerInfo> {
        let own = self.plan.classes[index].handlers;
        let of_task: &[Handler] = match self.plan.classes[index].task {
            true => &OF_TASKS,
            false => &[],
        };
        let common = COMMON
            .iter()
            .chain(of_task)
            .filter(|c| own.iter().all(|h| h.name != c.name));
        let fixed = common.chain(own).map(|h| h.named(h.name.to_string()));
        let element = self.slots[index].element.as_ref();
        let further = element.map_or_else(Vec::new, |e| e.more_handlers(asked));
        let of_ports = self.plan.classes[index].port_handlers.iter().flat_map(|h| {
            (0..self.ports_of(index)).map(move |port| h.named(format!("{}{port}", h.name)))
        });
        fixed.chain(of_ports).chain(further).collect()
    }

    /// True if a handler is one that the element has for its task, not one of its class.
    fn is_of_task(&self, index: usize, handler: &str) -> bool {
        let class = self.plan.classes[index];
        class.task && class.handlers.iter().all(|h| h.name != handler)
    }

    /// Inputs or outputs of an element, whichever are more.
    fn ports_of(&self, index: usize) -> usize {
        let slot = &self.slots[index];
        slot.inputs.len().max(slot.outputs.len())
    }

    /// The full name of a handler that an element calls `name`: elements are looked up from its
    /// compound outwards.
    pub(crate) fn resolve(&self, from: usize, name: &str) -> Result<String, HandlerError> {
        if self.depth() > MAX_CALLS {
            return Err(HandlerError::rejected(format!(
                "handlers call each other {MAX_CALLS} deep"
            ))
            .named(name));
        }
        let Some((element, handler)) = name.rsplit_once('.') else {
            return Ok(name.to_string());
        };
        Ok(match self.find_element(from, element) {
            Some(index) => format!("{}.{handler}", self.slots[index].name),
            None => name.to_string(),
        })
    }

    /// The element an element calls `name`, looked up from its compound outwards.
    pub(crate) fn find_element(&self, from: usize, name: &str) -> Option<usize> {
        let named = |full: &str| self.slots.iter().position(|s| s.name == full);
        let mut around = self.slots[from].name.as_str();
        while let Some((outer, _)) = around.rsplit_once('/') {
            if let Some(index) = named(&format!("{outer}/{name}")) {
                return Some(index);
            }
            around = outer;
        }
        named(name)
    }

    /// The handler of this full name.
    pub(crate) fn info(&self, full: &str) -> Result<HandlerInfo, HandlerError> {
        match self.find(full)? {
            Target::Global(global) => {
                let own = globals::ALL.iter().find(|(_, g)| *g == global);
                let (handler, _) = own.expect("found among them");
                Ok(handler.named(full.to_string()))
            }
            Target::Host(handler) | Target::Element(_, handler) => Ok(handler),
        }
    }

    /// Handlers of the program around the router.
    pub(crate) fn host_handlers(&self) -> &'static [Handler] {
        let host = self.environment.host.as_ref();
        host.map_or(&[], |host| host.handlers())
    }

    fn find(&self, full: &str) -> Result<Target, HandlerError> {
        let Some((element, handler)) = full.rsplit_once('.').filter(|(e, _)| !e.is_empty()) else {
            let name = full.strip_prefix('.').unwrap_or(full);
            if let Some((_, global)) = globals::ALL.iter().find(|(h, _)| h.name == name) {
                return Ok(Target::Global(*global));
            }
            let mut of_host = self.host_handlers().iter();
            return match of_host.find(|h| h.name == name) {
                Some(handler) => Ok(Target::Host(handler.named(name.to_string()))),
                None => Err(HandlerError::NoSuchHandler {
                    name: full.to_string(),
                }),
            };
        };
        let Some(index) = self.slots.iter().position(|s| s.name == element) else {
            return Err(HandlerError::NoSuchElement {
                name: full.to_string(),
            });
        };
        match self
            .handlers_of(index, handler)
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
    pub(crate) fn read(&mut self, name: &str, param: &str) -> Result<String, HandlerError> {
        self.reads += 1;
        match self.find(name)? {
            Target::Global(global) => global.read(self).ok_or_else(|| not_permitted(name, "read")),
            Target::Host(handler) | Target::Element(_, handler) if !handler.read => {
                Err(not_permitted(name, "read"))
            }
            Target::Host(handler) => {
                let host = self.environment.host.as_ref();
                let value = host.and_then(|h| h.read_handler(&handler.name));
                value.ok_or_else(|| not_permitted(name, "read"))
            }
            Target::Element(index, handler) => self
                .read_of(index, &handler.name, param)
                .map_err(|e| e.named(name)),
        }
    }

    fn read_of(
        &mut self,
        index: usize,
        handler: &str,
        param: &str,
    ) -> Result<String, HandlerError> {
        let slot = &self.slots[index];
        match handler {
            "class" => return Ok(self.plan.flat.elements[index].class.to_string()),
            "name" => return Ok(slot.name.clone()),
            "config" => return Ok(slot.config.clone()),
            "ports" => return Ok(self.ports_text(index)),
            "handlers" => return Ok(self.handlers_text(index)),
            "scheduled" if self.is_of_task(index, handler) => {
                return Ok(self.tasks.is_scheduled(index).to_string());
            }
            "tickets" if self.is_of_task(index, handler) => {
                return Ok(self.tasks.tickets(index).to_string());
            }
            "home_thread" if self.is_of_task(index, handler) => {
                return Ok(HOME_THREAD.to_string());
            }
            _ => {}
        }
        let called = self.with(index, |element, ctx| element.call(ctx, handler, param));
        match (called, &self.slots[index].element) {
            (Some(Some(text)), _) => text,
            (Some(None), Some(element)) => element.read(&self.view(index), handler, param),
            _ => Err(busy()),
        }
    }

    fn view(&self, index: usize) -> View<'_> {
        let slot = &self.slots[index];
        View {
            now_ns: self.now_ns,
            config: &slot.config,
            surroundings: Surroundings {
                environment: &self.environment,
                names: &self.names,
                element: &slot.name,
            },
            reads: self.reads,
            writes: self.writes,
            ports: (slot.inputs.len(), slot.outputs.len()),
        }
    }

    /// Calls write handlers in order: all of them or, on an error, none.
    pub(crate) fn write(&mut self, writes: &[(&str, &[u8])]) -> Result<(), HandlerError> {
        let prepared: Result<Vec<_>, _> = writes
            .iter()
            .map(|(name, value)| self.prepare(name, value))
            .collect();
        for write in prepared? {
            self.writes += 1;
            self.commit(write);
        }
        Ok(())
    }

    fn prepare(&self, name: &str, value: &[u8]) -> Result<Prepared, HandlerError> {
        let limit = self.environment.limits.handler_bytes;
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
            Target::Host(handler) | Target::Element(_, handler) if !handler.write => {
                Err(not_permitted(name, "written"))
            }
            Target::Host(handler) => {
                let host = self.environment.host.as_ref();
                let checked = host.map_or(Ok(()), |h| h.check_write(&handler.name, text));
                checked.map_err(reject)?;
                let (name, value) = (handler.name, text.to_string());
                Ok(Prepared::Host { name, value })
            }
            Target::Element(index, handler) => self
                .prepare_element(index, &handler.name, text.trim())
                .map_err(|e| e.named(name)),
        }
    }

    fn prepare_element(
        &self,
        index: usize,
        handler: &str,
        value: &str,
    ) -> Result<Prepared, HandlerError> {
        if handler == "tickets" && self.is_of_task(index, handler) {
            let tickets = self.view(index).parse(value)?;
            return Ok(Prepared::Tickets { index, tickets });
        }
        let slot = &self.slots[index];
        let element = slot.element.as_ref().ok_or_else(busy)?;
        let change = element.write(&self.view(index), handler, value)?;
        let config = match handler {
            "config" => Some(value.to_string()),
            _ => with_argument(self.plan.classes[index], &slot.config, handler, value),
        };
        Ok(Prepared::Element {
            index,
            change,
            config,
        })
    }

    fn commit(&mut self, write: Prepared) {
        match write {
            Prepared::Global(global) => global.write(self),
            Prepared::Host { name, value } => {
                if let Some(host) = self.environment.host.clone() {
                    host.write_handler(&name, &value);
                }
            }
            Prepared::Tickets { index, tickets } => self.tasks.set_tickets(index, tickets),
            Prepared::Element {
                index,
                change,
                config,
            } => {
                self.with(index, |element, ctx| change.apply(element, ctx));
                if let Some(config) = config {
                    self.slots[index].config = config;
                }
            }
        }
    }
}

/// An element cannot be called by what it has called itself.
fn busy() -> HandlerError {
    HandlerError::rejected("the element is running: its handlers cannot be called now")
}

fn not_permitted(name: &str, what: &str) -> HandlerError {
    HandlerError::NotPermitted {
        name: name.to_string(),
        message: format!("the handler cannot be {what}"),
    }
}
