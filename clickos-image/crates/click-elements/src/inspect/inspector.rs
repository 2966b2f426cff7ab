// SPDX-License-Identifier: Apache-2.0
//! Asks the rules about the data of a flow: first the automaton, then those rules of which it saw a content.
use alloc::rc::Rc;

use super::alerts::{Alert, OF_ENGINE, OF_RULES, Ring};
use super::prefilter::{Marks, Position};
use super::rules::{Action, Content, Meta, Part, Rule, RuleSet};
use super::segment::{REASONS, Reason};
use super::stream::{FIRST, Pending, Stream};
use super::table::Flow;
use super::threshold::Counts;
use super::verify::{Credit, Found, Hay, Scratch};
use crate::guard::ends::Ends;
use crate::prelude::*;

/// Rules that may yet hold for a stream.
const MAX_PENDING: usize = 256;
/// Steps of work that a rule counts for before its data is looked at.
const RULE_STEPS: usize = 64;
/// No part of it has failed yet.
const UNTRIED: u8 = u8::MAX;

/// Whether rules drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As each says.
    Rule,
    /// All do, but those that let pass.
    Drop,
    /// None does.
    Alert,
}

/// Why no further rule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A rule lets it pass.
    Passed,
    Dropped,
    /// The rules took too much work.
    Work,
}

impl Stop {
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Passed => None,
            Self::Dropped => Some(Reason::Rule),
            Self::Work => Some(Reason::Work),
        }
    }
}

/// What rules say.
pub type Outcome = Result<(), Stop>;

/// Whose data it is.
pub struct Subject<'a> {
    pub ends: &'a Ends,
    pub side: usize,
    pub flow: &'a mut Flow,
    pub now_ns: u64,
}

/// The rules, with what they need to be asked.
pub struct Inspector {
    pub set: RuleSet,
    pub mode: Mode,
    pub ring: Ring,
    scratch: Scratch,
    counts: Counts,
    /// Rules that may hold, and those that the automaton saw.
    candidates: Vec<Pending>,
    seen: Marks,
    /// Of alerts of the inspection itself, by reason.
    own: [Rc<Meta>; REASONS.len()],
}

fn own_meta(number: usize) -> Rc<Meta> {
    Rc::new(Meta {
        sid: number as u32,
        rev: 1,
        message: REASONS[number].into(),
        class: "inspection".into(),
        priority: 3,
    })
}

impl Inspector {
    pub fn new(set: RuleSet, ring: Ring) -> Self {
        Self {
            seen: Marks::of(set.rules.len()),
            set,
            mode: Mode::Rule,
            ring,
            scratch: Scratch::default(),
            counts: Counts::default(),
            candidates: Vec::new(),
            own: core::array::from_fn(own_meta),
        }
    }

    /// True unless nothing is dropped.
    pub fn blocks(&self) -> bool {
        self.mode != Mode::Alert
    }

    /// Takes the rules of another one, and gives it those of this one.
    pub fn swap_rules(&mut self, other: &mut Self) {
        core::mem::swap(&mut self.set, &mut other.set);
        self.make_ready();
        other.make_ready();
    }

    pub fn set_rules(&mut self, set: RuleSet) {
        self.set = set;
        self.make_ready();
    }

    /// Forgets what depends on the rules before.
    fn make_ready(&mut self) {
        self.seen = Marks::of(self.set.rules.len());
        self.candidates = Vec::new();
        self.scratch.pcre.clear();
    }

    /// Alerts about what is no rule's matter.
    pub fn tell(&mut self, subject: &Subject<'_>, reason: Reason, is_blocked: bool) {
        self.tell_about(subject.ends, reason, is_blocked, subject.now_ns);
    }

    pub fn tell_about(&mut self, ends: &Ends, reason: Reason, is_blocked: bool, at_ns: u64) {
        self.ring.add(Alert {
            at_ns,
            ends: *ends,
            generator: OF_ENGINE,
            is_blocked,
            meta: self.own[reason as usize].clone(),
        });
    }

    /// Asks the rules without a content.
    pub fn plain(&mut self, subject: &mut Subject<'_>) -> Outcome {
        for at in 0..self.set.plain.len() {
            let number = self.set.plain[at];
            if self.applies(number, subject)
                && self.set.rules[usize::from(number)]
                    .bits
                    .holds(subject.flow.bits)
            {
                let told = subject.flow.told[subject.side];
                subject.flow.told[subject.side] |= 1 << at;
                self.hold(number, subject, told >> at & 1 == 0)?;
            }
        }
        Ok(())
    }

