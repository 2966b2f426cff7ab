// SPDX-License-Identifier: Apache-2.0
//! The verdict about each packet: its flow, the place of its data in a stream, and the rules.
use super::alerts::Ring;
use super::connection::{Connection, Kind};
use super::inspector::{Inspector, Outcome, Subject};
use super::rules::{RuleSet, Sizes};
use super::segment::{Mend, Origin, REASONS, Reason, Segment};
use super::stream::{Fit, Policy, Stream};
use super::table::{Flow, State, Table};
use crate::flows::At;
use crate::guard::seen::Tcp;
use crate::prelude::*;

/// Memory that data may take besides itself: vectors grow by doubling.
const SLACK: usize = 256;

/// What the inspection does, besides its rules.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub policy: Policy,
    /// Segments that repeat bytes as others are dropped.
    pub drops_other_data: bool,
    /// Connections that were there before are inspected from their next packet on.
    pub takes_midstream: bool,
    /// Bytes of a direction that are kept.
    pub stream_bytes: usize,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass(Mend),
    Drop(Reason),
}

/// Everything that a verdict depends on.
pub struct Judge {
    pub table: Table,
    pub inspector: Inspector,
    pub settings: Settings,
    pub drops: [u64; REASONS.len()],
}

/// The segment of a flow's side.
#[derive(Clone, Copy)]
struct Part<'a> {
    segment: &'a Segment<'a>,
    side: usize,
    has_memory: bool,
    now_ns: u64,
}

/// What follows for a packet that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It passes, maybe with a smaller window.
    Passes(Option<u16>),
    /// It begins another connection instead of its own.
    Begins,
}

impl Next {
    fn window(self) -> Option<u16> {
        match self {
            Self::Passes(window) => window,
            Self::Begins => None,
        }
    }
}

impl Judge {
    pub fn new(table: Table, set: RuleSet, settings: Settings, alerts: usize) -> Self {
        Self {
            table,
            inspector: Inspector::new(set, Ring::new(alerts)),
            settings,
            drops: [0; REASONS.len()],
        }
    }

    /// Judges a packet from its IP header on.
    pub fn judge(&mut self, origin: Origin, network: &[u8], now_ns: u64) -> Verdict {
        let judged = Segment::of(network).and_then(|segment| {
            let window = self.segment(origin, &segment, now_ns)?;
            Ok(Mend {
                clears_urgent: segment.is_urgent,
                window,
            })
        });
        match judged {
            Ok(mend) if self.inspector.blocks() => Verdict::Pass(mend),
            Ok(_) => Verdict::Pass(Mend::default()),
            Err(reason) => self.refuse(reason),
        }
    }

    /// Counts a packet that does not pass, where packets are dropped at all.
    pub fn refuse(&mut self, reason: Reason) -> Verdict {
        self.drops[reason as usize] += 1;
        match self.inspector.blocks() {
            true => Verdict::Drop(reason),
            false => Verdict::Pass(Mend::default()),
        }
    }

    /// Judges a segment; returns a smaller window for it.
    fn segment(
        &mut self,
        origin: Origin,
        segment: &Segment<'_>,
        now_ns: u64,
    ) -> Result<Option<u16>, Reason> {
        let data = segment.payload.len();
        let known = self.table.find(&segment.ends, origin.zone, now_ns);
        // no flow is forgotten for data without a connection
        let is_read = known.is_some() || self.settings.takes_midstream;
        let needs_memory = segment.tcp.is_some() && data > 0 && is_read;
        let asks = (known, origin.vlan);
        let has_memory = !needs_memory || self.table.has_memory(2 * data + SLACK, asks, now_ns);
        let at = self.flow(origin, segment, now_ns)?;
        let part = Part {
            segment,
            side: usize::from(at.is_reply()),
            has_memory,
            now_ns,
        };
        let next = self.change(at, &part)?;
        let Next::Begins = next else {
            return Ok(next.window());
        };
        // a connection instead of one that is over
        self.table.remove(at.slot());
        let at = self.flow(origin, segment, now_ns)?;
        let next = self.change(at, &Part { side: 0, ..part })?;
        Ok(next.window())
    }

    fn change(&mut self, at: At, part: &Part<'_>) -> Result<Next, Reason> {
        let (inspector, settings) = (&mut self.inspector, &self.settings);
        let change = |flow: &mut Flow| of_flow(flow, part, inspector, settings);
        self.table
            .with(at.slot(), part.now_ns, change)
            .unwrap_or(Err(Reason::Full))
    }

