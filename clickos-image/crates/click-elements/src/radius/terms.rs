// SPDX-License-Identifier: Apache-2.0
//! The servers of a client, their key and the time between records, as arguments of an element.
use click_core::ArgContext;
use click_core::text::{split_words, unquote};

use super::client::{Place, SERVERS};
use crate::prelude::*;

/// RADIUS.
pub struct Places(pub Vec<Place>);

/// The port of a server's logins, unless it says another one.
const RADIUS_PORT: u16 = 1812;
impl FromArg for Places {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let text = unquote(text).replace(',', " ");
        let words = split_words(&text);
        if words.len() > SERVERS {
            return Err(format!("{} servers, the limit is {SERVERS}", words.len()));
        }
        let mut places = Vec::new();
        for word in &words {
            let (address, port) = match word.split_once(':') {
                Some((address, port)) => (address, u16::from_arg(port, at)?),
                None => (word.as_str(), RADIUS_PORT),
            };
            let place = Place {
                address: Ipv4Addr::from_arg(address, at)?,
                port,
            };
            if place.port == 0 || place.port == u16::MAX {
                return Err(format!("port {port} is out of range, expected 1 to 65534"));
            }
            if places.iter().any(|p: &Place| p.address == place.address) {
                return Err(format!("{} is given twice", place.address));
            }
            places.push(place);
        }
        Ok(Self(places))
    }
}

impl core::fmt::Display for Places {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (n, place) in self.0.iter().enumerate() {
            let gap = if n == 0 { "" } else { " " };
            write!(f, "{gap}{}:{}", place.address, place.port)?;
        }
        Ok(())
    }
}

/// SECRET; its text is in no error.
pub struct Secret(pub Vec<u8>);

impl FromArg for Secret {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        match unquote(text.trim()).into_bytes() {
            secret if secret.len() <= 128 => Ok(Self(secret)),
            secret => Err(format!("{} bytes, the limit is 128", secret.len())),
        }
    }
}

/// INTERIM.
pub struct Interim(pub u32);

impl FromArg for Interim {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match u32::from_arg(text, at)? {
            seconds @ (0 | 60..=86_400) => Ok(Self(seconds)),
            seconds => Err(format!(
                "{seconds} is out of range, expected 0 or 60 to 86400"
            )),
        }
    }
}