    /// Asks the rules about the data of a packet.
    pub fn datagram(&mut self, subject: &mut Subject<'_>, payload: &[u8]) -> Outcome {
        let mut position = self.set.prefilter.start();
        self.candidates.clear();
        self.search(&mut position, payload, FIRST);
        self.order();
        let (hay, mut credit) = (
            Hay {
                bytes: payload,
                start: FIRST,
            },
            Credit::of_datagram(),
        );
        self.scratch.forget();
        for at in 0..self.candidates.len() {
            let number = self.candidates[at].rule;
            if !credit.spend(RULE_STEPS) {
                return self.give_up(subject);
            }
            if !self.applies(number, subject) || !self.rule(number).bits.holds(subject.flow.bits) {
                continue;
            }
            let rule = &self.set.rules[usize::from(number)];
            match self
                .scratch
                .verify((number.into(), rule), &hay, FIRST, &mut credit)
            {
                Found::Yes => self.hold(number, subject, true)?,
                Found::No(_) => {}
                Found::TooMuch => return self.give_up(subject),
            }
        }
        Ok(())
    }

    /// Asks the rules about a stream whose bytes from `before` on are new.
    pub fn stream(
        &mut self,
        subject: &mut Subject<'_>,
        stream: &mut Stream,
        before: u64,
    ) -> Outcome {
        // under other rules than before, all that is kept is new
        let from = if stream.position.is_some() {
            before
        } else {
            stream.start()
        };
        // what waits to be acknowledged is no reason to look farther back
        let lookback = self.set.lookback[subject.side] as u64;
        let start = stream.start().max(from - lookback);
        let mut position = stream.position.or_else(|| self.set.prefilter.start());
        let mut pending = core::mem::take(&mut stream.pending);
        self.candidates.clear();
        self.candidates.append(&mut pending);
        let mut credit = stream.credit;
        let hay = Hay {
            bytes: &stream.kept()[(start - stream.start()) as usize..],
            start,
        };
        self.search(&mut position, &hay.bytes[(from - start) as usize..], from);
        let outcome = match self.candidates.is_empty() {
            true => Ok(()),
            false => self.ask(subject, &hay, before, &mut credit, &mut pending),
        };
        pending.retain(|candidate| stream.next < candidate.hit + lookback);
        (stream.pending, stream.position, stream.credit) = (pending, position, credit);
        outcome
    }

    /// Asks the candidates; those that may yet hold are pending.
    fn ask(
        &mut self,
        subject: &mut Subject<'_>,
        hay: &Hay<'_>,
        before: u64,
        credit: &mut Credit,
        pending: &mut Vec<Pending>,
    ) -> Outcome {
        self.order();
        self.scratch.forget();
        for at in 0..self.candidates.len() {
            let candidate = self.candidates[at];
            if !credit.spend(RULE_STEPS) {
                return self.give_up(subject);
            }
            if !self.applies(candidate.rule, subject) {
                continue;
            }
            match self.try_one(&candidate, subject.flow.bits, hay, before, credit) {
                Found::Yes => self.hold(candidate.rule, subject, true)?,
                Found::No(_) if pending.len() == MAX_PENDING => return self.give_up(subject),
                Found::No(failed) => pending.push(Pending {
                    failed: failed as u8,
                    ..candidate
                }),
                Found::TooMuch => return self.give_up(subject),
            }
        }
        Ok(())
    }

    /// Whether a candidate holds now.
    fn try_one(
        &mut self,
        candidate: &Pending,
        bits: u64,
        hay: &Hay<'_>,
        before: u64,
        credit: &mut Credit,
    ) -> Found {
        let number = usize::from(candidate.rule);
        let rule = &self.set.rules[number];
        if !rule.bits.holds(bits) {
            return Found::No(UNTRIED.into());
        }
        if candidate.failed != UNTRIED {
            match changes(
                &mut self.scratch,
                rule,
                candidate.failed.into(),
                hay,
                before,
                credit,
            ) {
                Some(true) => {}
                Some(false) => return Found::No(candidate.failed.into()),
                None => return Found::TooMuch,
            }
        }
        let found = self.scratch.verify((number, rule), hay, FIRST, credit);
        let Found::No(first) = found else {
            return found;
        };
        if candidate.origin == FIRST || !has_place(rule) {
            return found;
        }
        match self
            .scratch
            .verify((number, rule), hay, candidate.origin, credit)
        {
            // it may hold from either start once a part up to the later one changes
            Found::No(second) => Found::No(first.max(second)),
            found => found,
        }
    }