    /// The flow of a packet, which may begin one.
    fn flow(&mut self, origin: Origin, segment: &Segment<'_>, now_ns: u64) -> Result<At, Reason> {
        if let Some(at) = self.table.find(&segment.ends, origin.zone, now_ns) {
            let flow = self.table.get(at.slot()).ok_or(Reason::Full)?;
            // what acknowledges a stream comes from the side of its receiver; of datagrams nothing depends on it, and
            // stations of both sides may send the same ones to all
            let is_from_client = flow.origin.input == origin.input;
            let is_elsewhere = segment.tcp.is_some() && is_from_client == at.is_reply();
            return if is_elsewhere {
                Err(Reason::NoConnection)
            } else {
                Ok(at)
            };
        }
        let connection = match segment.tcp {
            None => None,
            Some(tcp) if tcp.begins() && tcp.len == 0 => Some(Connection::new(&tcp)),
            Some(tcp) if self.settings.takes_midstream && !tcp.is_syn() && !tcp.is_rst() => {
                Some(Connection::from_before(&tcp))
            }
            Some(_) => return Err(Reason::NoConnection),
        };
        let flow = Flow::new(segment.ends, origin, connection.map(Box::new));
        self.table.add(flow, now_ns).ok_or(Reason::Full)
    }

    /// Takes the flows and alerts of another one, whose place this one takes.
    pub fn take(&mut self, old: &mut Self, sizes: &Sizes) {
        self.drops = old.drops;
        let (old_set, text) = (&mut old.inspector.set, &self.inspector.set.text);
        if text.is_empty() || *text == old_set.text {
            // the old rules stay as they are: to read them again could fail for lack of memory
            old_set.set_window(sizes.window);
        } else {
            // bits of flows have the numbers that the names had
            match RuleSet::of(text, &old_set.names, sizes) {
                Ok(set) => old.set_rules(set),
                // there is no memory for it, so these rules begin without bits
                Err(_) => {
                    old.forget(0);
                    old.inspector.swap_rules(&mut self.inspector);
                }
            }
        }
        let capacity = (self.table.capacity, self.table.most_bytes);
        core::mem::swap(&mut self.table, &mut old.table);
        (self.table.capacity, self.table.most_bytes) = capacity;
        let mode = self.inspector.mode;
        core::mem::swap(&mut self.inspector, &mut old.inspector);
        self.inspector.mode = mode;
    }

    /// Takes other rules; streams stay.
    pub fn set_rules(&mut self, set: RuleSet) {
        self.forget(self.inspector.set.names.common(&set.names));
        self.inspector.set_rules(set);
    }

    /// Forgets what flows have from rules, but for some bits.
    fn forget(&mut self, common: u64) {
        self.table.each(|flow| {
            flow.bits &= common;
            flow.told = [0; 2];
            if let Some(connection) = &mut flow.connection {
                connection.streams.iter_mut().for_each(Stream::forget_rules);
            }
        });
    }
}

/// Judges a packet of a flow.
fn of_flow(
    flow: &mut Flow,
    part: &Part<'_>,
    inspector: &mut Inspector,
    settings: &Settings,
) -> Result<Next, Reason> {
    let mut connection = flow.connection.take();
    let result = match (&mut connection, part.segment.tcp) {
        (Some(connection), Some(tcp)) => {
            of_connection(flow, connection, tcp, part, inspector, settings)
        }
        _ => datagram(flow, part, inspector).map(|()| Next::Passes(None)),
    };
    flow.connection = connection;
    result
}

fn subject<'a>(flow: &'a mut Flow, part: &Part<'a>) -> Subject<'a> {
    Subject {
        ends: &part.segment.ends,
        side: part.side,
        flow,
        now_ns: part.now_ns,
    }
}

fn datagram(flow: &mut Flow, part: &Part<'_>, inspector: &mut Inspector) -> Result<(), Reason> {
    flow.is_answered |= part.side == 1;
    if flow.state == State::Passed {
        return Ok(());
    }
    let mut subject = subject(flow, part);
    let outcome = inspector.plain(&mut subject);
    let outcome = outcome.and_then(|()| inspector.datagram(&mut subject, part.segment.payload));
    result(outcome, flow, inspector, false)
}

/// What an outcome means for the packet and its flow.
fn result(
    outcome: Outcome,
    flow: &mut Flow,
    inspector: &Inspector,
    is_tcp: bool,
) -> Result<(), Reason> {
    let Err(stop) = outcome else {
        return Ok(());
    };
    let Some(reason) = stop.reason() else {
        flow.state = if is_tcp { State::Passed } else { flow.state };
        return Ok(());
    };
    if is_tcp && inspector.blocks() {
        flow.state = State::Blocked;
    }
    Err(reason)
}

