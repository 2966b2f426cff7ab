// SPDX-License-Identifier: Apache-2.0
//! One run of the program.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use click_core::{Device, Environment, Limits, Progress, Registry, Router, Sources};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clock::Clock;
use crate::control::Control;
use crate::host::Machine;
use crate::library;
use crate::options::Options;
use crate::report::{listed, report};
use crate::service::Handlers;
use crate::vif::UnpluggedVif;

/// Does what the command line says.
///
/// # Errors
/// What went wrong, ready to be printed.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let file = options.source()?;
    let sources = library::read(options.expression.as_deref(), file.as_deref())?;
    let mut clock = Clock::new(options.simtime);
    let mut router = build(options, sources, &clock)?;
    if let Some(path) = &options.output {
        write_to(path, &router.flat_text())?;
    }
    if options.check {
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let mut control = listen(options)?;
    if !options.quit {
        let stop = stop_signal()?;
        drive(options, &mut router, &mut clock, &mut control, &stop);
    }
    if options.time {
        eprintln!("{:.6}s", start.elapsed().as_secs_f64());
    }
    print_handlers(options, &mut router, &clock)?;
    exit_code(options, &mut router, &clock)
}

fn environment(options: &Options) -> Environment {
    let vif = |devid| -> Rc<RefCell<dyn Device>> { Rc::new(RefCell::new(UnpluggedVif { devid })) };
    let vifs = if options.check { options.vifs } else { 0 };
    Environment {
        devices: (0..vifs)
            .map(|devid| (devid, vif(devid)))
            .collect::<BTreeMap<_, _>>(),
        host: if options.guest {
            None
        } else {
            Some(Rc::new(Machine))
        },
        console: Rc::new(|line| {
            // nobody is left to be told when standard error is closed
            let _ = writeln!(stderr(), "{line}");
        }),
        limits: Limits {
            console_lines_per_s: u32::MAX,
            packet_buffers: 1 << 20,
            flows: 1 << 23,
            ..Limits::default()
        },
        seed: options.random_seed,
        implicit: if options.guest {
            vec!["ClickOSControl".to_string()]
        } else {
            Vec::new()
        },
    }
}

fn registry(options: &Options) -> Registry {
    let registry = click_elements::registry();
    if options.guest {
        registry.guest()
    } else {
        registry
    }
}

fn build(options: &Options, sources: Sources, clock: &Clock) -> Result<Router, String> {
    let (registry, variables) = (registry(options), options.variables());
    let now_ns = clock.now_ns();
    let built = Router::build_from(sources, &registry, environment(options), &variables, now_ns);
    let told = if options.check { listed } else { report };
    built.map_err(|errors| told(&errors))
}

fn listen(options: &Options) -> Result<Control, String> {
    let mut control = Control::default();
    options
        .ports
        .iter()
        .try_for_each(|port| control.listen_tcp(port))?;
    options
        .unix_sockets
        .iter()
        .try_for_each(|path| control.listen_unix(path))?;
    Ok(control)
}

/// What SIGINT and SIGTERM set: the program ends as if the router had stopped.
fn stop_signal() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| format!("signal {signal}: {e}"))?;
    }
    Ok(stop)
}

/// Slices of a busy router between looks at the control sockets.
const SLICES_PER_POLL: u32 = 64;

/// Runs until an element or a signal stops the router, or nothing can happen any more in simulated time.
fn drive(
    options: &Options,
    router: &mut Router,
    clock: &mut Clock,
    control: &mut Control,
    stop: &AtomicBool,
) {
    let registry = options.allow_reconfigure.then(|| registry(options));
    let mut slices = 0u32;
    while !router.is_stopped() && !stop.load(Ordering::Relaxed) {
        let progress = router.run(clock.now_ns());
        slices = slices.wrapping_add(1);
        let idle = progress != Progress::Worked;
        let mut served = false;
        if control.is_used() && (idle || slices % SLICES_PER_POLL == 0) {
            served = control.poll(&mut Handlers {
                router,
                registry: registry.as_ref(),
                now_ns: clock.now_ns(),
            });
        }
        if router.is_stopped() || served {
            continue;
        }
        match progress {
            Progress::Idle { until_ns } if !clock.wait(until_ns, control.is_used()) => return,
            _ => {}
        }
    }
}

fn write_to(path: &Path, text: &str) -> Result<(), String> {
    if path == Path::new("-") {
        return stdout()
            .write_all(text.as_bytes())
            .map_err(|e| format!("standard output: {e}"));
    }
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn read(router: &mut Router, name: &str, clock: &Clock) -> Result<String, String> {
    let value = router
        .read_handler(name, "", clock.now_ns())
        .map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&value).into_owned())
}

/// The handlers a name means: `*.HANDLER` is that of every element that has it.
fn matching(name: &str, router: &Router) -> Vec<String> {
    let Some(handler) = name.strip_prefix("*.") else {
        return vec![name.to_string()];
    };
    let all = router.handlers().into_iter().filter(|h| h.read);
    all.map(|h| h.name)
        .filter(|n| n.rsplit_once('.').is_some_and(|(_, own)| own == handler))
        .collect()
}

/// One handler alone is printed bare, several with their names.
fn print_handlers(options: &Options, router: &mut Router, clock: &Clock) -> Result<(), String> {
    let names: Vec<String> = options
        .handlers
        .iter()
        .flat_map(|name| matching(name, router))
        .collect();
    for name in &names {
        let value = read(router, name, clock)?;
        let newline = if value.ends_with('\n') { "" } else { "\n" };
        let text = if names.len() == 1 && !options.handlers[0].contains('*') {
            format!("{value}{newline}")
        } else {
            format!("{name}:\n{value}{newline}\n")
        };
        write_to(Path::new("-"), &text)?;
    }
    Ok(())
}

fn exit_code(options: &Options, router: &mut Router, clock: &Clock) -> Result<ExitCode, String> {
    let Some(name) = &options.exit_handler else {
        return Ok(ExitCode::SUCCESS);
    };
    let value = read(router, name, clock)?;
    match value.trim() {
        "true" => Ok(ExitCode::SUCCESS),
        "false" => Ok(ExitCode::FAILURE),
        number => match number.parse::<u8>() {
            Ok(code) => Ok(ExitCode::from(code)),
            Err(_) => Err(format!("{name}: expected an exit status, got \"{number}\"")),
        },
    }
}
