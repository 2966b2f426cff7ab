// SPDX-License-Identifier: Apache-2.0
//! How far sequence numbers of a TCP connection have moved because the length of its text was changed.
use crate::prelude::*;

/// Changes that are remembered for one direction; older ones count for all earlier numbers.
const MAX: usize = 16;
/// A change is over when numbers are so far beyond it.
const OVER: u32 = 1 << 30;

/// From a sequence number on, how far numbers have moved in all.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: u32,
    by: i32,
}

/// The changes of one direction.
#[derive(Clone, Debug, Default)]
pub struct Shift {
    /// The shift before the first step.
    before: i32,
    steps: Vec<Step>,
}

/// True if `a` is at or behind `b` (RFC 793, 3.3).
fn reached(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

impl Shift {
    /// Text that ends at `from` has become longer by `by`. Packets from before the last change do
    /// not count.
    pub fn add(&mut self, from: u32, by: i32) {
        if self
            .steps
            .last()
            .is_some_and(|last| !reached(from, last.from))
        {
            return;
        }
        // a packet that came again
        if self.steps.last().is_some_and(|last| last.from == from) {
            self.steps.pop();
        }
        let by = self.now().wrapping_add(by);
        self.steps.push(Step { from, by });
        let old = self
            .steps
            .iter()
            .take_while(|s| reached(from, s.from.wrapping_add(OVER)));
        let old = old.count().max(self.steps.len().saturating_sub(MAX));
        if let Some(last) = self.steps.drain(..old).next_back() {
            self.before = last.by;
        }
    }

    /// How far numbers have moved by now.
    pub fn now(&self) -> i32 {
        self.steps.last().map_or(self.before, |step| step.by)
    }

    /// True if anything has moved.
    pub fn is_any(&self) -> bool {
        self.before != 0 || !self.steps.is_empty()
    }

    /// The shift as a word: that before the first step, and each step.
    pub fn to_text(&self) -> String {
        let steps = self.steps.iter();
        let steps = steps.map(|step| format!("/{}:{}", step.from, step.by));
        steps.fold(format!("{}", self.before), |text, step| text + &step)
    }

    /// Reads such a word.
    pub fn from_text(text: &str) -> Option<Self> {
        let (before, steps) = text.split_once('/').unwrap_or((text, ""));
        let step = |text: &str| {
            let (from, by) = text.split_once(':')?;
            Some(Step {
                from: from.parse().ok()?,
                by: by.parse().ok()?,
            })
        };
        let steps = steps.split_terminator('/').take(MAX + 1).map(step);
        let steps = steps.collect::<Option<Vec<_>>>()?;
        let before = before.parse().ok()?;
        (steps.len() <= MAX).then_some(Self { before, steps })
    }

    /// A packet with this number was seen: changes long before it are over.
    pub fn seen(&mut self, sequence: u32) {
        let last = self.steps.last();
        if last.is_some_and(|last| reached(sequence, last.from.wrapping_add(OVER))) {
            self.before = self.now();
            self.steps.clear();
        }
    }

    /// The number a sender's number becomes.
    pub fn forward(&self, sequence: u32) -> u32 {
        let step = self
            .steps
            .iter()
            .rev()
            .find(|step| reached(sequence, step.from));
        sequence.wrapping_add_signed(step.map_or(self.before, |step| step.by))
    }

    /// The number a receiver's acknowledgement becomes.
    pub fn backward(&self, acknowledged: u32) -> u32 {
        let original = |by: i32| acknowledged.wrapping_sub(by as u32);
        let step = self
            .steps
            .iter()
            .rev()
            .find(|step| reached(original(step.by), step.from));
        original(step.map_or(self.before, |step| step.by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_move_from_a_change_on() {
        let mut shift = Shift::default();
        assert!(!shift.is_any());
        shift.add(30, -12);
        assert!(shift.is_any());
        assert_eq!((shift.forward(29), shift.forward(30)), (29, 18));
        assert_eq!((shift.backward(17), shift.backward(18)), (17, 30));
        shift.add(65, -12);
        assert_eq!((shift.forward(36), shift.forward(65)), (24, 41));
        shift.add(65, -12);
        assert_eq!(shift.forward(65), 41, "the same packet again");
        shift.add(64, 5);
        assert_eq!(shift.forward(65), 41, "earlier than the last");
        shift.seen(1_100_000_000);
        assert_eq!(
            (shift.forward(0), shift.backward(0)),
            (0u32.wrapping_sub(24), 24)
        );
    }

    #[test]
    fn a_shift_is_a_word() {
        let mut shift = Shift::default();
        assert_eq!(shift.to_text(), "0");
        shift.add(30, -12);
        shift.add(65, 7);
        assert_eq!(shift.to_text(), "0/30:-12/65:-5");
        let same = Shift::from_text(&shift.to_text()).unwrap();
        assert_eq!((same.forward(65), same.backward(18)), (60, 30));
        let many = format!("0{}", "/1:1".repeat(MAX + 1));
        for bad in ["", "x", "0/1", "0/1:x", "99999999999", &many] {
            assert!(Shift::from_text(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn old_changes_are_summed_up() {
        let mut shift = Shift::default();
        (1..1000u32).for_each(|n| shift.add(n * 100, 1));
        assert_eq!(shift.steps.len(), MAX);
        assert_eq!((shift.forward(99_999), shift.now()), (99_999 + 999, 999));
        shift.add(2_000_000_000, 1);
        assert_eq!((shift.steps.len(), shift.before), (1, 999));
    }
}
