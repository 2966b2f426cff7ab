// SPDX-License-Identifier: Apache-2.0
//! A guest for tests of the switch: it writes garbage to the memory of its rings, and kicks.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use alloc::rc::Rc;
use clickos_guest::hostile::Scribbler;
use clickos_os::clock::deadline_ns;
use clickos_os::console::Console;
use clickos_os::platform::Xen;
use clickos_os::{command_line, random, wait};
use xen_net::{Options, Vifs};
use xenstore::{Mux, Store as _};

clickos_os::entry!(main);

/// Writes to each region between two kicks.
const WRITES: u32 = 256;
/// Time between two kicks. A kick keeps the emulated processor of the lab busy for up to 11 ms.
const NAP_NS: u64 = 50_000_000;

fn main() -> ! {
    let console = Rc::new(Console::new());
    let store = clickos_os::store();
    let mut pump = Mux::handle(&store, "pump");
    let seed = u64::from_le_bytes(*random::seed().first_chunk().expect("a seed is longer"));
    let xen = Rc::new(Scribbler::new(Xen::new(Rc::clone(&console)), seed));
    let options = Options::parse(&command_line()).unwrap_or_default();
    let mut vifs = Vifs::new(Rc::clone(&xen), Rc::clone(&store), options);
    loop {
        pump.pump();
        vifs.poll(0);
        xen.scribble(WRITES);
        console.pump();
        if !store.borrow().has_news() {
            wait(&[], Some(deadline_ns(NAP_NS)));
        }
    }
}
