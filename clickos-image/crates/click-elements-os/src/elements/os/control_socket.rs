// SPDX-License-Identifier: Apache-2.0
//! Answers the ControlSocket protocol: programs read and write handlers through a socket.
//!
//! # Synopsis
//! `ControlSocket(TCP, PORT [, keywords])`, `ControlSocket(UNIX, FILE [, keywords])` or `ControlSocket(SOCKET, FD
//! [, keywords])`: TYPE is TCP, UNIX, or SOCKET for a connection the program was started with, by its descriptor's number;
//! `PORT+` takes the first free port from there. Keywords: READONLY (default false), PROXY (an element whose handlers stand for all others),
//! VERBOSE (default false), LOCALHOST (default true: only this machine can connect to a TCP port), RETRIES (default 0: how
//! often, once a second, a socket that cannot be opened is tried again before the router stops), RETRY_WARNINGS (default
//! true: tell of each of these).
//! # Ports
//! 0/0.
//! # Handlers
//! * `port`, `filename` (read): where it listens.
//! # Differences from Click
//! LOCALHOST is true by default; a hot swap needs no RETRIES. Type SOCKET takes the number of a
//! connected descriptor.
//! # Example
//! `ControlSocket(TCP, 41900+); ControlSocket(UNIX, /run/click.sock, READONLY true);`
use click_core::{ControlOptions, Protocol};

use crate::server::{CLASS, address, build};
use click_elements::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ControlSocket",
    args: &[
        mandatory("TYPE"),
        mandatory("PORT"),
        keyword("READONLY"),
        keyword("PROXY"),
        keyword("VERBOSE"),
        keyword("LOCALHOST"),
        keyword("RETRIES"),
        keyword("RETRY_WARNINGS"),
    ],
    build: |a| {
        let address = address(a, "TCP, UNIX or SOCKET");
        let (read_only, verbose) = (a.or("READONLY", false), a.or("VERBOSE", false));
        let options = ControlOptions {
            read_only: read_only?,
            proxy: a.or("PROXY", String::new())?,
            verbose: verbose?,
        };
        build(a, address?, Protocol::Control(options))
    },
    ..CLASS
};
