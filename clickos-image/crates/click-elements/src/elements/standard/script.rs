// SPDX-License-Identifier: Apache-2.0
//! Runs a script that calls handlers, waits, and stops the router.
//!
//! # Synopsis
//! `Script([TYPE,] INSTRUCTION, ...)`, TYPE one of ACTIVE (default without ports: from the start), PASSIVE (when
//! `run` is called), PACKET (default with ports: for each packet, which leaves by the returned output), PROXY (for
//! any handler), DRIVER (as DriverManager) and SIGNAL NAME... (when one of these signals arrives; `exit` lets
//! it do again what it did before). Each INSTRUCTION is one of
//! `set VAR TEXT`, `init VAR TEXT`, `export VAR TEXT`, `print [>FILE] TEXT|HANDLER`, `printn`, `save HANDLER [FILE]`,
//! `append HANDLER [FILE]`, `read HANDLER`,
//! `write HANDLER VALUE`, `pause [COUNT]`, `wait TIME`, `label NAME`, `goto LABEL [CONDITION]`, `loop`, `end`,
//! `exit`, `stop`, `return TEXT`, `error TEXT`; with a `q` behind it the text loses its quotes. In text `$VAR` and
//! `$(HANDLER PARAMETER)` stand for their values; `$?`, `$args`, `$1`, `$#`, `$0`, `$write` and `$input` tell how the
//! last write went and how the script was called, `$$` is the number of the process. A script that jumps 1,000 times without blocking is given up.
//! Scripts expand at most 2^24 bytes together in one slice of the router, or in one call of a handler. The `click`
//! program allows 2^30. In a guest a text has at most 32 KiB, and the variables of a script 512 KiB.
//! # Ports
//! Any number, agnostic, for TYPE PACKET.
//! # Handlers
//! * `run` (read, write): runs the script; a read gives what it returns. `step` (write): leaves that many
//!   blocking instructions (default 1) behind. `goto` (write): continues at a label.
//! * `set` (write), `get` (read), `vars` (read): variables. `status` (read): whether the last write worked.
//! * Functions (read, with parameters): `add` `sub` `mul` `div` `idiv` `min` `max` `mod` `rem` `neg` `abs`;
//!   `eq` `ne` `lt` `gt` `le` `ge`; `not` `and` `or` `nand` `nor` `if` `in`; `first` `length` `unquote` `sprintf`
//!   `shift`; `htons` `ntohs` `htonl` `ntohl`; `random` `now`; `readable` `writable`; `cat` `catq`
//!   (files; in a guest those of the configuration's archive) and `kill` (SIGNAL PROCESS..., not in a guest).
//! # Differences from Click
//! A script for packets handles the packets of a batch one by one. A script cannot call itself, not
//! even through the handlers that it calls. Values are UTF-8. In a guest `print` writes to the
//! console, and files are in its memory.
//! # Example
//! `c :: Counter; Script(wait 1s, print c.count, loop); FromDevice(0) -> c -> Discard;`
use crate::prelude::*;
use crate::script::{ANY, HANDLERS, Kind, build};

pub static ELEMENT: Class = Class {
    name: "Script",
    ports: "-/-",
    processing: "ah/ah",
    args: &[rest("INSTRUCTION"), keyword("TYPE")],
    handlers: &HANDLERS,
    families: &[Family::Any(&ANY)],
    build: |a| {
        let has_ports = a.inputs() + a.outputs() > 0;
        build(
            a,
            "Script",
            if has_ports {
                Kind::Packet
            } else {
                Kind::Active
            },
        )
    },
    ..Class::DEFAULT
};
