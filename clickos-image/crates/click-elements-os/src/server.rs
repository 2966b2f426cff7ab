// SPDX-License-Identifier: Apache-2.0
//! Elements that have the program listen on a socket.
use click_core::{Protocol, ServerAddress, ServerSocket};

use click_elements::prelude::*;

/// A class of such an element, but for its name, its arguments and what it builds.
pub const CLASS: Class = Class {
    ports: "0/0",
    handlers: &HANDLERS,
    ..Class::DEFAULT
};

/// Handlers of such elements.
const HANDLERS: [Handler<Server>; 2] = [
    read("port", |me, _| text(&me.listens_at)),
    read("filename", |me, _| text(&me.listens_at)),
];

/// Reads RETRIES and RETRY_WARNINGS.
pub fn build(a: &mut Args<'_>, address: ServerAddress, protocol: Protocol) -> Built {
    let (retries, warns) = (a.or("RETRIES", 0), a.or("RETRY_WARNINGS", true));
    Some(Box::new(Server {
        socket: ServerSocket {
            element: String::new(),
            address,
            protocol,
        },
        retries: retries?,
        warns: warns?,
        listens_at: String::new(),
    }))
}

/// Reads TYPE, PORT and LOCALHOST; `types` are the words for TYPE.
pub fn address(a: &mut Args<'_>, types: &str) -> Option<ServerAddress> {
    let (kind, at) = (a.need::<String>("TYPE"), a.need::<String>("PORT"));
    let local = a.or("LOCALHOST", true);
    let (kind, at, local) = (kind?, at?, local?);
    match kind.to_ascii_uppercase().as_str() {
        "TCP" => tcp(a, at, local),
        "UNIX" => Some(ServerAddress::Unix(at)),
        "SOCKET" if types.contains("SOCKET") => a.parse("PORT", &at).map(ServerAddress::Descriptor),
        _ => {
            let got = kind.shown();
            a.error("TYPE", format!("expected {types}, got \"{got}\""));
            None
        }
    }
}

fn tcp(a: &mut Args<'_>, port: String, local: bool) -> Option<ServerAddress> {
    let digits = port.strip_suffix('+').unwrap_or(&port);
    if digits.parse::<u16>().is_err() {
        let got = port.shown();
        a.error("PORT", format!("expected a port or PORT+, got \"{got}\""));
        return None;
    }
    Some(ServerAddress::Tcp { port, local })
}

pub struct Server {
    socket: ServerSocket,
    /// How often opening it may still be tried.
    retries: u32,
    warns: bool,
    listens_at: String,
}

/// Time between tries.
const RETRY_NS: u64 = 1_000_000_000;

impl Server {
    /// Opens the socket, or tries again later; an error if that was the last time.
    fn open(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let host = ctx.host().ok_or("there are no sockets here")?;
        let message = match host.listen(&self.socket) {
            Ok(at) => {
                self.listens_at = at;
                return Ok(());
            }
            Err(message) => message,
        };
        self.retries = self.retries.checked_sub(1).ok_or_else(|| message.clone())?;
        if self.warns {
            let line = format!("{}: {message}, trying again", ctx.name());
            ctx.print(&line);
        }
        ctx.set_timer(ctx.now_ns() + RETRY_NS);
        Ok(())
    }
}

impl Element for Server {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.socket.element = ctx.name().to_string();
        self.open(ctx)
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if let Err(message) = self.open(ctx) {
            let line = format!("{}: {message}", ctx.name());
            ctx.print(&line);
            ctx.stop();
        }
    }
}
