// SPDX-License-Identifier: Apache-2.0
//! Tells the tool click-devirtualize which classes to leave alone; does nothing while it runs.
//!
//! # Synopsis
//! `DevirtualizeInfo(ELEMENT, ...)`: any arguments.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Nothing depends on it here.
//! # Example
//! `DevirtualizeInfo(SameClass -)`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "DevirtualizeInfo",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    build: |_| Some(Box::new(DevirtualizeInfo)),
    ..Class::DEFAULT
};

struct DevirtualizeInfo;

impl Element for DevirtualizeInfo {}
