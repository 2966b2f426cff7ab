// SPDX-License-Identifier: Apache-2.0
//! The way of one frame through the stages, without a change of any port, connection or token.
use clickos_offload::{Action, View};
use vale_proto::{Counters, Direction, PortName, Stage, StageKind, Trace};

use super::Switch;
use super::circles::LOOP;
use crate::chain::{Next, Steering};
use crate::clock::Nanoseconds;
use crate::frame::headers::Ethernet;
use crate::frame::key::FilterKey;
use crate::policy::filter::Why;
use crate::policy::token_bucket::PortLimits;
use crate::port::{Counter, Port};

const CAME_BACK: &str = "the source address belongs to another port";
const INSIDE: &str = "the address is that of a hop which the packet has passed";

/// A frame on its imagined way.
#[derive(Clone, Copy)]
pub struct Traced {
    source: usize,
    ethernet: Ethernet,
    seen: FilterKey,
    len: usize,
    /// The frame as rules see it.
    view: Option<View>,
    now: Nanoseconds,
}

/// An output at the port of another worker.
pub struct Remote {
    pub worker: usize,
    pub port: usize,
    /// The number of stages before those of the output.
    at: usize,
    pub traced: Traced,
}

/// The stages that one worker knows.
#[derive(Default)]
pub struct PartialTrace {
    pub trace: Trace,
    pub remote: Vec<Remote>,
}

impl PartialTrace {
    /// Puts the stages of a remote output in, the last output first.
    pub fn insert(&mut self, remote: &Remote, output: Self) {
        let at = remote.at..remote.at;
        self.trace.stages.splice(at, output.trace.stages);
        self.trace.outputs.extend(output.trace.outputs);
    }
}

impl Switch {
    /// The stages of a frame that would come from the port. None if there is no such port here.
    pub fn trace(&self, name: &PortName, bytes: &[u8], now: Nanoseconds) -> Option<PartialTrace> {
        let is_it = |p: &Option<Box<Port>>| p.as_ref().is_some_and(|p| p.face.name == *name);
        let source = self.ports.iter().position(is_it)?;
        let port = self.ports[source].as_deref()?;
        let mut trace = Way::default();
        let mut seen = FilterKey::default();
        let (ethernet, step) = match self.verdict(source, None, bytes, &mut seen) {
            Ok(verdict) => (verdict.ethernet, verdict.step),
            Err(dropped) => {
                trace.add(port, StageKind::Guard, Err(dropped), "");
                return Some(trace.into());
            }
        };
        let traced = Traced {
            source,
            ethernet,
            seen,
            len: bytes.len(),
            view: View::of(bytes, bytes.len()),
            now,
        };
        let entered = trace.add(port, StageKind::Guard, Ok(()), "")
            && trace.filter(port, &traced, Direction::Egress)
            && self.trace_limits(&mut trace, port, &traced, Direction::Egress);
        if entered {
            self.trace_step(&mut trace, port, step, &traced);
        }
        Some(trace.into())
    }

    /// The stages of a frame at the port at `index`.
    pub fn trace_at(&self, index: usize, traced: &Traced) -> PartialTrace {
        let mut trace = Way::default();
        self.trace_output(&mut trace, index, traced);
        trace.into()
    }

