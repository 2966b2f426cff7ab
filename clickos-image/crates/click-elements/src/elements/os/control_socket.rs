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
//! # Example
//! `ControlSocket(TCP, 41900+); ControlSocket(UNIX, /run/click.sock, READONLY true);`
use click_core::{ControlAddress, ControlSocket as Socket};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ControlSocket",
    ports: "0/0",
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
    handlers: &[read("port"), read("filename")],
    build: |a| {
        let (kind, at) = (a.need::<String>("TYPE"), a.need::<String>("PORT"));
        let (read_only, verbose) = (a.or("READONLY", false), a.or("VERBOSE", false));
        let (proxy, local) = (a.or("PROXY", String::new()), a.or("LOCALHOST", true));
        let (retries, warns) = (a.or("RETRIES", 0u32), a.or("RETRY_WARNINGS", true));
        let address = address(a, &kind?, at?, local?)?;
        let socket = Socket {
            element: String::new(),
            address,
            read_only: read_only?,
            proxy: proxy?,
            verbose: verbose?,
        };
        Some(Box::new(ControlSocket {
            socket,
            retries: retries?,
            warns: warns?,
            listens_at: String::new(),
        }))
    },
    ..Class::DEFAULT
};

fn address(a: &mut Args<'_>, kind: &str, at: String, local: bool) -> Option<ControlAddress> {
    match kind.to_ascii_uppercase().as_str() {
        "TCP" => {
            let digits = at.strip_suffix('+').unwrap_or(&at);
            if digits.parse::<u16>().is_err() {
                let got = at.escape_debug();
                a.error("PORT", format!("expected a port or PORT+, got \"{got}\""));
                return None;
            }
            Some(ControlAddress::Tcp { port: at, local })
        }
        "UNIX" => Some(ControlAddress::Unix(at)),
        "SOCKET" => a.parse("PORT", &at).map(ControlAddress::Descriptor),
        _ => {
            let got = kind.escape_debug();
            a.error(
                "TYPE",
                format!("expected TCP, UNIX or SOCKET, got \"{got}\""),
            );
            None
        }
    }
}

struct ControlSocket {
    socket: Socket,
    /// How often opening it may still be tried.
    retries: u32,
    warns: bool,
    listens_at: String,
}

/// Time between tries.
const RETRY_NS: u64 = 1_000_000_000;

impl ControlSocket {
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

impl Element for ControlSocket {
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

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "port" | "filename" => text(&self.listens_at),
            _ => undeclared(handler),
        }
    }
}
