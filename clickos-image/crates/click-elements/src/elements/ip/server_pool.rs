// SPDX-License-Identifier: Apache-2.0
//! Spreads the flows of a rewriter over servers by their source address (consistent hashing), and checks that the servers answer.
//!
//! # Synopsis
//! `ServerPool(SRC, SERVER, ... [, PORT, INTERVAL, FAILURES, SRC6, PATH, STATUS])`: each SERVER is an address of IPv4 or IPv6, at most 256 in
//! all. A flow goes to the server of its version whose hash with the flow's source is highest, so a change of one server moves only its own
//! share. The element probes each server from SRC, or from SRC6, every INTERVAL (default 1s): by a TCP connection to PORT, or by a ping
//! without PORT. With a PATH it asks over the connection by HTTP, and the status has to be in the range STATUS (default 200-299). INTERVAL is at
//! least 10ms. A server is up once it answers, and down after FAILURES (default 3) probes in a row without an answer that is as expected.
//! Without output 0 all servers are up. An image of the profile `core` has neither SRC6, PATH, STATUS nor the handlers that belong to them.
//! # Ports
//! 0-1/0-1, push. Output 0 sends probes. Input 0 takes packets to SRC and SRC6, with their IP header marked; none leaves. The
//! element resets what a server accepts, with a PATH once the status came. A rewriter has the element's name as its
//! INPUTSPEC; flows leave by the rewriter's output 0, answers by its output 1.
//! # Handlers
//! * `servers` (read, write): all SERVERs, with commas; those that stay keep their state.
//! * `path`, `expected` (read, write): PATH and STATUS. `statistics` (read): a line each: address, state, flows that it got, those that are open, probes, failed
//!   probes, microseconds until the last answer, and what became of the last probe.
//! * `draining` (read, write): servers that keep their flows and get no new ones.
//! * `status` (read): each server, whether it is up, down or draining, and how many flows it got.
//! * `changes` (read): with a number of bytes, the servers that have answered since the last reading; with `all`, those that are up
//!   count. `VRRP` reads it. `merge` (write): such a text of the other guest of a pair: its servers are up, as if they had answered.
//! # Example
//! `lb :: ServerPool(10.0.2.1, 10.0.2.8, 10.0.2.9, PORT 80) -> right_arp; rw :: IPRewriter(lb, drop); answers -> lb;`
use click_core::class::Arg;

use crate::prelude::*;
use crate::rewrite::server_pool::{self, MORE, ServerPool};

pub static ELEMENT: Class = Class {
    name: "ServerPool",
    ports: "0-1/0-1",
    processing: "h/h",
    flow: "x/y",
    args: match cfg!(services) {
        true => &[
            SRC, SERVER, PORT, INTERVAL, FAILURES, MORE[0], MORE[1], MORE[2],
        ],
        false => &[SRC, SERVER, PORT, INTERVAL, FAILURES],
    },
    handlers: match (cfg!(services), cfg!(pairs)) {
        (true, true) => &[
            SERVERS, DRAINING, STATUS, CHANGES, MERGE, STATISTICS, PATH, EXPECTED,
        ],
        (true, false) => &[SERVERS, DRAINING, STATUS, STATISTICS, PATH, EXPECTED],
        (false, true) => &[SERVERS, DRAINING, STATUS, CHANGES, MERGE],
        (false, false) => &[SERVERS, DRAINING, STATUS],
    },
    build: server_pool::build,
    ..Class::DEFAULT
};

const SRC: Arg = mandatory("SRC");
const SERVER: Arg = rest("SERVER");
const PORT: Arg = keyword("PORT");
const INTERVAL: Arg = keyword("INTERVAL");
const FAILURES: Arg = keyword("FAILURES");
const SERVERS: Handler<ServerPool> = read_write(
    "servers",
    |me, _| Ok(me.servers_text()),
    ServerPool::write_servers,
);
const STATISTICS: Handler<ServerPool> = read("statistics", |me, _| Ok(me.statistics_text()));
const PATH: Handler<ServerPool> = read_write(
    "path",
    |me, _| text(me.path()),
    set!(|me: &mut ServerPool, path, _| me.set_path(path)),
);
const EXPECTED: Handler<ServerPool> = read_write(
    "expected",
    |me, _| text(me.expected()),
    set!(|me: &mut ServerPool, expected, _| me.set_expected(expected)),
);
const DRAINING: Handler<ServerPool> = read_write(
    "draining",
    |me, _| Ok(me.draining_text()),
    set!(|me: &mut ServerPool, draining, _| me.set_draining(draining)),
);
const STATUS: Handler<ServerPool> = read("status", |me, _| Ok(me.status_text()));
const CHANGES: Handler<ServerPool> = read("changes", |me, view| me.changes_text(view));
const MERGE: Handler<ServerPool> = command("merge", ServerPool::merge);
