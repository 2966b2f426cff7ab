// SPDX-License-Identifier: Apache-2.0
//! Switches that learn from frames behind which port hosts are.
use click_core::{Limits, listing, sort};
use click_wire::ether;

use crate::carried;
use crate::outputs::Outputs;
use crate::prelude::*;

/// A switch, but for its name and ports.
pub const CLASS: Class = Class {
    processing: "h/h",
    flow: "#/[^#]",
    args: &[keyword("TIMEOUT"), keyword("CAPACITY")],
    handlers: &[
        read("table", |me: &mut LearningSwitch, view| {
            Ok(me.table.text(&view.arg_context().environment.limits))
        }),
        read_command(
            "state",
            |me, view| Ok(me.state_text(view)),
            LearningSwitch::write_state,
        ),
        read_write(
            "timeout",
            |me, _| text(me.timeout_ns / 1_000_000_000),
            set!(|me, timeout: Span, _| {
                me.timeout_ns = timeout.ns;
            }),
        ),
    ],
    ..Class::DEFAULT
};

/// A switch whose frames the output `listener` overhears, if there is one.
pub fn build(a: &mut Args<'_>, listener: Option<usize>) -> Built {
    let timeout = a.or("TIMEOUT", Span { ns: DEFAULT_NS });
    let most = a.environment().limits.table_entries;
    let capacity = a.or("CAPACITY", DEFAULT_CAPACITY.min(most))?;
    if !(1..=most).contains(&capacity) {
        a.error(
            "CAPACITY",
            format!("{capacity} is out of range, it is 1 to {most}"),
        );
        return None;
    }
    Some(Box::new(LearningSwitch {
        timeout_ns: timeout?.ns,
        listener,
        table: Table::new(capacity),
        outputs: Outputs::new(a.outputs()),
        ways: Vec::new(),
    }))
}

const DEFAULT_NS: u64 = 300_000_000_000;
const DEFAULT_CAPACITY: usize = 8192;
/// Places an address may be at.
const WAYS: usize = 4;

/// Where a host was seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    mac: [u8; 6],
    port: u16,
    /// 0: the switch saw no station.
    at_ns: u64,
}

/// A table that does not grow: an address hashes to a set of four places.
struct Table {
    /// A power of two of them.
    sets: Vec<[Seen; WAYS]>,
    /// A random key, so that senders cannot choose addresses that share a set.
    seed: u64,
}

impl Table {
    fn new(capacity: usize) -> Self {
        let sets = capacity.div_ceil(WAYS).next_power_of_two();
        Self {
            sets: vec![[Seen::default(); WAYS]; sets],
            seed: 0,
        }
    }

    fn set_of(&mut self, mac: [u8; 6]) -> &mut [Seen; WAYS] {
        let [a, b, c, d, e, f] = mac;
        let key = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) ^ self.seed;
        let mixed = (key ^ (key >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let last = self.sets.len() - 1;
        &mut self.sets[(mixed >> 32) as usize & last]
    }

    /// Notes where a host is.
    fn learn(&mut self, mac: [u8; 6], port: u16, now_ns: u64) {
        let set = self.set_of(mac);
        let at_ns = now_ns.max(1);
        let seen = Seen { mac, port, at_ns };
        match set.iter_mut().find(|s| s.mac == mac && s.at_ns != 0) {
            Some(known) => *known = seen,
            None => *oldest(set) = seen,
        }
    }

    /// Where a host was seen, if that is not longer ago than `timeout_ns`.
    fn find(&mut self, mac: [u8; 6], now_ns: u64, timeout_ns: u64) -> Option<u16> {
        let set = self.set_of(mac);
        let seen = set.iter().find(|s| s.mac == mac && s.at_ns != 0)?;
        (now_ns < seen.at_ns.saturating_add(timeout_ns)).then_some(seen.port)
    }

    fn known(&self) -> Vec<&Seen> {
        let all = self.sets.iter().flatten();
        all.filter(|seen| seen.at_ns != 0).collect()
    }

    fn forget(&mut self) {
        self.sets.fill([Seen::default(); WAYS]);
    }

    fn text(&self, limits: &Limits) -> String {
        let mut known = self.known();
        sort::by_key(&mut known, |s| s.mac);
        let line = |s: &Seen| format!("{} {}\n", EtherAddr(s.mac), s.port);
        listing(limits, known.into_iter().map(line))
    }
}

fn oldest(set: &mut [Seen; WAYS]) -> &mut Seen {
    set.iter_mut()
        .min_by_key(|seen| seen.at_ns)
        .expect("a set has places")
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Nowhere,
    Port(usize),
    Everywhere,
}

struct LearningSwitch {
    timeout_ns: u64,
    /// The output that gets frames for other ports, too.
    listener: Option<usize>,
    table: Table,
    outputs: Outputs,
    /// Where the frames of a batch go; kept for its memory.
    ways: Vec<Way>,
}

/// The first line of a switch's state.
const HEAD: &str = "switch 1";

impl LearningSwitch {
    fn state_text(&self, view: &View<'_>) -> String {
        let now_ns = view.now_ns();
        let mut known = self.table.known();
        sort::by_key(&mut known, |seen| core::cmp::Reverse(seen.at_ns));
        let line = |seen: &&Seen| {
            let age_ms = carried::age_ms(now_ns, seen.at_ns);
            format!("{} {} {age_ms}", EtherAddr(seen.mac), seen.port)
        };
        carried::render(HEAD, view, known.iter().map(line))
    }

