// SPDX-License-Identifier: Apache-2.0
//! pkt-gen: makes and counts frames on a vif, without Click.
//!
//! The command line (`extra=` of an xl configuration) says what to do; `generator` has its words.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use clickos_control::Platform;
use clickos_guest::domain::Domain;
use clickos_guest::generator::{Generator, Order};
use clickos_os::command_line;
use clickos_os::console::Console;

clickos_os::entry!(main);

/// The longest sleep: pkt-gen reports its counters every second.
const NAP_NS: u64 = 100_000_000;

fn main() -> ! {
    let console = Rc::new(Console::new());
    let order = Order::parse(&command_line()).unwrap_or_else(|error| {
        console.line(&format!("pkt-gen: {error}"));
        Order::default()
    });
    let mut domain = Domain::new(Rc::clone(&console), clickos_os::store());
    console.line(&format!("pkt-gen: {order}"));
    let mut generator = Generator::new(order);
    loop {
        domain.obey();
        domain.poll_vifs();
        let now_ns = domain.now_ns();
        let worked = generator.run(domain.vifs().list(), now_ns);
        if let Some(line) = generator.report(domain.vifs().list(), now_ns) {
            console.line(&line);
        }
        domain.publish();
        if !worked && !domain.sleep_prepare() {
            domain.wait(Some(generator.rest_ns(now_ns).min(NAP_NS)));
        }
        domain.wake_done();
    }
}
