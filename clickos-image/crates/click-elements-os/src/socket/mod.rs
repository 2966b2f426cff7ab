// SPDX-License-Identifier: Apache-2.0
//! Socket, FromSocket and ToSocket: packets over sockets of the machine.
mod endpoint;

use std::net::SocketAddrV4;

use click_core::class::Arg;

use crate::kernel_interface::check_headroom;
use click_elements::prelude::*;
use endpoint::{Address, Endpoint, Plan, Received};

pub const ARGS: [Arg; 16] = [
    mandatory("TYPE"),
    mandatory("ADDR"),
    optional("PORT"),
    optional("LOCAL_ADDR"),
    optional("LOCAL_PORT"),
    keyword("SNAPLEN"),
    keyword("NODELAY"),
    keyword("CLIENT"),
    keyword("SNDBUF"),
    keyword("RCVBUF"),
    keyword("TIMESTAMP"),
    keyword("ALLOW"),
    keyword("DENY"),
    keyword("VERBOSE"),
    keyword("PROPER"),
    keyword("HEADROOM"),
];

/// Handlers of such elements.
pub const HANDLERS: [Handler<Socket>; 2] = [
    read("count", |me, _| text(me.count)),
    read("drops", |me, _| text(me.drops)),
];

/// Packets received or sent at a time.
const BURST: usize = 32;
/// Between looks at an idle socket.
const POLL_NS: u64 = 1_000_000;

/// What the arguments `ARGS` ask for; `client` is what it is unless CLIENT says.
pub fn build(a: &mut Args<'_>, client: Option<bool>) -> Built {
    let (snaplen, stamped) = (a.or("SNAPLEN", 2048usize), a.or("TIMESTAMP", true));
    let (allow, deny) = (a.opt::<String>("ALLOW"), a.opt::<String>("DENY"));
    let verbose = a.or("VERBOSE", false);
    refuse(a)?;
    Some(Box::new(Socket {
        plan: plan(a, client)?,
        buffer: vec![0; snaplen?.clamp(1, 65_535)],
        stamped: stamped?,
        allow: allow?,
        deny: deny?,
        verbose: verbose?,
        endpoint: None,
        waiting: None,
        count: 0,
        drops: 0,
    }))
}

/// Says what cannot be had.
fn refuse(a: &mut Args<'_>) -> Option<()> {
    let (headroom, proper) = (check_headroom(a), a.or("PROPER", false));
    headroom?;
    if proper? {
        a.error("PROPER", "expected false, the library Proper is not used");
    }
    Some(())
}

fn plan(a: &mut Args<'_>, client: Option<bool>) -> Option<Plan> {
    let (kind, asked) = (a.need::<String>("TYPE"), a.opt("CLIENT"));
    let (no_delay, send_buffer) = (a.or("NODELAY", true), a.opt("SNDBUF"));
    let receive_buffer = a.opt("RCVBUF");
    let kind = kind?.to_ascii_uppercase();
    let (address, local) = match kind.as_str() {
        "TCP" | "UDP" => ip_addresses(a)?,
        "UNIX" | "UNIX_DGRAM" => files(a)?,
        _ => {
            let got = kind.shown();
            let message = format!("expected TCP, UDP, UNIX or UNIX_DGRAM, got \"{got}\"");
            a.error("TYPE", message);
            return None;
        }
    };
    let usual = a.outputs() == 0 || local.is_some();
    let client = asked?.or(client).unwrap_or(usual);
    Some(Plan {
        stream: matches!(kind.as_str(), "TCP" | "UNIX"),
        client,
        address,
        local: local.filter(|_| client),
        no_delay: no_delay?,
        send_buffer: send_buffer?,
        receive_buffer: receive_buffer?,
    })
}

/// The peer's file or a server's own, and a client's own.
fn files(a: &mut Args<'_>) -> Option<(Address, Option<Address>)> {
    let (at, local) = (a.need("ADDR"), a.opt("PORT"));
    Some((Address::File(at?), local?.map(Address::File)))
}

/// The peer's address or a server's own, and a client's own.
fn ip_addresses(a: &mut Args<'_>) -> Option<(Address, Option<Address>)> {
    let (ip, port) = (a.need::<Ipv4Addr>("ADDR"), a.opt::<u16>("PORT"));
    let (local_ip, local_port) = (a.opt::<Ipv4Addr>("LOCAL_ADDR"), a.or("LOCAL_PORT", 0u16));
    let (ip, port, local_port) = (ip?, port?, local_port?);
    let Some(port) = port else {
        a.error("PORT", "required argument missing");
        return None;
    };
    let local = local_ip?.map(|ip| Address::Ip(SocketAddrV4::new(ip, local_port)));
    Some((Address::Ip(SocketAddrV4::new(ip, port)), local))
}

