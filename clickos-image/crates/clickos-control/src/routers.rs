// SPDX-License-Identifier: Apache-2.0
//! The guest's routers by number.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_core::{Device, Environment, HandlerError, Kind, Progress, Registry, Router};
use click_lang::archive::Archive;
use clickos_protocol::{Command, Marks, Write};
use core::cell::RefCell;

use crate::files::{Quota, RamFiles};
use crate::report;

/// Handlers of a router's files.
const FILES: &str = "files";
const FILE: &str = "file";
/// Handler of the guest's devices.
const VIFS: &str = "vifs";

/// Handler of elements that announce addresses.
const ANNOUNCE: &str = "announce";

/// A router that runs unseen.
const REHEARSAL: &str = "Idle -> Counter -> Discard;";

struct Slot {
    router: Router,
    files: Rc<RamFiles>,
    halted: bool,
    /// A handler such as `stop` was written, and ended the router.
    ended_by_write: bool,
}

impl Slot {
    fn read(&mut self, name: &str, param: &str, now_ns: u64) -> Result<Vec<u8>, HandlerError> {
        match name {
            FILES if !param.is_empty() => Err(HandlerError::takes_no_parameter(param).named(FILES)),
            FILES => Ok(self.files.list().into_bytes()),
            FILE => {
                let piece = self.files.piece(param);
                piece.map_err(|message| HandlerError::rejected(message).named(FILE))
            }
            _ => self.router.read_handler(name, param, now_ns),
        }
    }
}

/// All routers, the halted ones too.
pub(crate) struct Routers {
    registry: Registry,
    environment: Environment,
    slots: BTreeMap<u8, Slot>,
    quota: Rc<Quota>,
    /// Answers that the toolstack has not taken.
    answers: usize,
    /// When the guest was first seen with nothing to do.
    over_since_ns: Option<u64>,
    /// The threads besides this one, on which router 0 runs, too.
    #[cfg(feature = "threads")]
    crew: Option<alloc::boxed::Box<dyn crate::Crew>>,
}

/// Nanoseconds for the toolstack to take the answers of a guest with nothing to do.
const LAST_ANSWERS_NS: u64 = 5_000_000_000;

impl Routers {
    pub(crate) fn new(registry: Registry, environment: Environment) -> Self {
        let quota = Quota::new(environment.limits.file_bytes);
        Self {
            registry,
            environment,
            slots: BTreeMap::new(),
            quota,
            answers: 0,
            over_since_ns: None,
            #[cfg(feature = "threads")]
            crew: None,
        }
    }

    #[cfg(feature = "threads")]
    pub(crate) fn set_crew(&mut self, crew: alloc::boxed::Box<dyn crate::Crew>) {
        self.crew = Some(crew);
    }

    /// Notes how many answers the toolstack has not taken.
    pub(crate) fn set_answers(&mut self, answers: usize) {
        self.answers = answers;
    }

    /// True if router 0 is the only one and a write has ended it, and its last answers were taken,
    /// or were there for some seconds. A router whose configuration ends it, such as one that
    /// reads a file of packets, stays to be read.
    pub(crate) fn is_over(&mut self, now_ns: u64) -> bool {
        let mut slots = self.slots.iter();
        let has_ended = match (slots.next(), slots.next()) {
            (Some((0, slot)), None) => {
                !slot.halted && slot.ended_by_write && slot.router.is_stopped()
            }
            _ => false,
        };
        if !has_ended {
            self.over_since_ns = None;
            return false;
        }
        let since_ns = *self.over_since_ns.get_or_insert(now_ns);
        self.answers == 0 || now_ns.saturating_sub(since_ns) >= LAST_ANSWERS_NS
    }

