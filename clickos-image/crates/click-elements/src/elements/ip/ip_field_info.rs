// SPDX-License-Identifier: Apache-2.0
//! Stands for the names for fields of IP packets, which IPFilter and its like know anyway.
//!
//! # Synopsis
//! `IPFieldInfo()`: there is no need to use it; configurations of Click may.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Example
//! `IPFieldInfo();`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPFieldInfo",
    ports: "0/0",
    build: |_| Some(Box::new(IPFieldInfo)),
    ..Class::DEFAULT
};

struct IPFieldInfo;

impl Element for IPFieldInfo {}
