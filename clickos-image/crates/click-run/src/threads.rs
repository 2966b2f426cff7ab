// SPDX-License-Identifier: Apache-2.0
//! A router on several threads (`-j`): starts the others, and connects thread 0 with them.
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use click_core::threads::Assembled;
use click_core::{ConfigError, Progress, Router};
use click_lang::Sources;
use click_threads::{Guard, Member, Part, Phase, Plan, alone, parts};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::Clock;
use crate::host::Machine;
use crate::library::Given;
use crate::options::Options;
use crate::report::report;
use crate::setting::{environment, registry};

/// Bytes of a thread's stack, as of the first one.
const STACK: usize = 8 << 20;

/// Binds a thread to its processor: each to the one after the previous thread's.
pub fn bind_to_processor(options: &Options, thread: u8) {
    let Some(first) = options.affinity.map(Option::unwrap_or_default) else {
        return;
    };
    let processor = first.saturating_add(u16::from(thread));
    let mut set = CpuSet::new();
    if usize::from(processor) < CpuSet::MAX_CPU {
        set.set(usize::from(processor));
    }
    if let (Err(error), false) = (sched_setaffinity(None, &set), options.no_warnings) {
        eprintln!("click: warning: processor {processor}: {error}");
    }
}

/// The threads besides this one, which is thread 0.
pub struct Crew {
    member: Rc<Member>,
    others: Vec<JoinHandle<()>>,
}

/// Builds a router on several threads, or on one if all elements belong to thread 0, or time is simulated.
///
/// # Errors
/// The errors of the configuration, or that a thread cannot be started.
pub fn build(
    options: &Options,
    given: Given,
    machine: &Rc<Machine>,
) -> Result<(Router, Option<Crew>), String> {
    let refused = |errors: Vec<ConfigError>| report(&errors);
    let mut assembled = assemble(options, given.sources.clone(), machine)?.map_err(refused)?;
    let plan = Plan::new(&mut assembled, options.router_threads(), &[]).map_err(refused)?;
    if plan.used().len() == 1 || options.simtime.is_some() {
        assembled.set_threads(alone(plan));
        let started = assembled.start();
        return started.map(|router| (router, None)).map_err(refused);
    }
    let mut parts = parts(plan)?;
    let own = parts.remove(0);
    let shared = Arc::clone(own.shared());
    let member = own.install(&mut assembled);
    let _ = machine.member.set(Rc::clone(&member));
    let mut crew = Crew {
        member,
        others: Vec::new(),
    };
    for part in parts {
        let (options, sources) = (options.clone(), given.sources.clone());
        let (shared, name) = (Arc::clone(&shared), format!("click-{}", part.thread()));
        let builder = Builder::new().name(name).stack_size(STACK);
        let other = builder.spawn(move || {
            let _guard = Guard::new(shared);
            if let Err(message) = work(&options, sources, part) {
                eprintln!("{message}");
            }
        });
        crew.others
            .push(other.map_err(|e| format!("threads: {e}"))?);
    }
    let started = crew.member.start(assembled).map_err(refused)?;
    crew.check()?;
    Ok((started, Some(crew)))
}

type Assembly = Result<Assembled, Vec<ConfigError>>;

fn assemble(
    options: &Options,
    sources: Sources,
    machine: &Rc<Machine>,
) -> Result<Assembly, String> {
    let (registry, variables) = (registry(options), options.variables());
    let environment = environment(options, machine.clone(), machine)?;
    let now_ns = machine.clock.now_ns();
    Ok(Assembled::new(
        sources,
        &registry,
        environment,
        &variables,
        now_ns,
    ))
}

/// The life of a thread besides thread 0.
fn work(options: &Options, sources: Sources, part: Part) -> Result<(), String> {
    let thread = u8::try_from(part.thread()).map_err(|e| e.to_string())?;
    bind_to_processor(options, thread);
    let machine = Rc::new(Machine::of_thread(thread, Clock::new(None)));
    let assembled = assemble(options, sources, &machine)?;
    let mut assembled = assembled.map_err(|errors| report(&errors))?;
    let member = part.install(&mut assembled);
    let _ = machine.member.set(Rc::clone(&member));
    let started = member.start(assembled);
    // thread 0 prints the errors, and ends all threads
    let Ok(mut router) = started else {
        member.refuse_calls();
        return Ok(());
    };
    loop {
        let progress = match member.shared().phase() {
            Phase::End => return Ok(()),
            Phase::Run => router.run(machine.clock.now_ns()),
            Phase::Answer => Progress::Idle { until_ns: None },
        };
        let tended = member.tend(&mut router, machine.clock.now_ns());
        match progress {
            Progress::Idle { until_ns } if !tended => member.rest(|event| {
                let devices = machine.devices();
                let devices: Vec<_> = devices.iter().map(|d| d.borrow()).collect();
                let mut files: Vec<_> = devices.iter().map(|d| d.file()).collect();
                files.push(event);
                let until_ns = member.sleep_until(until_ns, machine.clock.now_ns());
                machine.clock.wait(until_ns, &files);
            }),
            _ => member.worked(),
        }
    }
}

impl Crew {
    /// Lets all threads run.
    pub fn run(&self) {
        self.member.shared().set_phase(Phase::Run);
    }

    /// Lets the others only answer calls from now on.
    ///
    /// # Errors
    /// One of them failed.
    pub fn rest(&self) -> Result<(), String> {
        self.member.shared().set_phase(Phase::Answer);
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        match self.member.shared().is_lost() {
            true => Err("click: a thread ended unexpectedly".to_string()),
            false => Ok(()),
        }
    }

    /// Does what other threads want; returns whether there was anything.
    ///
    /// # Errors
    /// One of them failed.
    pub fn tend(
        &self,
        router: &mut Router,
        machine: &Machine,
        progress: Progress,
    ) -> Result<bool, String> {
        let tended = self.member.tend(router, machine.clock.now_ns());
        for line in self.member.take_lines() {
            machine.tell(&line);
        }
        if tended || progress == Progress::Worked {
            self.member.worked();
        }
        self.check().map(|()| tended)
    }

    /// Waits for files or another thread, until `until_ns` at most.
    pub fn wait(&self, clock: &Clock, until_ns: Option<u64>, files: &[BorrowedFd<'_>]) {
        self.member.rest(|event| {
            let mut all = files.to_vec();
            all.push(event);
            let until_ns = self.member.sleep_until(until_ns, clock.now_ns());
            clock.wait(until_ns, &all);
        });
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.member.shared().set_phase(Phase::End);
        for other in self.others.drain(..) {
            // a thread that failed has said so
            let _ = other.join();
        }
    }
}