    fn write_state(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let ports = view.ports().1;
        let seen = carried::parse(HEAD, value, |words| {
            let [mac, port, age_ms] = words else {
                return None;
            };
            let port: u16 = carried::number(port)?;
            let (mac, age_ms) = (carried::mac(mac)?, carried::number(age_ms)?);
            (usize::from(port) < ports).then_some((mac, port, age_ms))
        })?;
        on_write(self, move |me, ctx| {
            me.table.forget();
            for (mac, port, age_ms) in seen {
                me.table
                    .learn(mac, port, carried::at_ns(ctx.now_ns(), age_ms));
            }
        })
    }

    /// Where a frame goes.
    fn output_port(&mut self, frame: &[u8], from: usize, now_ns: u64) -> Way {
        let Ok(frame) = ether::Repr::parse(frame) else {
            return Way::Nowhere;
        };
        match self.port_of(&frame, from, now_ns) {
            Some(port) if port == from => self.listener.map_or(Way::Nowhere, Way::Port),
            Some(port) => Way::Port(port),
            None => Way::Everywhere,
        }
    }

    /// The port a frame has to leave by; `None` for all.
    fn port_of(&mut self, frame: &ether::Repr, from: usize, now_ns: u64) -> Option<usize> {
        if self.timeout_ns == 0 {
            return None;
        }
        let port = u16::try_from(from).ok()?;
        self.table.learn(frame.source, port, now_ns);
        if ether::is_group(frame.destination) {
            return None;
        }
        let found = self.table.find(frame.destination, now_ns, self.timeout_ns);
        found.map(usize::from)
    }

    /// Sends each frame its way; those that leave by the first port stay in their batch.
    fn send(&mut self, ctx: &mut Context<'_>, from: usize, mut batch: Batch, ways: &[Way]) {
        let mut first = None;
        let mut cursor = batch.cursor_mut();
        for way in ways {
            let Some(mut packet) = cursor.next() else {
                break;
            };
            self.overhear(ctx, &mut packet, *way);
            match *way {
                Way::Nowhere => {}
                Way::Port(port) if self.stays(port, &mut first) => cursor.keep(packet),
                Way::Port(port) => self.outputs.put(port, packet),
                Way::Everywhere => {
                    let kept = self.flood(ctx, packet, from, first);
                    kept.into_iter().for_each(|packet| cursor.keep(packet));
                }
            }
        }
        drop(cursor);
        match first {
            Some(port) => ctx.push(port, batch),
            None => ctx.recycle(batch),
        }
        self.outputs.flush(ctx);
    }

    /// True if a frame stays in its batch, because that goes to its port; not where copies are to go between its frames.
    fn stays(&self, port: usize, first: &mut Option<usize>) -> bool {
        self.listener.is_none() && *first.get_or_insert(port) == port
    }

    /// Puts a copy of a frame to the listener, unless it gets the frame anyway.
    fn overhear(&mut self, ctx: &mut Context<'_>, packet: &mut Packet, way: Way) {
        let (Some(listener), Way::Port(port)) = (self.listener, way) else {
            return;
        };
        if port != listener {
            if let Some(copy) = ctx.pool().duplicate(packet) {
                self.outputs.put(listener, copy);
            }
        }
    }

    /// Puts copies to all ports but `from`; the one for `first`, if that is among them, is left to the caller.
    fn flood(
        &mut self,
        ctx: &mut Context<'_>,
        mut packet: Packet,
        from: usize,
        first: Option<usize>,
    ) -> Option<Packet> {
        let others = |port: &usize| *port != from && Some(*port) != first;
        let mut ports = (0..ctx.outputs()).rev().filter(others);
        let kept = first.is_some_and(|port| port != from);
        let last = if kept { None } else { ports.next_back() };
        for port in ports {
            if let Some(copy) = ctx.pool().duplicate(&mut packet) {
                self.outputs.put(port, copy);
            }
        }
        if let Some(last) = last {
            self.outputs.put(last, packet);
            return None;
        }
        kept.then_some(packet)
    }
}

impl Element for LearningSwitch {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.table.seed = ctx.random();
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, from: usize, batch: Batch) {
        batch.prefetch();
        let now_ns = ctx.now_ns();
        let mut ways = core::mem::take(&mut self.ways);
        ways.clear();
        ways.extend((batch.iter()).map(|packet| self.output_port(packet.data(), from, now_ns)));
        match ways.split_first() {
            Some((Way::Port(port), rest))
                if self.listener.is_none() && rest.iter().all(|way| *way == Way::Port(*port)) =>
            {
                ctx.push(*port, batch);
            }
            _ => self.send(ctx, from, batch, &ways),
        }
        self.ways = ways;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_forgets_who_was_silent_longest() {
        let mut table = Table::new(WAYS);
        for n in 1..=5u8 {
            table.learn([n; 6], n.into(), n.into());
        }
        assert_eq!(table.sets.len(), 1);
        assert_eq!(
            (table.find([1; 6], 5, 100), table.find([5; 6], 5, 100)),
            (None, Some(5))
        );
        table.learn([2; 6], 9, 6);
        table.learn([6; 6], 6, 7);
        assert_eq!(
            (table.find([2; 6], 7, 100), table.find([3; 6], 7, 100)),
            (Some(9), None)
        );
        assert_eq!(table.find([2; 6], 106, 100), None, "it was silent too long");
    }
}
