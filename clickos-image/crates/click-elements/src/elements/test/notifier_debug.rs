// SPDX-License-Identifier: Apache-2.0
//! Passes packets unchanged, and shows what it is notified of: packets or room.
//!
//! # Synopsis
//! `NotifierDebug`
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `signal` (read): the signals of all elements that could have packets to pull (`empty`) or, where packets are pushed,
//!   could be `full`, 32 in a word, as `empty.WORD/MASK:VALUE` with a star behind words in which one is on; `always`
//!   where one of the elements has to be tried.
//! # Differences from Click
//! Masks number the elements in the order of the configuration.
//! # Example
//! `Queue -> n :: NotifierDebug -> ToDevice(0);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "NotifierDebug",
    handlers: &[read("signal", NotifierDebug::signals)],
    build: |_| Some(Box::new(NotifierDebug)),
    ..Class::DEFAULT
};

struct NotifierDebug;

/// A word of signals, the first in its lowest bit.
fn word(kind: &str, number: usize, signals: &[bool]) -> String {
    let bit = |on: bool, index| u64::from(on) << index;
    let mask = signals
        .iter()
        .enumerate()
        .fold(0, |m, (i, _)| m | bit(true, i));
    let value = signals
        .iter()
        .enumerate()
        .fold(0, |v, (i, on)| v | bit(*on, i));
    let star = if value == 0 { "" } else { "*" };
    format!("{kind}.{number}/{mask:x}:{value:x}{star}")
}

impl NotifierDebug {
    fn signals(&mut self, view: &mut View<'_>) -> Text {
        let mut ctx = view.ctx();
        let kind = if ctx.output_is_push(0) {
            "full"
        } else {
            "empty"
        };
        let Some(signals) = ctx.signals() else {
            return text("always");
        };
        let words = signals.chunks(32).enumerate();
        let words: Vec<_> = words.map(|(n, signals)| word(kind, n, signals)).collect();
        text(words.join("+"))
    }
}

impl Element for NotifierDebug {}
