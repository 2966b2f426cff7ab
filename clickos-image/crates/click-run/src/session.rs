// SPDX-License-Identifier: Apache-2.0
//! One run of the program.
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use click_core::{Progress, Protocol, Registry, Router};

use crate::clock::Clock;
use crate::control::Control;
use crate::groups::groups;
use crate::host::Machine;
use crate::library::{Given, Reader};
use crate::options::Options;
use crate::output::{self, STANDARD, write_to};
use crate::report::{listed, report};
use crate::run_time::RunTime;
use crate::service::Handlers;
use crate::setting::{environment, host, registry};
use crate::threads::{self, Crew};

/// Does what the command line says.
///
/// # Errors An error message, ready to be printed.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let code = run_once(options);
    let flushed = output::flush();
    code.and_then(|code| flushed.map(|()| code))
}

fn run_once(options: &Options) -> Result<ExitCode, String> {
    let file = options.source()?;
    threads::bind_to_processor(options, 0);
    let mut reader = Reader::new(options.clickpath.as_deref(), options.own_elements());
    if options.guest {
        reader.forget_libraries();
    }
    let given = reader.read(options.expression.as_deref(), file.as_deref())?;
    let clock = Clock::new(options.simulated_from()?);
    let machine = Machine::new(clock, options.allow_reconfigure, !options.no_warnings);
    let machine = Rc::new(machine);
    if options.check || options.groups {
        return check(options, given, &machine);
    }
    let (router, crew) = build(options, given, &machine)?;
    let mut session = Session {
        machine,
        router,
        registry: registry(options),
        reader,
        control: Control::default(),
        crew,
    };
    if let Some(path) = &options.output {
        write_to(path, &session.router.flat_text())?;
    }
    let start = RunTime::now();
    if !options.quit {
        session.machine.signals.borrow_mut().catch_stopping()?;
        session.drive()?;
    }
    if options.time {
        eprintln!("{}", RunTime::now().since(start));
    }
    session.finish(options)
}

fn build(
    options: &Options,
    given: Given,
    machine: &Rc<Machine>,
) -> Result<(Router, Option<Crew>), String> {
    if options.router_threads() > 1 {
        return threads::build(options, given, machine);
    }
    let (registry, variables) = (registry(options), options.variables());
    let environment = environment(options, host(options, given.files, machine)?, machine)?;
    let now_ns = machine.clock.now_ns();
    let built = Router::build_from(given.sources, &registry, environment, &variables, now_ns);
    built
        .map(|router| (router, None))
        .map_err(|errors| report(&errors))
}

