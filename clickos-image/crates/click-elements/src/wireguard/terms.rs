// SPDX-License-Identifier: Apache-2.0
//! The texts of keys and peers, as users write them.
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use base64ct::{Base64, Encoding};
use click_core::ArgContext;
use click_core::text::{split_words, unquote};

use super::Endpoint;
use super::crypto::{KEY, Key};
use super::network::Network;
use super::tunnel::PEERS;
use crate::prelude::*;
use crate::unless_key::unless_key;

/// Networks of one peer.
const NETWORKS: usize = 64;

/// A key in Base64.
#[derive(Clone, Copy)]
pub struct KeyText(pub Key);

impl FromArg for KeyText {
    /// The text is not repeated in an error, since it may be a secret.
    fn from_arg(text: &str, _at: ArgContext<'_>) -> Result<Self, String> {
        let mut key = [0; KEY];
        match Base64::decode(unquote(text), &mut key) {
            Ok(bytes) if bytes.len() == KEY => Ok(Self(key)),
            _ => Err("expected 32 bytes in Base64".into()),
        }
    }
}

/// A key's text.
pub fn key_text(key: &Key) -> String {
    Base64::encode_string(key)
}

/// What a preshared key begins with.
const PRESHARED: &str = "psk=";

/// `PUBLIC_KEY ENDPOINT NETWORK ... [psk=KEY]`
#[derive(Clone)]
pub struct Terms {
    /// The peer's public key.
    pub public: Key,
    /// The key that both know besides.
    pub preshared: Key,
    /// Where it is, if that is known.
    pub endpoint: Option<Endpoint>,
    /// The addresses behind it.
    pub networks: Vec<Network>,
}

impl FromArg for Terms {
    /// A preshared key is not repeated in an error, wherever it stands.
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(&unquote(text));
        let [public, endpoint, rest @ ..] = words.as_slice() else {
            let count = words.len();
            return Err(format!(
                "expected PUBLIC_KEY ENDPOINT NETWORK ..., got {count} words"
            ));
        };
        let KeyText(public) =
            KeyText::from_arg(public, at).map_err(|e| format!("PUBLIC_KEY: {e}"))?;
        let mut terms = Self {
            public,
            preshared: [0; KEY],
            endpoint: parse_endpoint(endpoint)?,
            networks: Vec::new(),
        };
        rest.iter().try_for_each(|word| terms.add(word, at))?;
        Ok(terms)
    }
}

impl Terms {
    fn add(&mut self, word: &str, at: ArgContext<'_>) -> Result<(), String> {
        if let Some(key) = word.strip_prefix(PRESHARED) {
            let KeyText(key) = KeyText::from_arg(key, at).map_err(|e| format!("psk: {e}"))?;
            self.preshared = key;
            return Ok(());
        }
        let network = Network::parse(word);
        let wrong = || format!("NETWORK: expected a network, got {}", unless_key(word));
        if self.networks.len() == NETWORKS {
            return Err(format!("NETWORK: more than {NETWORKS}, the limit"));
        }
        self.networks.push(network.ok_or_else(wrong)?);
        Ok(())
    }
}

impl core::fmt::Display for Terms {
    /// The terms without the preshared key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&key_text(&self.public))?;
        match self.endpoint {
            Some((address, port)) => write!(f, " {address}:{port}")?,
            None => f.write_str(" -")?,
        }
        self.networks.iter().try_for_each(|n| write!(f, " {n}"))
    }
}

/// Terms of several peers, with commas between them.
pub struct Peers(pub Vec<Terms>);

impl Peers {
    /// Peers with different keys, and not too many.
    ///
    /// # Errors
    /// The fault.
    pub fn checked(peers: Vec<Terms>) -> Result<Self, String> {
        if peers.len() > PEERS {
            return Err(format!("{} peers, the limit is {PEERS}", peers.len()));
        }
        for (n, terms) in peers.iter().enumerate() {
            if peers[..n].iter().any(|p| p.public == terms.public) {
                return Err(format!(
                    "two peers have the key {}",
                    key_text(&terms.public)
                ));
            }
        }
        Ok(Self(peers))
    }
}

impl FromArg for Peers {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let text = unquote(text);
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        let peers: Result<Vec<_>, _> = parts.map(|part| Terms::from_arg(part.trim(), at)).collect();
        Self::checked(peers?)
    }
}

fn parse_endpoint(word: &str) -> Result<Option<Endpoint>, String> {
    if word.starts_with(PRESHARED) {
        return Err(format!(
            "ENDPOINT: expected ADDRESS:PORT or -, got {PRESHARED}..."
        ));
    }
    if word == "-" {
        return Ok(None);
    }
    let parsed: Option<SocketAddrV4> = word.parse().ok();
    let found = parsed.map(|e| (*e.ip(), e.port())).filter(|e| e.1 > 0);
    let wrong = || {
        let got = unless_key(word);
        format!("ENDPOINT: expected ADDRESS:PORT or -, got {got}")
    };
    found.map(Some).ok_or_else(wrong)
}
