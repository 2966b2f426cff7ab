// SPDX-License-Identifier: Apache-2.0
//! Sends packets of each Ethernet sender up to a rate to output 0, the others to output 1.
//!
//! # Synopsis
//! `EtherRatedSplitter(RATE, BURST)`: each sender may send RATE packets a second, and BURST in a row after a pause; both are 1 to
//! 65535. A keyed hash assigns senders to 256 counts, so few share one, and no sender can choose whose.
//! # Ports
//! 1/1-2, push. Without output 1 the element drops its packets. The MAC header of packets must be marked; those without share a count.
//! # Handlers
//! * `excess` (read): packets above the rate.
//! # Example
//! `FromDevice(0) -> s :: EtherRatedSplitter(1, 16) -> Strip(14) -> relay; s[1] -> Discard;`
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherRatedSplitter",
    ports: "1/1-2",
    processing: "h/h",
    args: &[mandatory("RATE"), mandatory("BURST")],
    handlers: &[read("excess", |me: &mut EtherRatedSplitter, _| {
        text(me.excess)
    })],
    build: |a| {
        let (rate, burst) = (a.need::<Most>("RATE"), a.need::<Most>("BURST"));
        Some(Box::new(EtherRatedSplitter {
            rate: rate?.0,
            burst: burst?.0,
            key: 0,
            counts: Vec::new(),
            excess: 0,
        }))
    },
    ..Class::DEFAULT
};

const COUNTS: usize = 256;
/// Shares of a packet: what a sender may send grows each millisecond.
const SHARES: u64 = 1000;
const TICK_NS: u64 = 1_000_000;

/// A number of packets.
struct Most(u16);

impl FromArg for Most {
    fn from_arg(text: &str, at: click_core::ArgContext<'_>) -> Result<Self, String> {
        match u16::from_arg(text, at)? {
            0 => Err("0 packets, the least is 1".into()),
            count => Ok(Self(count)),
        }
    }
}

/// What the senders of one hash have sent.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Shares that are used up.
    used: u64,
    at_ticks: u64,
}

struct EtherRatedSplitter {
    rate: u16,
    burst: u16,
    key: u64,
    counts: Vec<Count>,
    excess: u64,
}

/// The sender of a frame as a number.
fn sender(packet: &Packet) -> u64 {
    let header = packet.mac().map(ether::Repr::parse);
    let source = header.and_then(Result::ok).map(|header| header.source);
    let bytes = source.unwrap_or_default();
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// A place among the counts.
fn place(sender: u64, key: u64) -> usize {
    let product = u128::from(sender ^ key) * u128::from(key | 1);
    let mixed = (product as u64) ^ (product >> 64) as u64;
    (mixed >> 32) as usize % COUNTS
}

impl InPlace for EtherRatedSplitter {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let now = ctx.now_ns() / TICK_NS;
        let count = &mut self.counts[place(sender(packet), self.key)];
        let passed = now.saturating_sub(count.at_ticks);
        let regained = passed.saturating_mul(self.rate.into());
        count.used = count.used.saturating_sub(regained);
        count.at_ticks = now;
        let passes = count.used + SHARES <= u64::from(self.burst) * SHARES;
        match passes {
            true => count.used += SHARES,
            false => self.excess += 1,
        }
        usize::from(!passes)
    }
}

impl Element for EtherRatedSplitter {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.key = ctx.random();
        self.counts = vec![Count::default(); COUNTS];
        Ok(())
    }

    /// What senders have used up stays.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.key, self.excess) = (old.key, old.excess);
            self.counts = core::mem::take(&mut old.counts);
        }
    }
}
