// SPDX-License-Identifier: Apache-2.0
//! The element classes a router can be built of.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::engine::class::Class;

/// A class and what the build knows about it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The class.
    pub class: &'static Class,
    /// Its group: the folder its file is in.
    pub group: &'static str,
    /// Its documentation: the module's, or empty where there is no room for it.
    pub docs: &'static str,
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
        let mut classes = BTreeMap::new();
        for entry in entries {
            for name in core::iter::once(&entry.class.name).chain(entry.class.aliases) {
                classes.insert(*name, *entry);
            }
        }
        let missing = os_names.iter().filter(|n| !classes.contains_key(*n));
        let is_program = entries.iter().any(|e| e.group == "os");
        let why = if is_program { NOT_BUILT } else { REACHES_OS };
        let mut unavailable = BTreeMap::new();
        unavailable.extend(missing.map(|n| (*n, why)));
        Self {
            classes,
            unavailable,
        }
    }

    /// The same registry without the classes that reach an operating system.
    #[must_use]
    pub fn guest(mut self) -> Self {
        let names: Vec<_> = self
            .classes
            .iter()
            .filter(|(_, e)| e.group == "os")
            .map(|(n, _)| *n)
            .collect();
        for name in names {
            self.classes.remove(name);
            self.unavailable.insert(name, REACHES_OS);
        }
        self.unavailable
            .values_mut()
            .for_each(|why| *why = REACHES_OS);
        self
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
