// SPDX-License-Identifier: Apache-2.0
//! The texts of a configuration and the places in them.
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::ast::Statement;
use crate::error::{Errors, Limits};
use crate::parser::Parser;
use crate::text;

/// A place in a configuration: bytes from the beginning of its texts. `Sources` knows file and line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePos(pub(crate) u32);

/// `# LINE "FILE"`: what stands behind it belongs to that line of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Where the line behind the directive begins.
    pub(crate) at: SourcePos,
    pub(crate) line: u32,
    /// Nothing if the file stays the same.
    pub(crate) file: Option<Rc<str>>,
}

/// A place as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Name of the configuration, or of a line directive's file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Only blanks are in front on its line.
    pub first: bool,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    base: u32,
}

/// A `require(library ...)`: who asked for what, and which file that is.
#[derive(Clone, Debug)]
struct Inclusion {
    by: usize,
    name: String,
    found: Result<usize, String>,
}

/// The text of a configuration, and of the libraries it requires.
#[derive(Clone, Debug)]
pub struct Sources {
    files: Vec<File>,
    inclusions: Vec<Inclusion>,
    /// Files that belong to the configuration, read behind its own.
    appended: Vec<usize>,
}

/// Finds the library `name` for the file `from`: its path and its text, or why there is none.
pub type FindLibrary<'a> = dyn Fn(&str, &str) -> Result<(String, String), String> + 'a;

/// Bytes between an element and its arguments, in which [`Sources::find`] looks for these.
const NEAR: usize = 512;

/// Libraries one configuration may use.
const MAX_LIBRARIES: usize = 64;

impl Sources {
    /// A configuration without libraries.
    pub fn new(name: &str, text: String) -> Self {
        let file = File {
            name: name.to_string(),
            text,
            base: 0,
        };
        Self {
            files: [file].into(),
            inclusions: Vec::new(),
            appended: Vec::new(),
        }
    }

    /// The configuration's own text.
    pub fn text(&self) -> &str {
        &self.files[0].text
    }

    /// The place of `part` in the configuration's own text, if it begins soon behind `place`.
    pub fn find(&self, place: SourcePos, part: &str) -> Option<Range<usize>> {
        let (text, from) = (self.text(), place.0 as usize);
        let ends = |start: &usize| {
            text.get(*start..)
                .is_some_and(|rest| rest.starts_with(part))
        };
        let start = (from..from.saturating_add(NEAR).min(text.len())).find(ends)?;
        Some(start..start + part.len())
    }

    /// Adds a text that is read behind the configuration's own.
    pub fn append(&mut self, name: &str, text: String) {
        let (name, base) = (name.to_string(), self.end());
        self.appended.push(self.files.len());
        self.files.push(File { name, text, base });
    }

    /// The files that were appended.
    pub(crate) fn appended(&self) -> &[usize] {
        &self.appended
    }

    /// Reads the libraries that the configuration requires, and those they require.
    pub fn load_libraries(&mut self, find: &FindLibrary<'_>, limits: &Limits) {
        let mut index = 0;
        while index < self.files.len() {
            for name in required(&self.files[index].text, limits) {
                let found = self.load(&name, index, find, limits);
                self.inclusions.push(Inclusion {
                    by: index,
                    name,
                    found,
                });
            }
            index += 1;
        }
    }

    fn load(
        &mut self,
        name: &str,
        by: usize,
        find: &FindLibrary<'_>,
        limits: &Limits,
    ) -> Result<usize, String> {
        let (path, text) = find(name, &self.files[by].name)?;
        if let Some(known) = self.files.iter().position(|f| f.name == path) {
            return Ok(known);
        }
        if text.len() > limits.config_bytes || self.files.len() > MAX_LIBRARIES {
            return Err(format!(
                "library '{name}': the limit is {MAX_LIBRARIES} libraries of {} bytes",
                limits.config_bytes
            ));
        }
        let base = self.end();
        let name = path;
        self.files.push(File { name, text, base });
        Ok(self.files.len() - 1)
    }

    /// After the last text; places of further ones begin there.
    fn end(&self) -> u32 {
        self.files.iter().fold(0u32, |end, f| {
            let len = u32::try_from(f.text.len()).unwrap_or(u32::MAX);
            end.saturating_add(len).saturating_add(1)
        })
    }

    /// The text of a file and the place where it begins.
    pub(crate) fn file(&self, index: usize) -> (&str, SourcePos) {
        let file = &self.files[index];
        (&file.text, SourcePos(file.base))
    }

