// SPDX-License-Identifier: Apache-2.0
//! Suggestions for misspelt names.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The candidate nearest to `name`, if it is near enough to be what was meant.
pub fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let limit = |c: &str| (name.len().max(c.len()) / 3).clamp(1, 3);
    candidates
        .map(|c| (distance(name, c), c))
        .filter(|(d, c)| *d <= limit(c) && *d < c.len().min(name.len()))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// ` (did you mean 'X'?)`, or nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    suggest(name, candidates).map_or_else(String::new, |c| format!(" (did you mean '{c}'?)"))
}

/// Edits (insert, delete, replace, swap of neighbors) between two names, letter case ignored.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for j in 0..b.len() {
            let replace = last[j] + usize::from(a[i] != b[j]);
            let mut d = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                d = d.min(before[j - 1] + 1);
            }
            row.push(d);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_name() {
        let names = ["Counter", "Discard", "Queue", "IPFilter"];
        assert_eq!(suggest("Conter", names.into_iter()), Some("Counter"));
        assert_eq!(suggest("Contr", names.into_iter()), Some("Counter"));
        assert_eq!(suggest("ipfliter", names.into_iter()), Some("IPFilter"));
        assert_eq!(suggest("Zebra", names.into_iter()), None);
        assert_eq!(suggest("", names.into_iter()), None);
    }
}
