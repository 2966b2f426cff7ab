// SPDX-License-Identifier: Apache-2.0
//! Sends packets out of the output of the thread that runs it.
//!
//! # Synopsis
//! `CPUSwitch`: on thread N (`click -j`, `StaticThreadSched`) packets leave by output N modulo the number of outputs.
//! # Ports
//! 1/1 or more, push.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! One thread runs the element: two tasks that push to it must belong to the same one.
//! # Example
//! `FromDevice(0) -> s :: CPUSwitch; s[0] -> ToDevice(1); s[1] -> ToDevice(2);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CPUSwitch",
    ports: "1/1-",
    processing: "h/h",
    build: |_| Some(Box::new(CpuSwitch)),
    ..Class::DEFAULT
};

struct CpuSwitch;

impl Element for CpuSwitch {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let output = ctx.thread() % ctx.outputs().max(1);
        ctx.push(output, batch);
    }

    fn is_plain(&self) -> bool {
        true
    }
}
