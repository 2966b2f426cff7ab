// SPDX-License-Identifier: Apache-2.0
//! ClickOS: the Click engine as a guest of Xen.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use alloc::vec;
use click_core::{Entropy, Environment};
use clickos_control::{Guest, GuestLoop, TOKEN, limits};
use clickos_guest::domain::Domain;
use clickos_guest::vifs::devices;
use clickos_os::console::Console;
use clickos_os::{Kind, heap, kind, random};
use core::cell::RefCell;
use xenstore::Mux;

clickos_os::entry!(main);

fn main() -> ! {
    let console = Rc::new(Console::new());
    let store = clickos_os::store();
    let control = Mux::handle(&store, TOKEN);
    let version = env!("CARGO_PKG_VERSION");
    let free = free_bytes() >> 10;
    let unsaved = match kind() {
        Kind::Pv => "; a PV guest cannot be saved or migrated",
        Kind::Pvh => "",
    };
    console.line(&format!(
        "clickos {version} on {:?}, {free} KiB free{unsaved}",
        kind()
    ));
    let guest = Guest::new(
        Rc::new(RefCell::new(control)),
        click_elements::registry(),
        environment(&console),
        Some(free_bytes),
    );
    let mut looper = GuestLoop::new(guest, Domain::new(console, store));
    let mut usable = 0;
    loop {
        if looper.platform().obey() {
            looper.guest().resume();
        }
        let settled = looper.platform().poll_vifs();
        let now_usable = looper.platform().usable_vifs();
        if now_usable != usable {
            usable = now_usable;
            let devices = devices(looper.platform().vifs().list());
            looper.guest().set_devices(devices);
        }
        looper.guest().set_controlled(settled);
        looper.step();
    }
}

fn free_bytes() -> u64 {
    let usage = heap::usage();
    (usage.size - usage.used) as u64
}

fn environment(console: &Rc<Console>) -> Environment {
    let console = Rc::clone(console);
    Environment {
        console: Rc::new(move |line: &str| console.line(line)),
        limits: limits(free_bytes()),
        entropy: Entropy::new(&random::seed()),
        implicit: vec!["ClickOSControl".into()],
        ..Environment::new()
    }
}
