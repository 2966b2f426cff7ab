// SPDX-License-Identifier: Apache-2.0
//! Binds elements to threads.
//!
//! # Synopsis
//! `StaticThreadSched(ELEMENT THREAD, ...)`: the task of ELEMENT, or the tasks of all elements in a compound of that name,
//! run on THREAD; -1 is any, which is 0. `click -j N` has the threads 0 to N - 1, a process guest as many as VCPUs, a Xen guest one; other
//! numbers get a warning. The last binding of an element counts, and those in a compound come after those around it.
//!
//! A task takes all elements with it that it reaches without a queue (`Queue`, `SimpleQueue`, `QuickNoteQueue` and their
//! aliases, without an output 1), and those that these elements name in their arguments. A queue belongs to the thread
//! that pulls from it. Elements that nothing binds run on thread 0, as do `DriverManager`, a `Script` of type DRIVER or
//! SIGNAL, `ControlSocket` and `ChatterSocket`.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Two tasks with elements in common cannot run on two threads: that is an error, and a queue between them the remedy.
//! `home_thread` of an element cannot be written. On several threads `click` does not replace the router (`hotconfig`), `timewarp`
//! is not written, and `QuitWatcher` belongs to the elements that it names.
//! # Example
//! `FromDevice(0) -> Queue -> out :: ToDevice(1); StaticThreadSched(out 1);`
use click_core::text::split_words;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StaticThreadSched",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    build: |a| {
        let lines = a.rest().to_vec();
        let bound = lines.iter().filter_map(|line| {
            let words = split_words(line);
            let [name, thread] = words.as_slice() else {
                let message = format!("expected \"ELEMENT THREAD\", got \"{line}\"");
                a.error("ELEMENT", message);
                return None;
            };
            Some((name.clone(), a.parse("THREAD", thread)?))
        });
        let bound = bound.collect();
        Some(Box::new(StaticThreadSched { bound }))
    },
    ..Class::DEFAULT
};

struct StaticThreadSched {
    bound: Vec<(String, i64)>,
}

impl Element for StaticThreadSched {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        for (name, thread) in &self.bound {
            if !ctx.has_elements(name) {
                return Err(format!("ELEMENT: no element \"{name}\""));
            }
            let threads = i64::try_from(ctx.threads()).unwrap_or(i64::MAX);
            if !(-1..threads).contains(thread) {
                let line = format!("{}: warning: no thread {thread}", ctx.name());
                ctx.print(&line);
            }
        }
        Ok(())
    }
}
