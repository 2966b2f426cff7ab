// SPDX-License-Identifier: Apache-2.0
//! The numbered changes of one guest (docs/adr/0071): the newest number, the verdicts, and the
//! changes that the guest has not answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clickos_protocol::{Marks, WRITES_MAX};
use cosmos_proto::answer::{Applied, Changes, Refusal};
use cosmos_proto::{ChangeId, History, Passing, VERDICTS};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::error::{Code, Error, Result};
use crate::spec::{Spec, Uuid, random_bytes};

/// Changes that may wait for the guest's answer.
const PENDING: usize = 8;
/// Characters of a refusal that are kept.
const MESSAGE: usize = 600;
/// Bytes of a verdict in the file at most, without marks: four for each character of a refusal, its
/// other fields.
const VERDICT_BYTES: usize = 4 * MESSAGE + 200;
/// The same of a mark: a place below [`WRITES_MAX`] and a comma.
const MARK_BYTES: usize = 5;
/// JSON readers hold numbers below this exactly.
const MAX_NUMBER: u64 = 1 << 53;
const NONE: &str = "00000000-0000-4000-8000-000000000000";
const PENDING_KEY: &str = "pending_changes";
/// The key before 1.0. Files have both for one release, so that an older cosmosd reads them.
const OLD_PENDING_KEY: &str = "begun";

/// The nodes of a change in the Xen store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeNode {
    Request { rid: u8, seq: u32 },
    Install { rid: u8, generation: u64 },
}

impl ChangeNode {
    /// True for the request with these names of nodes.
    pub fn is_request(self, of: &str, number: &str) -> bool {
        match self {
            Self::Request { rid, seq } => rid.to_string() == of && seq.to_string() == number,
            Self::Install { .. } => false,
        }
    }
}

/// A change that the guest has not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingChange {
    pub number: u64,
    pub place: ChangeNode,
    /// The guest's words are not kept.
    #[serde(default)]
    pub has_secrets: bool,
    /// The number of writes, of which the guest may mark each once.
    #[serde(default = "most_writes")]
    pub writes: usize,
}

/// For a change of an earlier cosmosd.
fn most_writes() -> usize {
    WRITES_MAX
}

impl PendingChange {
    fn refusal(&self, error: Error) -> Refusal {
        let error = error.of_write(self.has_secrets);
        Refusal {
            number: self.number,
            code: error.code.as_str().to_owned(),
            message: error.message.chars().take(MESSAGE).collect(),
        }
    }
}

/// The part of a ledger that is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerState {
    pub incarnation: Uuid,
    pub newest: u64,
    pub applied: Vec<u64>,
    pub refused: Vec<Refusal>,
    #[serde(rename = "pending_changes", alias = "begun")]
    pub pending: Vec<PendingChange>,
    /// The ports stay down.
    pub held: bool,
    /// Another host has the guest, or may have it.
    #[serde(default, rename = "has_left")]
    pub migrated_away: bool,
    /// The writes of applied changes that are no values.
    #[serde(default)]
    pub passing: Vec<Passing>,
}

impl Default for LedgerState {
    fn default() -> Self {
        Self {
            incarnation: Uuid::try_from(NONE.to_owned()).expect("it has the form of one"),
            newest: 0,
            applied: Vec::new(),
            refused: Vec::new(),
            pending: Vec::new(),
            held: false,
            migrated_away: false,
            passing: Vec::new(),
        }
    }
}

impl LedgerState {
    /// The contents of a file.
    ///
    /// # Errors
    /// Those of the parser.
    pub fn of_file(text: &[u8]) -> serde_json::Result<Self> {
        let mut file: Value = serde_json::from_slice(text)?;
        if let Some(keys) = file.as_object_mut() {
            if keys.contains_key(PENDING_KEY) {
                keys.remove(OLD_PENDING_KEY);
            }
        }
        serde_json::from_value(file)
    }

    pub fn to_file(&self) -> Vec<u8> {
        let mut file = serde_json::to_value(self).expect("a ledger holds only plain data");
        file[OLD_PENDING_KEY] = file[PENDING_KEY].clone();
        file.to_string().into_bytes()
    }

    /// The ledger of a guest that starts.
    pub fn of(spec: &Spec) -> Result<Self> {
        Ok(Self {
            incarnation: random_bytes().map(|bits| Uuid::of_random(u128::from_ne_bytes(bits)))?,
            newest: spec.number,
            held: spec.hold,
            ..Self::default()
        })
    }

    /// The ledger of a guest that has come from another host.
    ///
    /// # Errors
    /// `bad-request` for a number that no change can have.
    pub fn arrived(history: &History) -> Result<Self> {
        let numbers = history.applied.iter().chain([&history.newest]);
        numbers.copied().try_for_each(check_number)?;
        Ok(Self {
            incarnation: history.incarnation.clone(),
            newest: history.newest,
            applied: history.applied.clone(),
            passing: history.passing.clone(),
            ..Self::default()
        })
    }

