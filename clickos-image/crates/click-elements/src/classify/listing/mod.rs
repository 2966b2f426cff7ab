// SPDX-License-Identifier: Apache-2.0
//! What the handler `program` says: the rules as a list of steps in Click's format. A step compares four
//! bytes at an offset; IPFilter counts them from 256 in the IP header and from 512 in the transport
//! header. Packets are classified by other means; the list is made when it is read.
pub mod expr;
mod facts;
mod group;
mod optimize;
mod thread;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

pub use group::grouped;
pub use optimize::{at_once, merged};

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Step(usize),
    /// The fragment's test is true, or false; only while the parser joins fragments.
    Success,
    Failure,
    Output(usize),
    Drop,
}

/// Four bytes under a mask are equal to a value. Bytes that are not tested may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub offset: usize,
    pub mask: u32,
    pub value: u32,
    /// The result for a packet without the bytes.
    pub short: bool,
}

impl Test {
    /// Bytes a packet must have.
    pub fn length(&self) -> usize {
        match self.mask.trailing_zeros() / 8 {
            4 => 0,
            untested => self.offset + 4 - untested as usize,
        }
    }
}

/// A step: a test, and where it leads if it is false, and if it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub test: Test,
    pub next: [Next; 2],
}

/// Steps for one condition; the first is where they begin.
pub type Fragment = Vec<Step>;

/// One step.
pub fn step(offset: usize, value: u32, mask: u32) -> Fragment {
    let test = Test {
        offset,
        mask,
        value: value & mask,
        short: false,
    };
    Vec::from([Step {
        test,
        next: [Next::Failure, Next::Success],
    }])
}

/// A step that is always true, or false.
pub fn constant(value: bool) -> Fragment {
    let mut always = step(0, 0, 0);
    if !value {
        negate(&mut always, false);
    }
    always
}

/// Turns around what success and failure are.
pub fn negate(fragment: &mut Fragment, flip_short: bool) {
    for step in fragment {
        for next in &mut step.next {
            *next = match *next {
                Next::Success => Next::Failure,
                Next::Failure => Next::Success,
                other => other,
            };
        }
        step.test.short ^= flip_short;
    }
}

/// Leads what led to `from` to `to`.
pub fn redirect(fragment: &mut [Step], from: Next, to: Next) {
    let all = fragment.iter_mut().flat_map(|s| &mut s.next);
    all.filter(|next| **next == from)
        .for_each(|next| *next = to);
}

/// Puts a fragment behind another, which leads there from `through`.
pub fn chain(first: &mut Fragment, through: Next, second: Fragment) {
    let by = first.len();
    redirect(first, through, Next::Step(by));
    first.extend(second.into_iter().map(|mut step| {
        for next in &mut step.next {
            if let Next::Step(to) = next {
                *to += by;
            }
        }
        step
    }));
}

/// All of them, each looked at if those before are true.
pub fn all(list: impl IntoIterator<Item = Fragment>) -> Fragment {
    joined(list, Next::Success)
}

/// One of them, each looked at if those before are false.
pub fn any(list: impl IntoIterator<Item = Fragment>) -> Fragment {
    joined(list, Next::Failure)
}

fn joined(list: impl IntoIterator<Item = Fragment>, through: Next) -> Fragment {
    let mut list = list.into_iter();
    let mut first = list.next().unwrap_or_else(|| constant(true));
    list.for_each(|next| chain(&mut first, through, next));
    first
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(n) => write!(f, "step {n}"),
            Self::Output(n) => write!(f, "[{n}]"),
            _ => f.write_str("[X]"),
        }
    }
}

/// A finished list: steps, or where every packet goes.
pub enum Listing {
    Steps(Vec<Step>),
    Everything(Next),
}

impl Listing {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut length = 0;
        match self {
            Self::Everything(next) => {
                let _ = writeln!(out, "all->{next}");
            }
            Self::Steps(steps) => {
                for (number, step) in steps.iter().enumerate() {
                    let _ = writeln!(out, "{number:2} {step}");
                }
                length = steps.iter().map(|s| s.test.length()).max().unwrap_or(0);
            }
        }
        let _ = writeln!(out, "safe length {length}\nalignment offset 0");
        out
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Test {
            offset,
            mask,
            value,
            short,
        } = self.test;
        let [no, yes] = self.next;
        write!(f, "{offset:3}/{value:08x}%{mask:08x}  yes->{yes}  no->{no}")?;
        if short {
            f.write_str("  short->yes")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn text(rules: Vec<Fragment>) -> String {
        grouped(merged(rules)).text()
    }

    fn to(mut fragment: Fragment, output: usize) -> Fragment {
        redirect(&mut fragment, Next::Success, Next::Output(output));
        fragment
    }

    const PROTOCOL: usize = 264;

    #[test]
    fn what_is_known_is_not_tested_again() {
        let tcp = || step(PROTOCOL, 6 << 16, 0xff << 16);
        let udp = || step(PROTOCOL, 17 << 16, 0xff << 16);
        let port = |p| step(512, p, 0xffff);
        let rules = Vec::from([
            to(all([tcp(), port(80)]), 0),
            to(all([any([tcp(), udp()]), port(53)]), 1),
            to(constant(true), 2),
        ]);
        assert_eq!(
            text(rules),
            " 0 264/00060000%00ff0000  yes->step 1  no->step 2\n \
              1 512/00000050%0000ffff  yes->[0]  no->step 3\n \
              2 264/00110000%00ff0000  yes->step 3  no->[2]\n \
              3 512/00000035%0000ffff  yes->[1]  no->[2]\n\
             safe length 516\nalignment offset 0\n"
        );
    }

    #[test]
    fn lists_without_a_decision() {
        let everything = |what| format!("all->{what}\nsafe length 0\nalignment offset 0\n");
        assert_eq!(text(Vec::new()), everything("[X]"));
        assert_eq!(text(Vec::from([constant(false)])), everything("[X]"));
        let allowed = || to(step(0, 1, 1), 0);
        let rules = [allowed(), allowed(), to(constant(true), 0)];
        assert_eq!(text(Vec::from(rules)), everything("[0]"));
    }

    #[test]
    fn bits_that_do_not_matter_are_not_looked_at() {
        let rules = [to(step(4, 2, 0xff), 1), to(step(4, 3, 0xff), 1)];
        let want =
            " 0   4/00000002%000000fe  yes->[1]  no->[X]\nsafe length 8\nalignment offset 0\n";
        assert_eq!(text(Vec::from(rules)), want);
        let mut not_ack = step(4, 16, 16);
        negate(&mut not_ack, false);
        let both = to(all([step(4, 2, 2), not_ack]), 0);
        let want =
            " 0   4/00000002%00000012  yes->[0]  no->[X]\nsafe length 8\nalignment offset 0\n";
        assert_eq!(text(Vec::from([both])), want);
    }
}
