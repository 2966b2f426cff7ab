// SPDX-License-Identifier: Apache-2.0
//! The documentation of a class, taken apart: summary, sections, paragraphs.
use click_core::Entry;
use click_core::class::{Arg, ArgKind};

/// A class and its documentation.
pub struct Page {
    /// The name of the class.
    pub name: &'static str,
    /// The group of the class.
    pub group: &'static str,
    /// The first sentence.
    pub summary: String,
    /// The paragraphs after it, and a section for each heading.
    pub sections: Vec<Section>,
}

/// A heading and the paragraphs below it.
pub struct Section {
    /// The heading.
    pub title: String,
    /// The paragraphs.
    pub paragraphs: Vec<Paragraph>,
}

/// A paragraph or an item of a list, on one line.
pub struct Paragraph {
    /// Belongs to a list.
    pub is_item: bool,
    /// Its words, with code between backquotes.
    pub text: String,
}

/// The heading of the paragraphs before the first heading.
const DESCRIPTION: &str = "Description";

impl Page {
    /// Takes the documentation of a class apart.
    pub fn new(entry: &Entry) -> Self {
        let mut sections = sections(&entry.docs());
        let summary = take_summary(&mut sections[0]);
        sections.retain(|section| !section.paragraphs.is_empty());
        sections.push(ports(entry));
        Self {
            name: entry.class.name,
            group: entry.group,
            summary,
            sections,
        }
    }
}

/// The sections of a text; the first one has what precedes all headings.
fn sections(docs: &str) -> Vec<Section> {
    let mut found = vec![section(DESCRIPTION)];
    let mut is_open = false;
    for line in docs.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            found.push(section(title));
            is_open = false;
        } else if line.trim().is_empty() {
            is_open = false;
        } else if let Some(last) = found.last_mut() {
            add_line(&mut last.paragraphs, line, is_open);
            is_open = true;
        }
    }
    found
}

fn section(title: &str) -> Section {
    Section {
        title: title.to_string(),
        paragraphs: Vec::new(),
    }
}

/// Adds a line to the open paragraph, or begins one.
fn add_line(paragraphs: &mut Vec<Paragraph>, line: &str, is_open: bool) {
    let item = line.strip_prefix("* ");
    match paragraphs.last_mut() {
        Some(last) if is_open && item.is_none() => {
            last.text.push(' ');
            last.text.push_str(line.trim());
        }
        _ => paragraphs.push(Paragraph {
            is_item: item.is_some(),
            text: item.unwrap_or(line).trim().to_string(),
        }),
    }
}

/// Takes the first paragraph of a section.
fn take_summary(section: &mut Section) -> String {
    match section.paragraphs.is_empty() {
        true => String::new(),
        false => section.paragraphs.remove(0).text,
    }
}

/// The codes of the class, which the text does not repeat.
fn ports(entry: &Entry) -> Section {
    let class = entry.class;
    let codes = format!(
        "Ports `{}`, processing `{}`, flow `{}`; group `{}`.",
        class.ports, class.processing, class.flow, entry.group
    );
    let texts = arguments(class.args).into_iter().chain([codes]);
    let is_item = false;
    let paragraphs = texts.map(|text| Paragraph { is_item, text }).collect();
    Section {
        title: "Codes".to_string(),
        paragraphs,
    }
}

/// How the arguments are given, unless the class takes none.
fn arguments(args: &[Arg]) -> Option<String> {
    let of = |kinds: &[ArgKind]| {
        let names = args.iter().filter(|a| kinds.contains(&a.kind));
        let names: Vec<_> = names.map(|a| format!("`{}`", a.name)).collect();
        names.join(", ")
    };
    let ways = [
        (
            "by position or keyword",
            of(&[ArgKind::Mandatory, ArgKind::Optional]),
        ),
        ("by position", of(&[ArgKind::Rest])),
        ("by keyword", of(&[ArgKind::Keyword])),
    ];
    let ways = ways.iter().filter(|(_, names)| !names.is_empty());
    let ways: Vec<_> = ways.map(|(way, names)| format!("{way} {names}")).collect();
    (!ways.is_empty()).then(|| format!("Arguments {}.", ways.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_their_ways() {
        let of = |class: &str| arguments(crate::find::entry(class).unwrap().class.args);
        assert_eq!(of("Null"), None);
        assert_eq!(
            of("CheckIP6Header").unwrap(),
            "Arguments by position or keyword `BADADDRS`, `OFFSET`; by keyword `ROUTED`."
        );
        assert_eq!(
            of("HashSwitch").unwrap(),
            "Arguments by position or keyword `OFFSET`, `LENGTH`."
        );
        assert_eq!(of("Clipboard").unwrap(), "Arguments by position `RANGE`.");
    }

    #[test]
    fn lines_become_paragraphs_and_items() {
        let found = sections("One\ntwo.\n\nThree.\n# Handlers\n* `a`: x\n  y.\n* `b`.\n");
        let texts = |s: &Section| -> Vec<_> {
            let of = |p: &Paragraph| (p.is_item, p.text.clone());
            s.paragraphs.iter().map(of).collect()
        };
        assert_eq!(
            texts(&found[0]),
            [(false, "One two.".into()), (false, "Three.".into())]
        );
        assert_eq!(found[1].title, "Handlers");
        assert_eq!(
            texts(&found[1]),
            [(true, "`a`: x y.".into()), (true, "`b`.".into())]
        );
    }

    #[test]
    fn every_class_has_a_summary_and_the_four_sections() {
        for entry in click_elements_os::entries() {
            let page = Page::new(entry);
            assert!(!page.summary.is_empty(), "{}", page.name);
            for title in ["Synopsis", "Ports", "Handlers", "Example"] {
                let has = page.sections.iter().any(|s| s.title == title);
                assert!(has, "{}: no section {title}", page.name);
            }
        }
    }
}
