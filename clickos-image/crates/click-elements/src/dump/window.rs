// SPDX-License-Identifier: Apache-2.0
//! Which packets of a file are wanted: between two times, and of those a random part.
use click_core::class::Arg;
use click_core::value::Span;

use crate::prelude::*;
use crate::standard::probability::Probability;

/// The arguments of `Window::of`.
pub const ARGS: [Arg; 6] = [
    keyword("SAMPLE"),
    keyword("START"),
    keyword("START_AFTER"),
    keyword("END"),
    keyword("END_AFTER"),
    keyword("INTERVAL"),
];

/// A time in a file.
#[derive(Clone, Copy)]
enum Bound {
    /// Nanoseconds since the epoch.
    At(u64),
    /// After the first packet of the file.
    AfterFirst(u64),
    /// After the start of the window.
    AfterStart(u64),
}

impl Bound {
    fn resolve(self, first: u64, start: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::AfterFirst(span) => first.saturating_add(span),
            Self::AfterStart(span) => start.saturating_add(span),
        }
    }
}

/// The decision about a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Take,
    Skip,
    /// The window is over.
    End,
}

/// The part of a file that is wanted.
pub struct Window {
    sample: Probability,
    start: Bound,
    end: Option<Bound>,
    /// Where it begins and ends, once the first packet is known.
    known: Option<(u64, u64)>,
    over: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            sample: Probability(1.0),
            start: Bound::AfterFirst(0),
            end: None,
            known: None,
            over: false,
        }
    }
}

impl Window {
    /// The values of the arguments `ARGS`.
    pub fn of(a: &mut Args<'_>) -> Option<Self> {
        let sample = a.or("SAMPLE", Probability(1.0));
        let mut bound = |name, make: fn(u64) -> Bound| {
            let span = a.opt::<Span>(name)?;
            Some(span.map(|span| make(span.ns)))
        };
        let starts = [
            bound("START", Bound::At),
            bound("START_AFTER", Bound::AfterFirst),
        ];
        let ends = [
            bound("END", Bound::At),
            bound("END_AFTER", Bound::AfterFirst),
            bound("INTERVAL", Bound::AfterStart),
        ];
        let start = only(a, "START", &starts)?;
        let end = only(a, "END", &ends)?;
        Some(Self {
            sample: sample?,
            start: start.unwrap_or(Bound::AfterFirst(0)),
            end,
            ..Self::default()
        })
    }

    /// The probability of a packet to be taken.
    pub fn sample(&self) -> Probability {
        self.sample
    }

    /// The decision about a packet of this time; `Extend` once, until the window is extended.
    pub fn judge(&mut self, time_ns: u64, ctx: &mut Context<'_>) -> Verdict {
        let (start, end) = *self.known.get_or_insert_with(|| {
            let start = self.start.resolve(time_ns, 0);
            let end = self.end.map_or(u64::MAX, |end| end.resolve(time_ns, start));
            (start, end)
        });
        match time_ns {
            _ if time_ns < start => Verdict::Skip,
            _ if time_ns >= end && !self.over => {
                self.over = true;
                Verdict::End
            }
            _ if self.sample.0 < 1.0 && !self.sample.happens(ctx.random_u32()) => Verdict::Skip,
            _ => Verdict::Take,
        }
    }

    /// True if it ends before the file does.
    pub fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// Moves the end of the window.
    pub fn extend(&mut self, span: Span) {
        self.over = false;
        match (&mut self.known, &mut self.end) {
            (Some((_, end)), _) => *end = end.saturating_add(span.ns),
            (None, Some(Bound::At(ns) | Bound::AfterFirst(ns) | Bound::AfterStart(ns))) => {
                *ns = ns.saturating_add(span.ns);
            }
            (None, None) => {}
        }
    }
}

/// The one bound of these that is given, if any; more than one is an error.
fn only(a: &mut Args<'_>, name: &str, bounds: &[Option<Option<Bound>>]) -> Option<Option<Bound>> {
    let wrong = bounds.iter().any(Option::is_none);
    let mut given = bounds.iter().flatten().flatten();
    let first = given.next().copied();
    let more = given.count();
    if more > 0 {
        a.error(
            name,
            format!("expected one bound of a kind, got {}", more + 1),
        );
        return None;
    }
    (!wrong).then_some(first)
}
