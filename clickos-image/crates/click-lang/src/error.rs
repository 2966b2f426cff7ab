// SPDX-License-Identifier: Apache-2.0
//! Errors of a configuration, and what it may use.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::sort;
use crate::source::{Directive, Located, SourcePos, Sources};

/// The part of an element's life that an error belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its ports were connected; the message names it.
    Connecting,
    /// Its arguments were read.
    Configuring,
    /// It was to start.
    Initializing,
}

/// The element an error is about: `name :: Class`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The part of its life.
    pub phase: Phase,
    /// `name :: Class`
    pub element: String,
}

/// One error of a configuration; `Display` is `file:line:col: element: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where.
    pub place: Located,
    /// The element whose argument is wrong or that cannot start.
    pub subject: Option<Subject>,
    /// Lower case text without the place, such as `LENGTH: expected ...`.
    pub message: String,
    /// Another place that has to do with it.
    pub note: Option<Box<ConfigError>>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Located {
            file, line, column, ..
        } = &self.place;
        write!(f, "{file}:{line}:{column}: ")?;
        if let Some(subject) = self
            .subject
            .as_ref()
            .filter(|s| s.phase != Phase::Connecting)
        {
            write!(f, "{}: ", subject.element)?;
        }
        f.write_str(&self.message)?;
        match &self.note {
            Some(note) => write!(f, "\n{note}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ConfigError {}

#[derive(Debug)]
struct Entry {
    place: SourcePos,
    subject: Option<Subject>,
    message: String,
    note: Option<(SourcePos, String)>,
}

/// Collects errors, up to a number a person can use.
#[derive(Debug, Default)]
pub struct Errors {
    list: Vec<Entry>,
    beyond: usize,
    /// Valid parts that the author may not have meant.
    warnings: Vec<Entry>,
    directives: Vec<Directive>,
    /// Steps of work so far, all parts of one installation together.
    steps: usize,
    /// Bytes that were planned since it last looked for memory.
    planned: usize,
    /// The limit of steps or of memory was reported.
    exhausted: bool,
}

/// Bytes of one message; the rest of a longer one is cut off.
const MESSAGE_MAX: usize = 2048;
/// Steps of work between two looks for memory; what they allocate comes out of the reserve.
const STEPS_PER_PROBE: usize = 4096;

impl Errors {
    const MAX: usize = 100;

    /// Counts `steps` of work: bytes read, elements, connections and candidates compared. Beyond
    /// the limit it adds one error that names the place and `what`, and returns false.
    /// It looks for memory once in [`STEPS_PER_PROBE`] steps.
    pub fn spend(&mut self, steps: usize, limits: &Limits, place: SourcePos, what: &str) -> bool {
        let before = self.steps;
        self.steps = self.steps.saturating_add(steps);
        if self.steps > limits.steps {
            let limit = limits.steps;
            self.exhaust(place, || {
                format!("{what} takes more than {limit} steps of work, the limit")
            });
            return false;
        }
        let probes = before / STEPS_PER_PROBE != self.steps / STEPS_PER_PROBE;
        !probes || self.has_memory(0, limits, place, what)
    }

    /// True if the reserve is left after an allocation of `bytes`; else it adds one error.
    pub fn has_memory(
        &mut self,
        bytes: usize,
        limits: &Limits,
        place: SourcePos,
        what: &str,
    ) -> bool {
        let has = !self.exhausted && limits.memory.has(bytes);
        if !has {
            self.out_of_memory(limits, place, what);
        }
        has
    }

    /// Plans an allocation of `bytes`. It looks for memory when half of the reserve is planned.
    pub fn plan(&mut self, bytes: usize, limits: &Limits, place: SourcePos, what: &str) -> bool {
        self.planned += bytes;
        if self.planned <= limits.memory.reserve / 2 {
            return !self.exhausted;
        }
        self.planned = 0;
        self.has_memory(bytes, limits, place, what)
    }

    pub(crate) fn out_of_memory(&mut self, limits: &Limits, place: SourcePos, what: &str) {
        let reserve = limits.memory.reserve >> 10;
        self.exhaust(place, || {
            format!("{what} leaves less than {reserve} KiB of the memory, the limit")
        });
    }

    /// Reports the first limit that was reached. It explains the failure, so it has a place even
    /// if there are too many errors.
    fn exhaust(&mut self, place: SourcePos, message: impl FnOnce() -> String) {
        if !self.exhausted {
            self.exhausted = true;
            self.list.truncate(Self::MAX - 1);
            self.add(place, message());
        }
    }

    /// True once the limit of steps or of memory was reached and reported.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Steps of work so far.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Errors about a configuration that was flattened before.
    pub fn resume(directives: &[Directive]) -> Self {
        Self {
            directives: directives.to_vec(),
            ..Self::default()
        }
    }

    fn push(&mut self, mut entry: Entry) {
        tidy(&mut entry.message);
        if let Some(subject) = &mut entry.subject {
            tidy(&mut subject.element);
        }
        if let Some((_, note)) = &mut entry.note {
            tidy(note);
        }
        if self.is_full() {
            self.beyond += 1;
        } else {
            self.list.push(entry);
        }
    }

    /// Notes an error.
    pub fn add(&mut self, place: SourcePos, message: impl Into<String>) {
        self.push(Entry {
            place,
            subject: None,
            message: message.into(),
            note: None,
        });
    }

    /// Notes a warning.
    pub(crate) fn warn(&mut self, place: SourcePos, message: &str) {
        if self.warnings.len() < Self::MAX {
            self.warnings.push(Entry {
                place,
                subject: None,
                message: alloc::format!("warning: {message}"),
                note: None,
            });
        }
    }

    /// The warnings so far, as a list of their own.
    pub fn take_warnings(&mut self) -> Self {
        Self {
            list: core::mem::take(&mut self.warnings),
            ..Self::resume(&self.directives)
        }
    }

    /// Notes an error about an element.
    pub fn add_about(&mut self, place: SourcePos, subject: Subject, message: impl Into<String>) {
        self.push(Entry {
            place,
            subject: Some(subject),
            message: message.into(),
            note: None,
        });
    }

    /// Notes an error that has to do with another place, too.
    pub(crate) fn add_with_note(
        &mut self,
        place: SourcePos,
        message: String,
        note: (SourcePos, String),
    ) {
        self.push(Entry {
            place,
            subject: None,
            message,
            note: Some(note),
        });
    }

    /// True if there was none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True if further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Self::MAX
    }

    /// A line directive was read; looking ahead reads one twice.
    pub(crate) fn directive(&mut self, directive: Directive, most: usize) {
        if self.directives.len() >= most {
            let message = format!("more than {most} line directives");
            return self.add(directive.at, message);
        }
        let behind = self.directives.partition_point(|d| d.at < directive.at);
        if self
            .directives
            .get(behind)
            .is_none_or(|d| d.at != directive.at)
        {
            self.directives.insert(behind, directive);
        }
    }

    /// The line directives read so far.
    pub(crate) fn directives(&self) -> Vec<Directive> {
        self.directives.clone()
    }

    /// All errors in the order of their places.
    pub fn into_sorted(mut self, sources: &Sources) -> Vec<ConfigError> {
        sort::by_key(&mut self.list, |e| e.place);
        let locate = |place| sources.locate(place, &self.directives);
        let plain = |place, message| ConfigError {
            place,
            subject: None,
            message,
            note: None,
        };
        let mut list: Vec<ConfigError> = Vec::new();
        for e in self.list {
            list.push(ConfigError {
                subject: e.subject,
                note: e.note.map(|(at, text)| Box::new(plain(locate(at), text))),
                ..plain(locate(e.place), e.message)
            });
        }
        list.dedup();
        if let (Some(last), true) = (list.last(), self.beyond > 0) {
            let message = alloc::format!("{} more errors are not shown", self.beyond);
            let more = plain(last.place.clone(), message);
            list.push(more);
        }
        list
    }
}

/// Makes a message fit for people and logs, whatever texts it repeats: cuts it off at 2048 bytes, and escapes
/// characters that a terminal obeys or does not show.
pub fn tidy(message: &mut String) {
    cut(message);
    if message.contains(is_hidden) {
        let mut shown = String::with_capacity(message.len());
        for c in message.chars() {
            if shown.len() > MESSAGE_MAX {
                break;
            }
            match is_hidden(c) {
                true => shown.extend(c.escape_unicode()),
                false => shown.push(c),
            }
        }
        cut(&mut shown);
        *message = shown;
    }
}

/// Cuts a message at its limit, at the end of a character.
fn cut(message: &mut String) {
    if message.len() > MESSAGE_MAX {
        let end = (0..=MESSAGE_MAX)
            .rev()
            .find(|n| message.is_char_boundary(*n));
        message.truncate(end.unwrap_or(0));
        message.push_str(" ...");
        message.shrink_to_fit();
    }
}

/// True for characters that a terminal obeys or does not show. Messages of several lines have line ends, and tables tabs.
pub(crate) fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => true,
        c => c.is_control(),
    }
}

