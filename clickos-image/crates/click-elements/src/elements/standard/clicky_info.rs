// SPDX-License-Identifier: Apache-2.0
//! Tells the graphical tool Clicky how to draw a configuration; does nothing while it runs.
//!
//! # Synopsis
//! `ClickyInfo(STYLE, ...)`: any arguments.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Nothing depends on it here.
//! # Example
//! `ClickyInfo(STYLE #foo { width: 10px });`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ClickyInfo",
    ports: "0/0",
    args: &[rest("STYLE")],
    build: |_| Some(Box::new(ClickyInfo)),
    ..Class::DEFAULT
};

struct ClickyInfo;

impl Element for ClickyInfo {}
