// SPDX-License-Identifier: Apache-2.0
//! Names for TCP and UDP ports.
//!
//! # Synopsis
//! `PortInfo(NAME PORT[/PROTOCOL] [OTHERNAME ...] [# comment], ...)`: the names stand for PORT where a port of the PROTOCOL, `tcp` or `udp`
//! (default: both), is expected, in the compound element that this is in and those inside it. Arguments that begin with `#` are comments.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Accepts and ignores names of other protocols' ports.
//! # Example
//! `PortInfo(game 27015/udp); in -> UDPIPEncap(10.0.0.1, game, 10.0.0.2, game) -> out;`
use click_core::text::split_words;
use click_core::value::number;

use crate::classify::names::{TCP_PORTS, UDP_PORTS};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PortInfo",
    ports: "0/0",
    args: &[rest("NAME")],
    defines_names: true,
    build: |a| {
        for line in a.rest().to_vec() {
            let words = split_words(&line);
            let comment = words.iter().position(|word| word.starts_with('#'));
            define(a, &words[..comment.unwrap_or(words.len())]);
        }
        Some(Box::new(PortInfo))
    },
    ..Class::DEFAULT
};

struct PortInfo;

impl Element for PortInfo {}

fn define(a: &mut Args<'_>, words: &[String]) {
    let [name, port, others @ ..] = words else {
        if let [lone] = words {
            a.error(
                "NAME",
                format!("expected \"NAME PORT/PROTOCOL\", got \"{lone}\""),
            );
        }
        return;
    };
    let (digits, protocol) = port.split_once('/').unwrap_or((port, ""));
    let kinds: &[&'static str] = match protocol {
        "" => &[TCP_PORTS, UDP_PORTS],
        "tcp" => &[TCP_PORTS],
        "udp" => &[UDP_PORTS],
        // a port of another protocol is named, but nothing asks for it
        _ => &[],
    };
    if number(digits).is_none_or(|port| port > u64::from(u16::MAX)) {
        return a.error(
            "NAME",
            format!("expected \"NAME PORT/PROTOCOL\", got \"{name} {port}\""),
        );
    }
    for kind in kinds {
        a.define_meaning(kind, name, digits);
        others
            .iter()
            .for_each(|other| a.define_meaning(kind, other, digits));
    }
}
