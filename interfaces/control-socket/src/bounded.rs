// SPDX-License-Identifier: Apache-2.0
//! Sequences of bounded length.
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Reads a sequence of at most `limit` entries and stops at the next one. For
/// `deserialize_with` of the field `name`.
pub fn at_most<'de, D, T>(input: D, name: &'static str, limit: usize) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    input.deserialize_seq(AtMost {
        name,
        limit,
        entries: PhantomData,
    })
}

struct AtMost<T> {
    name: &'static str,
    limit: usize,
    entries: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtMost<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: a list of at most {} entries", self.name, self.limit)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if read.len() == self.limit {
                let (name, limit) = (self.name, self.limit);
                return Err(A::Error::custom(format_args!(
                    "{name}: more than {limit} entries"
                )));
            }
            read.push(entry);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u8>, String> {
        let mut input = serde_json::Deserializer::from_str(text);
        at_most(&mut input, "rids", 2).map_err(|e| e.to_string())
    }

    #[test]
    fn a_sequence_ends_at_its_limit() {
        assert_eq!(read("[1, 2]"), Ok(vec![1, 2]));
        let error = read("[1, 2, 3, \"not read").unwrap_err();
        assert!(error.starts_with("rids: more than 2 entries"), "{error}");
        let error = read("7").unwrap_err();
        assert!(
            error.contains("expected rids: a list of at most 2"),
            "{error}"
        );
    }
}