    /// When the guest ends though its answers are there; `None` while it has something to do.
    fn end_ns(&self) -> Option<u64> {
        self.over_since_ns
            .map(|since_ns| since_ns.saturating_add(LAST_ANSWERS_NS))
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Builds a small router and drops it. The first run of code is slow: caches are cold, and
    /// translations where the processor is emulated.
    pub(crate) fn rehearse(&self, now_ns: u64) {
        let environment = self.environment.clone();
        // An image without these elements rehearses what comes before they are looked for.
        let _ = Router::build("", REHEARSAL, &self.registry, environment, now_ns);
    }

    /// Lets the numbers of routers to come depend on what the toolstack gave, too.
    pub(crate) fn mix_seed(&mut self, given: &[u8]) {
        self.environment.entropy.mix(given);
    }

    pub(crate) fn set_devices(&mut self, devices: BTreeMap<u32, Rc<RefCell<dyn Device>>>) {
        for slot in self.slots.values_mut() {
            slot.router.set_devices(devices.clone());
        }
        self.environment.devices = devices;
    }

    pub(crate) fn contains(&self, rid: u8) -> bool {
        self.slots.contains_key(&rid)
    }

    /// Starts a router with the files of its archive, or swaps the one that runs; on an error
    /// nothing changes.
    pub(crate) fn install(
        &mut self,
        rid: u8,
        name: &str,
        text: &str,
        archive: Option<&Archive<'_>>,
        now_ns: u64,
    ) -> Result<(), String> {
        let files = match self.slots.get(&rid) {
            Some(slot) => Rc::clone(&slot.files),
            None => Rc::new(RamFiles::new(Rc::clone(&self.quota))),
        };
        let before = files.keep();
        let filled = files.fill(archive.into_iter().flat_map(Archive::files));
        let started = filled
            .map_err(|error| format!("{name}: archive: {error}"))
            .and_then(|()| self.start(rid, name, text, &files, now_ns));
        if started.is_err() {
            files.restore(before);
        }
        started
    }

    fn start(
        &mut self,
        rid: u8,
        name: &str,
        text: &str,
        files: &Rc<RamFiles>,
        now_ns: u64,
    ) -> Result<(), String> {
        #[cfg(feature = "threads")]
        let mut on_all = match (rid, &mut self.crew) {
            (0, Some(crew)) => {
                let files = files.copies().map_err(|error| format!("{name}: {error}"))?;
                Some((crew, crate::Text { name, text, files }))
            }
            _ => None,
        };
        if let Some(slot) = self.slots.get_mut(&rid) {
            #[cfg(feature = "threads")]
            let swapped = match &mut on_all {
                Some((crew, text)) => crew.replace(&mut slot.router, text, &self.registry, now_ns),
                None => slot.router.hotswap(name, text, &self.registry, now_ns),
            };
            #[cfg(not(feature = "threads"))]
            let swapped = slot.router.hotswap(name, text, &self.registry, now_ns);
            slot.ended_by_write &= swapped.is_err();
            return swapped.map_err(|errors| report::lines(&errors));
        }
        let mut environment = self.environment.clone();
        environment.host = Some(Rc::<RamFiles>::clone(files));
        #[cfg(feature = "threads")]
        let router = match &mut on_all {
            Some((crew, text)) => crew.build(text, &self.registry, environment, now_ns),
            None => Router::build(name, text, &self.registry, environment, now_ns),
        };
        #[cfg(not(feature = "threads"))]
        let router = Router::build(name, text, &self.registry, environment, now_ns);
        let slot = Slot {
            router: router.map_err(|errors| report::lines(&errors))?,
            files: Rc::clone(files),
            halted: false,
            ended_by_write: false,
        };
        self.slots.insert(rid, slot);
        Ok(())
    }

    pub(crate) fn remove(&mut self, rid: u8) {
        #[cfg(feature = "threads")]
        if let (0, Some(crew)) = (rid, &mut self.crew) {
            crew.remove();
        }
        self.slots.remove(&rid);
    }

    pub(crate) fn set_halted(&mut self, rid: u8, halted: bool) {
        #[cfg(feature = "threads")]
        if let (0, Some(crew)) = (rid, &mut self.crew) {
            crew.set_running(!halted);
        }
        if let Some(slot) = self.slots.get_mut(&rid) {
            slot.halted = halted;
        }
    }

    /// The word for a router's `state`.
    pub(crate) fn state(&self, rid: u8) -> &'static str {
        match self.slots.get(&rid) {
            Some(slot) if !slot.halted => "Running",
            _ => "Halted",
        }
    }

    /// The words for all of them.
    pub(crate) fn states(&self) -> Vec<(u8, &'static str)> {
        self.slots
            .keys()
            .map(|rid| (*rid, self.state(*rid)))
            .collect()
    }

    /// Runs every router that is not halted for a slice.
    pub(crate) fn run(&mut self, now_ns: u64) -> Progress {
        let none = Progress::Idle {
            until_ns: self.end_ns(),
        };
        let running = self.slots.values_mut().filter(|slot| !slot.halted);
        let progress = running.fold(none, |all, slot| both(all, slot.router.run(now_ns)));
        #[cfg(feature = "threads")]
        if let (Some(crew), Some(slot)) = (&mut self.crew, self.slots.get_mut(&0)) {
            if crew.tend(&mut slot.router, now_ns) {
                return Progress::Worked;
            }
        }
        progress
    }

