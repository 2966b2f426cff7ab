// SPDX-License-Identifier: Apache-2.0
//! What a guest says of the writes that it made: which of them are no values.
use alloc::format;
use alloc::vec::Vec;

use crate::WRITES_MAX;

/// Writes of one request that say nothing about how an element is to be from now on. Both lists
/// have places among the writes, in order. All other writes are values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Writes that did something once.
    pub commands: Vec<u16>,
    /// Writes that changed a part of a table.
    pub edits: Vec<u16>,
}

impl Marks {
    /// True if all writes are values.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.edits.is_empty()
    }

    /// The marks of a request with `writes` writes: each place once, as a command if both lists have
    /// it. The guest may have marked any.
    pub fn within(mut self, writes: usize) -> Self {
        for places in [&mut self.commands, &mut self.edits] {
            places.retain(|place| usize::from(*place) < writes);
            places.sort_unstable();
            places.dedup();
        }
        let commands = &self.commands;
        self.edits
            .retain(|place| commands.binary_search(place).is_err());
        self
    }

    /// The data of the guest's answer: a line `PLACE command` or `PLACE edit` for each.
    pub fn encode(&self) -> Vec<u8> {
        let lines = |places: &[u16], word| {
            let lines = places.iter().map(|place| format!("{place} {word}\n"));
            lines.collect::<Vec<_>>().concat()
        };
        let commands = lines(&self.commands, "command");
        [commands, lines(&self.edits, "edit")].concat().into_bytes()
    }

    /// Reads the data of an answer. Lines that are not understood do not count: the guest may be
    /// of a later version.
    pub fn parse(data: &[u8]) -> Self {
        let mut marks = Self::default();
        for line in data.split(|byte| *byte == b'\n').take(WRITES_MAX) {
            let words = core::str::from_utf8(line).ok();
            let Some((place, word)) = words.and_then(|line| line.split_once(' ')) else {
                continue;
            };
            let Some(place) = place.parse().ok().filter(is_place) else {
                continue;
            };
            match word {
                "command" => marks.commands.push(place),
                "edit" => marks.edits.push(place),
                _ => {}
            }
        }
        marks
    }
}

fn is_place(place: &u16) -> bool {
    usize::from(*place) < WRITES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written() {
        let marks = Marks {
            commands: [0, 7].into(),
            edits: [1, 1023].into(),
        };
        assert_eq!(Marks::parse(&marks.encode()), marks);
        assert!(Marks::parse(b"").is_empty() && Marks::default().encode().is_empty());
    }

    #[test]
    fn a_place_has_one_mark_and_is_one_of_the_request() {
        let marks = Marks {
            commands: [4, 0, 3, 0].into(),
            edits: [9, 2, 3, 2].into(),
        };
        let within = marks.within(4);
        assert_eq!((&*within.commands, &*within.edits), (&[0, 3][..], &[2][..]));
        assert!(within.within(0).is_empty());
    }

    #[test]
    fn hostile_lines_do_not_count() {
        for bad in [
            "x command\n",
            "1024 command\n",
            "-1 edit\n",
            "3 value\n",
            "3\n",
            "\u{fc} edit\n",
            "65536 edit",
        ] {
            assert!(Marks::parse(bad.as_bytes()).is_empty(), "{bad}");
        }
        let many = "1 edit\n".repeat(5000);
        assert_eq!(Marks::parse(many.as_bytes()).edits.len(), WRITES_MAX);
    }
}
