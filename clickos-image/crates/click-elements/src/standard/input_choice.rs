// SPDX-License-Identifier: Apache-2.0
//! The chosen input of elements that take packets from one of several.
use crate::prelude::*;

/// Reads argument INPUT, default 0; `None` inside if it is negative.
pub fn argument(a: &mut Args<'_>) -> Option<Option<usize>> {
    let (input, inputs) = (a.or("INPUT", 0i64)?, a.inputs());
    let input = usize::try_from(input).ok();
    if let Some(input) = input.filter(|i| *i >= inputs && *i > 0) {
        a.error("INPUT", format!("there is no input {input}"));
    }
    Some(input)
}

/// The value of a handler; an input that is not there means none.
pub fn parse(view: &View<'_>, value: &str) -> Result<Option<usize>, HandlerError> {
    let input = view.parse::<i64>(value)?;
    Ok(usize::try_from(input).ok().filter(|i| *i < view.ports.0))
}

/// What handlers show: -1 for none.
pub fn show(input: Option<usize>) -> Text {
    input.map_or_else(|| text(-1), text)
}
