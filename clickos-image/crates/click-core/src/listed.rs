// SPDX-License-Identifier: Apache-2.0
//! Handlers as programs see them.
use alloc::string::String;

/// A handler as `Router::handlers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// `element.handler`, or a global handler's name.
    pub name: String,
    /// True if programs can read it.
    pub read: bool,
    /// True if programs can write it.
    pub write: bool,
}

/// A handler as programs see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// True if programs can read it.
    pub read: bool,
    /// True if programs can write it.
    pub write: bool,
}

impl Listed {
    /// A handler to read.
    pub const fn read(name: &'static str) -> Self {
        Self {
            name,
            read: true,
            write: false,
        }
    }

    /// A handler to write.
    pub const fn write(name: &'static str) -> Self {
        Self {
            name,
            read: false,
            write: true,
        }
    }

    /// A handler to read and write.
    pub const fn read_write(name: &'static str) -> Self {
        Self {
            name,
            read: true,
            write: true,
        }
    }

    /// The handler under this name.
    pub(crate) fn named(&self, name: String) -> HandlerInfo {
        HandlerInfo {
            name,
            read: self.read,
            write: self.write,
        }
    }
}
