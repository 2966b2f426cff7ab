// SPDX-License-Identifier: Apache-2.0
//! Conditions of IPFilter as steps.
use alloc::vec::Vec;

use super::{Fragment, Next, all, any, chain, constant, negate, step};
use crate::classify::expr::{Base, Compare, Expr, Side, Test};
use crate::classify::names::{ANY_TRANSPORT, TCP_OR_UDP};

/// Where the headers begin in the offsets of steps.
const NETWORK: usize = 256;
const TRANSPORT: usize = 512;

/// The steps of a condition.
pub fn steps(expr: &Expr) -> Fragment {
    match expr {
        Expr::Const(value) => constant(*value),
        Expr::Test(test) => of_test(test),
        Expr::Not(inner) => {
            let mut steps = steps(inner);
            negate(&mut steps, false);
            steps
        }
        Expr::And(list) => all(list.iter().map(steps)),
        Expr::Or(list) => any(list.iter().map(steps)),
        Expr::If(parts) => choice(parts),
    }
}

fn choice([condition, yes, no]: &[Expr; 3]) -> Fragment {
    let mut whole = steps(condition);
    let behind_condition = whole.len();
    let yes = steps(yes);
    let otherwise = behind_condition + yes.len();
    super::redirect(&mut whole, Next::Failure, Next::Step(otherwise));
    chain(&mut whole, Next::Success, yes);
    // nothing in `whole` leads to this marker: both branches end in success and failure
    chain(&mut whole, Next::Drop, steps(no));
    whole
}

fn of_test(test: &Test) -> Fragment {
    match *test {
        Test::Protocol(compare) => negatable(NETWORK + 8, 16, &compare),
        Test::TcpOrUdp => protocol(TCP_OR_UDP).unwrap_or_else(|| constant(true)),
        Test::Host(side, compare) => {
            let [source, destination] = [12, 16].map(|at| comparison(NETWORK + at, 0, &compare));
            sides(side, source, destination, compare.negated)
        }
        Test::Port {
            protocol,
            side,
            compare,
        } => {
            let [source, destination] = [16, 0].map(|shift| comparison(TRANSPORT, shift, &compare));
            let body = sides(side, source, destination, compare.negated);
            transport(protocol, body)
        }
        Test::TcpFlags(flags) => {
            let bits = u32::from(flags) << 16;
            transport(6, step(TRANSPORT + 12, bits, bits))
        }
        Test::Fragment(wanted) => {
            let mut unfragmented = step(NETWORK + 4, 0, 0x3fff);
            if wanted {
                negate(&mut unfragmented, true);
            }
            unfragmented
        }
        Test::Field {
            base,
            offset,
            len,
            compare,
        } => field(base, offset as usize, len.into(), &compare),
        Test::Ether {
            side,
            address,
            mask,
            negated,
        } => sides(
            side,
            ether(8, 0, address, mask),
            ether(0, 2, address, mask),
            negated,
        ),
    }
}

fn protocol(protocol: u32) -> Option<Fragment> {
    let one = |p: u32| step(NETWORK + 8, p << 16, 0xff << 16);
    match protocol {
        TCP_OR_UDP => Some(any([one(6), one(17)])),
        ANY_TRANSPORT => None,
        p => Some(one(p)),
    }
}

/// `body` in packets of a protocol that are first fragments.
fn transport(of: u32, body: Fragment) -> Fragment {
    let first = step(NETWORK + 4, 0, 0x1fff);
    all(protocol(of).into_iter().chain([first, body]))
}

fn sides(side: Side, source: Fragment, destination: Fragment, negated: bool) -> Fragment {
    let mut body = match side {
        Side::Source => source,
        Side::Destination => destination,
        Side::Either => any([source, destination]),
        Side::Both => all([source, destination]),
    };
    if negated {
        negate(&mut body, true);
    }
    body
}

fn field(base: Base, offset: usize, len: usize, compare: &Compare) -> Fragment {
    let (word, bit) = ((offset / 8) & !3, offset % 32);
    let shift = 32 - (bit + len);
    match base {
        Base::Transport(of) => transport(of.into(), negatable(TRANSPORT + word, shift, compare)),
        _ => negatable(NETWORK + word, shift, compare),
    }
}

/// The six bytes of an address from `offset` on, of which the first is `skip` bytes behind.
fn ether(offset: usize, skip: usize, address: u64, mask: u64) -> Fragment {
    let words = |v: u64| {
        let whole = (v << 16 >> (8 * skip)).to_be_bytes();
        let [a, b, c, d, e, f, g, h] = whole;
        [
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        ]
    };
    let (value, mask) = (words(address), words(mask));
    all((0..2).map(|n| step(offset + 4 * n, value[n], mask[n])))
}

fn negatable(offset: usize, shift: usize, compare: &Compare) -> Fragment {
    let mut steps = comparison(offset, shift, compare);
    if compare.negated {
        negate(&mut steps, true);
    }
    steps
}

/// A comparison without its negation.
fn comparison(offset: usize, shift: usize, compare: &Compare) -> Fragment {
    let value = compare.value & compare.mask;
    if compare.mask == 0 {
        return constant(!compare.greater);
    }
    if compare.greater {
        return greater(offset, shift, compare.mask, value);
    }
    step(offset, value << shift, compare.mask << shift)
}

/// `> value` by looking at the upper bits: where those of `value` are zero, one that is set decides that
/// the number is greater; where they are ones, one that is not set decides that it is not.
fn greater(offset: usize, shift: usize, mut mask: u32, mut value: u32) -> Fragment {
    let mut parts: Vec<(bool, Fragment)> = Vec::new();
    while value < mask {
        let ones = value > mask >> 1;
        let differs = if ones { !(value + 1) & mask } else { value };
        let upper = match 32 - differs.leading_zeros() {
            0 => mask,
            bits => mask & !(u32::MAX >> (32 - bits)),
        };
        let wanted = if ones { upper } else { 0 };
        let mut part = step(offset, wanted << shift, upper << shift);
        if !ones {
            negate(&mut part, true);
        }
        parts.push((ones, part));
        mask &= !upper;
        value &= mask;
    }
    let mut parts = parts.into_iter().rev();
    let last = parts
        .next()
        .map_or_else(|| constant(false), |(_, part)| part);
    parts.fold(last, |rest, (ones, part)| {
        if ones {
            all([part, rest])
        } else {
            any([part, rest])
        }
    })
}
