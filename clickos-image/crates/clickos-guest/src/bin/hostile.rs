// SPDX-License-Identifier: Apache-2.0
//! A guest that lies in its rings: it writes anything to the words that it shares with the switch, and
//! kicks. It is for tests of the switch.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use clickos_guest::hostile::Scribbler;
use clickos_os::clock::deadline_ns;
use clickos_os::console::Console;
use clickos_os::platform::Xen;
use clickos_os::{command_line, random, wait};
use xen_net::{Options, Vifs};
use xenstore::{Mux, Store as _};

clickos_os::entry!(main);

/// Writes between two kicks, and the time between them, which leaves the processor to others.
const WRITES: u32 = 256;
const NAP_NS: u64 = 4_000_000;
/// Kicks between two reports.
const KICKS: u32 = 256;

fn main() -> ! {
    let console = Rc::new(Console::new());
    let store = clickos_os::store();
    let mut pump = Mux::handle(&store, "pump");
    let seed = u64::from_le_bytes(*random::seed().first_chunk().expect("a seed is longer"));
    let xen = Rc::new(Scribbler::new(Xen::new(Rc::clone(&console)), seed));
    let options = Options::parse(&command_line()).unwrap_or_default();
    let mut vifs = Vifs::new(Rc::clone(&xen), Rc::clone(&store), options);
    let mut kicks = 0;
    loop {
        pump.pump();
        vifs.poll(0);
        let is_connected = xen.scribble(WRITES);
        if is_connected && kicks % KICKS == 0 {
            console.line(&format!("hostile: {} writes", xen.writes()));
        }
        kicks += u32::from(is_connected);
        console.pump();
        if !store.borrow().has_news() {
            wait(&[], is_connected.then(|| deadline_ns(NAP_NS)));
        }
    }
}
