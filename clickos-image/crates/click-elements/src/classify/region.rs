// SPDX-License-Identifier: Apache-2.0
//! Which packets an expression matches, as boxes: each asks for values of some header fields, and an
//! expression is true of what is in one of them. Where that would take too many boxes, or the
//! expression looks at something that is no field, the boxes hold more than it matches, which is said.
use alloc::vec;
use alloc::vec::Vec;

use super::expr::{Base, Compare, Expr, Side, Test};
use super::names::{ANY_TRANSPORT, TCP_OR_UDP};
use super::values::Values;
use crate::headers::{Axis, FRAGMENT_BITS, FRAGMENT6_BITS};

/// The values that fields must have, by field; a field that is not named may have any or be missing.
pub type Region = Vec<(Axis, Values)>;

/// Boxes of one expression at most; beyond, one larger box is taken.
const MAX: usize = 32;
/// Boxes of two expressions that both have to match, before some of them become one.
const MAX_MET: usize = 2 * MAX;

/// The packets that an expression matches.
#[derive(Clone, Debug)]
pub struct Cover {
    pub boxes: Vec<Region>,
    /// True if there is nothing else in the boxes.
    pub exact: bool,
}

impl Cover {
    /// One box for all packets.
    pub fn everything(exact: bool) -> Self {
        Self {
            boxes: vec![Region::new()],
            exact,
        }
    }

    fn nothing() -> Self {
        Self {
            boxes: Vec::new(),
            exact: true,
        }
    }

    /// The region of the given boxes.
    fn of<const N: usize>(boxes: [Region; N]) -> Self {
        let cover = Self::nothing();
        boxes.into_iter().fold(cover, Self::with)
    }

    /// With one more box; it may become part of another.
    fn with(mut self, region: Region) -> Self {
        if region.iter().any(|(_, values)| values.is_empty()) {
            return self;
        }
        if region.is_empty() {
            self.boxes.clear();
        }
        if self.boxes.iter().any(Vec::is_empty) {
            return self;
        }
        let merged = |(at, b)| joined(b, &region).map(|both| (at, both));
        match self.boxes.iter().enumerate().find_map(merged) {
            Some((at, both)) => {
                self.boxes.swap_remove(at);
                self.with(both)
            }
            None => {
                self.boxes.push(region);
                self
            }
        }
    }

    /// Fewer boxes, if they are too many.
    fn limited(self, otherwise: impl FnOnce() -> Self) -> Self {
        if self.boxes.len() <= MAX {
            return self;
        }
        Self {
            exact: false,
            ..otherwise()
        }
    }

    fn or(self, other: Self) -> Self {
        let exact = self.exact && other.exact;
        let joined = other.boxes.into_iter().fold(self, Self::with);
        Self { exact, ..joined }.limited(|| Self::everything(false))
    }

    fn and(self, other: &Self) -> Self {
        let both = Self {
            exact: self.exact && other.exact,
            ..self.product(other)
        };
        both.limited(|| self)
    }

    /// The boxes that are in both. The search for those that become one ends where they are far too many.
    fn product(&self, other: &Self) -> Self {
        let mut both = Self::nothing();
        for (x, y) in self
            .boxes
            .iter()
            .flat_map(|x| other.boxes.iter().map(move |y| (x, y)))
        {
            if both.boxes.len() > MAX_MET {
                break;
            }
            both = both.with(intersection(x, y));
        }
        both
    }

    fn complement(&self) -> Self {
        if !self.exact {
            return Self::everything(false);
        }
        let outside = |region: &Region| {
            let one = |(axis, values): &(Axis, Values)| one(*axis, values.complement(axis.bits()));
            region.iter().map(one).fold(Self::nothing(), Self::with)
        };
        self.boxes
            .iter()
            .fold(Self::everything(true), |left, b| left.and(&outside(b)))
    }
}

/// The union of two boxes, if it is a box because they differ in one field only.
fn joined(a: &Region, b: &Region) -> Option<Region> {
    let alike = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0);
    let mut different = (0..a.len()).filter(|at| alike && a[*at].1 != b[*at].1);
    let (at, more) = (different.next(), different.next());
    if !alike || more.is_some() {
        return None;
    }
    let mut both = a.clone();
    if let Some(at) = at {
        let (axis, values) = &mut both[at];
        *values = values.union(&b[at].1);
        if values.is_everything(axis.bits()) {
            both.remove(at);
        }
    }
    Some(both)
}