    pub fn history(&self) -> History {
        History {
            incarnation: self.incarnation.clone(),
            newest: self.newest,
            applied: self.applied.clone(),
            passing: self.passing.clone(),
        }
    }

    /// Refuses changes of a guest that is on another host.
    pub fn check_here(&self) -> Result<()> {
        match self.migrated_away {
            false => Ok(()),
            true => Err(Error::new(Code::Stale, "the guest moved to another host")),
        }
    }

    /// Refuses to move a guest whose state may not be the newest, or that another host has.
    pub fn check_movable(&self) -> Result<()> {
        match self.held {
            false => self.check_here(),
            true => Err(Error::new(Code::Busy, "the guest waits for its release")),
        }
    }

    /// Refuses a change that came too late, or is for an earlier start of the guest.
    pub fn check(&self, change_id: &ChangeId) -> Result<()> {
        let ChangeId {
            number,
            incarnation,
        } = change_id;
        check_number(*number)?;
        if incarnation.as_ref().is_some_and(|i| *i != self.incarnation) {
            return Err(stale(*number, "the guest has restarted since"));
        }
        if self.applied.contains(number) {
            return Err(stale(*number, "it is applied already"));
        }
        if *number <= self.newest {
            return Err(stale(*number, "a later change came first"));
        }
        if self.pending.len() >= PENDING {
            let message = format!("the guest has not answered {PENDING} earlier changes");
            return Err(Error::new(Code::Busy, message));
        }
        Ok(())
    }

    pub fn begin(&mut self, change: PendingChange) {
        self.newest = self.newest.max(change.number);
        self.pending.push(change);
    }

    /// Bytes that the verdicts of the changes under way add to the file.
    pub fn later_bytes(&self) -> usize {
        let bytes = |each: &PendingChange| VERDICT_BYTES + each.writes * MARK_BYTES;
        self.pending.iter().map(bytes).sum()
    }

    /// Notes a verdict; returns the place of the change, or nothing if it has a verdict already.
    pub fn close(&mut self, number: u64, verdict: &Result<Marks>) -> Option<ChangeNode> {
        let at = self.pending.iter().position(|each| each.number == number)?;
        let change = self.pending.remove(at);
        match verdict {
            Ok(marks) => {
                push(&mut self.applied, number);
                self.applied.sort_unstable();
                self.mark(number, marks.clone().within(change.writes));
            }
            Err(error) => push(&mut self.refused, change.refusal(error.clone())),
        }
        Some(change.place)
    }

    /// Notes which writes of an applied change are no values.
    fn mark(&mut self, number: u64, marks: Marks) {
        if !marks.is_empty() {
            self.passing.push(Passing {
                number,
                commands: marks.commands,
                edits: marks.edits,
            });
        }
        let applied = &self.applied;
        self.passing.retain(|each| applied.contains(&each.number));
    }

    pub fn accepted(&self) -> Applied {
        Applied {
            applied: self.applied.clone(),
            incarnation: Some(self.incarnation.clone()),
            passing: self.passing.clone(),
        }
    }

    pub fn changes(&self) -> Changes {
        Changes {
            incarnation: self.incarnation.clone(),
            newest: self.newest,
            applied: self.applied.clone(),
            refused: self.refused.clone(),
            pending: self.pending.iter().map(|each| each.number).collect(),
            passing: self.passing.clone(),
        }
    }
}

fn push<T>(list: &mut Vec<T>, entry: T) {
    list.push(entry);
    if list.len() > VERDICTS {
        list.remove(0);
    }
}

fn check_number(number: u64) -> Result<()> {
    match number < MAX_NUMBER {
        true => Ok(()),
        false => Err(Error::bad_request(format!(
            "number: {number} is above the limit of {MAX_NUMBER}"
        ))),
    }
}

fn stale(number: u64, why: &str) -> Error {
    Error::new(Code::Stale, format!("change {number}: {why}; try again"))
}

/// A guest's ledger, and whose turn it is to send a numbered change.
#[derive(Default)]
pub struct Ledger {
    state: Mutex<LedgerState>,
    changes: Mutex<()>,
    /// The guest was undone: its file is another guest's now, or gone.
    has_ended: AtomicBool,
}

impl Ledger {
    pub fn of(state: LedgerState) -> Self {
        Self {
            state: Mutex::new(state),
            changes: Mutex::default(),
            has_ended: AtomicBool::default(),
        }
    }

    /// Refuses changes from now on, if `last` removes the rest of the guest.
    ///
    /// # Errors
    /// Those of `last`.
    pub fn end<T>(&self, last: impl FnOnce() -> Result<T>) -> Result<T> {
        let _state = self.state();
        let done = last()?;
        self.has_ended.store(true, Ordering::Relaxed);
        Ok(done)
    }