    /// Lets the routers announce their addresses, since neighbors know them from another place.
    pub(crate) fn announce(&mut self, now_ns: u64) {
        for slot in self.slots.values_mut() {
            let is_one = |name: &str| name.rsplit('.').next() == Some(ANNOUNCE);
            let all = slot.router.handlers().into_iter();
            for handler in all.filter(|handler| handler.write && is_one(&handler.name)) {
                // one that refuses has nothing to announce
                let _ = slot.router.write_handlers(&[(&handler.name, b"")], now_ns);
            }
        }
    }

    /// Carries out a program's request; gives code and data of the answer.
    pub(crate) fn call(&mut self, rid: u8, command: &Command<'_>, now_ns: u64) -> (u16, Vec<u8>) {
        let Some(slot) = self.slots.get_mut(&rid) else {
            return (540, no_router(rid).into_bytes());
        };
        let result = match command {
            Command::Read { name: VIFS, .. } => Ok(counters(&self.environment)),
            Command::Handlers => Ok(list(&slot.router)),
            Command::Read { name, param } => slot.read(name, param, now_ns),
            Command::Write(writes) => {
                let marks = marks(&slot.router, writes);
                let had_ended = slot.router.is_stopped();
                let written = slot.router.write_handlers(writes, now_ns);
                slot.ended_by_write |= !had_ended && slot.router.is_stopped();
                written.map(|()| marks.encode())
            }
        };
        match result {
            Ok(data) => (200, data),
            Err(error) => (error.code(), error.to_string().into_bytes()),
        }
    }

    /// Calls a read handler for a person.
    pub(crate) fn read(&mut self, rid: u8, name: &str, now_ns: u64) -> Result<Vec<u8>, String> {
        let slot = self.slots.get_mut(&rid).ok_or_else(|| no_router(rid))?;
        slot.router
            .read_handler(name, "", now_ns)
            .map_err(|e: HandlerError| e.to_string())
    }

    /// Calls a write handler for a person.
    pub(crate) fn write(
        &mut self,
        rid: u8,
        name: &str,
        value: &[u8],
        now_ns: u64,
    ) -> Result<(), String> {
        let slot = self.slots.get_mut(&rid).ok_or_else(|| no_router(rid))?;
        slot.router
            .write_handlers(&[(name, value)], now_ns)
            .map_err(|e| e.to_string())
    }
}

fn no_router(rid: u8) -> String {
    format!("router {rid} is not installed")
}

/// The writes that are no values.
fn marks(router: &Router, writes: &[Write<'_>]) -> Marks {
    let mut marks = Marks::default();
    for (place, (name, _)) in (0..).zip(writes) {
        match router.handler_kind(name) {
            Kind::Value => {}
            Kind::Command => marks.commands.push(place),
            Kind::Edit => marks.edits.push(place),
        }
    }
    marks
}

fn list(router: &Router) -> Vec<u8> {
    let lines = router.handlers().into_iter().map(|handler| {
        let mode = match (handler.read, handler.write) {
            (true, true) => "rw",
            (true, false) => "r",
            _ => "w",
        };
        format!("{} {mode}\n", handler.name)
    });
    let own = [FILE, FILES, VIFS].map(|name| format!("{name} r\n"));
    lines.chain(own).collect::<String>().into_bytes()
}

/// A line for each counter of each device: vif, name, value.
fn counters(environment: &Environment) -> Vec<u8> {
    let of = |(vif, device): (&u32, &Rc<RefCell<dyn Device>>)| {
        let lines = device.borrow().counters().into_iter();
        let lines = lines.map(|(name, value)| format!("{vif} {name} {value}\n"));
        lines.collect::<String>()
    };
    let texts = environment.devices.iter().map(of);
    texts.collect::<String>().into_bytes()
}

fn both(a: Progress, b: Progress) -> Progress {
    match (a, b) {
        (Progress::Idle { until_ns: a }, Progress::Idle { until_ns: b }) => Progress::Idle {
            until_ns: a.into_iter().chain(b).min(),
        },
        _ => Progress::Worked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_two() {
        let idle = |until_ns| Progress::Idle { until_ns };
        assert_eq!(both(idle(None), idle(Some(5))), idle(Some(5)));
        assert_eq!(both(idle(Some(7)), idle(Some(5))), idle(Some(5)));
        assert_eq!(both(idle(None), Progress::Worked), Progress::Worked);
    }
}
