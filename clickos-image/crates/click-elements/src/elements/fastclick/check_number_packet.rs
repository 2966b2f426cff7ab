// SPDX-License-Identifier: Apache-2.0
//! Counts how often each number of NumberPacket comes.
//!
//! # Synopsis
//! `CheckNumberPacket([OFFSET, COUNT, NET_ORDER])`: reads the number at OFFSET (default 40) as NumberPacket writes it.
//! Numbers below COUNT (default 0) are counted; COUNT is at most the router's limit of flows.
//! # Ports
//! 1/1-2, push. Output 1 gets packets with other numbers, and those too short for one; the first is reported.
//! # Handlers
//! * `count` (read, write): COUNT. A write keeps what was counted of the numbers below.
//! * `max`, `min` (read): the number that came most often, and the one that came least: `[NUMBER] : TIMES`.
//! * `dump` (read): all numbers, `NUMBER: TIMES` a line.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `FromDevice(0) -> n :: CheckNumberPacket(42, 1000) -> Discard; DriverManager(wait 9s, print n.min, stop);`
use click_core::{Limits, listing};

use crate::packet_number::PacketNumber;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckNumberPacket",
    ports: "1/1-2",
    processing: "h/h",
    args: &[optional("OFFSET"), optional("COUNT"), keyword("NET_ORDER")],
    handlers: &[
        read_write(
            "count",
            |me: &mut CheckNumberPacket, _| text(me.times.len()),
            CheckNumberPacket::set_count,
        ),
        read("max", |me, _| me.most()),
        read("min", |me, _| me.least()),
        read("dump", |me, view| {
            me.dump(&view.arg_context().environment.limits)
        }),
    ],
    build: |a| {
        let (place, count) = (PacketNumber::arguments(a), a.or("COUNT", 0usize));
        let times = zeros(count?, a.environment().limits.flows);
        Some(Box::new(CheckNumberPacket {
            times: times.map_err(|e| a.error("COUNT", e)).ok()?,
            place: place?,
            complained: false,
        }))
    },
    ..Class::DEFAULT
};

/// Bytes of a count.
const BYTES: usize = 4;

/// Counts of `count` numbers. Writes to several elements are checked before the first is made, so
/// each takes its memory when it is checked.
fn zeros(count: usize, most: usize) -> Result<Vec<u32>, String> {
    if count > most {
        return Err(format!("{count} is out of range, the most is {most}"));
    }
    if !click_core::memory::has_room(count * BYTES + click_core::memory::RESERVE) {
        return Err(format!("{count}: no memory is left"));
    }
    Ok(vec![0; count])
}

/// Copies the counts that both have.
fn copy(old: &[u32], new: &mut [u32]) {
    new.iter_mut()
        .zip(old)
        .for_each(|(times, old)| *times = *old);
}

struct CheckNumberPacket {
    place: PacketNumber,
    /// How often each number came.
    times: Vec<u32>,
    complained: bool,
}

impl CheckNumberPacket {
    fn set_count(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let limits = view.arg_context().environment.limits;
        let times = zeros(view.parse(value)?, limits.flows);
        let mut times = times.map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, _| {
            copy(&me.times, &mut times);
            me.times = times;
        }))
    }

    fn counts(&mut self, packet: &Packet) -> bool {
        let number = self.place.of(packet).map(usize::try_from);
        let Some(Ok(number)) = number else {
            return false;
        };
        let times = self.times.get_mut(number);
        times.map(|n| *n = n.saturating_add(1)).is_some()
    }

    #[cold]
    fn complain(&mut self, ctx: &mut Context<'_>, packet: &Packet) {
        self.complained = true;
        let fault = match self.place.of(packet) {
            Some(number) => format!("number {number} is not below COUNT {}", self.times.len()),
            None => format!("a packet of {} bytes has no number", packet.len()),
        };
        let line = format!("{}: {fault}", ctx.name());
        ctx.print(&line);
    }

    fn most(&self) -> Text {
        let numbered = self.times.iter().enumerate();
        let most = numbered.rev().max_by_key(|(_, times)| **times);
        shown(most)
    }

    fn least(&self) -> Text {
        shown(
            self.times
                .iter()
                .enumerate()
                .min_by_key(|(_, times)| **times),
        )
    }

    fn dump(&self, limits: &Limits) -> Text {
        let numbered = self.times.iter().enumerate();
        let lines = numbered.map(|(number, times)| format!("{number}: {times}\n"));
        Ok(listing(limits, lines))
    }
}

/// A number and how often it came; the list may be empty.
fn shown(found: Option<(usize, &u32)>) -> Text {
    text(match found {
        Some((number, times)) => format!("[{number}] : {times}"),
        None => "[-1] : 0".to_string(),
    })
}

impl InPlace for CheckNumberPacket {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let counts = self.counts(packet);
        if !counts && !self.complained {
            self.complain(ctx, packet);
        }
        usize::from(!counts)
    }
}

impl Element for CheckNumberPacket {
    in_place!();

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            copy(&old.times, &mut self.times);
        }
    }
}