/// The intersection of both; it leaves out fields whose values do not matter.
fn intersection(a: &Region, b: &Region) -> Region {
    let mut both = Region::with_capacity(a.len() + b.len());
    both.extend_from_slice(a);
    for (axis, values) in b {
        match both.binary_search_by_key(axis, |(a, _)| *a) {
            Ok(at) => both[at].1 = both[at].1.intersection(values),
            Err(at) => both.insert(at, (*axis, values.clone())),
        }
    }
    both
}

fn one(axis: Axis, values: Values) -> Region {
    if values.is_everything(axis.bits()) {
        return Region::new();
    }
    vec![(axis, values)]
}

/// The region that `expr` matches.
pub fn cover(expr: &Expr) -> Cover {
    match expr {
        Expr::Const(true) => Cover::everything(true),
        Expr::Const(false) => Cover::nothing(),
        Expr::Test(test) => of_test(test).unwrap_or_else(|| Cover::everything(false)),
        Expr::Not(inner) => cover(inner).complement(),
        Expr::And(list) => list
            .iter()
            .fold(Cover::everything(true), |c, e| c.and(&cover(e))),
        Expr::Or(list) => list.iter().fold(Cover::nothing(), |c, e| c.or(cover(e))),
        Expr::If(parts) => {
            let [condition, yes, no] = &**parts;
            let condition = cover(condition);
            let otherwise = condition.complement().and(&cover(no));
            condition.and(&cover(yes)).or(otherwise)
        }
    }
}

/// The region that a test matches; `None` if boxes cannot express it.
fn of_test(test: &Test) -> Option<Cover> {
    match *test {
        Test::Protocol(compare) => of_field(Axis::PROTOCOL, &compare),
        Test::TcpOrUdp => Some(of_protocol(TCP_OR_UDP)),
        Test::Host(side, compare) => sides(side, &compare, Axis::SOURCE, Axis::DESTINATION),
        Test::Port {
            protocol,
            side,
            compare,
        } => {
            let ports = sides(side, &compare, Axis::SOURCE_PORT, Axis::DESTINATION_PORT)?;
            Some(of_protocol(protocol).and(&ports))
        }
        Test::TcpFlags(mask) => {
            let flags = equal(mask.into(), mask.into(), false);
            Some(of_protocol(6).and(&of_field(Axis::TCP_FLAGS, &flags)?))
        }
        Test::Fragment(is) => of_fragment(is),
        Test::Field {
            base,
            offset,
            len,
            compare,
        } => {
            let (axis, compare) = place(base, offset as usize, len.into(), compare)?;
            Some(of_protocol(base.protocol()).and(&of_field(axis, &compare)?))
        }
        Test::Ether { .. } => None,
    }
}

fn equal(mask: u32, value: u32, negated: bool) -> Compare {
    Compare {
        mask,
        value,
        greater: false,
        negated,
    }
}

fn of_field(axis: Axis, compare: &Compare) -> Option<Cover> {
    let values = Values::matching(compare, axis.bits())?;
    Some(Cover::of([one(axis, values)]))
}

/// The packets of both versions that are fragments, or are not.
fn of_fragment(is: bool) -> Option<Cover> {
    let of_four = of_field(Axis::FRAGMENT, &equal(FRAGMENT_BITS, 0, is))?;
    let mut bits = Values::matching(&equal(FRAGMENT6_BITS, 0, is), Axis::FRAGMENT6.bits())?;
    bits.missing = !is;
    let is_six = one(
        Axis::NEXT_HEADER6,
        Values::present(Axis::NEXT_HEADER6.bits()),
    );
    let of_six = Cover::of([is_six]).and(&Cover::of([one(Axis::FRAGMENT6, bits)]));
    Some(of_four.or(of_six))
}

fn of_protocol(protocol: u32) -> Cover {
    let ranges = match protocol {
        ANY_TRANSPORT => return Cover::everything(true),
        TCP_OR_UDP => vec![(6, 6), (17, 17)],
        one => vec![(one, one)],
    };
    Cover::of([one(Axis::PROTOCOL, Values::of(ranges))])
}

