// SPDX-License-Identifier: Apache-2.0
//! Declarations of handlers, and handlers as programs see them.
use alloc::string::String;

/// The kinds of handlers by what a write of one is. Only a value says how an element is to be from now on, so only
/// values are kept and repeated when a guest starts again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The last value written is in force.
    #[default]
    Value,
    /// It does something once, such as `reset` and `stop`.
    Command,
    /// It changes a part of a table, such as `add` and `remove`.
    Edit,
}

impl Kind {
    /// Tells the kind of an element's handler by its name, whatever the class.
    pub fn of(name: &str) -> Self {
        match name {
            "add" | "add_user" | "ctrl" | "delete" | "insert" | "remove" | "remove_user"
            | "set" => Self::Edit,
            "announce" | "block_new_flows" | "byte_count" | "clear" | "count" | "counts_pdf"
            | "disconnect" | "extend_interval" | "flush" | "goto" | "hold" | "merge"
            | "reaggregate_counts" | "reset" | "reset_count" | "reset_counts" | "reset_hits"
            | "reset_log" | "reset_timing" | "resign" | "run" | "send" | "share" | "state"
            | "step" | "stop" | "wake" | "write_ascii_file" | "write_file" | "write_ip_file"
            | "write_pdf_file" | "write_text_file" => Self::Command,
            _ => Self::Value,
        }
    }
}

/// A handler as `Router::handlers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerInfo {
    /// `element.handler`, or a global handler's name.
    pub name: String,
    /// True if programs can read it.
    pub read: bool,
    /// True if programs can write it.
    pub write: bool,
    /// Tells what a write is.
    pub kind: Kind,
}

/// The static declaration of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerDecl {
    /// Its name.
    pub name: &'static str,
    /// True if programs can read it.
    pub read: bool,
    /// True if programs can write it.
    pub write: bool,
    /// Tells what a write is.
    pub kind: Kind,
}

impl HandlerDecl {
    /// A handler to read.
    pub const fn read(name: &'static str) -> Self {
        Self {
            name,
            read: true,
            write: false,
            kind: Kind::Value,
        }
    }

    /// A handler to write that does something once.
    pub const fn command(name: &'static str) -> Self {
        Self {
            name,
            read: false,
            write: true,
            kind: Kind::Command,
        }
    }

    /// A handler to read and write.
    pub const fn read_write(name: &'static str) -> Self {
        Self {
            name,
            read: true,
            write: true,
            kind: Kind::Value,
        }
    }

    /// The handler under this name.
    pub(crate) fn named(&self, name: String) -> HandlerInfo {
        HandlerInfo {
            name,
            read: self.read,
            write: self.write,
            kind: self.kind,
        }
    }
}