    /// Looks for the contents of rules in new bytes. A rule that is pending already begins again.
    fn search(&mut self, position: &mut Option<Position>, bytes: &[u8], from: u64) {
        let (seen, candidates) = (&mut self.seen, &mut self.candidates);
        let known = candidates.len();
        let hit = from + bytes.len() as u64;
        self.set.prefilter.run(position, bytes, |rule| {
            if !seen.set(rule) {
                let failed = UNTRIED;
                candidates.push(Pending {
                    rule,
                    failed,
                    origin: from,
                    hit,
                });
            }
        });
        let mut at = 0;
        candidates.retain(|candidate| {
            at += 1;
            at > known || !seen.has(candidate.rule)
        });
        candidates
            .iter()
            .for_each(|candidate| seen.clear(candidate.rule));
    }

    fn order(&mut self) {
        self.candidates
            .sort_unstable_by_key(|candidate| candidate.rule);
    }

    fn rule(&self, number: u16) -> &Rule {
        &self.set.rules[usize::from(number)]
    }

    /// True if a rule is about a packet of this flow.
    fn applies(&self, number: u16, subject: &Subject<'_>) -> bool {
        let (rule, ends) = (self.rule(number), subject.ends);
        let is_way = rule
            .flow
            .way
            .is_none_or(|way| usize::from(way) == subject.side);
        let is_known = rule
            .flow
            .established
            .is_none_or(|asked| asked == subject.flow.is_answered);
        let fits = |ends: &Ends| {
            let [from, to] = &rule.ends;
            self.set.nets[usize::from(from.nets)].has(ends.source)
                && self.set.nets[usize::from(to.nets)].has(ends.destination)
                && self.set.ports[usize::from(from.ports)].has(ends.sport)
                && self.set.ports[usize::from(to.ports)].has(ends.dport)
        };
        rule.protocol.is(ends.protocol)
            && is_way
            && is_known
            && (fits(ends) || rule.is_mutual && fits(&ends.reverse()))
    }

    /// A rule holds, but for its threshold.
    fn hold(&mut self, number: u16, subject: &mut Subject<'_>, is_new: bool) -> Outcome {
        let rule = &self.set.rules[usize::from(number)];
        let (holds, alerts) = match &rule.threshold {
            None => (true, is_new),
            Some(threshold) => {
                let verdict =
                    self.counts
                        .count(rule.meta.sid, threshold, subject.ends, subject.now_ns);
                (verdict.holds, verdict.alerts)
            }
        };
        if !holds {
            return Ok(());
        }
        subject.flow.bits = subject.flow.bits & !rule.bits.unset | rule.bits.set;
        let no_alert = rule.bits.no_alert;
        let drops = match (self.mode, rule.action) {
            (_, Action::Pass) | (Mode::Alert, _) => false,
            (_, Action::Drop) => true,
            (Mode::Drop, Action::Alert) => !no_alert,
            (Mode::Rule, Action::Alert) => false,
        };
        if alerts && !no_alert && rule.action != Action::Pass {
            self.ring.add(Alert {
                at_ns: subject.now_ns,
                ends: *subject.ends,
                generator: OF_RULES,
                is_blocked: drops,
                meta: rule.meta.clone(),
            });
        }
        match (rule.action, drops) {
            (Action::Pass, _) => Err(Stop::Passed),
            (_, true) => Err(Stop::Dropped),
            _ => Ok(()),
        }
    }

    /// The rules took too much work: what no rule has judged does not pass.
    fn give_up(&mut self, subject: &Subject<'_>) -> Outcome {
        self.tell(subject, Reason::Work, self.blocks());
        Err(Stop::Work)
    }
}

/// True if new bytes may let a rule hold that failed at a part: one of its texts up to there is in them.
fn changes(
    scratch: &mut Scratch,
    rule: &Rule,
    failed: usize,
    hay: &Hay<'_>,
    before: u64,
    credit: &mut Credit,
) -> Option<bool> {
    let new = before.saturating_sub(hay.start) as usize;
    for part in rule.parts.iter().take(failed + 1) {
        let Part::Content(content) = part else {
            return Some(true);
        };
        let Content {
            bytes, is_negated, ..
        } = content;
        let from = (new + 1).saturating_sub(bytes.len());
        if !is_negated && scratch.occurs(content, hay.bytes, from, credit)? {
            return Some(true);
        }
    }
    Some(false)
}

/// True if a rule has places that count from a start.
fn has_place(rule: &Rule) -> bool {
    rule.parts.iter().any(|part| match part {
        Part::Content(content) => content.is_placed(),
        Part::Pcre(pcre) => pcre.is_anchored && !pcre.is_relative,
    })
}
