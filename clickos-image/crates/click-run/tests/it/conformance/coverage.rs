// SPDX-License-Identifier: Apache-2.0
//! What the corpus and the documentation lack.
use click_core::Entry;
use click_core::class::{ArgKind, Family};

use click_conformance::Case;

/// Sections of an element's documentation.
const SECTIONS: [&str; 4] = ["# Synopsis", "# Ports", "# Handlers", "# Example"];

/// The optional section between the last two.
const DIFFERENCES: &str = "# Differences from Click";

/// Everything that is missing, one a line.
pub fn gaps(entries: impl Iterator<Item = &'static Entry>, cases: &[Case]) -> Vec<String> {
    let mut gaps = Vec::new();
    for entry in entries {
        let name = entry.class.name;
        let prefix = format!("{}/{name}-", entry.group);
        let own: Vec<&Case> = cases
            .iter()
            .filter(|c| c.name.starts_with(&prefix))
            .collect();
        let mut gap = |what: String| gaps.push(format!("{}/{name}: {what}", entry.group));
        if own.is_empty() {
            gap("no case in the corpus".to_string());
        }
        in_docs(entry, &mut gap);
        handlers(entry, &own, &mut gap);
        arguments(entry, &own, &mut gap);
    }
    gaps
}

/// Name, read, write of each handler; of those once per port the first stands for all.
fn all_handlers(entry: &Entry) -> impl Iterator<Item = (String, bool, bool)> {
    let fixed = entry.class.handlers.iter();
    let fixed = fixed.map(|h| (h.name.to_string(), h.read, h.write));
    let families = entry.class.families.iter();
    let of_ports = families.flat_map(|family| match family {
        Family::PerInput(table) | Family::PerOutput(table) => table.iter().collect(),
        Family::Any(_) => Vec::new(),
    });
    fixed.chain(of_ports.map(|h| (format!("{}0", h.name), h.read, h.write)))
}

fn in_docs(entry: &Entry, gap: &mut impl FnMut(String)) {
    let docs = entry.docs();
    for section in SECTIONS.iter().filter(|s| !docs.contains(*s)) {
        gap(format!("no section {section} in its documentation"));
    }
    // What Click's class has is no documentation of ours.
    let ours = docs.split(DIFFERENCES).next().unwrap_or("");
    let handlers = ours.split("# Handlers").nth(1).unwrap_or("");
    for (name, ..) in all_handlers(entry) {
        if !handlers.contains(&format!("`{name}`")) {
            gap(format!("handler {name} is not documented"));
        }
    }
    for arg in entry.class.args.iter().filter(|a| !ours.contains(a.name)) {
        gap(format!("argument {} is not documented", arg.name));
    }
}

fn handlers(entry: &Entry, own: &[&Case], gap: &mut impl FnMut(String)) {
    let steps = || own.iter().flat_map(|c| &c.steps);
    let used = |verbs: &[&str], handler: &str| {
        let end = format!(".{handler}");
        steps().any(|s| verbs.contains(&s.arg(0)) && s.arg(1).ends_with(&end))
    };
    for (name, read, write) in all_handlers(entry) {
        if read && !used(&["read"], &name) {
            gap(format!("no case reads handler {name}"));
        }
        if write && !used(&["write"], &name) {
            gap(format!("no case writes handler {name}"));
        }
    }
}

fn arguments(entry: &Entry, own: &[&Case], gap: &mut impl FnMut(String)) {
    let wrong = own
        .iter()
        .any(|c| c.steps.iter().any(|s| s.arg(0) == "error"));
    if !entry.class.args.is_empty() && !wrong {
        gap("no case with a wrong argument".to_string());
    }
    let keywords = entry
        .class
        .args
        .iter()
        .filter(|a| a.kind == ArgKind::Keyword);
    for arg in keywords.filter(|a| !own.iter().any(|c| c.config.contains(a.name))) {
        gap(format!("no case gives argument {}", arg.name));
    }
    let ports = own.iter().any(|c| c.config.contains("[1]"));
    if entry.class.ports.starts_with("1/1-2") && !ports {
        gap("no case connects output 1".to_string());
    }
}
