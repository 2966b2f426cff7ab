// SPDX-License-Identifier: Apache-2.0
//! Handlers of elements: finding, reading, writing all or none.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::class::Family;
use crate::engine::context::Context;
use crate::engine::element::{Element, View};
use crate::engine::handler::{Change, Table};
use crate::error::HandlerError;
use crate::globals::{self, Global};
use crate::handler_info::{HandlerDecl, HandlerInfo, Kind};
use crate::live::{Told, busy};
use crate::random::Seeded;
use crate::reconfigure::with_argument;

/// A handler that the engine answers for an element.
pub struct Common {
    /// The handler as programs see it.
    pub decl: HandlerDecl,
    get: fn(&Engine, usize) -> String,
}

const fn common(decl: HandlerDecl, get: fn(&Engine, usize) -> String) -> Common {
    Common { decl, get }
}

/// Handlers of every element.
static COMMON: [Common; 6] = [
    common(HandlerDecl::read("class"), |engine, index| {
        engine.plan.flat.elements[index].class.to_string()
    }),
    common(HandlerDecl::read("name"), |engine, index| {
        engine.slots[index].name.clone()
    }),
    common(HandlerDecl::read("config"), Engine::config_text),
    common(LIVE_CONFIG, Engine::config_text),
    common(HandlerDecl::read("ports"), Engine::ports_text),
    common(HandlerDecl::read("handlers"), Engine::handlers_text),
];

/// Handlers of elements with a task.
static OF_TASKS: [Common; 3] = [
    common(HandlerDecl::read("scheduled"), |engine, index| {
        engine.tasks.is_scheduled(index).to_string()
    }),
    common(TICKETS, |engine, index| {
        engine.tasks.tickets(index).to_string()
    }),
    common(HandlerDecl::read("home_thread"), Engine::home_thread),
];

/// `config` of an element that takes a new configuration.
const LIVE_CONFIG: HandlerDecl = HandlerDecl::read_write("config");

/// The one handler of `OF_TASKS` that programs can write.
const TICKETS: HandlerDecl = HandlerDecl::read_write("tickets");

/// What a handler name resolves to.
enum HandlerTarget<'n> {
    Global(Global),
    Host(HandlerDecl),
    Element(Own<'n>),
}

/// A handler of an element.
struct Own<'n> {
    index: usize,
    /// Its name, without the number of a port.
    name: &'n str,
    port: usize,
    read: bool,
    write: bool,
    kind: Kind,
    provider: HandlerProvider,
}

