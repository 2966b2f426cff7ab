// SPDX-License-Identifier: Apache-2.0
//! Finds a class by its name, in capital letters or not, and lists all classes.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use click_core::Entry;

use crate::page::Page;

/// Names that an error message proposes at most.
const PROPOSALS: usize = 5;

/// All names of a class.
fn names(entry: &Entry) -> impl Iterator<Item = &'static str> {
    std::iter::once(entry.class.name).chain(entry.class.aliases.iter().copied())
}

/// The class of a name or alias.
///
/// # Errors
/// No class has that name; the message proposes classes whose names contain it.
pub fn entry(wanted: &str) -> Result<&'static Entry, String> {
    let is_meant = |e: &&Entry| names(e).any(|name| name.eq_ignore_ascii_case(wanted));
    let mut entries = click_elements_os::entries();
    entries.find(is_meant).ok_or_else(|| unknown(wanted))
}

fn unknown(wanted: &str) -> String {
    let part = wanted.to_lowercase();
    let entries = click_elements_os::entries();
    let similar: Vec<_> = entries
        .flat_map(names)
        .filter(|name| !part.is_empty() && name.to_lowercase().contains(&part))
        .take(PROPOSALS)
        .collect();
    match similar.is_empty() {
        true => format!("{wanted}: no such element class; click-doc alone lists all"),
        false => format!(
            "{wanted}: no such element class; similar: {}",
            similar.join(", ")
        ),
    }
}

/// Lists all classes with their summaries, by group.
pub fn list() -> String {
    let mut groups: BTreeMap<&str, Vec<Page>> = BTreeMap::new();
    for entry in click_elements_os::entries() {
        groups
            .entry(entry.group)
            .or_default()
            .push(Page::new(entry));
    }
    let mut text = String::new();
    for (group, pages) in groups {
        let _ = writeln!(text, "{group}");
        for page in pages {
            let _ = writeln!(text, "  {:<28} {}", page.name, page.summary);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_an_alias_and_other_letters_find_a_class() {
        let aliased = click_elements_os::entries()
            .find(|e| !e.class.aliases.is_empty())
            .unwrap();
        let alias = aliased.class.aliases[0];
        assert_eq!(entry(alias).unwrap().class.name, aliased.class.name);
        for name in ["Counter", "counter", "COUNTER"] {
            assert_eq!(entry(name).unwrap().class.name, "Counter");
        }
    }

    #[test]
    fn an_unknown_name_gets_proposals() {
        let message = entry("IPFilte").err().unwrap();
        assert!(message.contains("similar: IPFilter"), "{message}");
        for name in ["", "Frobnicate", "\u{130}"] {
            let message = entry(name).err().unwrap();
            assert!(message.ends_with("click-doc alone lists all"), "{message}");
        }
        let message = entry("e").err().unwrap();
        assert_eq!(message.matches(", ").count(), PROPOSALS - 1);
    }

    #[test]
    fn the_list_has_every_class_once() {
        let list = list();
        let classes = list.lines().filter(|l| l.starts_with("  ")).count();
        assert_eq!(classes, click_elements_os::entries().count());
    }
}