/// The field that bits are part of, and the comparison of its whole value.
fn place(base: Base, offset: usize, len: usize, compare: Compare) -> Option<(Axis, Compare)> {
    let (first, last) = (offset / 8, (offset + len - 1) / 8);
    let bytes = u8::try_from(last + 1 - first).ok()?;
    let behind = (last + 1) * 8 - (offset + len);
    let axis = Axis {
        start: base.start(),
        at: u16::try_from(first).ok()?,
        bytes,
    };
    let whole = Compare {
        mask: compare.mask << behind,
        value: compare.value << behind,
        ..compare
    };
    [1, 2, 4].contains(&bytes).then_some((axis, whole))
}

/// The boxes of a test of source, destination, either or both; both must be there if both are named.
fn sides(side: Side, compare: &Compare, source: Axis, destination: Axis) -> Option<Cover> {
    let bits = source.bits();
    let values = Values::matching(compare, bits)?;
    let any = || Values::present(bits);
    let both = |s: Values, d: Values| vec![(source, s), (destination, d)];
    // the opposite of "one of them" is "neither", and the other way round
    Some(match (side, compare.negated) {
        (Side::Source, _) => Cover::of([one(source, values)]),
        (Side::Destination, _) => Cover::of([one(destination, values)]),
        (Side::Both, false) | (Side::Either, true) => Cover::of([both(values.clone(), values)]),
        (Side::Either, false) | (Side::Both, true) => {
            Cover::of([both(values.clone(), any()), both(any(), values)])
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(side: Side, value: u32) -> Expr {
        Expr::Test(Test::Port {
            protocol: 6,
            side,
            compare: equal(0xffff, value, false),
        })
    }

    #[test]
    fn alternatives_of_one_field_are_one_box() {
        let list = (0..200).map(|n| port(Side::Source, 2 * n)).collect();
        let got = cover(&Expr::Or(list));
        assert!(got.exact);
        assert_eq!(got.boxes.len(), 1);
        assert_eq!(got.boxes[0][1].1.ranges.len(), 200);
    }

    #[test]
    fn what_is_not_a_port_may_be_another_protocol() {
        let got = cover(&Expr::Not(port(Side::Source, 80).into()));
        assert!(got.exact);
        assert_eq!(got.boxes.len(), 2);
        assert!(got.boxes.iter().all(|b| b[0].1.missing));
    }

    #[test]
    fn too_many_boxes_become_a_larger_one() {
        let fields = (0..20u32).map(|n| {
            Expr::Test(Test::Field {
                base: Base::Network,
                offset: 8 * n,
                len: 8,
                compare: equal(0xff, 1, false),
            })
        });
        let all: Vec<Expr> = fields.collect();
        let pairs = all.chunks(2).map(|pair| Expr::Or(pair.to_vec())).collect();
        let got = cover(&Expr::And(pairs));
        assert!(!got.exact && got.boxes.len() <= MAX);
        assert!(cover(&Expr::And(all)).exact);
    }

    #[test]
    fn opposites_leave_nothing_and_everything() {
        let (is, not) = (
            port(Side::Either, 80),
            Expr::Not(port(Side::Either, 80).into()),
        );
        assert!(
            cover(&Expr::And(vec![is.clone(), not.clone()]))
                .boxes
                .is_empty()
        );
        let host = Expr::Test(Test::Host(Side::Source, equal(u32::MAX, 5, false)));
        let either = cover(&Expr::Or(vec![host.clone(), Expr::Not(host.into())]));
        assert!(either.exact);
    }

    #[test]
    fn lists_of_boxes_that_both_match_are_not_multiplied_out() {
        let list = |axes: [Axis; 2]| Cover {
            boxes: (0..MAX as u32)
                .map(|n| {
                    let value = |axis: Axis| {
                        let is = equal(u32::MAX >> (32 - axis.bits()), n, false);
                        (axis, Values::matching(&is, axis.bits()).unwrap())
                    };
                    axes.map(value).to_vec()
                })
                .collect(),
            exact: true,
        };
        let [a, b] = [
            list([Axis::SOURCE, Axis::DESTINATION]),
            list([Axis::SOURCE_PORT, Axis::DESTINATION_PORT]),
        ];
        assert_eq!(a.product(&b).boxes.len(), MAX_MET + 1);
        let both = a.and(&b);
        assert!(!both.exact && both.boxes.len() == MAX);
    }
}
