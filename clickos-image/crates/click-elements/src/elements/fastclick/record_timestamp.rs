// SPDX-License-Identifier: Apache-2.0
//! Notes when each packet came, for TimestampDiff.
//!
//! # Synopsis
//! `RecordTimestamp([COUNTER, N, OFFSET, DYNAMIC, NET_ORDER, SAMPLE])`: notes the router's time for the number of each
//! packet. The number is at OFFSET, as NumberPacket writes it; without OFFSET, or with -1, packets count from 0 as
//! they come. COUNTER is a NumberPacket whose NET_ORDER is taken; otherwise it is NET_ORDER (default false). There is
//! room for N packets (default 65536), with DYNAMIC (default false) for as many as the router's limit of flows. It
//! notes packets whose number is a multiple of SAMPLE (default 1: all).
//! # Ports
//! 1/1, push. Packets that are not noted pass, too; the first one without a number or room is reported.
//! # Handlers
//! * `count` (read): packets that have come.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `NumberPacket(0) -> r :: RecordTimestamp(OFFSET 0) -> q; FromDevice(0) -> TimestampDiff(r, OFFSET 0) -> Discard;`
use alloc::rc::Rc;
use core::cell::RefCell;

use crate::prelude::*;
use crate::recorded_times::{Numbered, RecordedTimes, Recorder};

pub static ELEMENT: Class = Class {
    name: "RecordTimestamp",
    processing: "h/h",
    args: &[
        keyword("COUNTER"),
        keyword("N"),
        keyword("OFFSET"),
        keyword("DYNAMIC"),
        keyword("NET_ORDER"),
        keyword("SAMPLE"),
    ],
    handlers: &[read("count", |me: &mut Recorder, _| text(me.count))],
    build,
    ..Class::DEFAULT
};

/// Packets that have room, unless the configuration says it.
const N: usize = 65_536;

fn build(a: &mut Args<'_>) -> Built {
    let (counter, offset) = (a.opt("COUNTER"), a.or("OFFSET", -1i64));
    let (n, dynamic) = (a.or("N", N), a.or("DYNAMIC", false));
    let (net_order, sample) = (a.or("NET_ORDER", false), a.or("SAMPLE", 1u32));
    let (most, n) = (a.environment().limits.flows, n?);
    if n > most {
        a.error("N", format!("{n} is out of range, the most is {most}"));
    }
    let n = if dynamic? { most } else { n };
    let times = RecordedTimes::new(n, u64::from(sample?.max(1)), net_order?);
    Some(Box::new(Recorder {
        number: usize::try_from(offset?).map_or(Numbered::Here, Numbered::At),
        counter: counter?,
        times: Rc::new(RefCell::new(times)),
        count: 0,
        complained: false,
    }))
}
