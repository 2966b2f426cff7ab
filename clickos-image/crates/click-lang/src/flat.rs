// SPDX-License-Identifier: Apache-2.0
//! A flat configuration: elements and connections without compounds or variables.
mod unparse;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use crate::source::{Directive, SourcePos};

/// One element.
#[derive(Clone, Debug)]
pub struct FlatElement {
    /// Its full name, such as `compound/inner`.
    pub name: String,
    /// Its class.
    pub class: Rc<str>,
    /// Its configuration string, expanded.
    pub config: String,
    /// Where it was declared.
    pub place: SourcePos,
}

impl FlatElement {
    /// `name :: Class`, as messages name it.
    pub fn label(&self) -> String {
        format!("{} :: {}", self.name, self.class)
    }
}

/// One connection: output port to input port.
#[derive(Clone, Debug)]
pub struct FlatConnection {
    /// Element index and output port.
    pub from: (usize, usize),
    /// Element index and input port.
    pub to: (usize, usize),
    /// Where the arrow is.
    pub place: SourcePos,
}

/// A `require` statement's item.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// `package` or `compact_config`.
    pub kind: String,
    /// The name of the requirement.
    pub value: String,
    /// Where.
    pub place: SourcePos,
}

/// A flat configuration.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// In Click's order: outer elements first, then the content of compounds.
    pub elements: Vec<FlatElement>,
    /// Sorted by element and port.
    pub connections: Vec<FlatConnection>,
    /// The configuration's requirements.
    pub requirements: Vec<Requirement>,
    /// Where line directives name other files and lines.
    pub directives: Vec<Directive>,
}
