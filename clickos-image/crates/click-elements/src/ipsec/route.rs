// SPDX-License-Identifier: Apache-2.0
//! `10.0.0.0/8 10.0.0.1 1 234 ENCRYPT_KEY AUTH_KEY 300 64`: a route, and the association for its packets.
use click_core::ArgContext;
use click_core::text::{split_words, unquote_bytes};

use super::{KEY, Terms};
use crate::prelude::*;
use crate::unless_key::{may_be_key, unless_key};

/// Words that describe an association.
const WORDS: usize = 5;
const EXPECTED: &str =
    "expected NETWORK/LENGTH [GATEWAY] OUTPUT [SPI ENCRYPT_KEY AUTH_KEY REPLAY OOSIZE]";

/// Splits a route's text into what every route has, and the terms of its association.
///
/// # Errors The fault of the terms.
pub fn split(text: &str, at: ArgContext<'_>) -> Result<(String, Option<Terms>), String> {
    let words = split_words(text);
    // a route has two words, or three with a gateway
    let (route, terms) = match words.len() {
        0..=3 => (words.as_slice(), None),
        count if [2 + WORDS, 3 + WORDS].contains(&count) => {
            let (route, terms) = words.split_at(words.len() - WORDS);
            (route, Some(terms))
        }
        count => return Err(format!("{EXPECTED}, got {count} words")),
    };
    // other messages would repeat it
    if route.iter().any(|word| may_be_key(word)) {
        return Err(format!("{EXPECTED}, got a key in another place"));
    }
    let terms = terms.map(|terms| Terms::parse(terms, at)).transpose()?;
    Ok((route.join(" "), terms))
}

impl Terms {
    fn parse(words: &[String], at: ArgContext<'_>) -> Result<Self, String> {
        let [spi, encrypt, auth, replay, window] = words else {
            return Err("expected SPI ENCRYPT_KEY AUTH_KEY REPLAY OOSIZE".into());
        };
        let spi: u32 = number(spi, at).map_err(named("SPI"))?;
        if spi == 0 {
            return Err("SPI: 0 is reserved".into());
        }
        Ok(Self {
            spi,
            encrypt_key: key(encrypt).map_err(named("ENCRYPT_KEY"))?,
            auth_key: key(auth).map_err(named("AUTH_KEY"))?,
            replay: number(replay, at).map_err(named("REPLAY"))?,
            window: number(window, at).map_err(named("OOSIZE"))?,
        })
    }
}

fn named(name: &'static str) -> impl Fn(String) -> String {
    move |message| format!("{name}: {message}")
}

/// A number; a key in its place is not repeated.
fn number<T: FromArg>(word: &str, at: ArgContext<'_>) -> Result<T, String> {
    match may_be_key(word) {
        true => Err(format!("expected a number, got {}", unless_key(word))),
        false => T::from_arg(word, at),
    }
}

fn key(word: &str) -> Result<[u8; KEY], String> {
    let bytes = unquote_bytes(word);
    let length = bytes.len();
    <[u8; KEY]>::try_from(bytes).map_err(|_| format!("expected {KEY} bytes, got {length}"))
}
