// SPDX-License-Identifier: Apache-2.0
//! Reads arguments as their type. An error names the place in them.
use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::SMALL_LINE;
use crate::bounded::bounded;

/// Most characters of a key in a place.
const MAX_KEY: usize = 64;

/// Reads the arguments of a verb, the text of a JSON object.
///
/// # Errors
/// The text has another form. The error names the place and at most 300 bytes of the text.
pub fn typed<A: DeserializeOwned>(args: &str) -> Result<A, String> {
    // A struct can be read from an array too, which no client should rely on.
    if !args.starts_with('{') {
        return Err("args: expected an object".to_owned());
    }
    typed_at("", args)
}

/// As [`typed`], for a value that has the place `base` in another one.
///
/// # Errors
/// As of [`typed`].
pub fn typed_at<A: DeserializeOwned>(base: &str, text: &str) -> Result<A, String> {
    serde_json::from_str(text).map_err(|error| {
        let mut words = bounded(&error);
        if error.is_data() {
            without_column(&mut words);
        }
        // The second reading has the memory of the first.
        drop(error);
        let place = place::<A>(base, text, &words);
        match place.is_empty() {
            true => words,
            false => format!("{place}: {words}"),
        }
    })
}

/// Removes the parser's place, which counts the bytes of a text that no person sees.
fn without_column(words: &mut String) {
    let is_place = |tail: &str| {
        tail.bytes()
            .all(|b| b.is_ascii_digit() || b" column".contains(&b))
    };
    match words.rsplit_once(" at line ") {
        Some((start, tail)) if is_place(tail) => words.truncate(start.len()),
        _ => (),
    }
}

/// The place of an error below `base`. A second reading finds it, so good arguments cost nothing.
fn place<A: DeserializeOwned>(base: &str, text: &str, words: &str) -> String {
    let is_unknown = words.starts_with("unknown field ");
    // The path has the unknown key, and a long one costs its bytes once more.
    if is_unknown && text.len() > SMALL_LINE {
        return base.to_owned();
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = serde_path_to_error::deserialize::<_, A>(&mut reader);
    // The words name an unknown key already.
    let left_out = usize::from(is_unknown);
    found.map_or_else(|e| written(base, e.path(), left_out), |_| base.to_owned())
}

/// A path without its last `left_out` parts.
fn written(base: &str, path: &Path, left_out: usize) -> String {
    let mut place = base.to_owned();
    let parts = path.iter();
    let count = parts.len().saturating_sub(left_out);
    for segment in parts.take(count) {
        let key = match segment {
            Segment::Seq { index } => {
                let _ = write!(place, "[{index}]");
                continue;
            }
            Segment::Map { key } | Segment::Enum { variant: key } => key,
            Segment::Unknown => continue,
        };
        let dot = if place.is_empty() { "" } else { "." };
        let end = key.char_indices().nth(MAX_KEY).map_or(key.len(), |c| c.0);
        let _ = write!(place, "{dot}{}", key[..end].escape_debug());
    }
    place
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Args {
        pairs: Vec<(String, u8)>,
        inner: Option<Box<Args>>,
    }

    fn refused(args: &str) -> String {
        typed::<Args>(args).unwrap_err()
    }

    #[test]
    fn an_error_names_its_place() {
        for (args, words) in [
            (
                r#"{"pairs": [["a", 1], ["b"]]}"#,
                "pairs[1]: invalid length 1, ",
            ),
            (r#"{"pairs": [["a", 256]]}"#, "pairs[0][1]: invalid value: "),
            (
                r#"{"pairs": [], "inner": {}}"#,
                "inner: missing field `pairs`",
            ),
            (
                r#"{"pairs": [], "inner": {"pairs": [], "odd": 1}}"#,
                "inner: unknown field `odd`",
            ),
            ("{}", "missing field `pairs`"),
            (
                r#"{"pairs": 7}"#,
                "pairs: invalid type: integer `7`, expected a sequence",
            ),
            ("[]", "args: expected an object"),
        ] {
            let error = refused(args);
            assert!(error.starts_with(words), "{args}: {error}");
            assert!(!error.contains("column"), "{args}: {error}");
        }
    }

    #[test]
    fn a_place_is_short_and_has_no_control_characters() {
        type Map = std::collections::BTreeMap<String, u8>;
        let key = format!("\\u001b{}", "k".repeat(1000));
        let error = typed::<Map>(&format!(r#"{{"{key}": 256}}"#)).unwrap_err();
        let (place, _) = error.split_once(": ").unwrap();
        assert_eq!(place, format!("\\u{{1b}}{}", "k".repeat(MAX_KEY - 1)));
        let key = "k".repeat(SMALL_LINE);
        let long = format!(r#"{{"pairs": [], "inner": {{"{key}": 1}}}}"#);
        assert!(refused(&long).starts_with("unknown field "));
    }
}
