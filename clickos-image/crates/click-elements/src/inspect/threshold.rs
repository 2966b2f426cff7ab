// SPDX-License-Identifier: Apache-2.0
//! How often a rule alerts, for each source or destination.
use alloc::collections::BTreeMap;

use super::rules::text::{fault, number};
use crate::guard::ends::Ends;
use crate::prelude::*;

/// Addresses that are counted; the one that was counted first is forgotten for a new one.
const MAX: usize = 1024;
const MAX_SECONDS: u32 = 86_400;
const SECOND_NS: u64 = 1_000_000_000;

/// What a threshold does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The first of a period alert; the rule holds for all.
    Limit,
    /// Each `count`th alerts, and the rule holds for those only.
    Threshold,
    /// The rule holds from the `count`th of a period on, which alerts once.
    Both,
    /// The rule holds behind the `count`th of a period.
    Filter,
}

/// A threshold of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    kind: Kind,
    by_destination: bool,
    count: u32,
    period_ns: u64,
}

/// What became of a packet for which a rule holds but for its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub holds: bool,
    pub alerts: bool,
}

impl Threshold {
    /// Reads the option `threshold` or `detection_filter`.
    pub fn of(keyword: &str, value: &str) -> Result<Self, String> {
        let filter = keyword == "detection_filter";
        let mut kind = filter.then_some(Kind::Filter);
        let (mut by, mut count, mut seconds) = (None, None, None);
        for item in value.split(',').map(str::trim) {
            let (name, text) = item.split_once(' ').unwrap_or((item, ""));
            match (name, text.trim()) {
                ("type", "limit") if !filter => kind = Some(Kind::Limit),
                ("type", "threshold") if !filter => kind = Some(Kind::Threshold),
                ("type", "both") if !filter => kind = Some(Kind::Both),
                ("track", "by_src") => by = Some(false),
                ("track", "by_dst") => by = Some(true),
                ("count", text) => count = Some(from_one("count", text, u32::MAX)?),
                ("seconds", text) => seconds = Some(from_one("seconds", text, MAX_SECONDS)?),
                _ => return Err(fault(keyword, item, "this word is not taken")),
            }
        }
        let (Some(kind), Some(by_destination), Some(count), Some(seconds)) =
            (kind, by, count, seconds)
        else {
            return Err(fault(
                keyword,
                value,
                "expected type, track, count and seconds",
            ));
        };
        Ok(Self {
            kind,
            by_destination,
            count,
            period_ns: u64::from(seconds) * SECOND_NS,
        })
    }
}

/// A number from 1.
fn from_one(keyword: &str, text: &str, most: u32) -> Result<u32, String> {
    match number(keyword, text, most)? {
        0 => Err(fault(keyword, text, "expected a number from 1")),
        number => Ok(number),
    }
}

/// Counts of a rule for an address in a period.
struct Counted {
    since_ns: u64,
    count: u32,
}

/// What was counted, by the rule's number and the address.
#[derive(Default)]
pub struct Counts {
    entries: BTreeMap<(u32, u128), Counted>,
    ages: BTreeMap<u64, (u32, u128)>,
    next: u64,
}

impl Counts {
    /// Counts a packet of a rule.
    pub fn count(&mut self, sid: u32, threshold: &Threshold, ends: &Ends, now_ns: u64) -> Verdict {
        let address = if threshold.by_destination {
            ends.destination
        } else {
            ends.source
        };
        let entry = self.entry((sid, address), now_ns);
        if now_ns.saturating_sub(entry.since_ns) >= threshold.period_ns {
            (entry.since_ns, entry.count) = (now_ns, 0);
        }
        entry.count = entry.count.saturating_add(1);
        let count = entry.count;
        let (holds, alerts) = match threshold.kind {
            Kind::Limit => (true, count <= threshold.count),
            Kind::Threshold => (count % threshold.count == 0, true),
            Kind::Both => (count >= threshold.count, count == threshold.count),
            Kind::Filter => (count > threshold.count, true),
        };
        Verdict { holds, alerts }
    }

    fn entry(&mut self, key: (u32, u128), now_ns: u64) -> &mut Counted {
        if !self.entries.contains_key(&key) {
            if self.entries.len() == MAX
                && let Some((_, oldest)) = self.ages.pop_first()
            {
                self.entries.remove(&oldest);
            }
            self.next += 1;
            self.ages.insert(self.next, key);
        }
        self.entries.entry(key).or_insert(Counted {
            since_ns: now_ns,
            count: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Ends = Ends {
        source: 1,
        destination: 2,
        sport: 3,
        dport: 4,
        protocol: 6,
    };

    fn verdicts(text: &str, times: &[u64]) -> Vec<(bool, bool)> {
        let threshold = Threshold::of("threshold", text).unwrap();
        let mut counts = Counts::default();
        let count = |at: &u64| counts.count(7, &threshold, &ENDS, at * SECOND_NS);
        times
            .iter()
            .map(count)
            .map(|v| (v.holds, v.alerts))
            .collect()
    }

    #[test]
    fn kinds_differ() {
        let limit = verdicts("type limit, track by_src, count 1, seconds 10", &[0, 1, 11]);
        assert_eq!(limit, [(true, true), (true, false), (true, true)]);
        let each = verdicts(
            "type threshold, track by_dst, count 2, seconds 10",
            &[0, 1, 2, 3],
        );
        assert_eq!(
            each.iter().map(|v| v.0).collect::<Vec<_>>(),
            [false, true, false, true]
        );
        let both = verdicts(
            "type both, track by_src, count 2, seconds 10",
            &[0, 1, 2, 20],
        );
        assert_eq!(
            both,
            [(false, false), (true, true), (true, false), (false, false)]
        );
        let filter = Threshold::of("detection_filter", "track by_src, count 1, seconds 1").unwrap();
        assert_eq!(filter.kind, Kind::Filter);
    }

    #[test]
    fn wrong_ones_are_named() {
        for wrong in [
            "",
            "type x, track by_src, count 1, seconds 1",
            "type limit, count 1",
        ] {
            assert!(Threshold::of("threshold", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_are_bounded_and_the_first_goes() {
        let threshold =
            Threshold::of("threshold", "type limit, track by_src, count 1, seconds 9").unwrap();
        let mut counts = Counts::default();
        let mut alerts = |source| {
            let ends = Ends { source, ..ENDS };
            counts.count(1, &threshold, &ends, 0).alerts
        };
        assert!(alerts(0) && !alerts(0));
        assert!((1..=MAX as u128).all(&mut alerts));
        assert!(alerts(0), "forgotten");
        assert!(!alerts(MAX as u128), "known");
        assert_eq!(counts.entries.len(), MAX);
        assert_eq!(counts.ages.len(), MAX);
    }
}
