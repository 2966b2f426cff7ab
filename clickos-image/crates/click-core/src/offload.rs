// SPDX-License-Identifier: Apache-2.0
//! Requests of elements for offload rules at a device (docs/adr/0083-offloaded-rules.md).
//!
//! Elements claim devices on the [`OffloadRegistry`]; the control thread brings the claims to the toolstack, and the
//! switch's hits back.
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt::Write as _;

/// Packets that matched one rule at the switch.
pub type Hits = Rc<Cell<u64>>;

/// The rules of an element: a line and a counter for each.
#[derive(Clone, Default)]
pub struct Rules(pub Vec<(String, Hits)>);

/// The toolstack's verdict on the request for a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It has not answered yet.
    #[default]
    Pending,
    /// The switch decides by the rules.
    Active,
    /// The reason of a refusal.
    Refused(String),
}

/// A table of the last requests, and its hits so far.
#[derive(Default)]
struct Version {
    number: u64,
    hits: Vec<Hits>,
    /// The table of the switch that counted, and its last counts.
    epoch: u64,
    counted: Vec<u64>,
}

#[derive(Default)]
struct DeviceClaims {
    /// The last claim counts.
    claims: Vec<(u64, Rules)>,
    /// The last versions: the one in force, and the request after it.
    versions: Vec<Version>,
    /// A claim changed after the last question.
    changed: bool,
    outcome: Outcome,
}

impl DeviceClaims {
    fn version(&self) -> u64 {
        self.versions.last().map_or(0, |version| version.number)
    }
}

/// Versions of a device whose hits may still come.
const VERSIONS: usize = 3;

/// The claims of all routers of a guest.
#[derive(Default)]
pub struct OffloadRegistry {
    slots: Vec<(u32, DeviceClaims)>,
    /// A device may ask.
    is_due: bool,
    last_claim: u64,
    last_version: u64,
}

/// A device's request for the toolstack.
pub struct OffloadRequest {
    /// The device.
    pub device: u32,
    /// The version, and the rules, a line each.
    pub text: String,
}

/// An element's claim, which ends with it.
pub struct OffloadClaim {
    registry: Rc<RefCell<OffloadRegistry>>,
    device: u32,
    number: u64,
}

impl OffloadClaim {
    /// Asks for rules at a device. The last element that claims a device counts.
    pub fn new(registry: &Rc<RefCell<OffloadRegistry>>, device: u32, rules: Rules) -> Self {
        let mut all = registry.borrow_mut();
        all.last_claim += 1;
        let number = all.last_claim;
        if all.slot(device).is_none() {
            all.slots.push((device, DeviceClaims::default()));
        }
        if let Some(slot) = all.slot(device) {
            slot.claims.push((number, rules));
            slot.changed = true;
        }
        all.is_due = true;
        drop(all);
        let registry = Rc::clone(registry);
        Self {
            registry,
            device,
            number,
        }
    }

    /// The outcome; none if another element claims the device, too.
    pub fn outcome(&self) -> Option<Outcome> {
        let registry = self.registry.borrow();
        let (_, slot) = registry
            .slots
            .iter()
            .find(|(device, _)| *device == self.device)?;
        let (last, _) = slot.claims.last()?;
        match slot.changed {
            _ if *last != self.number => None,
            true => Some(Outcome::Pending),
            false => Some(slot.outcome.clone()),
        }
    }
}

impl Drop for OffloadClaim {
    fn drop(&mut self) {
        let mut registry = self.registry.borrow_mut();
        if let Some(slot) = registry.slot(self.device) {
            slot.claims.retain(|(number, _)| *number != self.number);
            slot.changed = true;
        }
        registry.is_due = true;
    }
}

impl OffloadRegistry {
    fn slot(&mut self, device: u32) -> Option<&mut DeviceClaims> {
        let mut slots = self.slots.iter_mut();
        slots.find_map(|(number, slot)| (*number == device).then_some(slot))
    }

    /// True if [`OffloadRegistry::take_requests`] may have some.
    pub fn has_requests(&self) -> bool {
        self.is_due
    }

    /// The requests that the toolstack does not know yet. A device whose last request has no answer waits:
    /// each answer has the last hits of the version before.
    pub fn take_requests(&mut self) -> Vec<OffloadRequest> {
        self.is_due = false;
        let (slots, last) = (&mut self.slots, &mut self.last_version);
        let requests = slots.iter_mut().filter_map(|(device, slot)| {
            let device = *device;
            let text = slot.ask(last)?;
            Some(OffloadRequest { device, text })
        });
        requests.collect()
    }

    /// The devices with requests.
    pub fn devices(&self) -> Vec<u32> {
        self.slots.iter().map(|(device, _)| *device).collect()
    }

    /// Lets each device send its request again: the store is that of a new domain.
    pub fn resend_all(&mut self) {
        for (_, slot) in &mut self.slots {
            slot.outcome = Outcome::Refused(String::new());
            slot.changed = true;
        }
        self.is_due = true;
    }

    /// Takes the toolstack's answer: a line `VERSION ok` or `VERSION REASON`, then for each table a line
    /// `VERSION EPOCH HITS...`, the table in force last.
    pub fn answer(&mut self, device: u32, text: &str) {
        let Some(slot) = self.slot(device) else {
            return;
        };
        let mut lines = text.lines();
        let (number, outcome) = lines
            .next()
            .and_then(|l| l.split_once(' '))
            .unwrap_or(("", ""));
        lines.for_each(|line| slot.count(line));
        if number.parse() == Ok(slot.version()) && slot.version() != 0 {
            slot.outcome = match outcome {
                "ok" => Outcome::Active,
                reason => Outcome::Refused(reason.into()),
            };
            self.is_due = true;
        }
    }
}

