// SPDX-License-Identifier: Apache-2.0
//! Which ports an arrow connects: `a [0,1] => b, c`, open port lists, pairs.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ast::{Arrow, Ports};
use crate::body::End;

/// One element at one side of an arrow.
pub struct Side<'a> {
    pub element: usize,
    pub ports: Option<&'a Ports>,
}

/// The ports of one side, laid out in order.
struct Plan {
    /// How many ports are named at least.
    least: usize,
    /// The element whose list may grow.
    open: Option<usize>,
}

fn count(side: &Side<'_>) -> usize {
    side.ports.map_or(1, |p| p.list.len())
}

fn plan(sides: &[Side<'_>]) -> (Plan, usize) {
    let is_open = |s: &Side<'_>| s.ports.is_some_and(|p| p.open);
    let open = sides.iter().position(is_open);
    (
        Plan {
            least: sides.iter().map(count).sum(),
            open,
        },
        sides.iter().filter(|s| is_open(s)).count(),
    )
}

/// `=>` lets a lone element without ports take as many as the other side has.
fn open_lone(plan: &mut Plan, other: usize, sides: &[Side<'_>]) {
    if plan.least == 1 && other > 1 && sides.len() == 1 && sides[0].ports.is_none() {
        plan.open = Some(0);
    }
}

fn lay_out(sides: &[Side<'_>], plan: &Plan, wanted: usize) -> Vec<End> {
    let extra = wanted.saturating_sub(plan.least);
    let mut ends = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        let named = side.ports.map_or(&[0][..], |p| &p.list[..]);
        ends.extend(named.iter().map(|p| (side.element, *p)));
        if plan.open == Some(index) {
            let last = named.last().copied().unwrap_or(0);
            ends.extend((1..=extra).map(|n| (side.element, last + n)));
        }
    }
    ends
}

/// The connections an arrow makes, or why it cannot make any.
pub fn pairs(
    outputs: &[Side<'_>],
    inputs: &[Side<'_>],
    arrow: Arrow,
    max_ports: usize,
) -> Result<Vec<(End, End)>, String> {
    let ((mut from, open_from), (mut to, open_to)) = (plan(outputs), plan(inputs));
    if open_from + open_to > 1 {
        return Err("at most one expandable port allowed per connection".into());
    }
    if arrow == Arrow::Pairwise {
        let (f, t) = (from.least, to.least);
        open_lone(&mut from, t, outputs);
        open_lone(&mut to, f, inputs);
    }
    let many = |p: &Plan| p.least > 1 || p.open.is_some();
    if from.least.max(to.least) > max_ports {
        return Err(format!("more than {max_ports} ports in a connection"));
    }
    if many(&from) && many(&to) {
        if arrow == Arrow::Single {
            return Err("syntax error: many-to-many connections require '=>'".into());
        }
        let (f, t) = (
            lay_out(outputs, &from, to.least),
            lay_out(inputs, &to, from.least),
        );
        if f.len() != t.len() {
            return Err(format!(
                "connection mismatch: {} outputs connected to {} inputs",
                f.len(),
                t.len()
            ));
        }
        return Ok(f.into_iter().zip(t).collect());
    }
    let (f, t) = (lay_out(outputs, &from, 0), lay_out(inputs, &to, 0));
    Ok(f.iter().flat_map(|a| t.iter().map(|b| (*a, *b))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::vec;

    fn side(element: usize, list: &[usize], open: bool) -> Side<'static> {
        let ports = (!list.is_empty()).then(|| {
            let list = list.to_vec();
            &*Box::leak(Box::new(Ports { list, open }))
        });
        Side { element, ports }
    }

    #[test]
    fn one_to_one_and_one_to_many() {
        let p = pairs(
            &[side(0, &[2], false)],
            &[side(1, &[], false)],
            Arrow::Single,
            9,
        )
        .unwrap();
        assert_eq!(p, vec![((0, 2), (1, 0))]);
        let p = pairs(
            &[side(0, &[], false), side(1, &[], false)],
            &[side(2, &[], false)],
            Arrow::Single,
            9,
        );
        assert_eq!(p.unwrap(), vec![((0, 0), (2, 0)), ((1, 0), (2, 0))]);
    }

    #[test]
    fn pairwise_opens_a_lone_element() {
        let p = pairs(
            &[side(0, &[], false)],
            &[side(1, &[], false), side(2, &[], false)],
            Arrow::Pairwise,
            9,
        );
        assert_eq!(p.unwrap(), vec![((0, 0), (1, 0)), ((0, 1), (2, 0))]);
        let p = pairs(
            &[side(0, &[0], true)],
            &[side(1, &[0, 1, 2], false)],
            Arrow::Pairwise,
            9,
        );
        assert_eq!(p.unwrap().len(), 3);
    }

    #[test]
    fn mismatches_are_errors() {
        let two = [side(0, &[0, 1], false)];
        let three = [side(1, &[0, 1, 2], false)];
        assert!(pairs(&two, &three, Arrow::Pairwise, 9).is_err());
        assert!(pairs(&two, &three, Arrow::Single, 9).is_err());
        assert!(
            pairs(
                &[side(0, &[0], true)],
                &[side(1, &[0], true)],
                Arrow::Pairwise,
                9
            )
            .is_err()
        );
    }
}
