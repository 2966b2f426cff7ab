// SPDX-License-Identifier: Apache-2.0
//! The text of one rule, cut into its words and options.
use crate::prelude::*;

/// Characters of a value that an error repeats.
const SHOWN: usize = 64;

/// A value for an error.
pub fn shown(value: &str) -> String {
    let mut text: String = value.chars().take(SHOWN).collect();
    if text.len() < value.len() {
        text.push_str("...");
    }
    text.escape_debug().to_string()
}

/// The fault of an option.
pub fn fault(keyword: &str, value: &str, reason: &str) -> String {
    format!("{keyword}: \"{}\": {reason}", shown(value))
}

/// A number up to a limit.
pub fn number(keyword: &str, value: &str, most: u32) -> Result<u32, String> {
    let plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse::<u64>().ok().filter(|_| plain);
    let number = number.ok_or_else(|| fault(keyword, value, "expected a number"))?;
    let small = u32::try_from(number).ok().filter(|number| *number <= most);
    small.ok_or_else(|| format!("{keyword}: {number}, the limit is {most}"))
}

/// Words between blanks; a list in brackets is one word.
pub fn words(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut words) = (0usize, None, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c.is_ascii_whitespace() && depth == 0 {
            words.extend(start.take().map(|start: usize| &text[start..at]));
        } else if start.is_none() {
            start = Some(at);
        }
    }
    words.extend(start.map(|start| &text[start..]));
    words
}

/// An option and its value, which is empty if it has none.
pub type OptionText<'a> = (&'a str, &'a str);

/// The options of a rule: each ends with a semicolon outside quotes.
pub fn options(text: &str) -> Result<Vec<OptionText<'_>>, String> {
    let (mut found, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                let option = text[start..at].trim();
                start = at + 1;
                if !option.is_empty() {
                    let (name, value) = option.split_once(':').unwrap_or((option, ""));
                    found.push((name.trim(), value.trim()));
                }
            }
            _ => {}
        }
    }
    match text[start..].trim() {
        "" => Ok(found),
        rest => Err(format!("\"{}\": expected ; behind an option", shown(rest))),
    }
}

/// The text between quotes, and whether `!` is in front of it.
pub fn quoted<'a>(keyword: &str, value: &'a str) -> Result<(bool, &'a str), String> {
    let (is_negated, rest) = match value.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, value),
    };
    let inner = rest
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.ok_or_else(|| fault(keyword, value, "expected text in quotes"))?;
    Ok((is_negated, inner))
}

/// The bytes of a content: characters, escapes, and hexadecimal numbers between bars.
pub fn content_bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'\\' => match tail {
                [c @ (b'"' | b'\\' | b';' | b':' | b'|'), tail @ ..] => {
                    bytes.push(*c);
                    rest = tail;
                }
                _ => return Err("\\ escapes only \" \\ ; : |"),
            },
            b'|' => {
                let end = tail.iter().position(|c| *c == b'|');
                let end = end.ok_or("a bar is not closed")?;
                hex_into(&mut bytes, &tail[..end])?;
                rest = &tail[end + 1..];
            }
            c => bytes.push(*c),
        }
    }
    Ok(bytes)
}

fn hex_into(bytes: &mut Vec<u8>, text: &[u8]) -> Result<(), &'static str> {
    let mut digits = text.iter().filter(|c| !c.is_ascii_whitespace());
    let digit = |c: &u8| {
        char::from(*c)
            .to_digit(16)
            .ok_or("expected hexadecimal digits between bars")
    };
    while let Some(high) = digits.next() {
        let low = digits.next().ok_or("half a byte between bars")?;
        bytes.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_at_semicolons_outside_quotes() {
        let found = options(r#"msg:"a; \"b"; content:!"|3b|x" ; nocase;"#).unwrap();
        let want = [
            ("msg", r#""a; \"b""#),
            ("content", r#"!"|3b|x""#),
            ("nocase", ""),
        ];
        assert_eq!(found, want);
        assert!(options("sid:1").is_err());
        assert!(options("msg:\"a; sid:1;").is_err());
    }

    #[test]
    fn contents_have_characters_escapes_and_numbers() {
        assert_eq!(
            content_bytes(r#"a|00 ff41|\"\;|"#),
            Err("a bar is not closed")
        );
        assert_eq!(
            content_bytes(r#"a|00 ff41|\"\;"#).unwrap(),
            b"a\x00\xffA\";"
        );
        assert_eq!(content_bytes("|0|"), Err("half a byte between bars"));
        assert!(content_bytes(r"\x").is_err() && content_bytes("|0g|").is_err());
    }

    #[test]
    fn a_list_is_one_word() {
        assert_eq!(words("a  [b, [c d]] e"), ["a", "[b, [c d]]", "e"]);
        assert!(words(" ").is_empty());
    }

    #[test]
    fn numbers_have_limits() {
        assert_eq!(number("depth", "7", 9), Ok(7));
        assert_eq!(
            number("depth", "10", 9).unwrap_err(),
            "depth: 10, the limit is 9"
        );
        assert!(number("depth", "+1", 9).is_err() && number("depth", "", 9).is_err());
        assert!(number("sid", "99999999999999999999", 9).is_err());
    }
}
