// SPDX-License-Identifier: Apache-2.0
//! Flows as other guests get them: what the handlers `state` and `changes` of all elements with flows share.
use core::ops::Range;

use click_core::sort;

use super::changes::Changes;
use crate::carried;
use crate::prelude::*;

/// No flow's text is longer, whatever happened to its sequence numbers.
const LINE_BYTES: usize = 1024;
/// The most places of a part of the table, so that the part fits into an answer to the toolstack.
const MAX_PART: usize = 256;
/// A copy may be this old when it arrives, since the message with it is repeated until it is confirmed.
const LATE_NS: u64 = 3_000_000_000;

/// The flows of an element in their table.
pub trait Copied {
    /// The first line of their text.
    fn head(&self) -> &'static str;
    /// The owners whose flows they are.
    fn owners(&self) -> Range<u16>;
    /// Slots of the table that were used once.
    fn used(&self) -> u32;
    /// The owner of the flow in a slot, and the time of its last packet; `None` if the slot is free.
    fn heard(&self, slot: u32) -> Option<(u16, u64)>;
    /// The line of a flow.
    fn line(&self, slot: u32, now_ns: u64) -> String;
    /// Which flows of the table changed, once another guest has asked for them.
    fn changes(&mut self) -> &mut Option<Box<Changes>>;
}

/// True if a flow that was heard of at a time gives way to another guest's. If it is a copy itself, that other
/// guest knows more of it, and the age of the older copy may be wrong.
pub fn is_older(heard_ns: u64, is_copy: bool, than_ns: u64) -> bool {
    let late_ns = if is_copy { LATE_NS } else { 0 };
    heard_ns < than_ns.saturating_add(late_ns)
}

/// The value of the handler `state`: without a parameter the newest flows that fit, with a number those in this part of
/// the table. A flow keeps its place, so it is in one part.
pub fn state(flows: &dyn Copied, view: &View<'_>) -> Text {
    let now_ns = view.now_ns();
    let slots = match view.param() {
        "" => 0..flows.used(),
        part => {
            let places = view.arg_context().environment.limits.answer_bytes / LINE_BYTES;
            match part_slots(view.parse(part)?, places, flows.used()) {
                Some(slots) => slots,
                None => return Ok(String::new()),
            }
        }
    };
    let own = |slot: u32| {
        let (owner, heard_ns) = flows.heard(slot)?;
        let is_own = flows.owners().contains(&owner);
        is_own.then_some((heard_ns, slot))
    };
    let mut order: Vec<(u64, u32)> = slots.filter_map(own).collect();
    sort::by(&mut order, Ord::cmp);
    let newest = order.iter().rev();
    let lines = newest.map(|(_, slot)| flows.line(*slot, now_ns));
    Ok(carried::render(flows.head(), view, lines))
}

fn part_slots(part: usize, places: usize, used: u32) -> Option<Range<u32>> {
    let places = places.clamp(1, MAX_PART);
    let first = u32::try_from(part.checked_mul(places)?).ok()?;
    let end = used.min(first.saturating_add(places as u32));
    (first < end).then_some(first..end)
}

/// What a reading of the handler `changes` asks for: as much as fits into that many bytes, or `None` for `all`, by which
/// all counts as changed.
pub fn wanted(view: &View<'_>) -> Result<Option<usize>, HandlerError> {
    match view.param() {
        "all" => Ok(None),
        bytes => {
            let most = view.arg_context().environment.limits.answer_bytes;
            Ok(Some(view.parse::<usize>(bytes)?.min(most)))
        }
    }
}

/// The value of the handler `changes`: changed flows; nothing after `all`. The first time all flows count as changed, too.
pub fn changes(flows: &mut dyn Copied, view: &View<'_>) -> Text {
    let wanted = wanted(view)?;
    if wanted.is_none() || flows.changes().is_none() {
        list_all(flows);
    }
    Ok(wanted.map_or_else(String::new, |bytes| changed(flows, view.now_ns(), bytes)))
}

fn list_all(flows: &mut dyn Copied) {
    flows.changes().get_or_insert_default();
    (0..flows.used()).for_each(|slot| note(flows, slot));
}

fn note(flows: &mut dyn Copied, slot: u32) {
    if let (Some((owner, _)), Some(changes)) = (flows.heard(slot), flows.changes()) {
        changes.note(owner, slot);
    }
}

/// Flows with packets count as changed now and then, so that copies of them do not time out.
fn sweep(flows: &mut dyn Copied, now_ns: u64) {
    let used = flows.used();
    let Some(changes) = flows.changes() else {
        return;
    };
    let (slots, since_ns) = changes.step(used, now_ns);
    for slot in slots {
        if flows.heard(slot).is_some_and(|(_, at_ns)| at_ns > since_ns) {
            note(flows, slot);
        }
    }
}

/// The slot of a changed flow of an owner. It does not count as changed any more.
fn take(flows: &mut dyn Copied, owner: u16) -> Option<u32> {
    loop {
        let slot = flows.changes().as_mut()?.take(owner)?;
        match flows.heard(slot) {
            Some((found, _)) if found == owner => return Some(slot),
            // the slot has the flow of another owner now, or none
            _ => note(flows, slot),
        }
    }
}

/// Changed flows, as many as fit; nothing if there is nothing.
fn changed(flows: &mut dyn Copied, now_ns: u64, bytes: usize) -> String {
    sweep(flows, now_ns);
    let mut text = String::new();
    for owner in flows.owners() {
        while let Some(slot) = take(flows, owner) {
            let line = flows.line(slot, now_ns);
            let head = match text.as_str() {
                "" => flows.head(),
                _ => "",
            };
            if text.len() + head.len() + line.len() + 2 > bytes {
                // a flow whose line fits nowhere is not copied
                if let (false, Some(changes)) = (text.is_empty(), flows.changes()) {
                    changes.put_back(owner, slot);
                }
                return text;
            }
            if text.is_empty() {
                text = format!("{head}\n");
            }
            text += &line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_gives_way_to_a_later_one_that_was_not_delayed() {
        assert!(is_older(100, false, 101) && !is_older(100, false, 100));
        assert!(is_older(100 + LATE_NS, true, 101) && !is_older(101 + LATE_NS, true, 101));
    }

    #[test]
    fn parts_have_each_slot_once() {
        assert_eq!(part_slots(0, 10, 25), Some(0..10));
        assert_eq!(part_slots(2, 10, 25), Some(20..25));
        assert_eq!((part_slots(3, 10, 25), part_slots(0, 10, 0)), (None, None));
        assert_eq!(part_slots(usize::MAX, 10, 25), None);
    }
}
