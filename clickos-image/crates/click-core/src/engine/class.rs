// SPDX-License-Identifier: Apache-2.0
//! Element classes: name, ports, processing, arguments, handlers, and how to build one.
use alloc::boxed::Box;

pub use crate::config::arg::{Arg, ArgKind, keyword, mandatory, optional, rest, secret};
use crate::config::args::Args;
use crate::engine::element::Element;
use crate::engine::handler::Table;

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
    pub handlers: &'static dyn Table,
    /// Handlers of which an element has several.
    pub families: &'static [Family],
    /// Has a task, and therefore the handlers `scheduled` and `tickets`.
    pub task: bool,
    /// Stores or drops each packet of a push, and wakes other elements only after the whole batch.
    pub quiet: bool,
    /// Built and started before all others, because it defines names they use.
    pub defines_names: bool,
    /// Its handler `config` can be written. The engine then builds an element as for a new router and
    /// lets it take the state of the old one (`Context::is_reconfigured`).
    pub live: bool,
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
        handlers: &(),
        families: &[],
        task: false,
        quiet: false,
        defines_names: false,
        live: false,
        build: |_| None,
    };
}

/// Handlers of which an element has several.
#[derive(Clone, Copy)]
pub enum Family {
    /// Once per input, numbered from 0: `tickets` stands for `tickets0`, `tickets1` ...
    PerInput(&'static dyn Table),
    /// Once per output.
    PerOutput(&'static dyn Table),
    /// The first of the table answers to every name that `Element::dynamic_handlers` lists.
    Any(&'static dyn Table),
}
