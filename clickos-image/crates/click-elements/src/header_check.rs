// SPDX-License-Identifier: Apache-2.0
//! What elements that check headers count and say, and the frame of those that check transport headers.
use crate::prelude::*;

/// Wrong packets by reason.
pub struct Drops {
    what: &'static str,
    reasons: &'static [&'static str],
    counts: Vec<u64>,
    verbose: bool,
}

impl Drops {
    /// Nothing wrong yet. `what` is the header's name; every wrong packet gets a message if `verbose`.
    pub fn new(what: &'static str, reasons: &'static [&'static str], verbose: bool) -> Self {
        Self {
            what,
            reasons,
            counts: reasons.iter().map(|_| 0).collect(),
            verbose,
        }
    }

    /// Counts a wrong packet; the first one always gets a message.
    pub fn note(&mut self, ctx: &mut Context<'_>, reason: usize) {
        if self.verbose || self.total() == 0 {
            let (name, what, why) = (ctx.name(), self.what, self.reasons[reason]);
            // as Click names the one that complains
            let who = match what {
                "IP" => format!("{name}: "),
                "TCP" | "ICMP" => format!("{name} :: Check{what}Header: "),
                _ => String::new(),
            };
            let line = format!("{who}{what} header check failed: {why}");
            ctx.print(&line);
        }
        self.counts[reason] += 1;
    }

    /// True if only the first wrong packet gets a message.
    pub fn are_quiet(&self) -> bool {
        !self.verbose
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn details(&self) -> String {
        let line = |(count, reason): (&u64, &&str)| format!("{count}\t{reason}\n");
        self.counts.iter().zip(self.reasons).map(line).collect()
    }

    /// Continues counting where `old` stopped.
    pub fn take_from(&mut self, old: &Self) {
        self.counts.clone_from(&old.counts);
    }
}

/// The handler `drops`.
pub const fn drops<T: Part<Drops>>() -> Handler<T> {
    read("drops", |me, _| text(me.part().total()))
}

/// The handler `drop_details`.
pub const fn drop_details<T: Part<Drops>>() -> Handler<T> {
    read("drop_details", |me, _| Ok(me.part().details()))
}

/// The index of the reason why a packet's transport header is wrong.
pub type Check = fn(&Packet) -> Result<(), usize>;

/// A class that checks transport headers, but for its name; `build` has to be set.
pub const CLASS: Class = Class {
    ports: "1/1-2",
    processing: "a/ah",
    args: &[keyword("VERBOSE"), keyword("DETAILS")],
    handlers: &[drops::<CheckTransport>(), drop_details()],
    ..Class::DEFAULT
};

/// Builds an element of such a class.
pub fn build(
    a: &mut Args<'_>,
    what: &'static str,
    reasons: &'static [&'static str],
    check: Check,
) -> Built {
    let (verbose, details) = (a.or("VERBOSE", false), a.or("DETAILS", false));
    details?;
    let drops = Drops::new(what, reasons, verbose?);
    Some(Box::new(CheckTransport { check, drops }))
}

struct CheckTransport {
    check: Check,
    drops: Drops,
}

impl InPlace for CheckTransport {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match (self.check)(packet) {
            Ok(()) => 0,
            Err(reason) => {
                self.drops.note(ctx, reason);
                1
            }
        }
    }
}

part!(CheckTransport, drops: Drops);

impl Element for CheckTransport {
    in_place!();

    fn is_plain(&self) -> bool {
        self.drops.are_quiet()
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops.take_from(&old.drops);
        }
    }
}
