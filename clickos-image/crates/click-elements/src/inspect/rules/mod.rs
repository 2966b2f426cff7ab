// SPDX-License-Identifier: Apache-2.0
//! Rules in a subset of Suricata's language: `action protocol net port direction net port (options)`, a line each.
//!
//! A set of rules is taken as a whole or not at all. An error names the line, the keyword, the value and the limit.
mod content;
mod header;
mod options;
mod set;
pub mod text;

pub use content::{Content, Part};
pub use header::Protocol;
pub use options::{BitUse, FlowUse};
pub use set::{Names, RuleSet, Sizes};

use alloc::rc::Rc;

use crate::inspect::threshold::Threshold;
use crate::prelude::*;

/// What a rule does with a packet, in the order in which rules are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Pass,
    Drop,
    Alert,
}

/// What an alert says of a rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub sid: u32,
    pub rev: u32,
    pub message: String,
    pub class: String,
    pub priority: u8,
}

/// Addresses and ports of one end, by their places in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRef {
    pub nets: u16,
    pub ports: u16,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    pub action: Action,
    pub protocol: Protocol,
    /// Source and destination.
    pub ends: [EndRef; 2],
    /// It holds for both directions.
    pub is_mutual: bool,
    pub flow: FlowUse,
    pub parts: Vec<Part>,
    pub bits: BitUse,
    pub threshold: Option<Threshold>,
    pub meta: Rc<Meta>,
}

impl Rule {
    /// The content that the prefilter looks for; none if the rule has no content.
    pub fn fast(&self) -> Option<&Content> {
        let contents = self.parts.iter().filter_map(Part::content);
        let positive = contents.filter(|content| !content.is_negated);
        positive.max_by_key(|content| (content.is_fast, content.bytes.len()))
    }

    /// True if one content alone decides.
    pub fn is_single(&self) -> bool {
        self.parts.len() == 1
    }
}
