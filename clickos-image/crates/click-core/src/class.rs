// SPDX-License-Identifier: Apache-2.0
//! Element classes: name, ports, processing, arguments, handlers, and how to build one.
use alloc::boxed::Box;

use crate::args::Args;
use crate::element::Element;

/// Result of `Class::build`; `None` after a wrong argument, which `Args` has noted.
pub type Built = Option<Box<dyn Element>>;

/// An element class.
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Numbers of inputs and outputs in Click's notation: `1/1`, `1/1-2`, `-/=`, `0/0`.
    pub ports: &'static str,
    /// Processing code in Click's notation: `a/ah`, `h/l`; h push, l pull, a agnostic.
    pub processing: &'static str,
    /// Flow code in Click's notation: which outputs a packet of an input may leave by.
    pub flow: &'static str,
    /// Its arguments, positional ones first.
    pub args: &'static [Arg],
    /// Its handlers, besides those every element has.
    pub handlers: &'static [Handler],
    /// Handlers it has once per port, numbered from 0: `tickets` stands for `tickets0`, `tickets1` ...
    pub port_handlers: &'static [Handler],
    /// Has a task, and therefore the handlers `scheduled` and `tickets`.
    pub task: bool,
    /// Stores or drops each packet of a push, and wakes other elements only after the whole batch.
    pub quiet: bool,
    /// Built and started before all others, because it defines names they use.
    pub defines_names: bool,
    /// Makes an element.
    pub build: fn(&mut Args<'_>) -> Built,
}

impl Class {
    /// The defaults of a class: one input, one output, agnostic.
    pub const DEFAULT: Self = Self {
        name: "",
        aliases: &[],
        ports: "1/1",
        processing: "a/a",
        flow: "x/x",
        args: &[],
        handlers: &[],
        port_handlers: &[],
        task: false,
        quiet: false,
        defines_names: false,
        build: |_| None,
    };
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// By position or keyword, and it must be there.
    Mandatory,
    /// By position or keyword.
    Optional,
    /// By keyword only.
    Keyword,
    /// All positional arguments that are left.
    Rest,
}

/// An argument of a class.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// Its keyword, in capital letters.
    pub name: &'static str,
    /// How it is given.
    pub kind: ArgKind,
}

/// An argument that must be given, by position or keyword.
pub const fn mandatory(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Mandatory,
    }
}

/// An argument that may be given by position or keyword.
pub const fn optional(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Optional,
    }
}

/// An argument that may be given by keyword.
pub const fn keyword(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Keyword,
    }
}

/// All positional arguments that are left.
pub const fn rest(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Rest,
    }
}

/// A handler of a class.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// Its name.
    pub name: &'static str,
    /// True if programs can read it.
    pub read: bool,
    /// True if programs can write it.
    pub write: bool,
}

/// A handler to read.
pub const fn read(name: &'static str) -> Handler {
    Handler {
        name,
        read: true,
        write: false,
    }
}

/// A handler to write.
pub const fn write(name: &'static str) -> Handler {
    Handler {
        name,
        read: false,
        write: true,
    }
}

/// A handler to read and write.
pub const fn read_write(name: &'static str) -> Handler {
    Handler {
        name,
        read: true,
        write: true,
    }
}