    /// The file that `name` required by the file `by` leads to.
    pub(crate) fn library(&self, by: usize, name: &str) -> Result<usize, String> {
        let found = self
            .inclusions
            .iter()
            .find(|i| i.by == by && i.name == name);
        found.map_or_else(
            || Err("require(library): libraries are not available here".to_string()),
            |i| i.found.clone(),
        )
    }

    /// File, line and column of a place.
    pub fn locate(&self, place: SourcePos, directives: &[Directive]) -> Located {
        let behind = self.files.partition_point(|f| f.base <= place.0);
        let file = &self.files[behind.saturating_sub(1)];
        let before = |d: &&Directive| d.at <= place && d.at.0 >= file.base;
        let directive = directives.iter().rev().find(before);
        let (from, line) = directive.map_or((0, 1), |d| ((d.at.0 - file.base) as usize, d.line));
        let to = ((place.0 - file.base) as usize).min(file.text.len());
        let (lines, start) = count_lines(file.text.as_bytes(), from, to);
        let own = file.text.get(start..to).unwrap_or_default();
        let column = u32::try_from(own.chars().count()).unwrap_or(u32::MAX - 1) + 1;
        let named = directives
            .iter()
            .rev()
            .filter(before)
            .find_map(|d| d.file.clone());
        Located {
            file: named
                .filter(|n| !n.is_empty())
                .map_or_else(|| file.name.clone(), |n| n.to_string()),
            line: line.saturating_add(lines),
            column,
            first: own.trim().is_empty(),
        }
    }
}

/// How many lines end between two indices, and where the last one begins.
fn count_lines(text: &[u8], from: usize, to: usize) -> (u32, usize) {
    let (mut lines, mut start) = (0u32, from);
    for i in from..to {
        let cr = text[i] == b'\r' && text.get(i + 1) != Some(&b'\n');
        if text[i] == b'\n' || cr {
            lines = lines.saturating_add(1);
            start = i + 1;
        }
    }
    (lines, start)
}

/// The libraries that a text requires outside of compound elements.
fn required(text: &str, limits: &Limits) -> Vec<String> {
    let mut names = Vec::new();
    if !text.contains("library") {
        return names;
    }
    let mut errors = Errors::default();
    let mut parser = Parser::new(text, SourcePos(0), limits);
    while let Some(statement) = parser.next_statement(&mut errors) {
        if let Statement::Require(config) = statement {
            let arguments = text::split_args(&config.text());
            names.extend(arguments.iter().filter_map(|arg| library_name(arg)));
        }
    }
    names
}

/// NAME, if an argument of `require` is `library NAME`.
pub(crate) fn library_name(argument: &str) -> Option<String> {
    match text::split_words(argument).as_slice() {
        [kind, name] if kind == "library" => Some(text::unquote(name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn located(text: &str, at: u32, directives: &[Directive]) -> (String, u32, u32, bool) {
        let found = Sources::new("f", text.into()).locate(SourcePos(at), directives);
        (found.file, found.line, found.column, found.first)
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = "a\nb\r\nc\rd";
        for (at, line) in [(0, 1), (2, 2), (5, 3), (7, 4)] {
            assert_eq!(located(text, at, &[]), ("f".into(), line, 1, true));
        }
        assert_eq!(located("é x", 3, &[]), ("f".into(), 1, 3, false));
        assert_eq!(located("", 99, &[]), ("f".into(), 1, 1, true));
    }

    #[test]
    fn arguments_are_found_near_their_element_only() {
        let far = "x".repeat(NEAR);
        let sources = Sources::new("f", format!("a :: B(c, é);{far}d"));
        assert_eq!(sources.find(SourcePos(0), "c, é"), Some(7..12));
        assert_eq!(sources.find(SourcePos(8), "c, é"), None);
        assert_eq!(sources.find(SourcePos(0), "d"), None);
        assert_eq!(sources.find(SourcePos(9999), "d"), None);
    }

    #[test]
    fn directives_name_lines_and_files() {
        let directive = |at, line, file: Option<&str>| Directive {
            at: SourcePos(at),
            line,
            file: file.map(Rc::from),
        };
        let list = vec![directive(2, 40, Some("g")), directive(6, 7, None)];
        assert_eq!(located("#\nab\n\ncd", 3, &list).0, "g");
        assert_eq!(located("#\nab\n\ncd", 3, &list).1, 40);
        assert_eq!(located("#\nab\n\ncd", 7, &list), ("g".into(), 7, 2, false));
    }
}
