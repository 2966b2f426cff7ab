// SPDX-License-Identifier: Apache-2.0
//! Gives elements a larger or smaller share of the time.
//!
//! # Synopsis
//! `ScheduleInfo(ELEMENT SHARE, ...)`: the task of ELEMENT, or the tasks of all elements in a compound of that
//! name, run SHARE times as often as others, 0.001 to 32. Shares of an element and of the compounds around
//! it are multiplied. Names are those inside the compound the ScheduleInfo is in.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A share is 0.001 to 32 (Click: 0 means never); one of an inner compound multiplies an outer
//! one's instead of replacing it.
//! # Example
//! `ScheduleInfo(important 2, background 0.1);`
use crate::decimal;
use crate::prelude::*;
use click_core::ArgContext;
use click_core::text::split_words;

pub static ELEMENT: Class = Class {
    name: "ScheduleInfo",
    ports: "0/0",
    args: &[rest("ELEMENT")],
    build: |a| {
        let lines = a.rest().to_vec();
        let shares = lines.iter().filter(|l| !l.is_empty()).filter_map(|line| {
            let words = split_words(line);
            let [name, share] = words.as_slice() else {
                a.error(
                    "ELEMENT",
                    format!("expected \"ELEMENT SHARE\", got \"{line}\""),
                );
                return None;
            };
            let Share(milli) = a.parse("SHARE", share)?;
            Some((name.clone(), milli))
        });
        let shares = shares.collect();
        Some(Box::new(ScheduleInfo { shares }))
    },
    ..Class::DEFAULT
};

/// A share in thousandths.
struct Share(u64);

impl FromArg for Share {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match decimal::parse(text).filter(|_| plain) {
            // half a thousandth more, so that fractions are rounded
            Some(share) if (0.001..=32.0).contains(&share) => {
                Ok(Self((share * 1000.0 + 0.5) as u64))
            }
            _ => Err(format!(
                "expected a number from 0.001 to 32, got \"{}\"",
                text.shown()
            )),
        }
    }
}

struct ScheduleInfo {
    /// Names and their shares in thousandths.
    shares: Vec<(String, u64)>,
}

impl Element for ScheduleInfo {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let around = ctx.name().rsplit_once('/');
        let around = around.map_or(String::new(), |(outer, _)| format!("{outer}/"));
        for (name, milli) in &self.shares {
            ctx.scale_tickets(&format!("{around}{name}"), *milli);
        }
        Ok(())
    }
}
