// SPDX-License-Identifier: Apache-2.0
//! Tells programs that connect to a socket what the router prints.
//!
//! # Synopsis
//! `ChatterSocket(TCP, PORT [, keywords])` or `ChatterSocket(UNIX, FILE [, keywords])`:
//! who connects is greeted by the line `Click::ChatterSocket/1.0` and gets a copy of every line
//! that elements write to standard error. TYPE is TCP or UNIX; `PORT+` takes the first free port
//! from there. The element disconnects a peer that is more than 500,000 bytes behind. Keywords:
//! CHANNEL (default `default`; nothing is written to other channels here), QUIET_CHANNEL (default
//! true; no effect), GREETING (default true: the greeting), LOCALHOST (default true: only this
//! machine can connect to a TCP port), RETRIES (default 0: how often, once a second, a socket that
//! cannot be opened is tried again before the router stops), RETRY_WARNINGS (default true: tell of
//! each of these).
//! # Ports
//! 0/0.
//! # Handlers
//! * `port`, `filename` (read): where it listens.
//! # Differences from Click
//! LOCALHOST is true by default; a hot swap needs no RETRIES. It carries the elements' messages,
//! not the program's about configurations.
//! # Example
//! `ChatterSocket(TCP, 41901+); FromDevice(eth0) -> Print(seen) -> Discard;`
use click_core::{ChatterOptions, Protocol};

use crate::server::{CLASS, address, build};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ChatterSocket",
    args: &[
        mandatory("TYPE"),
        mandatory("PORT"),
        keyword("CHANNEL"),
        keyword("QUIET_CHANNEL"),
        keyword("GREETING"),
        keyword("LOCALHOST"),
        keyword("RETRIES"),
        keyword("RETRY_WARNINGS"),
    ],
    build: |a| {
        let address = address(a, "TCP or UNIX");
        let (channel, greeting) = (a.or("CHANNEL", DEFAULT.into()), a.or("GREETING", true));
        a.or("QUIET_CHANNEL", true)?;
        let channel: String = channel?;
        let options = ChatterOptions {
            greeting: greeting?,
            is_default: channel == DEFAULT,
        };
        build(a, address?, Protocol::Chatter(options))
    },
    ..CLASS
};

const DEFAULT: &str = "default";
