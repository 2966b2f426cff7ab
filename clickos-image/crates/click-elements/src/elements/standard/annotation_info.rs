// SPDX-License-Identifier: Apache-2.0
//! Names for annotations, to be used wherever an annotation is expected.
//!
//! # Synopsis
//! `AnnotationInfo(NAME OFFSET [SIZE], ..., CHECK_OVERLAP NAME ...)`: NAME stands for the annotation at OFFSET, or
//! at that of another name, of SIZE bytes (default 1). With CHECK_OVERLAP those of these names that share
//! bytes are an error.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! CHECK_OVERLAP knows the sizes of annotations in the same AnnotationInfo only; others count one
//! byte.
//! # Example
//! `AnnotationInfo(CUSTOMER 20); Paint(3, CUSTOMER);`
use click_core::anno::SIZE;
use click_core::text::split_words;
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AnnotationInfo",
    ports: "0/0",
    args: &[rest("NAME")],
    defines_names: true,
    build: |a| {
        let lines: Vec<Vec<String>> = a.rest().iter().map(|line| split_words(line)).collect();
        let (checks, definitions): (Vec<_>, Vec<_>) = lines
            .iter()
            .filter(|words| !words.is_empty())
            .partition(|words| words[0] == "CHECK_OVERLAP");
        let mut known: Vec<Annotation<'_>> = Vec::new();
        for words in definitions {
            let annotation = Annotation::define(a, words, &known)?;
            known.push(annotation);
        }
        checks
            .iter()
            .for_each(|words| check_overlap(a, &words[1..], &known));
        Some(Box::new(AnnotationInfo))
    },
    ..Class::DEFAULT
};

struct AnnotationInfo;

impl Element for AnnotationInfo {}

/// Bytes of the annotations with a name.
#[derive(Clone, Copy)]
struct Annotation<'a> {
    name: &'a str,
    offset: usize,
    size: usize,
}

/// The annotation of this name, one that was defined before or that everybody knows, or at this offset.
fn find<'a>(a: &mut Args<'_>, name: &'a str, known: &[Annotation<'a>]) -> Option<Annotation<'a>> {
    if let Some(annotation) = known.iter().find(|k| k.name == name) {
        return Some(*annotation);
    }
    let ByteAnno(offset) = a.parse("NAME", name)?;
    Some(Annotation {
        name,
        offset,
        size: 1,
    })
}

impl<'a> Annotation<'a> {
    fn define(a: &mut Args<'_>, words: &'a [String], known: &[Self]) -> Option<Self> {
        let (name, place, size) = match words {
            [name, place] => (name, place, "1"),
            [name, place, size] => (name, place, size.as_str()),
            _ => {
                let message = format!(
                    "expected \"NAME OFFSET [SIZE]\", got \"{}\"",
                    words.join(" ")
                );
                a.error("NAME", message);
                return None;
            }
        };
        let offset = find(a, place, known)?.offset;
        let size = a.parse::<usize>("NAME", size)?;
        if size > SIZE - offset {
            a.error(
                "NAME",
                format!("{name}: {size} bytes at {offset} are more than the {SIZE} there are"),
            );
            return None;
        }
        a.define_annotation(name, offset);
        Some(Self { name, offset, size })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.offset + other.size.max(1)
            && other.offset < self.offset + self.size.max(1)
    }
}

fn check_overlap(a: &mut Args<'_>, names: &[String], known: &[Annotation<'_>]) {
    let found: Vec<Annotation<'_>> = names
        .iter()
        .filter_map(|name| find(a, name, known))
        .collect();
    for (index, one) in found.iter().enumerate() {
        for other in found[..index].iter().filter(|other| other.overlaps(one)) {
            a.error(
                "NAME",
                format!("{} and {} share bytes", other.name, one.name),
            );
        }
    }
}
