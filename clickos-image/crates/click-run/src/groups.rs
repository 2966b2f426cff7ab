// SPDX-License-Identifier: Apache-2.0
//! The element groups of a configuration: what an image has to be built with.
use std::collections::BTreeMap;

use click_core::Registry;
use click_lang::{Classes, Errors, FlatElement, Scope, Sources, flatten};

use crate::library::limits;
use crate::report::listed;

/// Returns a line `GROUP CLASS` for each group of the elements, with a class of the group.
///
/// Elements are not built, so variables may lack values.
///
/// # Errors
/// The configuration cannot be parsed, or no guest has one of its classes.
pub fn groups(sources: &Sources, registry: &Registry) -> Result<String, String> {
    let mut errors = Errors::default();
    let flat = flatten(sources, registry, &Scope::default(), &limits(), &mut errors);
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for element in &flat.elements {
        match registry.get(&element.class) {
            Some(entry) => {
                found.entry(entry.group).or_insert(&element.class);
            }
            None => add(&mut errors, element, registry),
        }
    }
    if !errors.is_empty() {
        return Err(listed(&errors.into_sorted(sources)));
    }
    let lines = found
        .iter()
        .map(|(group, class)| format!("{group} {class}\n"));
    Ok(lines.collect())
}

/// Notes why no guest has the class of an element; an unknown class is noted already.
fn add(errors: &mut Errors, element: &FlatElement, registry: &Registry) {
    let FlatElement {
        name, class, place, ..
    } = element;
    if let Some(reason) = registry.unavailable(class) {
        errors.add(*place, format!("{name} :: {class}: {reason}"));
    }
}