impl DeviceClaims {
    /// The next version, if there is one to ask for.
    fn ask(&mut self, last: &mut u64) -> Option<String> {
        let waits = self.outcome == Outcome::Pending && !self.versions.is_empty();
        if waits || !self.changed {
            return None;
        }
        (self.changed, self.outcome) = (false, Outcome::Pending);
        *last += 1;
        let mut text = String::new();
        let _ = writeln!(text, "{last}");
        let mut hits = Vec::new();
        for (rule, counter) in self.claims.last().iter().flat_map(|(_, rules)| &rules.0) {
            let _ = writeln!(text, "{rule}");
            hits.push(Rc::clone(counter));
        }
        let number = *last;
        let version = Version {
            number,
            hits,
            ..Version::default()
        };
        self.versions.push(version);
        let old = self.versions.len().saturating_sub(VERSIONS);
        self.versions.drain(..old);
        Some(text)
    }

    fn count(&mut self, line: &str) {
        let mut numbers = line.split(' ').map_while(|n| n.parse::<u64>().ok());
        let (Some(number), Some(epoch)) = (numbers.next(), numbers.next()) else {
            return;
        };
        let mut versions = self.versions.iter_mut();
        let Some(version) = versions.find(|version| version.number == number) else {
            return;
        };
        if version.epoch != epoch {
            version.epoch = epoch;
            version.counted = alloc::vec![0; version.hits.len()];
        }
        let counts = version.hits.iter().zip(&mut version.counted);
        for ((hits, counted), now) in counts.zip(numbers) {
            hits.set(hits.get() + now.saturating_sub(*counted));
            *counted = now.max(*counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    fn rules(texts: &[&str]) -> Rules {
        Rules(
            texts
                .iter()
                .map(|t| (t.to_string(), Hits::default()))
                .collect(),
        )
    }

    fn request(registry: &Rc<RefCell<OffloadRegistry>>) -> String {
        let requests = registry.borrow_mut().take_requests();
        requests.into_iter().map(|request| request.text).collect()
    }

    #[test]
    fn hits_of_two_versions_and_of_two_switches_add_up() {
        let registry = Rc::default();
        let one = rules(&["drop", "pass"]);
        let claim = OffloadClaim::new(&registry, 0, one.clone());
        assert_eq!(request(&registry), "1\ndrop\npass\n");
        assert_eq!(claim.outcome(), Some(Outcome::Pending));
        let answer = |text: &str| registry.borrow_mut().answer(0, text);
        answer("1 ok\n1 100 5 0");
        answer("1 ok\n1 100 7 1");
        answer("1 ok\n1 100 6 1"); // A count goes never back.
        answer("1 ok\n1 200 2 0"); // Another valed.
        assert_eq!(claim.outcome(), Some(Outcome::Active));
        let get = || one.0.iter().map(|(_, hits)| hits.get()).collect::<Vec<_>>();
        assert_eq!(get(), [9, 1]);
        // The next version counts on by the same counter.
        let next = Rules(one.0[..1].to_vec());
        let second = OffloadClaim::new(&registry, 0, next);
        drop(claim);
        assert_eq!(request(&registry), "2\ndrop\n");
        answer("2 ok\n1 200 4 3\n2 300 10");
        assert_eq!(get(), [21, 4]);
        drop(second);
        assert_eq!(request(&registry), "3\n");
        answer("3 ok\n2 300 11");
        assert_eq!(get(), [22, 4]);
    }

    #[test]
    fn a_request_waits_for_the_answer_of_the_one_before() {
        let registry = Rc::default();
        let first = OffloadClaim::new(&registry, 0, rules(&["drop"]));
        assert_eq!(request(&registry), "1\ndrop\n");
        let second = OffloadClaim::new(&registry, 0, rules(&["pass"]));
        assert_eq!((request(&registry).as_str(), first.outcome()), ("", None));
        registry.borrow_mut().answer(0, "1 vale0:p: no such port");
        assert_eq!(request(&registry), "2\npass\n");
        registry.borrow_mut().answer(0, "2 full");
        assert_eq!(second.outcome(), Some(Outcome::Refused("full".into())));
        registry.borrow_mut().resend_all();
        assert_eq!(request(&registry), "3\npass\n");
    }

    #[test]
    fn a_hostile_answer_changes_no_counter_of_others() {
        let registry = Rc::default();
        let one = rules(&["drop"]);
        let _claim = OffloadClaim::new(&registry, 0, one.clone());
        request(&registry);
        let long = format!("1 ok\n1 1 {}", "9 ".repeat(5000));
        for text in [
            "",
            " ",
            "1",
            "x ok",
            "1 ok\n1 1 -4",
            "1 ok\n7 1 5",
            "1 ok\n1 x 5",
            "1 ok\n1",
        ] {
            registry.borrow_mut().answer(0, text);
            registry.borrow_mut().answer(9, text);
            assert_eq!(one.0[0].1.get(), 0, "{text:?}");
        }
        registry.borrow_mut().answer(0, &long);
        assert_eq!(one.0[0].1.get(), 9);
    }
}
