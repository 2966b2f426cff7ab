// SPDX-License-Identifier: Apache-2.0
//! What a rewriter does with flows that come in at one of its inputs.
use click_core::ArgContext;
use click_core::text::split_words;
use click_core::value::number;

use super::mapper::Shared;
use super::pattern::{FORM, Outputs, Pattern, no_output, outputs};
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
    /// It goes to the inside endpoint of its destination, if there is one; else it is dropped. With `true` it needs a
    /// flow of that endpoint with its source address, too.
    Bound(Outputs, bool),
    /// An element decides, which has this name; the outputs are its own unless they are given.
    Named(String, Option<Outputs>),
    Mapper(Shared, Option<Outputs>),
}

impl Spec {
    /// Parses the specification of an input of an element with that many outputs.
    ///
    /// # Errors The fault.
    pub fn parse(text: &str, ports: usize, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let Some((kind, rest)) = words.split_first() else {
            return Err("expected a specification, got nothing".into());
        };
        let unknown = || format!("unknown specification \"{}\"", text.shown());
        match kind.as_str() {
            "pass" | "passthrough" | "nochange" => pass(rest, ports),
            "keep" => outputs(rest, ports).map(Self::Keep),
            "bound" => bound(rest, ports),
            "drop" | "discard" if rest.is_empty() => Ok(Self::Drop),
            "drop" | "discard" => Err(format!("expected \"{kind}\", got \"{}\"", text.shown())),
            "pattern" | "xpattern" => pattern(rest, ports, at),
            name if rest.is_empty() => Ok(Self::Named(name.to_string(), None)),
            name if rest.len() == 2 => {
                let outputs = outputs(rest, ports).map_err(|_| unknown())?;
                Ok(Self::Named(name.to_string(), Some(outputs)))
            }
            _ => Err(unknown()),
        }
    }

    /// What [`parse`](Self::parse) reads as this specification; mappers are no part of it.
    pub fn text(&self) -> String {
        let text = |kind: &str, [there, back]: &Outputs| format!("{kind} {there} {back}");
        match self {
            Self::Drop => "drop".into(),
            Self::Pass(output) => format!("pass {output}"),
            Self::Keep(outputs) => text("keep", outputs),
            Self::Bound(outputs, false) => text("bound", outputs),
            Self::Bound(outputs, true) => text("bound", outputs) + " address-dependent",
            Self::Pattern(pattern, outputs) => text(&format!("pattern {pattern:#}"), outputs),
            Self::Named(..) | Self::Mapper(..) => self.to_string(),
        }
    }
}

fn pass(rest: &[String], ports: usize) -> Result<Spec, String> {
    let output = match rest {
        [] => Some(0),
        [word] => number(word),
        _ => None,
    };
    let output = output.ok_or_else(|| expected("an output", &rest.join(" ")))?;
    match u16::try_from(output) {
        Ok(port) if usize::from(port) < ports => Ok(Spec::Pass(port)),
        _ => Err(no_output(output, ports)),
    }
}

/// Outputs, and how packets of unknown flows are filtered (RFC 4787, section 5).
fn bound(rest: &[String], ports: usize) -> Result<Spec, String> {
    let (ends, filter) = rest.split_at(rest.len().min(2));
    let outputs = outputs(ends, ports)?;
    match filter {
        [] => Ok(Spec::Bound(outputs, false)),
        [word] if word == "endpoint-independent" => Ok(Spec::Bound(outputs, false)),
        [word] if word == "address-dependent" => Ok(Spec::Bound(outputs, true)),
        [word] if word == "address-and-port-dependent" => Ok(Spec::Drop),
        _ => Err(format!(
            "expected endpoint-independent, address-dependent or address-and-port-dependent, got \"{}\"",
            filter.join(" ").shown()
        )),
    }
}

fn pattern(rest: &[String], ports: usize, at: ArgContext<'_>) -> Result<Spec, String> {
    let (pattern, outputs) = with_outputs(rest, ports, at)?;
    Ok(Spec::Pattern(pattern, outputs))
}

/// A pattern and two outputs.
///
/// # Errors The fault.
pub fn with_outputs(
    words: &[String],
    ports: usize,
    at: ArgContext<'_>,
) -> Result<(Pattern, Outputs), String> {
    if words.len() <= 2 {
        return Err(expected(FORM, &words.join(" ")));
    }
    let (pattern, ends) = words.split_at(words.len() - 2);
    Ok((Pattern::parse(pattern, at)?, outputs(ends, ports)?))
}

/// As Click's handlers have it.
impl core::fmt::Display for Spec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Drop => f.write_str("<drop>"),
            Self::Pass(_) => f.write_str("<nochange>"),
            Self::Keep(_) => f.write_str("<keep>"),
            Self::Bound(..) => f.write_str("<bound>"),
            Self::Pattern(pattern, _) => pattern.fmt(f),
            Self::Named(..) | Self::Mapper(..) => f.write_str("<mapper>"),
        }
    }
}
