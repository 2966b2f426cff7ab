// SPDX-License-Identifier: Apache-2.0
//! `10.0.0.0/8 10.0.0.1 1 234 ENCRYPT_KEY AUTH_KEY 300 64`: a route, and the association for its packets.
use click_core::ArgContext;
use click_core::text::{split_words, unquote_bytes};

use super::{KEY, Terms};
use crate::prelude::*;

/// Words that describe an association.
const WORDS: usize = 5;

/// Splits a route's text into what every route has, and the terms of its association.
///
/// # Errors The fault of the terms.
pub fn split(text: &str, at: ArgContext<'_>) -> Result<(String, Option<Terms>), String> {
    let words = split_words(text);
    // a route has two words, or three with a gateway
    if ![2 + WORDS, 3 + WORDS].contains(&words.len()) {
        return Ok((text.to_string(), None));
    }
    let (route, terms) = words.split_at(words.len() - WORDS);
    Ok((route.join(" "), Some(Terms::parse(terms, at)?)))
}

impl Terms {
    fn parse(words: &[String], at: ArgContext<'_>) -> Result<Self, String> {
        let [spi, encrypt, auth, replay, window] = words else {
            return Err("expected SPI ENCRYPT_KEY AUTH_KEY REPLAY OOSIZE".into());
        };
        let spi = u32::from_arg(spi, at).map_err(named("SPI"))?;
        if spi == 0 {
            return Err("SPI: 0 is reserved".into());
        }
        Ok(Self {
            spi,
            encrypt_key: key(encrypt).map_err(named("ENCRYPT_KEY"))?,
            auth_key: key(auth).map_err(named("AUTH_KEY"))?,
            replay: u32::from_arg(replay, at).map_err(named("REPLAY"))?,
            window: u8::from_arg(window, at).map_err(named("OOSIZE"))?,
        })
    }
}

fn named(name: &'static str) -> impl Fn(String) -> String {
    move |message| format!("{name}: {message}")
}

fn key(word: &str) -> Result<[u8; KEY], String> {
    let bytes = unquote_bytes(word);
    let length = bytes.len();
    <[u8; KEY]>::try_from(bytes).map_err(|_| format!("expected {KEY} bytes, got {length}"))
}
