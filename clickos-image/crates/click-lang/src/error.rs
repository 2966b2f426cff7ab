// SPDX-License-Identifier: Apache-2.0
//! Places, errors, limits.
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A place in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the configuration, or of a line directive's file.
    pub file: Rc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// The beginning of a file.
    pub fn start(file: &str) -> Self {
        Self {
            file: file.into(),
            line: 1,
            column: 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One error of a configuration; `Display` is `file:line:col: what: message`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigError {
    /// Name of the configuration, or of a line directive's file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Lower case text without the place, such as `c :: CheckLength: LENGTH: expected ...`.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.message
        )
    }
}

impl core::error::Error for ConfigError {}

/// Collects errors, up to a number a person can use.
#[derive(Debug, Default)]
pub struct Errors {
    list: Vec<ConfigError>,
    beyond: usize,
}

impl Errors {
    const MAX: usize = 100;

    /// Notes an error.
    pub fn add(&mut self, place: &Place, message: impl Into<String>) {
        if self.is_full() {
            self.beyond += 1;
            return;
        }
        let (line, column) = (place.line, place.column);
        self.list.push(ConfigError {
            file: (*place.file).into(),
            line,
            column,
            message: message.into(),
        });
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Self::MAX
    }

    /// All errors in the order of their places within the first file mentioned.
    pub fn into_sorted(mut self) -> Vec<ConfigError> {
        self.list.sort_by_key(|e| (e.line, e.column));
        self.list.dedup();
        if let (Some(last), true) = (self.list.last().cloned(), self.beyond > 0) {
            let message = alloc::format!("{} more errors are not shown", self.beyond);
            self.list.push(ConfigError { message, ..last });
        }
        self.list
    }
}

/// What a configuration may use.
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            config_bytes: 1 << 20,
            elements: 4096,
            connections: 16_384,
            ports: 1024,
        }
    }
}

/// How deep compound elements and groups nest at most.
pub(crate) const MAX_DEPTH: usize = 64;
