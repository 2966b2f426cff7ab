// SPDX-License-Identifier: Apache-2.0
//! The surroundings of a router that the command line asks for: classes, limits, console, random numbers.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::rc::Rc;

use click_core::{Device, Entropy, Environment, Host, Limits, Registry};
use clickos_control::files::{Quota, RamFiles};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::host::Machine;
use crate::library::limits;
use crate::options::Options;
use crate::vif::UnpluggedVif;

/// Bytes that the files of a guest that is checked may take.
const GUEST_FILES_BYTES: usize = 1 << 26;

/// The files that a guest's elements reach: files in memory, also those of the archive.
fn guest_files(files: Vec<(String, Vec<u8>)>) -> Result<Rc<dyn Host>, String> {
    let host = RamFiles::new(Quota::new(GUEST_FILES_BYTES));
    for (name, data) in files {
        host.write_file(&name, false, &data)?;
    }
    Ok(Rc::new(host))
}

/// The limits of a configuration. A check for a guest uses those of guests from 64 MiB up.
fn limits_of(options: &Options) -> Limits {
    let usual = Limits::default();
    if options.guest && options.check {
        return usual;
    }
    let own = limits();
    Limits {
        config_bytes: own.config_bytes,
        elements: own.elements,
        connections: own.connections,
        ports: own.ports,
        steps: own.steps,
        packet_buffers: 1 << 21,
        flows: 3 << 22,
        table_entries: 1 << 22,
        ..usual
    }
}

/// The key of a thread's random numbers.
fn key(seed: Option<u64>, thread: u8) -> Result<[u8; 32], String> {
    let mut key = [0; 32];
    match seed {
        Some(seed) => {
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8] = thread;
        }
        None => {
            let filled = getrandom(&mut key, GetRandomFlags::empty());
            filled.map_err(|e| format!("random numbers: {e}"))?;
        }
    }
    Ok(key)
}

/// What a router gets from this program.
///
/// # Errors
/// There are no random numbers, or the guest's files do not fit.
pub fn environment(
    options: &Options,
    host: Rc<dyn Host>,
    machine: &Rc<Machine>,
) -> Result<Environment, String> {
    let vif = |devid| -> Rc<RefCell<dyn Device>> { Rc::new(RefCell::new(UnpluggedVif { devid })) };
    let vifs = if options.check { options.vifs } else { 0 };
    let limits = limits_of(options);
    Ok(Environment {
        devices: (0..vifs)
            .map(|devid| (devid, vif(devid)))
            .collect::<BTreeMap<_, _>>(),
        host: Some(host),
        console: console(machine.clone()),
        limits: Limits {
            console_lines_per_s: u32::MAX,
            threads: options.router_threads(),
            ..limits
        },
        entropy: Entropy::new(&key(options.random_seed, machine.thread)?),
        offload: Rc::default(),
        implicit: if options.guest {
            vec!["ClickOSControl".to_string()]
        } else {
            Vec::new()
        },
    })
}

/// Standard error and the listeners.
fn console(machine: Rc<Machine>) -> Rc<dyn Fn(&str)> {
    Rc::new(move |line| {
        let line = format!("{line}\n");
        // an error has no reader when standard error is closed
        // at once, so that lines of several programs do not mix
        let _ = stderr().write_all(line.as_bytes());
        machine.tell(line.as_bytes());
    })
}

/// The element classes.
pub fn registry(options: &Options) -> Registry {
    match options.guest {
        true => click_elements::registry(),
        false => click_elements_os::registry(),
    }
}

/// The surroundings of a configuration: this machine, or those of a guest.
///
/// # Errors
/// The guest's files do not fit.
pub fn host(
    options: &Options,
    files: Vec<(String, Vec<u8>)>,
    machine: &Rc<Machine>,
) -> Result<Rc<dyn Host>, String> {
    if options.guest {
        guest_files(files)
    } else {
        Ok(machine.clone())
    }
}
