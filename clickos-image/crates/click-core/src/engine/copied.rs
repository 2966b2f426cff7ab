// SPDX-License-Identifier: Apache-2.0
//! Handlers of elements that have copies on all threads: a name stands for all copies.
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::together::Writes;
use crate::error::HandlerError;

/// The end of the names of handlers that tell state which has changed since the last read.
const CHANGES: &str = ".changes";
/// Answers of all copies together have no more bytes: a guest's answer takes as many.
const JOINED_BYTES: usize = 256 << 10;

impl Engine {
    /// The handler's name on a thread, if its element has copies.
    fn on_thread(&self, thread: usize, handler: &str) -> Option<String> {
        let (element, name) = handler.rsplit_once('.')?;
        let element = self.plan.copies.name_on(thread, element)?;
        Some(format!("{element}.{name}"))
    }

    /// The name of a handler of thread 0's copy, if it is called by that.
    fn of_first<'a>(&self, handler: &'a str) -> Cow<'a, str> {
        let first = || {
            let (element, name) = handler.rsplit_once('.')?;
            let has_it = self.slots.iter().any(|slot| slot.name == element);
            let element = self.plan.spread.on_first(element).filter(|_| !has_it)?;
            Some(format!("{element}.{name}"))
        };
        first().map_or(Cow::Borrowed(handler), Cow::Owned)
    }

    /// Reads a handler of all copies.
    pub(crate) fn read_copies(&mut self, name: &str, param: &str) -> Result<String, HandlerError> {
        if self.plan.copies.is_empty() {
            return self.read_one(name, param);
        }
        let is_value = match (self.on_thread(0, name), self.answers_for_class(name)) {
            (Some(_), Some(is_value)) => is_value,
            _ => return self.read_one(&self.of_first(name), param),
        };
        let copies = self.plan.copies.threads();
        let is_changes = name.ends_with(CHANGES);
        // One copy after another has all bytes that are asked for: a flow whose line is longer than a part of them
        // would never be copied.
        let is_part = is_changes && param.parse::<usize>().is_ok();
        let first = match is_part {
            true => (self.reads % copies as u64) as usize,
            false => 0,
        };
        let mut texts = Vec::new();
        for thread in (first..copies).chain(0..first) {
            let Some(name) = self.on_thread(thread, name) else {
                break;
            };
            self.reads += 1;
            let text = match self.read_elsewhere(&name, param, copies) {
                Some(text) => text,
                None => self.read_copy(&name, param, copies),
            };
            texts.push(text?);
            if is_part && texts.last().is_some_and(|text| !text.is_empty()) {
                break;
            }
        }
        Ok(joined(texts, is_value || is_changes))
    }

    /// Reads a handler of this thread's copy, whose answer leaves room for those of the others.
    pub(crate) fn read_copy(
        &mut self,
        name: &str,
        param: &str,
        copies: usize,
    ) -> Result<String, HandlerError> {
        let all = self.environment.limits.answer_bytes;
        if copies > 1 {
            self.environment.limits.answer_bytes = all.min(JOINED_BYTES) / copies;
        }
        let text = self.read_own(name, param);
        self.environment.limits.answer_bytes = all;
        text
    }

    /// The handlers that writes are about, those of elements with copies on all threads.
    pub(crate) fn of_copies(&self, writes: &[(&str, &[u8])]) -> Writes {
        let threads = self.plan.copies.threads();
        let copies = |(name, value): &(&str, &[u8])| -> Writes {
            let of_copy = |thread| Some((self.on_thread(thread, name)?, value.to_vec()));
            let mut all: Writes = (0..threads).map_while(of_copy).collect();
            if all.is_empty() {
                all.push((self.of_first(name).into_owned(), value.to_vec()));
            }
            all
        };
        writes.iter().flat_map(copies).collect()
    }

    /// True if a handler can be written, too. None if the engine answers it, so that one answer stands for all copies.
    fn answers_for_class(&self, name: &str) -> Option<bool> {
        match self.is_common(name) {
            true => None,
            false => self.info(name).ok().map(|info| info.write),
        }
    }
}

/// One text for those of all copies: a value that all agree on, the sum of numbers, or all of them. Values that
/// begin with the same line, as carried state does, become one value of its form.
fn joined(texts: Vec<String>, is_value: bool) -> String {
    let same = texts.windows(2).all(|pair| pair[0] == pair[1]);
    let first = texts.first().cloned().unwrap_or_default();
    if same && is_value {
        return first;
    }
    if let Some(sum) = sum(&texts) {
        return sum;
    }
    if same {
        return first;
    }
    // a copy may have no more parts of its state
    let texts = || texts.iter().filter(|text| !text.is_empty());
    let head = texts().next().and_then(|text| text.lines().next());
    let is_headed = is_value && texts().all(|text| text.lines().next() == head);
    let head = head.unwrap_or_default();
    let mut all = String::new();
    for (at, text) in texts().enumerate() {
        let text = match is_headed && at > 0 {
            true => text[head.len()..].trim_start_matches('\n'),
            false => text,
        };
        if text.is_empty() {
            continue;
        }
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(text);
    }
    all
}

/// The sum of whole numbers, or of decimal ones.
fn sum(texts: &[String]) -> Option<String> {
    let whole = texts.iter().map(|text| text.trim().parse::<i64>().ok());
    // no overflow: there are at most 64 copies
    if let Some(sum) = whole.map(|n| n.map(i128::from)).sum::<Option<i128>>() {
        return Some(sum.to_string());
    }
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let decimal = |text: &String| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|_| is_number(text.trim()))
    };
    let sum = texts.iter().map(decimal).sum::<Option<f64>>()?;
    Some(sum.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str], is_value: bool) -> String {
        joined(texts.iter().map(ToString::to_string).collect(), is_value)
    }

    #[test]
    fn the_texts_of_copies_become_one() {
        assert_eq!(of(&["5", "5"], true), "5");
        assert_eq!(of(&["5", "5"], false), "10");
        assert_eq!(of(&["5\n", "6\n"], false), "11");
        assert_eq!(of(&["0.5", "1"], false), "1.5");
        assert_eq!(of(&["true", "true"], false), "true");
        assert_eq!(of(&["a 1\n", "", "b 2"], false), "a 1\nb 2");
        assert_eq!(of(&["", ""], false), "");
        let largest = i64::MAX.to_string();
        assert_eq!(of(&[&largest, "1"], false), "9223372036854775808");
        assert_eq!(of(&["inf", "nan"], false), "inf\nnan");
    }

    #[test]
    fn state_of_copies_has_its_head_once() {
        let texts = ["nat 1\nflow a\n", "nat 1\n", "nat 1\nflow b\n"];
        assert_eq!(of(&texts, true), "nat 1\nflow a\nflow b\n");
        assert_eq!(of(&["nat 1\n", "nat 1\nflow b\n"], true), "nat 1\nflow b\n");
        assert_eq!(of(&["", "nat 1\na\n", "nat 1\nb\n"], true), "nat 1\na\nb\n");
    }
}