/// Access to the allocator, and the bytes that an installation leaves free.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes that an installation leaves free.
    pub reserve: usize,
    /// True if the allocator has this number of bytes.
    pub has_room: fn(usize) -> bool,
}

impl Memory {
    /// Smaller pieces of text come out of the reserve.
    const SMALL: usize = 4096;

    /// No bound.
    pub const UNBOUNDED: Self = Self {
        reserve: 0,
        has_room: |_| true,
    };

    /// True if the reserve is left after an allocation of `bytes`.
    pub fn has(&self, bytes: usize) -> bool {
        (self.has_room)(self.reserve.saturating_add(bytes))
    }

    /// True if a text of `bytes` may be made.
    pub(crate) fn has_text(&self, bytes: usize) -> bool {
        bytes <= Self::SMALL || self.has(bytes)
    }
}

/// The limits of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of text, and bytes of arguments after expansion.
    pub config_bytes: usize,
    /// Elements after flattening.
    pub elements: usize,
    /// Connections after flattening.
    pub connections: usize,
    /// Ports of one element, each way.
    pub ports: usize,
    /// Steps of work from the text to a checked graph; see [`Errors::spend`].
    pub steps: usize,
    /// Memory that has to be left.
    pub memory: Memory,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            config_bytes: 1 << 20,
            elements: 4096,
            connections: 16_384,
            ports: 1024,
            steps: 1 << 24,
            memory: Memory::UNBOUNDED,
        }
    }
}

/// How deep compound elements and groups nest at most.
pub(crate) const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_tell_a_terminal_nothing() {
        let tidied = |text: &str| {
            let mut text = String::from(text);
            tidy(&mut text);
            text
        };
        assert_eq!(tidied("a: \"\u{e9}\"\n\tb"), "a: \"\u{e9}\"\n\tb");
        assert_eq!(tidied("\x1b[2J\u{202e}x\r"), "\\u{1b}[2J\\u{202e}x\\u{d}");
        let long = tidied(&"\u{e9}".repeat(3000));
        assert_eq!(
            (long.len(), long.ends_with(" ...")),
            (MESSAGE_MAX + 4, true)
        );
    }
}
