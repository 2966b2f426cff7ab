// SPDX-License-Identifier: Apache-2.0
//! Times of packets, which may lie before the epoch: nanoseconds in two's complement.
use click_core::ArgContext;

use crate::prelude::*;
use crate::print_line::stamp;

/// Offset of the annotation with the time of a flow's first packet, eight bytes.
const FIRST: usize = 32;

/// A time or a difference of times in nanoseconds; a bare number is seconds, a sign may stand before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// The timestamp annotation; 0 if there is none.
    pub fn of(packet: &Packet) -> Self {
        Self(packet.timestamp_ns() as i64)
    }

    /// Sets the timestamp annotation.
    pub fn put(self, packet: &mut Packet) {
        packet.set_timestamp_ns(self.0 as u64);
    }

    /// The annotation with the time of a flow's first packet.
    pub fn first_of(packet: &Packet) -> Self {
        let bytes = packet.anno().bytes();
        let bytes = bytes[FIRST..].first_chunk().expect("eight of 48 bytes");
        Self(i64::from_le_bytes(*bytes))
    }

    /// Sets the annotation with the time of a flow's first packet.
    pub fn put_first(self, packet: &mut Packet) {
        for (offset, byte) in (FIRST..).zip(self.0.to_le_bytes()) {
            packet.anno_mut().set_u8(offset, byte);
        }
    }

    /// The time it is.
    pub fn now(ctx: &Context<'_>) -> Self {
        Self(ctx.now_ns() as i64)
    }

    /// True if no time is set.
    pub fn is_unset(self) -> bool {
        self.0 == 0
    }

    /// This much later, or earlier.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Since `other`.
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl core::fmt::Display for Time {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut line = String::new();
        stamp(&mut line, self.0 as u64);
        f.write_str(&line)
    }
}

impl FromArg for Time {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let ns = Span::from_arg(digits, at).ok().map(|span| span.ns);
        match ns.and_then(|ns| i64::try_from(ns).ok()) {
            Some(ns) => Ok(Self(if negative { -ns } else { ns })),
            None => Err(format!("expected a time, got \"{}\"", text.shown())),
        }
    }
}
