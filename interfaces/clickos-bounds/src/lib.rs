// SPDX-License-Identifier: Apache-2.0
//! The bounds of docs/promises.md, which stand in docs/bounds.toml. Only tests use this crate.
//!
//! A test calls [`hold`] with the key of its bound and what it measured. The environment variable
//! `CLICKOS_BOUNDS` names another file, so that a program can show that the test fails.

pub mod memory;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bounds.toml");

/// Checks a measured value against the bound of a key. A key that begins with `max_` is an upper
/// bound, one with `min_` a lower bound.
///
/// # Panics
/// With the key, the value and the bound if the bound is broken; with the key if the file lacks it.
#[track_caller]
pub fn hold(key: &str, measured: f64) {
    let is_most = key.starts_with("max_");
    assert!(
        is_most || key.starts_with("min_"),
        "{key}: a key begins with max_ or min_"
    );
    let bound = number(key);
    let (word, is_held) = if is_most {
        ("at most", measured <= bound)
    } else {
        ("at least", measured >= bound)
    };
    assert!(is_held, "{key}: {measured}, expected {word} {bound}");
}

#[track_caller]
fn number(key: &str) -> f64 {
    let path = std::env::var("CLICKOS_BOUNDS").unwrap_or_else(|_| FILE.to_owned());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let table: toml::Table = text.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
    match table.get(key) {
        Some(toml::Value::Float(bound)) => *bound,
        // Each bound is far below 2^53.
        Some(toml::Value::Integer(bound)) => *bound as f64,
        _ => panic!("{key}: no number of this name in {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::hold;

    /// Bounds of real promises.
    const MAX: &str = "max_cosmosd_forks";
    const MIN: &str = "min_default_image_classes";

    #[test]
    fn the_bound_itself_is_held() {
        hold(MAX, super::number(MAX));
        hold(MIN, super::number(MIN));
        hold(MIN, f64::MAX);
    }

    #[test]
    #[should_panic(expected = "max_cosmosd_forks: 1, expected at most 0")]
    fn more_than_the_most_is_refused() {
        hold(MAX, 1.0);
    }

    #[test]
    #[should_panic(expected = "min_default_image_classes: 0, expected at least")]
    fn less_than_the_least_is_refused() {
        hold(MIN, 0.0);
    }

    #[test]
    #[should_panic(expected = "max_nothing: no number of this name in ")]
    fn a_missing_key_is_named() {
        hold("max_nothing", 0.0);
    }

    #[test]
    #[should_panic(expected = "bound: a key begins with max_ or min_")]
    fn a_key_says_its_kind() {
        hold("bound", 0.0);
    }
}