/// What provides a handler of an element: the engine or the class.
#[derive(Clone, Copy)]
enum HandlerProvider {
    Engine(&'static Common),
    Class(&'static dyn Table, usize),
}

/// A write that is known to be good.
enum Prepared {
    Global(Global),
    Host {
        name: &'static str,
        value: String,
    },
    Element {
        index: usize,
        change: Change,
        /// The handler and its value, if the configuration says it then.
        said: Option<(String, String)>,
    },
    /// The element under its new configuration, not yet in its place.
    Rebuilt {
        index: usize,
        element: Box<dyn Element>,
        told: Told,
        config: String,
    },
    Tickets {
        index: usize,
        tickets: u32,
    },
}

#[cfg(feature = "threads")]
impl Prepared {
    /// The element that it changes.
    fn element(&self) -> Option<usize> {
        match self {
            Self::Element { index, .. } | Self::Rebuilt { index, .. } => Some(*index),
            Self::Global(_) | Self::Host { .. } | Self::Tickets { .. } => None,
        }
    }
}

/// Writes of one call that are known to be good.
pub(crate) struct Pending {
    prepared: Vec<Prepared>,
    /// The state of random numbers, if elements changed it that start.
    seeded: Option<Seeded>,
}

/// How deep handlers may call handlers.
const MAX_CALLS: usize = 32;

impl Engine {
    /// All handlers, of all elements and the global ones.
    pub(crate) fn handlers(&self) -> Vec<HandlerInfo> {
        let mut list: Vec<_> = self.global_handlers().collect();
        for index in 0..self.plan.written {
            let element = &self.slots[index].name;
            #[cfg(feature = "threads")]
            if self.plan.copies.made(element) {
                continue;
            }
            for mut handler in self.handlers_of(index) {
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

    /// The handlers of one element: common ones, its class's, its ports' and its own.
    pub(crate) fn handlers_of(&self, index: usize) -> Vec<HandlerInfo> {
        let class = self.plan.classes[index];
        let common = self.common_of(index).map(|c| c.decl);
        let fixed = common.chain(class.handlers.iter());
        let fixed = fixed.map(|h| h.named(h.name.to_string()));
        let of_ports = self.tables_of_ports(index).flat_map(|(table, ports)| {
            let handlers = table.iter();
            handlers.flat_map(move |h| (0..ports).map(move |p| h.named(format!("{}{p}", h.name))))
        });
        let element = self.slots[index].element.as_ref();
        let further = element.map_or_else(Vec::new, |e| e.dynamic_handlers(""));
        fixed.chain(of_ports).chain(further).collect()
    }

    /// The handlers that the engine answers for an element: those that its class does not answer.
    fn common_of(&self, index: usize) -> impl Iterator<Item = &'static Common> {
        let class = self.plan.classes[index];
        let of_task: &[Common] = if class.task { &OF_TASKS } else { &[] };
        let all = COMMON.iter().chain(of_task);
        all.filter(|c| c.decl.name != LIVE_CONFIG.name || c.decl.write == class.live)
            .filter(|c| class.handlers.find(c.decl.name).is_none())
    }

    /// The tables of handlers that exist once per port, and the number of ports.
    fn tables_of_ports(
        &self,
        index: usize,
    ) -> impl Iterator<Item = (&'static dyn Table, usize)> + '_ {
        let slot = &self.slots[index];
        let families = self.plan.classes[index].families.iter();
        families.filter_map(|family| match family {
            Family::PerInput(table) => Some((*table, slot.inputs.len())),
            Family::PerOutput(table) => Some((*table, slot.outputs.len())),
            Family::Any(_) => None,
        })
    }

    /// The number of the thread that runs an element.
    #[cfg(not(feature = "threads"))]
    fn home_thread(&self, _index: usize) -> String {
        "0".to_string()
    }

    /// The handler of an element that has this name.
    fn own<'n>(&self, index: usize, name: &'n str) -> Option<Own<'n>> {
        let class = self.plan.classes[index];
        let own = |name, port, h: HandlerDecl, provider| Own {
            index,
            name,
            port,
            read: h.read,
            write: h.write,
            kind: h.kind,
            provider,
        };
        if let Some((place, h)) = class.handlers.find(name) {
            return Some(own(
                name,
                0,
                h,
                HandlerProvider::Class(class.handlers, place),
            ));
        }
        if let Some(c) = self.common_of(index).find(|c| c.decl.name == name) {
            return Some(own(name, 0, c.decl, HandlerProvider::Engine(c)));
        }
        for (table, ports) in self.tables_of_ports(index) {
            if let Some((place, h, port)) = of_port(table, ports, name) {
                let name = &name[..h.name.len()];
                return Some(own(name, port, h, HandlerProvider::Class(table, place)));
            }
        }
        self.further(index, name)
    }

    /// The same among the handlers that only the element itself lists.
    fn further<'n>(&self, index: usize, name: &'n str) -> Option<Own<'n>> {
        let listed = self.slots[index].element.as_ref()?.dynamic_handlers(name);
        let found = listed.into_iter().find(|h| h.name == name)?;
        let HandlerInfo {
            read, write, kind, ..
        } = found;
        let mut families = self.plan.classes[index].families.iter();
        let table = families.find_map(|family| match family {
            Family::Any(table) => Some(*table),
            Family::PerInput(_) | Family::PerOutput(_) => None,
        });
        Some(Own {
            index,
            name,
            port: 0,
            read,
            write,
            kind,
            provider: HandlerProvider::Class(table?, 0),
        })
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
            HandlerTarget::Global(global) => {
                let own = globals::ALL.iter().find(|(_, g)| *g == global);
                let (handler, _) = own.expect("found among them");
                Ok(handler.named(full.to_string()))
            }
            HandlerTarget::Host(handler) => Ok(handler.named(full.to_string())),
            HandlerTarget::Element(own) => Ok(HandlerInfo {
                name: full.to_string(),
                read: own.read,
                write: own.write,
                kind: own.kind,
            }),
        }
    }

