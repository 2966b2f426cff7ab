// SPDX-License-Identifier: Apache-2.0
//! Domains of the host that others made.
//!
//! Each creation looks for them, so the look does not list the thousand domains that are known:
//! their numbers mostly follow one another, and it continues behind them.

use std::collections::BTreeMap;

/// The domains, except dom0, that are not known.
///
/// `list` returns `most` domains with the lowest numbers from one on, or as many as there are; `number` is that of a
/// domain.
///
/// # Errors
/// Those of `list`.
pub fn unknown<D, E>(
    known: &BTreeMap<u16, u64>,
    most: usize,
    number: impl Fn(&D) -> u32,
    mut list: impl FnMut(u32) -> Result<Vec<D>, E>,
) -> Result<Vec<D>, E> {
    let (mut next, mut unknown) = (1, Vec::new());
    loop {
        let found = list(next)?;
        let is_last = found.len() < most;
        for domain in found {
            let domid = number(&domain);
            if domid < next {
                continue;
            }
            next = behind(known, domid);
            if next == domid {
                next += 1;
                unknown.push(domain);
            }
        }
        if is_last {
            return Ok(unknown);
        }
    }
}

/// The first number from `domid` on that is not known.
fn behind(known: &BTreeMap<u16, u64>, domid: u32) -> u32 {
    let Ok(first) = u16::try_from(domid) else {
        return domid;
    };
    let run = known.range(first..).zip(domid..);
    let run = run.take_while(|((number, _), expected)| u32::from(**number) == *expected);
    domid + run.count() as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use super::unknown;

    const MOST: usize = 32;

    /// The numbers of unknown domains, and how often the host was asked.
    fn look(all: &[u32], known: impl IntoIterator<Item = u16>) -> (Vec<u32>, usize) {
        let known: BTreeMap<u16, u64> = known.into_iter().map(|domid| (domid, 0)).collect();
        let mut asked = 0;
        let found = unknown(&known, MOST, u32::clone, |first| {
            asked += 1;
            let found = all.iter().filter(|domid| **domid >= first);
            Ok::<_, Infallible>(found.take(MOST).copied().collect())
        });
        (found.unwrap(), asked)
    }

    #[test]
    fn unknown_domains_are_found_wherever_their_numbers_are() {
        let mut all: Vec<u32> = [3, 4].into_iter().chain(640..1640).collect();
        all.extend([1640, 1650, 32_751]);
        assert_eq!(look(&all, 640..1640), (vec![3, 4, 1640, 1650, 32_751], 2));
        assert_eq!(look(&all, []).0, all);
        assert_eq!(look(&[], [7]), (vec![], 1));
        // One in the midst of known ones, and known ones that are gone.
        let known = (640..1640).filter(|domid| *domid != 1000);
        assert_eq!(look(&all, known).0, [3, 4, 1000, 1640, 1650, 32_751]);
        assert_eq!(look(&[5, 6, 9], 1..9).0, [9]);
    }

    #[test]
    fn a_thousand_known_domains_take_as_many_calls_as_forty() {
        let many = |n: u16| look(&(1..=u32::from(n)).collect::<Vec<_>>(), 1..=n);
        assert_eq!((many(40), many(1000)), ((vec![], 2), (vec![], 2)));
    }

    #[test]
    fn known_domains_with_gaps_take_no_more_calls_than_a_list_of_all() {
        let all: Vec<u32> = (0..1000).map(|n| 1 + 2 * n).collect();
        let (found, asked) = look(&all, (0..1000).map(|n| 1 + 2 * n));
        assert_eq!((found, asked), (vec![], 1000 / MOST + 1));
    }
}
