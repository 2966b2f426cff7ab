// SPDX-License-Identifier: Apache-2.0
//! Builds rewriters from their arguments.
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::ArgContext;
use click_core::text::unquote;
use click_core::value::{ByteAnno, number};

use super::clocks::{AllTimeouts, CLOCKS, Clocks, Timeouts};
use super::kind::Kind;
use super::rewriter::{Annos, Capacity, Input, Rewriter};
use super::spec::Spec;
use crate::flows::{FlowTable, Keys, MAX_FLOWS};
use crate::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;
const GUARANTEE_NS: u64 = 5 * SECOND_NS;
const REAP_NS: u64 = 15 * MINUTE_NS;

/// A class of rewriters, but for its name and what is particular to it.
pub const CLASS: Class = Class {
    ports: "1-/1-",
    processing: "h/h",
    families: &[Family::PerInput(&[Rewriter::PATTERN])],
    ..Class::DEFAULT
};

/// The arguments that all rewriters have, in front of `own` ones.
macro_rules! rewriter_args {
    ($($own:literal),*) => {
        &[
            $crate::prelude::rest("INPUTSPEC"),
            $crate::prelude::keyword("CAPACITY"),
            $crate::prelude::keyword("MAPPING_CAPACITY"),
            $crate::prelude::keyword("TIMEOUT"),
            $crate::prelude::keyword("GUARANTEE"),
            $crate::prelude::keyword("REAP_INTERVAL"),
            $crate::prelude::keyword("REAP_TIME"),
            $crate::prelude::keyword("REPLY_ANNO"),
            $($crate::prelude::keyword($own)),*
        ]
    };
}
pub(crate) use rewriter_args;

/// The handlers that all rewriters have, after `own` ones.
macro_rules! rewriter_handlers {
    ($($own:expr),*) => {
        match cfg!(pairs) {
            true => $crate::rewrite::build::rewriter_handlers!(
                @all $($own,)* $crate::rewrite::rewriter::Rewriter::CHANGES
            ),
            false => $crate::rewrite::build::rewriter_handlers!(@all $($own),*),
        }
    };
    (@all $($own:expr),*) => {
        &[
            $($own),*,
            $crate::rewrite::rewriter::Rewriter::TABLE_SIZE,
            $crate::rewrite::rewriter::Rewriter::NMAPPINGS,
            $crate::rewrite::rewriter::Rewriter::MAPPING_FAILURES,
            $crate::rewrite::rewriter::Rewriter::PATTERNS,
            $crate::rewrite::rewriter::Rewriter::SIZE,
            $crate::rewrite::rewriter::Rewriter::CAPACITY,
            $crate::rewrite::rewriter::Rewriter::CLEAR,
            $crate::rewrite::rewriter::Rewriter::STATE,
            $crate::rewrite::rewriter::Rewriter::MERGE,
            $crate::rewrite::rewriter::Rewriter::MERGE_LOST,
            $crate::rewrite::rewriter::Rewriter::BLOCK_NEW_FLOWS,
            $crate::rewrite::rewriter::Rewriter::HOLD,
        ]
    };
}
pub(crate) use rewriter_handlers;

/// Whether all flows of an inside endpoint have one public endpoint (RFC 4787, section 4.1).
struct Mapping(bool);

impl FromArg for Mapping {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match text {
            "endpoint-independent" => Ok(Self(true)),
            "address-and-port-dependent" => Ok(Self(false)),
            _ => bool::from_arg(text, at).map(Self),
        }
    }
}

fn span(a: &mut Args<'_>, name: &str, default_ns: u64) -> Option<u64> {
    Some(a.or(name, Span { ns: default_ns })?.ns)
}

/// The time-outs that are given under one of two names.
fn either(a: &mut Args<'_>, names: [&str; 2], default_ns: u64) -> Option<u64> {
    let first = span(a, names[0], default_ns)?;
    span(a, names[1], first)
}

fn tcp_timeouts(a: &mut Args<'_>) -> Option<Timeouts<3>> {
    Some(Timeouts {
        guarantee_ns: either(a, ["TCP_GUARANTEE", "GUARANTEE"], GUARANTEE_NS)?,
        rest_ns: [
            span(a, "TCP_NODATA_TIMEOUT", 5 * MINUTE_NS)?,
            either(a, ["TIMEOUT", "TCP_TIMEOUT"], 24 * HOUR_NS)?,
            span(a, "TCP_DONE_TIMEOUT", 4 * MINUTE_NS)?,
        ],
    })
}

/// The time-outs of UDP flows, whose names are `UDP_` and these, or these alone, too.
fn udp_timeouts(a: &mut Args<'_>, alone: bool) -> Option<Timeouts<2>> {
    let mut named = |long: &str, short: &str, default_ns| match alone {
        true => either(a, [long, short], default_ns),
        false => span(a, long, default_ns),
    };
    let guarantee_ns = named("UDP_GUARANTEE", "GUARANTEE", GUARANTEE_NS)?;
    let timeout_ns = named("UDP_TIMEOUT", "TIMEOUT", 5 * MINUTE_NS)?;
    let streaming_ns = named("UDP_STREAMING_TIMEOUT", "STREAMING_TIMEOUT", timeout_ns)?;
    Some(Timeouts {
        guarantee_ns,
        rest_ns: [timeout_ns, streaming_ns],
    })
}

