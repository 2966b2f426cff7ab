// SPDX-License-Identifier: Apache-2.0
//! The element classes a router can be built of.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::engine::class::Class;

/// A class and what the build knows about it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The class.
    pub class: &'static Class,
    /// Its group: the folder its file is in.
    pub group: &'static str,
    /// The text of its file, or nothing where there is no room for it.
    pub source: &'static str,
}

impl Entry {
    /// Its documentation: that of its module.
    pub fn docs(&self) -> String {
        let lines = self.source.lines().filter_map(|l| l.strip_prefix("//!"));
        lines
            .map(|l| format!("{}\n", l.strip_prefix(' ').unwrap_or(l)))
            .collect()
    }
}

/// Element classes by name; `click_elements::registry()` gives the usual one.
#[derive(Clone, Default)]
pub struct Registry {
    classes: BTreeMap<&'static str, Entry>,
    unavailable: BTreeMap<&'static str, &'static str>,
}

/// Why elements of group `os` are not in a guest.
const REACHES_OS: &str = "reaches the operating system and is not available in a guest";
/// Why this program does not have them either.
const NOT_BUILT: &str = "reaches the operating system and is not part of this program";

impl Registry {
    /// A registry of these classes; `os_names` are known by name only, unless they are among the classes.
    pub fn new(entries: &[Entry], os_names: &[&'static str]) -> Self {
        let mut registry = Self {
            unavailable: os_names.iter().map(|name| (*name, REACHES_OS)).collect(),
            ..Self::default()
        };
        registry.add(entries);
        registry
    }

    /// The same registry with classes that reach an operating system, as a program has it.
    #[must_use]
    pub fn with_os(mut self, entries: &[Entry]) -> Self {
        self.add(entries);
        self.unavailable
            .values_mut()
            .for_each(|why| *why = NOT_BUILT);
        self
    }

    fn add(&mut self, entries: &[Entry]) {
        for entry in entries {
            for name in core::iter::once(&entry.class.name).chain(entry.class.aliases) {
                self.classes.insert(*name, *entry);
                self.unavailable.remove(name);
            }
        }
    }

    /// The class of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.classes.get(name)
    }

    /// All classes, an alias as another name of the same class.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Entry)> {
        self.classes.iter().map(|(n, e)| (*n, e))
    }
}

impl click_lang::Classes for Registry {
    fn knows(&self, name: &str) -> bool {
        self.classes.contains_key(name)
    }

    fn unavailable(&self, name: &str) -> Option<&str> {
        self.unavailable.get(name).copied()
    }

    fn names(&self) -> Vec<&str> {
        self.classes.keys().copied().collect()
    }
}
