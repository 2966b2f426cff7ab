// SPDX-License-Identifier: Apache-2.0
//! Which packets an expression can match at all: boxes over five fields that
//! contain every match. They may contain more; the expression itself decides.
use alloc::vec;
use alloc::vec::Vec;

use super::expr::{Compare, Expr, Side, Test};
use super::names::TCP_OR_UDP;

/// The fields of a box.
pub const PROTOCOL: usize = 0;
pub const SOURCE: usize = 1;
pub const DESTINATION: usize = 2;
pub const SOURCE_PORT: usize = 3;
pub const DESTINATION_PORT: usize = 4;
/// How many there are.
pub const FIELDS: usize = 5;
const MAX: [u32; FIELDS] = [0xff, u32::MAX, u32::MAX, 0xffff, 0xffff];

/// Sorted, disjoint, inclusive.
pub type Ranges = Vec<(u32, u32)>;

/// For each field the values it may have; `None` is any value or none.
pub type Region = [Option<Ranges>; FIELDS];

/// A rule is split into at most this many boxes; beyond, a larger box is taken.
const MOST: usize = 16;

const ANYTHING: Region = [const { None }; FIELDS];

/// Boxes that together contain all packets for which `expr` is true.
pub fn regions(expr: &Expr) -> Vec<Region> {
    cover(expr, true)
}

fn cover(expr: &Expr, wanted: bool) -> Vec<Region> {
    match expr {
        Expr::Const(value) if *value == wanted => vec![ANYTHING],
        Expr::Const(_) => Vec::new(),
        Expr::Test(test) if wanted => of_test(test),
        // a test can be false because its field is missing, so nothing is excluded
        Expr::Test(_) => vec![ANYTHING],
        Expr::Not(inner) => cover(inner, !wanted),
        Expr::And(list) if wanted => all(list, true),
        Expr::Or(list) if !wanted => all(list, false),
        Expr::And(list) | Expr::Or(list) => any(list.iter().map(|e| cover(e, wanted))),
        Expr::If(parts) => {
            let [condition, yes, no] = &**parts;
            any([
                both(&cover(condition, true), &cover(yes, wanted)),
                both(&cover(condition, false), &cover(no, wanted)),
            ]
            .into_iter())
        }
    }
}

fn any(lists: impl Iterator<Item = Vec<Region>>) -> Vec<Region> {
    let mut union = Vec::new();
    for list in lists {
        union.extend(list);
        if union.len() > MOST {
            return vec![ANYTHING];
        }
    }
    union
}

fn all(list: &[Expr], wanted: bool) -> Vec<Region> {
    list.iter()
        .fold(vec![ANYTHING], |have, e| both(&have, &cover(e, wanted)))
}

fn both(a: &[Region], b: &[Region]) -> Vec<Region> {
    if a.len() * b.len() > MOST {
        return a.to_vec();
    }
    a.iter()
        .flat_map(|x| b.iter().filter_map(|y| intersect(x, y)))
        .collect()
}

fn intersect(a: &Region, b: &Region) -> Option<Region> {
    let mut result = ANYTHING;
    for field in 0..FIELDS {
        result[field] = match (&a[field], &b[field]) {
            (None, other) | (other, None) => other.clone(),
            (Some(x), Some(y)) => {
                let both = overlap(x, y);
                if both.is_empty() {
                    return None;
                }
                Some(both)
            }
        };
    }
    Some(result)
}