/// All errors in full. A guest's elements are started too: they reach nothing here.
fn check(options: &Options, given: Given, machine: &Rc<Machine>) -> Result<ExitCode, String> {
    let (registry, variables) = (registry(options), options.variables());
    if options.groups {
        let found = groups(&given.sources, &registry)?;
        return write_to(Path::new(STANDARD), &found).map(|()| ExitCode::SUCCESS);
    }
    let environment = environment(options, host(options, given.files, machine)?, machine)?;
    let sources = given.sources;
    let checked = if options.guest {
        Router::build_from(sources, &registry, environment, &variables, 0).map(|r| r.flat_text())
    } else {
        Router::check(sources, &registry, environment, &variables)
    };
    let flat = checked.map_err(|errors| listed(&errors))?;
    match &options.output {
        Some(path) => write_to(path, &flat).map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Slices of a busy router between looks at the control sockets.
const SLICES_PER_POLL: u32 = 64;

/// A router and what is around it.
struct Session {
    machine: Rc<Machine>,
    router: Router,
    registry: Registry,
    reader: Reader,
    control: Control,
    /// The other threads, if the router has some.
    crew: Option<Crew>,
}

impl Session {
    /// Runs until an element or a signal stops the router, or nothing can happen any more in
    /// simulated time.
    ///
    /// # Errors
    /// Another thread failed.
    fn drive(&mut self) -> Result<(), String> {
        if let Some(crew) = &self.crew {
            crew.run();
        }
        let driven = self.drive_until_stopped();
        if let Some(crew) = &self.crew {
            crew.rest()?;
        }
        driven
    }

    fn drive_until_stopped(&mut self) -> Result<(), String> {
        let mut slices = 0u32;
        loop {
            self.take_signals();
            if self.router.is_stopped() {
                return Ok(());
            }
            let progress = self.router.run(self.machine.clock.now_ns());
            slices = slices.wrapping_add(1);
            let tended = match &self.crew {
                Some(crew) => crew.tend(&mut self.router, &self.machine, progress)?,
                None => false,
            };
            let idle = progress != Progress::Worked && !tended;
            self.take_hotconfig();
            let served = (idle || slices % SLICES_PER_POLL == 0) && self.serve();
            if self.router.is_stopped() || served || tended {
                continue;
            }
            match progress {
                Progress::Idle { until_ns } if !self.wait(until_ns) => return Ok(()),
                _ => {}
            }
        }
    }

    fn handlers(&mut self) -> (Handlers<'_>, &mut Control) {
        let handlers = Handlers {
            router: &mut self.router,
            registry: &self.registry,
            reader: &self.reader,
            machine: &self.machine,
        };
        (handlers, &mut self.control)
    }

    /// Takes new connections and answers; returns whether there was anything to do.
    fn serve(&mut self) -> bool {
        let new = self.machine.listeners.borrow().accept();
        let machine = self.machine.clone();
        let (mut handlers, control) = self.handlers();
        let any = !new.is_empty();
        for (socket, stream) in new {
            match socket.protocol {
                Protocol::Control(options) => {
                    control.add(socket.element, options, stream, &mut handlers);
                }
                Protocol::Chatter(options) => {
                    let mut chatter = machine.chatter.borrow_mut();
                    chatter.add(socket.element, &options, stream);
                }
            }
        }
        machine.chatter.borrow_mut().poll();
        control.poll(&mut handlers) || any
    }

    /// Runs elements that wait for signals; others ask the router to stop.
    fn take_signals(&mut self) {
        let raised = self.machine.signals.borrow().take();
        for element in &raised.elements {
            let run = format!("{element}.run");
            let now = self.machine.clock.now_ns();
            if let Err(error) = self.router.write_handlers(&[(&run, b"")], now) {
                eprintln!("{error}");
            }
        }
        if raised.stop {
            self.router.request_stop();
        }
    }

    /// A script wrote hotconfig.
    fn take_hotconfig(&mut self) {
        let wanted = self.machine.wanted.take();
        let swapped = wanted.map(|text| self.handlers().0.swap(&text));
        if let Some(Err(errors)) = swapped {
            eprintln!("{errors}");
        }
    }

    fn wait(&self, until_ns: Option<u64>) -> bool {
        // the element that writes a file reports errors itself, and handlers have no reader left
        let _ = output::flush();
        let listeners = self.machine.listeners.borrow();
        let chatter = self.machine.chatter.borrow();
        let devices = self.machine.devices();
        let devices: Vec<_> = devices.iter().map(|d| d.borrow()).collect();
        let files: Vec<BorrowedFd<'_>> = listeners
            .files()
            .chain(self.control.files())
            .chain(chatter.files())
            .chain(devices.iter().map(|d| d.file()))
            .collect();
        match &self.crew {
            Some(crew) => {
                crew.wait(&self.machine.clock, until_ns, &files);
                true
            }
            None => self.machine.clock.wait(until_ns, &files),
        }
    }

    /// Prints handlers; the exit status.
    fn finish(&mut self, options: &Options) -> Result<ExitCode, String> {
        // prints the error of one handler, and the values of the others
        let printed = self.print_handlers(options);
        match &options.exit_handler {
            Some(name) => self.exit_code(name),
            None if printed => Ok(ExitCode::SUCCESS),
            None => Ok(ExitCode::FAILURE),
        }
    }

    fn read(&mut self, name: &str) -> Result<String, String> {
        let now = self.machine.clock.now_ns();
        let value = self.router.read_handler(name, "", now);
        let value = value.map_err(|e| e.to_string())?;
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// The handlers a name means: `*.HANDLER` is that of every element that has it.
    fn matching(&self, name: &str) -> Vec<String> {
        let Some(handler) = name.strip_prefix("*.") else {
            return vec![name.to_string()];
        };
        let all = self.router.handlers().into_iter().filter(|h| h.read);
        all.map(|h| h.name)
            .filter(|n| n.rsplit_once('.').is_some_and(|(_, own)| own == handler))
            .collect()
    }

    /// One handler alone is printed bare, several with their names; false if one cannot be read.
    fn print_handlers(&mut self, options: &Options) -> bool {
        let names = options.handlers.iter();
        let names: Vec<String> = names.flat_map(|name| self.matching(name)).collect();
        let alone = names.len() == 1 && !options.handlers[0].contains('*');
        let mut right = true;
        for name in &names {
            let printed = self.read(name).and_then(|value| {
                let newline = if value.is_empty() || value.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                let text = if alone {
                    format!("{value}{newline}")
                } else {
                    format!("{name}:\n{value}{newline}\n")
                };
                write_to(Path::new(STANDARD), &text)
            });
            if let Err(message) = printed {
                eprintln!("{message}");
                right = false;
            }
        }
        right
    }

    fn exit_code(&mut self, name: &str) -> Result<ExitCode, String> {
        let value = self.read(name)?;
        match value.trim() {
            "true" => Ok(ExitCode::SUCCESS),
            "false" => Ok(ExitCode::FAILURE),
            number => match number.parse::<u8>() {
                Ok(code) => Ok(ExitCode::from(code)),
                Err(_) => Err(format!("{name}: expected an exit status, got \"{number}\"")),
            },
        }
    }
}
