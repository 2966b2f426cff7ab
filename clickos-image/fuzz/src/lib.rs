// SPDX-License-Identifier: Apache-2.0
//! What is fuzzed: each function takes any bytes, and must neither panic nor hang nor lose a packet.
mod budget;
mod control;
mod corpus;
mod files;
mod netif;
mod requests;
mod ring;
mod router;
mod store;

use click_core::text;
use click_lang::{Classes, Errors, Limits, Scope, Sources, flatten, parse};

pub use budget::{elements, installation};
pub use control::control;
pub use corpus::packets;
pub use files::files;
pub use netif::netif;
pub use requests::requests;
pub use ring::rings;
pub use router::{arguments, expressions, handlers};
pub use store::{messages, protocol};

/// Knows classes that begin with a capital letter, but for names that only elements can have.
struct Capitals;

impl Classes for Capitals {
    fn knows(&self, name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains(['@', '/'])
    }

    fn unavailable(&self, _name: &str) -> Option<&str> {
        None
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// A configuration: parsed, flattened, printed; what was right flattens to itself.
pub fn language(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let (limits, mut errors) = (Limits::default(), Errors::default());
    let sources = Sources::new("fuzz", text);
    let tree = parse(&sources, &limits, &mut Errors::default());
    let _ = tree.iter().map(ToString::to_string).collect::<String>();
    let flat = flatten(&sources, &Capitals, &Scope::default(), &limits, &mut errors);
    let (flat, right) = (flat.to_string(), errors.is_empty());
    let _ = errors.into_sorted(&sources);
    if right {
        let again = Sources::new("flat", flat.clone());
        let mut errors = Errors::default();
        let same = flatten(&again, &Capitals, &Scope::default(), &limits, &mut errors);
        assert!(
            errors.is_empty(),
            "{:?}\n{flat}",
            errors.into_sorted(&again)
        );
        assert_eq!(same.to_string(), flat);
    }
    strings(&String::from_utf8_lossy(data));
}

/// A configuration string: split, unquoted, quoted.
fn strings(config: &str) {
    for argument in text::split_args(config) {
        let _ = (text::split_words(&argument), text::shift_word(&argument));
        let value = text::unquote(&argument);
        assert_eq!(text::unquote(&text::quote(&value)), value);
    }
}
