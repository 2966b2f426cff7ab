// SPDX-License-Identifier: Apache-2.0
//! What a rewriter does with flows that come in at one of its inputs.
use click_core::Surroundings;
use click_core::text::split_words;
use click_core::value::number;

use super::mapper::Shared;
use super::pattern::{Outputs, Pattern, no_output, outputs};
use crate::prelude::*;

/// The treatment of a new flow.
#[derive(Clone)]
pub enum Spec {
    Drop,
    /// It leaves unchanged, and nothing is remembered.
    Pass(u16),
    /// It is remembered as it is.
    Keep(Outputs),
    Pattern(Pattern, Outputs),
    /// An element decides, which has this name.
    Named(String),
    Mapper(Shared),
}

impl Spec {
    /// Parses the specification of an input of an element with so many outputs.
    ///
    /// # Errors The fault.
    pub fn parse(text: &str, ports: usize, at: Surroundings<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let Some((kind, rest)) = words.split_first() else {
            return Err("empty argument".into());
        };
        match kind.as_str() {
            "pass" | "passthrough" | "nochange" => pass(rest, ports),
            "keep" => outputs(rest, ports).map(Self::Keep),
            "drop" | "discard" if rest.is_empty() => Ok(Self::Drop),
            "drop" | "discard" => Err(format!("syntax error, expected \"{kind}\"")),
            "pattern" | "xpattern" => pattern(rest, ports, at),
            name if rest.is_empty() => Ok(Self::Named(name.to_string())),
            _ => Err("unknown specification".into()),
        }
    }
}

fn pass(rest: &[String], ports: usize) -> Result<Spec, String> {
    let output = match rest {
        [] => Some(0),
        [word] => number(word),
        _ => None,
    };
    let output = output.ok_or("syntax error, expected \"nochange [OUTPUT]\"")?;
    match u16::try_from(output) {
        Ok(port) if usize::from(port) < ports => Ok(Spec::Pass(port)),
        _ => Err(no_output(output, ports)),
    }
}

fn pattern(rest: &[String], ports: usize, at: Surroundings<'_>) -> Result<Spec, String> {
    let (pattern, outputs) = with_outputs(rest, ports, at)?;
    Ok(Spec::Pattern(pattern, outputs))
}

/// A pattern and two outputs.
///
/// # Errors The fault.
pub fn with_outputs(
    words: &[String],
    ports: usize,
    at: Surroundings<'_>,
) -> Result<(Pattern, Outputs), String> {
    if words.len() <= 2 {
        return Err("syntax error".into());
    }
    let (pattern, ends) = words.split_at(words.len() - 2);
    Ok((Pattern::parse(pattern, at)?, outputs(ends, ports)?))
}

impl core::fmt::Display for Spec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Drop => f.write_str("<drop>"),
            Self::Pass(_) => f.write_str("<nochange>"),
            Self::Keep(_) => f.write_str("<keep>"),
            Self::Pattern(pattern, _) => pattern.fmt(f),
            Self::Named(_) | Self::Mapper(_) => f.write_str("<mapper>"),
        }
    }
}