    fn trace_step(&self, trace: &mut Way, port: &Port, step: Option<Steering>, traced: &Traced) {
        let Some(step) = step else {
            return self.trace_source(trace, port, traced);
        };
        if step.enters && self.returned(traced.source, &traced.ethernet, traced.now) {
            trace.add(port, StageKind::Lookup, Err(LOOP), CAME_BACK);
            return;
        }
        let chain = self.chains.name(step);
        if !self.chains.would_leave(step, 1, traced.now) {
            let text = format!("{chain}: the hop sends more frames than it declares");
            trace.add(port, StageKind::Chain, Err(LOOP), &text);
            return;
        }
        match step.next {
            Next::Hop {
                hop,
                port: to,
                addressed,
            } => {
                trace.add(
                    port,
                    StageKind::Chain,
                    Ok(()),
                    &format!("{chain}: hop {hop}"),
                );
                let mac = self.ports[to].as_deref().and_then(|port| port.face.mac);
                let mut traced = *traced;
                if let (true, Some(mac), Some(view)) = (addressed, mac, &mut traced.view) {
                    view.ether_destination = mac.0;
                }
                self.trace_output(trace, to, &traced);
            }
            Next::Exit if self.goes_back(step, traced.source, &traced.ethernet, traced.now) => {
                let text = "the source address belongs to a station behind the same uplink";
                let spoof: Counter = |c| &mut c.dropped_spoof;
                trace.add(port, StageKind::Lookup, Err(spoof), text);
            }
            Next::Exit => {
                trace.add(port, StageKind::Chain, Ok(()), &format!("{chain}: end"));
                self.trace_lookup(trace, port, Some(step), traced);
            }
            Next::Remote { port: to, host, .. } => {
                let text = format!("{chain}: goes on at host {host}");
                trace.add(port, StageKind::Chain, Ok(()), &text);
                self.trace_output(trace, to, traced);
            }
            Next::Blocked { hop } => {
                let text = format!("{chain}: hop {hop} has no live ports");
                let at = trace.0.trace.stages.len();
                trace.add(port, StageKind::Chain, Ok(()), &text);
                trace.0.trace.stages[at].passes = false;
            }
        }
    }

    fn trace_source(&self, trace: &mut Way, port: &Port, traced: &Traced) {
        if self.chains.isolates(traced.source) {
            let text = "the port of a transparent hop sends packets of chains only";
            let unknown: Counter = |c| &mut c.dropped_unknown;
            trace.add(port, StageKind::Chain, Err(unknown), text);
        } else if self.returned(traced.source, &traced.ethernet, traced.now) {
            trace.add(port, StageKind::Lookup, Err(LOOP), CAME_BACK);
        } else {
            self.trace_lookup(trace, port, None, traced);
        }
    }

    fn trace_lookup(&self, trace: &mut Way, port: &Port, step: Option<Steering>, traced: &Traced) {
        let segment = step.map_or(port.face.segment, |step| self.chains.segment(step));
        let is_inside = |index| step.is_some_and(|step| self.chains.is_inside(step, index));
        let (to, source) = (traced.ethernet.destination, traced.source);
        let group = to.is_multicast();
        let owner = self.lookup.find(segment, to);
        let found = owner.or_else(|| self.station(segment, to, traced.now));
        if let Some(index) = found.filter(|index| !group && *index != source) {
            if is_inside(index) {
                trace.add(port, StageKind::Lookup, Err(LOOP), INSIDE);
                return;
            }
            trace.add(port, StageKind::Lookup, Ok(()), "the address has a port");
            return self.trace_output(trace, index, traced);
        }
        let open = |index: &usize| {
            found.is_none() && !is_inside(*index) && self.floods(*index, source, segment, group)
        };
        let flooded: Vec<_> = (0..self.ports.len()).filter(open).collect();
        let of_segment = self.segment_limits.of(segment);
        let mut limits = port.limits.as_deref().into_iter().chain(of_segment);
        let within = found.is_some() || limits.all(|l| l.would_flood(group, traced.now));
        let verdict: (Result<(), Counter>, &str) = match (within, flooded.is_empty()) {
            (false, _) => (
                Err(|c| &mut c.dropped_flood),
                "beyond the budget of the port or the segment",
            ),
            (true, true) if !group => (Err(|c| &mut c.dropped_unknown), "no port has the address"),
            (true, _) => (Ok(()), "to all ports that may have the address"),
        };
        if trace.add(port, StageKind::Lookup, verdict.0, verdict.1) {
            for index in flooded {
                self.trace_output(trace, index, traced);
            }
        }
    }

    /// Adds the rates of a port and of its segment.
    fn trace_limits(
        &self,
        trace: &mut Way,
        port: &Port,
        traced: &Traced,
        direction: Direction,
    ) -> bool {
        let of_segment = self.segment_limits.of(port.face.segment);
        trace.limits(port, port.limits.as_deref(), traced, direction)
            && trace.limits(port, of_segment, traced, direction)
    }

    fn trace_output(&self, trace: &mut Way, to: usize, traced: &Traced) {
        let Some(port) = self.ports.get(to).and_then(Option::as_deref) else {
            return;
        };
        if let Some(worker) = port.remote_worker {
            return trace.0.remote.push(Remote {
                worker,
                port: to,
                at: trace.0.trace.stages.len(),
                traced: *traced,
            });
        }
        let leaves = trace.output(port, traced.len, traced.ethernet.payload)
            && trace.filter(port, traced, Direction::Ingress)
            && self.trace_limits(trace, port, traced, Direction::Ingress)
            && trace.offload_rule(port, traced);
        if leaves {
            trace.0.trace.outputs.push(port.face.name.clone());
        }
    }
}

