// SPDX-License-Identifier: Apache-2.0
//! Rules by which the switch decides packets for a guest (docs/adr/0083-offloaded-rules.md).
//!
//! Guest and switch share the text, the parser and the matcher of a rule, so both judge a packet alike.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod address;
mod redirect;
mod rule;
mod text;
mod view;

pub use redirect::{MAX_TARGETS, Target, Targets, redirect};
pub use rule::{Action, Ip6Pattern, IpPattern, Pattern, Range, Rule};
pub use view::{HEAD, Ip, Ip6, View};

/// Most rules of a table.
pub const MAX_RULES: usize = 64;
/// Most bytes of a table's text, with a line for each rule.
pub const MAX_TEXT: usize = 1900;

/// The number of the first rule that matches.
#[must_use]
pub fn first(rules: &[Rule], view: &View) -> Option<usize> {
    rules.iter().position(|rule| rule.matches(view))
}
