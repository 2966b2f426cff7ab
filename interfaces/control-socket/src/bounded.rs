// SPDX-License-Identifier: Apache-2.0
//! Sequences and texts of bounded length.
use std::fmt::{self, Display, Write};
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Most bytes of a parser's words in an error: they quote the line.
const MAX_WORDS: usize = 300;
/// Most characters of a value that an error quotes.
const MAX_QUOTED: usize = 40;

/// Reads a sequence of at most `limit` entries and stops at the next one. For `deserialize_with`
/// of a field.
pub fn at_most<'de, D, T>(input: D, limit: usize) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    input.deserialize_seq(AtMost {
        limit,
        entries: PhantomData,
    })
}

struct AtMost<T> {
    limit: usize,
    entries: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtMost<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} entries", self.limit)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if read.len() == self.limit {
                let limit = self.limit;
                return Err(A::Error::custom(format_args!("more than {limit} entries")));
            }
            read.push(entry);
        }
        Ok(read)
    }
}

/// The first [`MAX_WORDS`] bytes of a text.
pub(crate) fn bounded(text: &dyn Display) -> String {
    let mut words = Words(String::new());
    if write!(words, "{text}").is_err() {
        words.0.push_str("...");
    }
    words.0
}

/// The first 40 characters of a text as an error quotes it. The precision of `{:.40?}` is without
/// effect for texts.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

struct Words(String);

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_WORDS - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|at| text.is_char_boundary(*at));
        self.0.push_str(&text[..end.unwrap_or(0)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u8>, String> {
        let mut input = serde_json::Deserializer::from_str(text);
        at_most(&mut input, 2).map_err(|e| e.to_string())
    }

    #[test]
    fn a_sequence_ends_at_its_limit() {
        assert_eq!(read("[1, 2]"), Ok(vec![1, 2]));
        let error = read("[1, 2, 3, \"not read").unwrap_err();
        assert!(error.starts_with("more than 2 entries"), "{error}");
        let error = read("7").unwrap_err();
        assert!(error.contains("expected a list of at most 2"), "{error}");
    }

    #[test]
    fn a_long_text_is_quoted_in_part() {
        assert_eq!(quoted("a\n"), r#""a\n""#);
        let error = quoted(&"é".repeat(41));
        assert_eq!(error, format!("\"{}\"...", "é".repeat(40)));
    }

    #[test]
    fn words_are_cut_between_characters() {
        assert_eq!(bounded(&"short"), "short");
        let long = "é".repeat(MAX_WORDS);
        let cut = bounded(&format!("x{long}"));
        assert_eq!(cut.len(), MAX_WORDS - 1 + 3);
        assert!(cut.ends_with("é..."), "{cut}");
    }
}
