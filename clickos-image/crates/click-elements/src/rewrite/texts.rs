// SPDX-License-Identifier: Apache-2.0
//! How flows and inputs of rewriters read.
use click_core::Listing;

use super::kind::Kind;
use super::rewriter::Rewriter;
use crate::flows::{Flow, FlowId, FlowTable};
use crate::prelude::*;

/// A flow in one direction, before and after.
fn flow_text(kind: Kind, flow: &Flow, reply: bool) -> String {
    let (from, to) = (flow.ids[usize::from(reply)], flow.rewritten(reply));
    let pair = |id: FlowId| format!("({}, {})", id.source, id.destination);
    let echo = |id: FlowId| {
        let identifier = if reply { id.dport } else { id.sport };
        format!("({}, {}, {identifier})", id.source, id.destination)
    };
    match kind {
        Kind::Address if reply => format!("{} => {}", from.destination, to.destination),
        Kind::Address => format!("{} => {}", from.source, to.source),
        Kind::Pair => format!("{} => {}", pair(from), pair(to)),
        Kind::Ping => format!("{} => {}", echo(from), echo(to)),
        _ => format!("{from} => {to}"),
    }
}

/// How far sequence numbers have moved.
fn shift_text(table: &FlowTable, slot: u32, reply: bool) -> String {
    let by = table
        .shifts(slot)
        .map_or(0, |shifts| shifts[usize::from(reply)].now());
    if by == 0 {
        String::new()
    } else {
        format!(" seq {by:+}")
    }
}

impl Rewriter {
    /// All flows of a protocol, or of all, a line for each direction; not more than a handler may return.
    pub(super) fn table_text(&self, view: &View<'_>, protocol: Option<u8>) -> String {
        let table = self.flows.borrow();
        let mut text = Listing::new(&view.arg_context().environment.limits);
        for (slot, flow) in table.iter().filter(|(_, flow)| self.owns(flow.owner)) {
            if protocol.is_some_and(|wanted| wanted != flow.protocol) {
                continue;
            }
            let mut line = |reply| text.add(self.line(&table, slot, flow, reply, view.now_ns()));
            if !(line(false) && line(true)) {
                break;
            }
        }
        text.finish()
    }

    fn line(&self, table: &FlowTable, slot: u32, flow: &Flow, reply: bool, now_ns: u64) -> String {
        let ids = flow_text(self.kind, flow, reply);
        let seq = shift_text(table, slot, reply);
        let (forward, back) = if reply { ("", "*") } else { ("*", "") };
        let [there, home] = flow.outputs;
        let input = flow.owner - self.first_owner;
        let left_s = (table.end_ns(slot).saturating_sub(now_ns) + 500_000_000) / 1_000_000_000;
        format!("{ids}{seq} [{forward}{there} {back}{home}] i{input} exp{left_s}\n")
    }

    /// The specification of an input and the number of its flows.
    pub(super) fn input_text(&self, input: usize) -> String {
        let spec = &self.inputs[input].spec;
        match self.count(input) {
            0 => format!("{spec}\n"),
            count => format!("{spec} [{count}]\n"),
        }
    }

    /// The flow `SADDR SPORT DADDR DPORT` as it is rewritten; nothing if there is none.
    pub(super) fn lookup_text(&self, view: &View<'_>, param: &str) -> Text {
        let words = click_core::text::split_words(param);
        let [source, sport, destination, dport] = words.as_slice() else {
            return Err(HandlerError::rejected(expected(
                "SADDR SPORT DADDR DPORT",
                param,
            )));
        };
        let id = FlowId {
            source: view.parse(source)?,
            sport: view.parse(sport)?,
            destination: view.parse(destination)?,
            dport: view.parse(dport)?,
        };
        let table = self.flows.borrow();
        let found = table.find_id(&id, self.first_map);
        let to = found.map(|at| table.flow(at).rewritten(at.is_reply()));
        Ok(to.map_or_else(String::new, |to| {
            format!("{} {} {} {}", to.source, to.sport, to.destination, to.dport)
        }))
    }
}
