// SPDX-License-Identifier: Apache-2.0
//! Long answers of handlers: a line for each entry of a table, as far as an answer may be long and
//! as the memory takes it.
use alloc::string::String;
use core::fmt::{self, Display, Write};

use click_packet::memory::has_room;

use crate::config::environment::Limits;

/// The last line of a text that lacks entries.
pub const MORE: &str = "...\n";

/// Texts up to this number of bytes come out of the reserve.
const SMALL: usize = 4 << 10;
/// Copies of a text that exist with it while a guest answers with it: in the pieces, and on the way to the store.
pub const COPIES: usize = 2;

/// A text that grows by lines.
pub struct Listing {
    text: String,
    /// Bytes of the longest text.
    most: usize,
    is_full: bool,
}

impl Listing {
    /// No lines yet, and at most as many bytes as an answer may have.
    pub fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            most: limits.answer_bytes,
            is_full: false,
        }
    }

    /// Adds a line, or some; false if there is no room for it and for all others.
    pub fn add(&mut self, line: impl Display) -> bool {
        let before = self.text.len();
        if self.is_full || write!(self, "{line}").is_err() {
            self.is_full = true;
            self.text.truncate(before);
        }
        !self.is_full
    }

    /// The text. Its last line tells that entries are missing, if that much may be said.
    pub fn finish(mut self) -> String {
        if self.is_full && self.text.len() + MORE.len() <= self.most {
            self.text.push_str(MORE);
        }
        self.text
    }

    /// Makes room for a text of `bytes`; false if the memory lacks it.
    fn grow(&mut self, bytes: usize) -> bool {
        let there = self.text.capacity();
        if bytes <= there || bytes > self.most {
            return bytes <= self.most;
        }
        let wanted = bytes.max(2 * there).clamp(SMALL, self.most.max(SMALL));
        let more = wanted - self.text.len();
        if wanted <= SMALL {
            self.text.reserve_exact(more);
            return true;
        }
        // The copies are looked for once the text has its place: free memory is in pieces.
        let grows = self.text.try_reserve_exact(more).is_ok() && has_room(COPIES * wanted);
        if !grows {
            self.text.shrink_to(there);
        }
        grows
    }
}

impl Write for Listing {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        match self.grow(self.text.len() + part.len() + MORE.len()) {
            true => self.text.write_str(part),
            false => Err(fmt::Error),
        }
    }
}

/// The text of these lines, each with its end.
pub fn listing<L: Display>(limits: &Limits, lines: impl IntoIterator<Item = L>) -> String {
    let mut text = Listing::new(limits);
    let _ = lines.into_iter().all(|line| text.add(line));
    text.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer_bytes: usize, lines: usize) -> String {
        let limits = Limits {
            answer_bytes,
            ..Limits::default()
        };
        listing(&limits, (0..lines).map(|n| alloc::format!("{n:03}\n")))
    }

    #[test]
    fn a_text_has_whole_lines_and_tells_that_some_are_missing() {
        assert_eq!(of(100, 3), "000\n001\n002\n");
        assert_eq!(of(100, 0), "");
        let cut = of(20_000, 9000);
        assert!(cut.len() <= 20_000 && cut.len() > 19_990, "{}", cut.len());
        // 1,000 lines of 4 bytes, the rest has 5
        assert!(cut.ends_with("\n4198\n...\n"), "{}", &cut[cut.len() - 20..]);
    }

    #[test]
    fn no_text_is_longer_than_an_answer_may_be() {
        for most in 0..40 {
            assert!(of(most, 9).len() <= most, "{most}");
        }
    }
}
