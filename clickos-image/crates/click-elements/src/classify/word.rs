// SPDX-License-Identifier: Apache-2.0
//! A pattern's text as words: names, numbers, addresses, operators.
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-./@_:".contains(c)
}

/// Splits a pattern.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let second = rest[first.len_utf8()..].chars().next();
        let word = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let len = match (first, second) {
            ('&', Some('&')) | ('|', Some('|')) | ('<' | '>' | '!' | '=', Some('=')) => 2,
            _ if word > 0 => word,
            _ => first.len_utf8(),
        };
        words.push(rest[..len].to_string());
        rest = rest[len..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_end_words() {
        let words = split(" src port>=80&&(ip[6:2] & 0x3fff!=0)||!10.0.0.0/8 a-b ");
        let want = "src port >= 80 && ( ip [ 6:2 ] & 0x3fff != 0 ) || ! 10.0.0.0/8 a-b";
        assert_eq!(words.join(" "), want);
        assert_eq!(split("ü"), ["ü"]);
        assert!(split("  ").is_empty());
    }
}
