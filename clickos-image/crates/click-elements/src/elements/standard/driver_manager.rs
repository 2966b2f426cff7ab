// SPDX-License-Identifier: Apache-2.0
//! A script that decides what a request to stop the router means.
//!
//! # Synopsis
//! `DriverManager([TYPE,] INSTRUCTION, ...)`: a Script whose TYPE is DRIVER unless said otherwise. A request to stop
//! is one step of the script: each INSTRUCTION `wait_stop` or `pause` waits for one. The router stops when the
//! script ends. There is at most one in a configuration.
//! # Ports
//! None.
//! # Handlers
//! * `run` (read, write): runs the script; a read gives what it returns. `step` (write): leaves that many
//!   blocking instructions (default 1) behind. `goto` (write): continues at a label.
//! * `set` (write), `get` (read), `vars` (read): variables. `status` (read): whether the last write worked.
//! * Functions (read, with parameters): `add` `sub` `mul` `div` `idiv` `min` `max` `mod` `rem` `neg` `abs`;
//!   `eq` `ne` `lt` `gt` `le` `ge`; `not` `and` `or` `nand` `nor` `if` `in`; `first` `length` `unquote` `sprintf`
//!   `shift`; `htons` `ntohs` `htonl` `ntohl`; `random` `now`; `readable` `writable`; `cat` `catq` `kill`
//!   (not in a guest).
//! # Differences from Click
//! A script for packets handles the packets of a batch one by one. A script cannot call itself, not
//! even through the handlers that it calls. Values are UTF-8. In a guest `print` writes to the
//! console, and files are in its memory.
//! # Example
//! `InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard; DriverManager(wait_stop, print c.count);`
use crate::prelude::*;
use crate::script::{ANY, HANDLERS, Kind, build};

pub static ELEMENT: Class = Class {
    name: "DriverManager",
    ports: "-/-",
    processing: "ah/ah",
    args: &[rest("INSTRUCTION"), keyword("TYPE")],
    handlers: &HANDLERS,
    families: &[Family::Any(&ANY)],
    build: |a| build(a, "DriverManager", Kind::Driver),
    ..Class::DEFAULT
};
