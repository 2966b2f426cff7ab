// SPDX-License-Identifier: Apache-2.0
//! Spreads the flows of a rewriter over servers by their source address (consistent hashing), and checks that the servers answer.
//!
//! # Synopsis
//! `ServerPool(SRC, SERVER, ... [, PORT, INTERVAL, FAILURES])`: each SERVER is an address, at most 256 in all. A flow goes to the server
//! whose hash with the flow's source is highest, so a change of one server moves only its own share. The element
//! probes each server from SRC every INTERVAL (default 1s): by a TCP connection to PORT, or by a ping
//! without PORT. INTERVAL is at least 10ms. A server is up once it answers, and down after FAILURES (default 3) probes in a row without
//! an answer. Without output 0 all servers are up.
//! # Ports
//! 0-1/0-1, push. Output 0 sends probes. Input 0 takes packets to SRC, with their IP header marked; none goes on. The
//! element completes no connection: it resets what a server accepts. A rewriter has the element's name as its
//! INPUTSPEC; flows leave by the rewriter's output 0, answers by its output 1.
//! # Handlers
//! * `servers` (read, write): all SERVERs, with commas; those that stay keep their state.
//! * `draining` (read, write): servers that keep their flows and get no new ones.
//! * `status` (read): each server, whether it is up, down or draining, and how many flows it got.
//! * `changes` (read): with a number of bytes, the servers that have answered since the last reading; with `all`, those that are up
//!   count. `VRRP` reads it. `merge` (write): such a text of the other guest of a pair: its servers are up, as if they had answered.
//! # Example
//! `lb :: ServerPool(10.0.2.1, 10.0.2.8, 10.0.2.9, PORT 80) -> right_arp; rw :: IPRewriter(lb, drop); answers -> lb;`
use crate::prelude::*;
use crate::rewrite::server_pool::{self, ServerPool};

pub static ELEMENT: Class = Class {
    name: "ServerPool",
    ports: "0-1/0-1",
    processing: "h/h",
    flow: "x/y",
    args: &[
        mandatory("SRC"),
        rest("SERVER"),
        keyword("PORT"),
        keyword("INTERVAL"),
        keyword("FAILURES"),
    ],
    handlers: match cfg!(pairs) {
        true => &[SERVERS, DRAINING, STATUS, CHANGES, MERGE],
        false => &[SERVERS, DRAINING, STATUS],
    },
    build: server_pool::build,
    ..Class::DEFAULT
};

const SERVERS: Handler<ServerPool> = read_write(
    "servers",
    |me, _| Ok(me.servers_text()),
    set!(|me: &mut ServerPool, servers, _| me.set_servers(servers)),
);
const DRAINING: Handler<ServerPool> = read_write(
    "draining",
    |me, _| Ok(me.draining_text()),
    set!(|me: &mut ServerPool, draining, _| me.set_draining(draining)),
);
const STATUS: Handler<ServerPool> = read("status", |me, _| Ok(me.status_text()));
const CHANGES: Handler<ServerPool> = read("changes", |me, view| me.changes_text(view));
const MERGE: Handler<ServerPool> = command("merge", ServerPool::merge);