fn overlap(x: &Ranges, y: &Ranges) -> Ranges {
    let pairs = x
        .iter()
        .flat_map(|a| y.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    pairs.filter(|(first, last)| first <= last).collect()
}

fn of_test(test: &Test) -> Vec<Region> {
    match test {
        Test::Protocol(compare) => vec![one(PROTOCOL, ranges(compare, MAX[PROTOCOL]))],
        Test::TcpOrUdp => vec![one(PROTOCOL, Some(vec![(6, 6), (17, 17)]))],
        Test::Host(side, compare) => sides(*side, compare, SOURCE, DESTINATION, &ANYTHING),
        Test::Port {
            protocol,
            side,
            compare,
        } => {
            let with = one(PROTOCOL, protocol_range(*protocol));
            sides(*side, compare, SOURCE_PORT, DESTINATION_PORT, &with)
        }
        Test::TcpFlags(_) => vec![one(PROTOCOL, Some(vec![(6, 6)]))],
        Test::Field {
            base: super::expr::Base::Transport(protocol),
            ..
        } => {
            vec![one(PROTOCOL, protocol_range(*protocol))]
        }
        Test::Fragment(_) | Test::Field { .. } | Test::Ether { .. } => vec![ANYTHING],
    }
}

fn protocol_range(protocol: u32) -> Option<Ranges> {
    match protocol {
        0..=255 => Some(vec![(protocol, protocol)]),
        TCP_OR_UDP => Some(vec![(6, 6), (17, 17)]),
        _ => None,
    }
}

fn one(field: usize, ranges: Option<Ranges>) -> Region {
    let mut region = ANYTHING;
    region[field] = ranges;
    region
}

/// The boxes of a test of source, destination, either or both.
fn sides(
    side: Side,
    compare: &Compare,
    source: usize,
    destination: usize,
    with: &Region,
) -> Vec<Region> {
    let allowed = ranges(compare, MAX[source]);
    let set = |fields: &[usize]| {
        let mut region = with.clone();
        fields.iter().for_each(|f| region[*f].clone_from(&allowed));
        region
    };
    // the opposite of "one of them" is "neither", and the other way round
    let side = match (side, compare.negated) {
        (Side::Either, true) => Side::Both,
        (Side::Both, true) => Side::Either,
        (side, _) => side,
    };
    match side {
        Side::Source => vec![set(&[source])],
        Side::Destination => vec![set(&[destination])],
        Side::Both => vec![set(&[source, destination])],
        Side::Either => vec![set(&[source]), set(&[destination])],
    }
}

/// The values for which a comparison is true; `None` if that is no simple list.
fn ranges(compare: &Compare, max: u32) -> Option<Ranges> {
    let Compare {
        mask,
        value,
        greater,
        negated,
    } = *compare;
    // the mask keeps the upper bits: a prefix
    let low = !mask & max;
    let is_prefix = low & low.wrapping_add(1) == 0;
    let range = match (greater, is_prefix) {
        (false, true) => (value & mask & max, (value & mask & max) | low),
        (true, true) if low == 0 => (value.checked_add(1)?, max),
        _ => return None,
    };
    if !negated {
        return Some(vec![range]);
    }
    let below = range.0.checked_sub(1).map(|last| (0, last));
    let above = (range.1 < max).then(|| (range.1 + 1, max));
    Some(below.into_iter().chain(above).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_as_ranges() {
        let c = |mask, value, greater, negated| Compare {
            mask,
            value,
            greater,
            negated,
        };
        assert_eq!(
            ranges(&c(0xffff, 80, false, false), 0xffff),
            Some(vec![(80, 80)])
        );
        assert_eq!(
            ranges(&c(0xffff, 80, false, true), 0xffff),
            Some(vec![(0, 79), (81, 0xffff)])
        );
        assert_eq!(
            ranges(&c(0xff00, 0x1234, false, false), 0xffff),
            Some(vec![(0x1200, 0x12ff)])
        );
        assert_eq!(
            ranges(&c(0xffff, 1023, true, false), 0xffff),
            Some(vec![(1024, 0xffff)])
        );
        assert_eq!(ranges(&c(0x00ff, 1, false, false), 0xffff), None);
        assert_eq!(
            ranges(&c(0, 0, false, false), u32::MAX),
            Some(vec![(0, u32::MAX)])
        );
        assert_eq!(ranges(&c(0, 0, false, true), u32::MAX), Some(vec![]));
    }
}
