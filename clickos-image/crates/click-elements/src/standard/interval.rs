// SPDX-License-Identifier: Apache-2.0
//! How Click prints a span of time.
use crate::prelude::*;
use click_core::ArgContext;

/// A span below a second in the largest unit that fits, a longer one in seconds.
pub fn interval(span: Span) -> String {
    let ns = span.ns;
    match ns {
        1_000_000_000.. => format!("{}.{:06}s", ns / 1_000_000_000, ns % 1_000_000_000 / 1000),
        _ if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        _ if ns % 1000 == 0 => format!("{}us", ns / 1000),
        _ => format!("{ns}ns"),
    }
}

/// Time between two events, at least a millisecond.
#[derive(Clone, Copy)]
pub struct Interval(pub Span);

const MIN_NS: u64 = 1_000_000;

impl Interval {
    /// The default interval of timed elements.
    pub const HALF_SECOND: Self = Self(Span { ns: 500_000_000 });
}

impl FromArg for Interval {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let span = Span::from_arg(text, at)?;
        if span.ns < MIN_NS {
            return Err(format!("{text} is too short, the least is 1ms"));
        }
        Ok(Self(span))
    }
}