/// The stages so far.
#[derive(Default)]
struct Way(PartialTrace);

impl From<Way> for PartialTrace {
    fn from(way: Way) -> Self {
        way.0
    }
}

impl Way {
    /// Adds a stage. True if the frame passes it.
    fn add(
        &mut self,
        port: &Port,
        stage: StageKind,
        verdict: Result<(), Counter>,
        detail: &str,
    ) -> bool {
        self.0.trace.stages.push(Stage {
            stage,
            port: port.face.name.clone(),
            passes: verdict.is_ok(),
            detail: detail.to_owned(),
            counter: verdict.err().map(name_of),
            rule: None,
        });
        verdict.is_ok()
    }

    /// Adds the filter of a port, if it has one.
    fn filter(&mut self, port: &Port, traced: &Traced, direction: Direction) -> bool {
        let Some(filter) = &port.filter else {
            return true;
        };
        let why = filter.explain(traced.seen, direction, traced.now);
        let dropped: Counter = |c| &mut c.dropped_filter;
        let (verdict, detail, rule) = match why {
            Why::Basic => (Ok(()), "passes every filter", None),
            Why::Connection => (Ok(()), "belongs to a connection", None),
            Why::Related => (Ok(()), "an error about a connection", None),
            Why::Rule(number, rule) => (Ok(()), "a rule permits it", Some((number, rule.clone()))),
            Why::NoRule => (Err(dropped), "no rule permits it", None),
            Why::NotIp => (Err(dropped), "is neither IP nor ARP", None),
        };
        let passes = self.add(port, StageKind::Filter, verdict, detail);
        if let Some(stage) = self.0.trace.stages.last_mut() {
            stage.rule = rule;
        }
        passes
    }

    /// Adds rates, if there are some.
    fn limits(
        &mut self,
        port: &Port,
        limits: Option<&PortLimits>,
        traced: &Traced,
        direction: Direction,
    ) -> bool {
        let Some(limits) = limits else {
            return true;
        };
        let meter = match direction {
            Direction::Egress => &limits.rx,
            Direction::Ingress => &limits.tx,
        };
        let dropped: Counter = |c| &mut c.dropped_rate;
        let (verdict, detail) = match meter.would_admit(traced.len, traced.now) {
            true => (Ok(()), "within the rates"),
            false => (Err(dropped), "above the rates"),
        };
        self.add(port, StageKind::Limits, verdict, detail)
    }

    /// Adds the offload rule of the packet, if there is one.
    fn offload_rule(&mut self, port: &Port, traced: &Traced) -> bool {
        let tables = port.offload_tables.as_ref().zip(traced.view);
        let Some(rule) = tables.and_then(|(tables, view)| tables.explain(&view)) else {
            return true;
        };
        let dropped: Counter = |c| &mut c.dropped_offload;
        let verdict = match rule.action {
            Action::Drop => Err(dropped),
            Action::Pass | Action::Redirect(_) => Ok(()),
        };
        self.add(port, StageKind::Offload, verdict, &rule.to_string());
        if let (Action::Redirect(_), Some(stage)) = (rule.action, self.0.trace.stages.last_mut()) {
            stage.passes = false;
        }
        rule.action == Action::Pass
    }

    /// Adds the link, the MTU and the tags of a port.
    fn output(&mut self, port: &Port, len: usize, payload: usize) -> bool {
        let down: Counter = |c| &mut c.dropped_link_down;
        let verdict = match port.face.is_live() {
            true => port
                .face
                .takes(len - payload)
                .and_then(|()| port.face.takes_tags(payload)),
            false => Err(down),
        };
        self.add(port, StageKind::Output, verdict, "")
    }
}

/// The name of a counter.
fn name_of(counter: Counter) -> String {
    let mut counters = Counters::default();
    *counter(&mut counters) = 1;
    let fields = serde_json::to_value(counters).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let mut counted = fields.filter(|(_, value)| **value == 1);
    counted
        .next()
        .map_or(String::new(), |(name, _)| name.clone())
}