    /// Handlers of the program around the router.
    pub(crate) fn host_handlers(&self) -> &'static [HandlerDecl] {
        let host = self.environment.host.as_ref();
        host.map_or(&[], |host| host.handlers())
    }

    fn find<'n>(&self, full: &'n str) -> Result<HandlerTarget<'n>, HandlerError> {
        let no_handler = || HandlerError::no_handler(full);
        let Some((element, handler)) = full.rsplit_once('.').filter(|(e, _)| !e.is_empty()) else {
            let name = full.strip_prefix('.').unwrap_or(full);
            if let Some((_, global)) = globals::ALL.iter().find(|(h, _)| h.name == name) {
                return Ok(HandlerTarget::Global(*global));
            }
            let mut of_host = self.host_handlers().iter();
            let found = of_host.find(|h| h.name == name);
            return found
                .map(|h| HandlerTarget::Host(*h))
                .ok_or_else(no_handler);
        };
        let named = |name: &str| self.slots.iter().position(|s| s.name == name);
        // with one thread there are no copies but this one
        let first = || named(&self.plan.spread.on_first(element)?);
        let Some(index) = named(element).or_else(first) else {
            return Err(HandlerError::no_element(full));
        };
        let own = self.own(index, handler);
        own.map(HandlerTarget::Element).ok_or_else(no_handler)
    }

    /// Calls a read handler.
    pub(crate) fn read(&mut self, name: &str, param: &str) -> Result<String, HandlerError> {
        #[cfg(feature = "threads")]
        return self.read_copies(name, param);
        #[cfg(not(feature = "threads"))]
        self.read_one(name, param)
    }

    /// Calls a read handler of one element.
    pub(crate) fn read_one(&mut self, name: &str, param: &str) -> Result<String, HandlerError> {
        self.reads += 1;
        #[cfg(feature = "threads")]
        if let Some(read) = self.read_elsewhere(name, param, 1) {
            return read;
        }
        self.read_own(name, param)
    }

    /// Calls a read handler of an element of this thread.
    pub(crate) fn read_own(&mut self, name: &str, param: &str) -> Result<String, HandlerError> {
        match self.find(name)? {
            HandlerTarget::Global(_) | HandlerTarget::Host(_) if !param.is_empty() => {
                Err(HandlerError::takes_no_parameter(param).named(name))
            }
            HandlerTarget::Global(global) => {
                global.read(self).ok_or_else(|| not_permitted(name, "read"))
            }
            HandlerTarget::Host(handler) if handler.read => {
                let host = self.environment.host.as_ref();
                let value = host.and_then(|h| h.read_handler(handler.name));
                value.ok_or_else(|| not_permitted(name, "read"))
            }
            HandlerTarget::Element(own) if own.read => {
                self.read_of(&own, param).map_err(|e| e.named(name))
            }
            HandlerTarget::Host(_) | HandlerTarget::Element(_) => Err(not_permitted(name, "read")),
        }
    }

    fn read_of(&mut self, own: &Own<'_>, param: &str) -> Result<String, HandlerError> {
        let (table, place) = match own.provider {
            HandlerProvider::Engine(_) if !param.is_empty() => {
                return Err(HandlerError::takes_no_parameter(param));
            }
            HandlerProvider::Engine(common) => return Ok((common.get)(self, own.index)),
            HandlerProvider::Class(table, place) => (table, place),
        };
        let value = self.with(own.index, |element, ctx| {
            let mut view = own.view(ctx, param);
            let text = table.read(place, element, &mut view)?;
            if param.is_empty() || view.takes_param.get() {
                return Ok(text);
            }
            Err(HandlerError::takes_no_parameter(param))
        });
        value.unwrap_or_else(|| Err(busy()))
    }

    /// Calls write handlers in order: all of them or, on an error, none.
    pub(crate) fn write(&mut self, writes: &[(&str, &[u8])]) -> Result<(), HandlerError> {
        #[cfg(feature = "threads")]
        return self.write_everywhere(writes);
        #[cfg(not(feature = "threads"))]
        self.write_own(writes)
    }

    /// True if the engine answers a handler for its element.
    #[cfg(feature = "threads")]
    pub(crate) fn is_common(&self, name: &str) -> bool {
        match self.find(name) {
            Ok(HandlerTarget::Element(own)) => matches!(own.provider, HandlerProvider::Engine(_)),
            _ => true,
        }
    }

    /// The same for elements of this thread.
    pub(crate) fn write_own(&mut self, writes: &[(&str, &[u8])]) -> Result<(), HandlerError> {
        let pending = self.prepare_all(writes)?;
        self.make(pending);
        Ok(())
    }

    /// Checks writes of this thread's elements, and starts those with new configurations.
    ///
    /// # Errors
    /// One is not possible. Nothing has changed then.
    pub(crate) fn prepare_all(
        &mut self,
        writes: &[(&str, &[u8])],
    ) -> Result<Pending, HandlerError> {
        let prepared: Result<Vec<_>, _> = writes
            .iter()
            .map(|(name, value)| self.prepare(name, value))
            .collect();
        let mut prepared = prepared?;
        let before = self.random.seeded();
        let started = self.start_rebuilt(&mut prepared, writes);
        let seeded = Some(self.random.seeded()).filter(|seeded| *seeded != before);
        self.random.restore(before);
        started.map(|()| Pending { prepared, seeded })
    }

    /// Makes writes that are known to be good. To drop them instead changes nothing.
    pub(crate) fn make(&mut self, pending: Pending) {
        if let Some(seeded) = pending.seeded {
            self.random.restore(seeded);
        }
        for write in pending.prepared {
            self.writes += 1;
            #[cfg(feature = "threads")]
            if write.element().is_some_and(|at| self.is_running(at)) {
                self.make_late(|engine| engine.commit(write));
                continue;
            }
            self.commit(write);
        }
    }

    fn prepare(&mut self, name: &str, value: &[u8]) -> Result<Prepared, HandlerError> {
        let limit = self.environment.limits.handler_bytes;
        let reject = |message: String| HandlerError::rejected(message).named(name);
        if value.len() > limit {
            return Err(reject(format!(
                "the value has {} bytes, the limit is {limit}",
                value.len()
            )));
        }
        let text = core::str::from_utf8(value)
            .map_err(|_| reject("the value is not UTF-8 text".into()))?;
        match self.find(name)? {
            HandlerTarget::Global(global) if global.is_writable() => Ok(Prepared::Global(global)),
            HandlerTarget::Global(_) => Err(not_permitted(name, "written")),
            HandlerTarget::Host(handler) if handler.write => {
                let host = self.environment.host.as_ref();
                let checked = host.map_or(Ok(()), |h| h.check_write(handler.name, text));
                checked.map_err(reject)?;
                let (name, value) = (handler.name, text.to_string());
                Ok(Prepared::Host { name, value })
            }
            HandlerTarget::Element(own) if own.write => {
                let (_, handler) = name.rsplit_once('.').unwrap_or(("", name));
                self.prepare_element(&own, handler, text.trim())
                    .map_err(|e| e.named(name))
            }
            HandlerTarget::Host(_) | HandlerTarget::Element(_) => {
                Err(not_permitted(name, "written"))
            }
        }
    }

    fn prepare_element(
        &mut self,
        own: &Own<'_>,
        handler: &str,
        value: &str,
    ) -> Result<Prepared, HandlerError> {
        let index = own.index;
        let HandlerProvider::Class(table, place) = own.provider else {
            if handler == LIVE_CONFIG.name {
                let (element, config) = (self.rebuilt(index, value)?, value.to_string());
                return Ok(Prepared::Rebuilt {
                    index,
                    element,
                    told: Told::default(),
                    config,
                });
            }
            let tickets = own.view(&mut Context::new(self, index), "").parse(value)?;
            return Ok(Prepared::Tickets { index, tickets });
        };
        let change = self.with(index, |element, ctx| {
            table.write(place, element, &own.view(ctx, ""), value)
        });
        let change = change.unwrap_or_else(|| Err(busy()))?;
        let is_said = self.config_with(index, handler, value).is_some();
        let said = is_said.then(|| (handler.to_string(), value.to_string()));
        Ok(Prepared::Element {
            index,
            change,
            said,
        })
    }

    /// The element's configuration after a write of a handler, if it says the value.
    fn config_with(&self, index: usize, handler: &str, value: &str) -> Option<String> {
        match handler {
            "config" => Some(value.to_string()),
            _ => with_argument(self.plan.classes[index], self.config(index), handler, value),
        }
    }

    /// Starts the elements with new configurations.
    ///
    /// # Errors
    /// One cannot run.
    fn start_rebuilt(
        &mut self,
        prepared: &mut [Prepared],
        writes: &[(&str, &[u8])],
    ) -> Result<(), HandlerError> {
        for (write, (name, _)) in prepared.iter_mut().zip(writes) {
            if let Prepared::Rebuilt {
                index,
                element,
                told,
                ..
            } = write
            {
                let started = self.start_one(*index, &mut **element);
                *told = started.map_err(|m| HandlerError::rejected(m).named(name))?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, write: Prepared) {
        match write {
            Prepared::Global(global) => global.write(self),
            Prepared::Host { name, value } => {
                if let Some(host) = self.environment.host.clone() {
                    host.write_handler(name, &value);
                }
            }
            Prepared::Rebuilt {
                index,
                element,
                told,
                config,
            } => self.put_in_place(index, element, told, config),
            Prepared::Tickets { index, tickets } => self.tasks.set_tickets(index, tickets),
            Prepared::Element {
                index,
                change,
                said,
            } => {
                self.with(index, |element, ctx| change.apply(element, ctx));
                // other writes may have changed it meanwhile
                let config =
                    said.and_then(|(handler, value)| self.config_with(index, &handler, &value));
                if let Some(config) = config {
                    self.slots[index].config = config.into();
                }
            }
        }
    }
}

impl<'n> Own<'n> {
    fn view<'v>(&self, ctx: &'v mut Context<'_>, param: &'v str) -> View<'v>
    where
        'n: 'v,
    {
        View {
            port: self.port,
            ..ctx.view(self.name, param)
        }
    }
}

/// The handler `name3` of port 3: its place in the table, itself and the port.
fn of_port(table: &dyn Table, ports: usize, name: &str) -> Option<(usize, HandlerDecl, usize)> {
    let mut handlers = table.iter().enumerate();
    handlers.find_map(|(place, h)| {
        let port: usize = name.strip_prefix(h.name)?.parse().ok()?;
        let exists = port < ports && name == format!("{}{port}", h.name);
        exists.then_some((place, h, port))
    })
}

fn not_permitted(name: &str, what: &str) -> HandlerError {
    HandlerError::NotPermitted {
        name: name.to_string(),
        message: format!("the handler cannot be {what}"),
    }
}
