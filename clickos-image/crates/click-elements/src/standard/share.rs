// SPDX-License-Identifier: Apache-2.0
//! The handler `share` of elements that have a share of a limit which several guests share (docs/adr/0117). It
//! reads `SHARE USED`. A coordinator writes the share; a move to another host writes both.
use crate::carried::number;
use crate::prelude::*;

/// A share, and what of it was used.
pub fn show(share: u64, used: u64) -> Text {
    Ok(format!("{share} {used}"))
}

/// Reads `SHARE` or `SHARE USED`.
pub fn parse(value: &str) -> Result<(u64, Option<u64>), HandlerError> {
    let mut words = value.split_ascii_whitespace();
    let (share, used) = (words.next().and_then(number), words.next().map(number));
    match (share, used, words.next()) {
        (Some(share), None, None) => Ok((share, None)),
        (Some(share), Some(Some(used)), None) => Ok((share, Some(used))),
        _ => Err(HandlerError::rejected(format!(
            "expected SHARE or SHARE USED, whole numbers below 2^64, got \"{}\"",
            value.shown()
        ))),
    }
}