    /// The ledger, to be changed.
    ///
    /// # Errors
    /// `dead-guest` after its end.
    pub fn open_state(&self) -> Result<MutexGuard<'_, LedgerState>> {
        let ledger = self.state();
        match self.has_ended.load(Ordering::Relaxed) {
            false => Ok(ledger),
            true => Err(Error::new(Code::DeadGuest, "the guest was destroyed")),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other numbered change is on its way to the guest.
    pub fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{spec, uuid};

    fn change_id(number: u64) -> ChangeId {
        ChangeId {
            number,
            incarnation: None,
        }
    }

    fn pending(number: u64) -> PendingChange {
        PendingChange {
            number,
            place: ChangeNode::Request { rid: 0, seq: 1 },
            has_secrets: false,
            writes: WRITES_MAX,
        }
    }

    fn word(checked: Result<()>) -> &'static str {
        checked.map_or_else(|error| error.code.as_str(), |()| "taken")
    }

    #[test]
    fn older_and_repeated_numbers_are_refused() {
        let mut ledger = LedgerState::of(&Spec {
            number: 5,
            ..spec(1)
        })
        .unwrap();
        assert_eq!(word(ledger.check(&change_id(5))), "stale");
        assert_eq!(word(ledger.check(&change_id(1 << 53))), "bad-request");
        ledger.check(&change_id(7)).unwrap();
        ledger.begin(pending(7));
        assert_eq!(ledger.changes().pending, [7]);
        assert_eq!(word(ledger.check(&change_id(6))), "stale");
        ledger.close(7, &Ok(Marks::default()));
        assert!(
            ledger
                .check(&change_id(7))
                .unwrap_err()
                .message
                .contains("applied already")
        );
        assert_eq!(ledger.changes().applied, [7]);
    }

    #[test]
    fn the_file_has_the_keys_that_other_versions_read() {
        let mut ledger = LedgerState::default();
        ledger.begin(pending(7));
        let file: Value = serde_json::from_slice(&ledger.to_file()).unwrap();
        assert!(file["has_left"].is_boolean());
        for key in [PENDING_KEY, OLD_PENDING_KEY] {
            assert_eq!(file[key][0]["number"], 7, "{key}");
        }
        // A file of this release, of the one before, and of the next one.
        for left_out in ["", PENDING_KEY, OLD_PENDING_KEY] {
            let mut file = file.clone();
            file.as_object_mut().unwrap().remove(left_out);
            let read = LedgerState::of_file(file.to_string().as_bytes());
            assert_eq!(read.unwrap(), ledger, "without {left_out:?}");
        }
    }

    #[test]
    fn a_change_for_an_earlier_start_is_refused() {
        let ledger = LedgerState::of(&spec(1)).unwrap();
        let mut change_id = change_id(1);
        change_id.incarnation = Some(uuid(9));
        assert_eq!(word(ledger.check(&change_id)), "stale");
        change_id.incarnation = Some(ledger.incarnation.clone());
        ledger.check(&change_id).unwrap();
        assert_ne!(
            ledger.incarnation,
            LedgerState::of(&spec(1)).unwrap().incarnation
        );
    }

    #[test]
    fn the_largest_verdicts_fit_in_the_room_that_is_held_for_them() {
        let places = (0..WRITES_MAX as u16).rev();
        let commands: Vec<_> = places.clone().chain(places.clone()).collect();
        let marks = Marks {
            edits: commands.clone(),
            commands,
        };
        let refusal = Error::new(Code::HandlerError, "\u{1f600}".repeat(MESSAGE));
        for verdict in [Ok(marks), Err(refusal)] {
            let mut ledger = LedgerState::default();
            (0..PENDING as u64).for_each(|n| ledger.begin(pending(MAX_NUMBER - 1 - n)));
            let bytes = |ledger: &LedgerState| ledger.to_file().len();
            let room = bytes(&ledger) + ledger.later_bytes();
            (0..PENDING as u64).for_each(|n| {
                ledger.close(MAX_NUMBER - 1 - n, &verdict).unwrap();
            });
            assert!(bytes(&ledger) <= room, "{} > {room}", bytes(&ledger));
        }
    }

    #[test]
    fn a_ledger_is_bounded() {
        let mut ledger = LedgerState::default();
        for number in 1..=8 {
            ledger.begin(pending(number));
        }
        assert_eq!(word(ledger.check(&change_id(9))), "busy");
        for number in 1..=100 {
            for verdict in [
                Ok(Marks {
                    commands: vec![0],
                    edits: vec![],
                }),
                Err(Error::new(Code::HandlerError, "x".repeat(9000))),
            ] {
                ledger.pending.clear();
                ledger.begin(pending(number));
                assert!(ledger.close(number, &verdict).is_some());
                assert_eq!(ledger.close(number, &verdict), None);
            }
        }
        assert_eq!(ledger.applied.len(), VERDICTS);
        assert_eq!(ledger.passing.len(), VERDICTS);
        assert_eq!(ledger.refused.len(), VERDICTS);
        assert_eq!(ledger.refused[0].message.len(), MESSAGE);
    }
}
