// SPDX-License-Identifier: Apache-2.0
//! Stands for the names for protocols, ports, ICMP types and codes, which IPFilter and its like know anyway.
//!
//! # Synopsis
//! `IPNameInfo()`: there is no need to use it; configurations of Click may.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Example
//! `IPNameInfo();`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPNameInfo",
    ports: "0/0",
    build: |_| Some(Box::new(IPNameInfo)),
    ..Class::DEFAULT
};

struct IPNameInfo;

impl Element for IPNameInfo {}
