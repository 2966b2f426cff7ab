// SPDX-License-Identifier: Apache-2.0
//! Stands for the guest's control channel in a configuration; the guest puts one into each.
//!
//! # Synopsis
//! `ClickOSControl`
//! # Ports
//! 0/0.
//! # Handlers
//! * `reads`, `writes` (read): handler calls that reached this router, this one included.
//! # Example
//! `ClickOSControl;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ClickOSControl",
    ports: "0/0",
    handlers: &[
        read("reads", |_: &mut ClickOSControl, view| text(view.reads())),
        read("writes", |_, view| text(view.writes())),
    ],
    build: |_| Some(Box::new(ClickOSControl)),
    ..Class::DEFAULT
};

struct ClickOSControl;

impl Element for ClickOSControl {}
