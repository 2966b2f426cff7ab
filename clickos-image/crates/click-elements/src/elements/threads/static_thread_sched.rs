// SPDX-License-Identifier: Apache-2.0
//! Binds elements to threads.
//!
//! # Synopsis
//! `StaticThreadSched(ELEMENT THREAD, ...)`: the task of ELEMENT, or the tasks of all elements in a compound of that name,
//! run on THREAD; -1 is any. A router runs on one thread, number 0: other numbers get a warning.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Arguments are only checked, since a router runs on one thread.
//! # Example
//! `StaticThreadSched(in 0, out 0);`
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
                return Err(format!("ELEMENT: there is no element \"{name}\""));
            }
            if !(-1..=0).contains(thread) {
                let line = format!("{}: warning: there is no thread {thread}", ctx.name());
                ctx.print(&line);
            }
        }
        Ok(())
    }
}
