// SPDX-License-Identifier: Apache-2.0
//! Runs elements on all threads, each flow on one.
//!
//! # Synopsis
//! `FlowThreadSched(ELEMENT, ...)`: each thread gets a copy of ELEMENT, an element or a compound element of the same
//! compound as this one. A `FlowHashSwitch` in front of each of its inputs chooses the thread, and queues of 1,024 packets lead to
//! the copies of other threads and back. A guest has as many threads as its flavor has VCPUs, `click -j N` has N. With one
//! thread nothing is changed.
//!
//! Thread 0 has ELEMENT itself, thread 1 the copy `ELEMENT@1`, and so on. A handler of ELEMENT stands for all copies:
//! a read returns the sum of numbers, the value that all agree on, or the texts of all, one after another. A write goes to
//! all copies, or, on an error, to none. `ELEMENT@0` stands for thread 0 alone.
//!
//! Packets are pushed into ELEMENT and out of it: put an `Unqueue` in front of an input that is pulled from, and a
//! `Queue` behind an output that others pull from. ELEMENT contains no devices, sockets, files that are written, or elements
//! of IPsec, no `DriverManager` nor a `Script` of type DRIVER or SIGNAL, and none that names one outside; and no
//! element outside names one inside, except to call handlers. Other configurations are refused, also with one thread.
//!
//! What a copy learns, the others do not know: rates hold for each copy, and a translation of addresses belongs outside,
//! since it changes the flow of the answers.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> work :: { input -> CheckCRC32 -> SetCRC32 -> output } -> ToDevice(1); FlowThreadSched(work);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "FlowThreadSched",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    // the engine makes the copies
    build: |_| Some(Box::new(FlowThreadSched)),
    ..Class::DEFAULT
};

struct FlowThreadSched;

impl Element for FlowThreadSched {}