fn of_connection(
    flow: &mut Flow,
    connection: &mut Connection,
    tcp: Tcp,
    part: &Part<'_>,
    inspector: &mut Inspector,
    settings: &Settings,
) -> Result<Next, Reason> {
    if flow.state == State::Blocked {
        return Err(Reason::Blocked);
    }
    let kind = connection.judge(part.side, &tcp);
    let is_other = matches!(kind, Ok(Kind::Begins | Kind::Begun));
    if flow.state == State::Passed && !is_other {
        return Ok(Next::Passes(None));
    }
    let kind = kind?;
    match kind {
        Kind::Begins => return Ok(Next::Begins),
        Kind::Begun => flow.begin_again(),
        Kind::Data | Kind::Control => {}
    }
    let passes = Next::Passes(connection.smaller_window(part.side, &tcp, settings.stream_bytes));
    flow.is_answered = connection.is_answered();
    let outcome = inspector.plain(&mut subject(flow, part));
    result(outcome, flow, inspector, true)?;
    if kind != Kind::Data || flow.state == State::Passed {
        return Ok(passes);
    }
    acknowledge(connection, part.side, &tcp, inspector)?;
    if tcp.len == 0 || tcp.is_rst() {
        return Ok(passes);
    }
    data(
        flow,
        &mut connection.streams[part.side],
        &tcp,
        part,
        inspector,
        settings,
    )?;
    Ok(passes)
}

/// What a side says that it has of the other's stream.
fn acknowledge(
    connection: &mut Connection,
    side: usize,
    tcp: &Tcp,
    inspector: &Inspector,
) -> Result<(), Reason> {
    let other = 1 - side;
    let skips = connection.is_loose() || !inspector.blocks();
    let stream = &mut connection.streams[other];
    let Some(place) = tcp.ack.and_then(|ack| stream.place(ack)) else {
        return Ok(());
    };
    // the end of a stream has a number, too
    if place <= stream.next + 1 {
        stream.acknowledge(place, inspector.set.lookback[other]);
        return Ok(());
    }
    if !skips {
        return Err(Reason::BeyondWindow);
    }
    stream.skip_to(place);
    Ok(())
}

/// The data of a segment.
fn data(
    flow: &mut Flow,
    stream: &mut Stream,
    tcp: &Tcp,
    part: &Part<'_>,
    inspector: &mut Inspector,
    settings: &Settings,
) -> Result<(), Reason> {
    let payload = part.segment.payload;
    let Some(at) = stream.place(tcp.seq) else {
        return Err(Reason::NoConnection);
    };
    if stream.is_old(at + payload.len() as u64) {
        return Ok(());
    }
    if part.segment.is_urgent {
        inspector.tell(&subject(flow, part), Reason::Urgent, false);
    }
    match stream.fit(at, payload, settings.stream_bytes) {
        Fit::Fits if part.has_memory => {}
        Fit::Differs if part.has_memory => {
            let drops = settings.drops_other_data && inspector.blocks();
            inspector.tell(&subject(flow, part), Reason::OtherData, drops);
            if drops {
                return Err(Reason::OtherData);
            }
        }
        _ => return Err(Reason::Full),
    }
    if !stream.reserve(at, payload.len()) {
        return Err(Reason::Full);
    }
    let before = stream.next;
    stream.take(at, payload, settings.policy);
    stream.credit.earn(payload.len());
    if stream.next == before {
        return Ok(());
    }
    let outcome = inspector.stream(&mut subject(flow, part), stream, before);
    result(outcome, flow, inspector, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::rules::Names;
    use click_core::Limits;

    #[test]
    fn rules_remain_where_a_second_copy_of_them_finds_no_memory() {
        let mut sizes = Sizes {
            window: 2048,
            limits: Limits::default(),
        };
        let settings = Settings {
            policy: Policy::First,
            drops_other_data: true,
            takes_midstream: false,
            stream_bytes: 4096,
        };
        let rules = "drop tcp any any -> any any (content:\"x\"; sid:1;)";
        let judge = |text: &str| {
            let set = RuleSet::of(text, &Names::default(), &sizes).unwrap();
            Judge::new(Table::new(8, 1 << 16), set, settings, 8)
        };
        let (mut before, mut same, mut none, mut other) = (
            judge(rules),
            judge(rules),
            judge(""),
            judge(&rules.replace('x', "z")),
        );
        sizes.limits.table_entries = 0;
        assert!(RuleSet::of(rules, &Names::default(), &sizes).is_err());
        for judge in [&mut same, &mut none] {
            judge.take(&mut before, &sizes);
            core::mem::swap(judge, &mut before);
            assert_eq!(before.inspector.set.text, rules);
        }
        other.take(&mut before, &sizes);
        assert!(other.inspector.set.text.contains('z'), "the new rules");
    }
}