fn plain_timeouts(a: &mut Args<'_>, default_ns: u64) -> Option<Timeouts<2>> {
    let guarantee_ns = span(a, "GUARANTEE", GUARANTEE_NS)?;
    let timeout_ns = span(a, "TIMEOUT", default_ns)?;
    Some(Timeouts {
        guarantee_ns,
        rest_ns: [timeout_ns; 2],
    })
}

const UNUSED: AllTimeouts = AllTimeouts {
    tcp: Timeouts {
        guarantee_ns: 0,
        rest_ns: [0; 3],
    },
    other: Timeouts {
        guarantee_ns: 0,
        rest_ns: [0; 2],
    },
};

fn timeouts(a: &mut Args<'_>, kind: Kind) -> Option<AllTimeouts> {
    Some(match kind {
        Kind::Ip => AllTimeouts {
            tcp: tcp_timeouts(a)?,
            other: udp_timeouts(a, false)?,
        },
        Kind::Tcp => AllTimeouts {
            tcp: tcp_timeouts(a)?,
            ..UNUSED
        },
        Kind::Udp => AllTimeouts {
            other: udp_timeouts(a, true)?,
            ..UNUSED
        },
        Kind::Address | Kind::Pair => AllTimeouts {
            other: plain_timeouts(a, 2 * HOUR_NS)?,
            ..UNUSED
        },
        Kind::Ping => AllTimeouts {
            other: plain_timeouts(a, 5 * MINUTE_NS)?,
            ..UNUSED
        },
    })
}

/// The capacity, and whose it is.
fn capacity(a: &mut Args<'_>) -> Option<(usize, Capacity)> {
    let most = a.environment().limits.flows.min(MAX_FLOWS);
    let short = a.or("CAPACITY", most.to_string())?;
    let word = unquote(&a.or("MAPPING_CAPACITY", short)?);
    match number(&word) {
        None => Some((0, Capacity::Of(word))),
        Some(flows) if flows <= most as u64 => {
            Some((usize::try_from(flows).unwrap_or(most), Capacity::Own))
        }
        Some(flows) => {
            let message = format!("{flows} is out of range, the most is {most}");
            a.error("MAPPING_CAPACITY", message);
            None
        }
    }
}

/// The message about more or less specifications than inputs.
fn miscounted(wanted: usize, specs: &[String]) -> String {
    let (got, last) = (specs.len(), wanted.saturating_sub(1));
    let what = match specs.get(wanted) {
        Some(first) => format!("\"{}\" is for none", first.shown()),
        None if got == last => format!("none is for input {last}"),
        None => format!("none is for inputs {got} to {last}"),
    };
    format!("expected {wanted}, one for each input, got {got}: {what}")
}

fn inputs(a: &mut Args<'_>) -> Option<Vec<Input>> {
    let (specs, ports, at) = (a.rest().to_vec(), a.outputs(), a.arg_context());
    if specs.len() != a.inputs() {
        let message = miscounted(a.inputs(), &specs);
        a.error("INPUTSPEC", message);
        return None;
    }
    let mut inputs = Vec::new();
    for (n, text) in specs.iter().enumerate() {
        match Spec::parse(text, ports, at) {
            Ok(spec) => inputs.push(Input::new(spec)),
            Err(message) => a.error(&format!("input spec {n}"), message),
        }
    }
    (inputs.len() == specs.len()).then_some(inputs)
}

/// Builds a rewriter.
pub fn build(a: &mut Args<'_>, kind: Kind) -> Built {
    let (inputs, timeouts, capacity) = (inputs(a), timeouts(a, kind), capacity(a));
    let has_flag = !matches!(kind, Kind::Address | Kind::Pair);
    let destination = if has_flag {
        a.or("DST_ANNO", true)
    } else {
        Some(true)
    };
    let reply = a.opt::<ByteAnno>("REPLY_ANNO");
    let endpoints = match kind {
        Kind::Ip => a.or("ENDPOINTS", Mapping(false)),
        _ => Some(Mapping(false)),
    };
    let reap_ns = either(a, ["REAP_TIME", "REAP_INTERVAL"], REAP_NS);
    let (flows, capacity) = capacity?;
    // the keys become random when the element is initialized
    let table = FlowTable::new(flows, Keys([1; 4]));
    Some(Box::new(Rewriter {
        kind,
        inputs: inputs?,
        flows: Rc::new(RefCell::new(table)),
        capacity,
        timeouts: timeouts?,
        clocks: Clocks::NONE,
        live_ns: [None; CLOCKS],
        annos: Annos {
            destination: destination?,
            reply: reply?.map(|anno| anno.0),
        },
        endpoints: endpoints?.0,
        reap_ns: reap_ns?,
        first_owner: 0,
        first_map: 0,
        outputs: u16::try_from(a.outputs()).expect("ports are counted in 16 bits"),
        keys: Vec::new(),
        ways: Vec::new(),
        blocked_until_ns: 0,
        merge_lost: 0,
    }))
}