pub struct Socket {
    plan: Plan,
    buffer: Vec<u8>,
    stamped: bool,
    /// Tables of routes that say whose packets a server takes, and whose not.
    allow: Option<String>,
    deny: Option<String>,
    verbose: bool,
    endpoint: Option<Endpoint>,
    /// A packet that was pulled before it could be sent.
    waiting: Option<Packet>,
    count: u64,
    drops: u64,
}

impl Socket {
    fn say(&self, ctx: &mut Context<'_>, what: &str) {
        if self.verbose {
            let line = format!("{}: {what}", ctx.name());
            ctx.print(&line);
        }
    }

    /// True if a server takes packets of this machine.
    fn takes(&self, ctx: &mut Context<'_>, from: Option<Ipv4Addr>) -> bool {
        let Some(from) = from.filter(|_| !self.plan.client) else {
            return true;
        };
        let mut has = |table: &Option<String>| {
            let table = table.as_ref()?;
            let route = ctx.read_handler(&format!("{table}.lookup"), &from.to_string());
            Some(route.is_ok_and(|route| !route.trim().starts_with("-1")))
        };
        has(&self.allow) == Some(true) || has(&self.deny) != Some(true)
    }

    /// Receives what is there; returns whether there may be more.
    fn receive(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(mut endpoint) = self.endpoint.take() else {
            return false;
        };
        if let Some(from) = endpoint.accept() {
            if self.takes(ctx, from) {
                self.say(ctx, "opened connection");
            } else {
                self.say(ctx, "denied connection");
                endpoint.hang_up();
            }
        }
        let more = (0..BURST).all(|_| self.receive_one(ctx, &mut endpoint));
        self.endpoint = Some(endpoint);
        more
    }

    fn receive_one(&mut self, ctx: &mut Context<'_>, endpoint: &mut Endpoint) -> bool {
        let (length, from) = match endpoint.receive(&mut self.buffer) {
            Received::Nothing => return false,
            Received::Closed(error) => {
                let why = error.map_or(String::new(), |e| format!(": {e}"));
                self.say(ctx, &format!("closed connection{why}"));
                return false;
            }
            Received::Packet(length, from) => (length, from),
        };
        if ctx.outputs() == 0 || !self.plan.stream && !self.takes(ctx, from) {
            return true;
        }
        let Some(mut packet) = ctx.pool().packet_from(&self.buffer[..length]) else {
            self.drops += 1;
            return false;
        };
        if self.stamped {
            packet.set_timestamp_ns(ctx.now_ns());
        }
        self.count += 1;
        ctx.push_one(0, packet);
        true
    }

    fn send(&mut self, packet: &Packet) -> bool {
        let to = Ipv4Addr::from(packet.anno().dst_ip());
        let endpoint = self.endpoint.as_mut();
        endpoint.is_some_and(|endpoint| endpoint.send(packet.data(), to))
    }

    /// Sends what can be pulled; returns whether there was anything.
    fn pull_and_send(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut any = false;
        while self.endpoint.as_mut().is_some_and(Endpoint::ready) {
            let waiting = self.waiting.take();
            let Some(packet) = waiting.or_else(|| ctx.pull_one(0)) else {
                break;
            };
            any = true;
            if !self.send(&packet) {
                self.waiting = Some(packet);
                break;
            }
        }
        any
    }
}

impl Element for Socket {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let opened = Endpoint::open(&self.plan);
        let endpoint = opened.map_err(|e| match &self.plan.address {
            Address::Ip(address) => format!("{address}: {e}"),
            Address::File(path) => format!("{path}: {e}"),
        })?;
        self.endpoint = Some(endpoint);
        ctx.set_timer(ctx.now_ns());
        if ctx.input_is_pull(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            if !self.send(&packet) {
                self.drops += 1;
            }
        }
        ctx.recycle(batch);
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let worked = self.pull_and_send(ctx);
        if worked || ctx.readable(0) && self.waiting.is_none() {
            ctx.schedule();
        }
        worked
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let more = self.receive(ctx);
        if ctx.input_is_pull(0) {
            ctx.schedule();
        } else if let Some(endpoint) = &mut self.endpoint {
            endpoint.ready();
        }
        let wait = if more { 0 } else { POLL_NS };
        ctx.set_timer(ctx.now_ns() + wait);
    }
}
