// SPDX-License-Identifier: Apache-2.0
//! Configuration strings: arguments, words, comments, quoting.
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// The index behind the comment that begins at `at` (`//` or `/*`).
pub(crate) fn skip_comment(s: &[u8], at: usize) -> usize {
    let rest = &s[at..];
    if rest.starts_with(b"//") {
        return rest
            .iter()
            .position(|b| matches!(b, b'\n' | b'\r'))
            .map_or(s.len(), |n| at + n);
    }
    rest.windows(2)
        .skip(2)
        .position(|w| w == b"*/")
        .map_or(s.len(), |n| at + n + 4)
}

/// True if a comment begins at `at`.
pub(crate) fn at_comment(s: &[u8], at: usize) -> bool {
    s[at] == b'/' && matches!(s.get(at + 1), Some(b'/' | b'*'))
}

/// The index behind the comment, string or `\<..>` sequence that begins at `at`, or one behind `at`.
pub(crate) fn skip_piece(s: &[u8], at: usize) -> usize {
    if at_comment(s, at) {
        skip_comment(s, at)
    } else {
        skip_unit(s, at)
    }
}

/// True if `s` ends within a `//` comment: text behind it would be part of the comment.
pub(crate) fn ends_in_comment(s: &str) -> bool {
    let (b, mut i, mut open) = (s.as_bytes(), 0, false);
    while i < b.len() {
        open = b[i..].starts_with(b"//");
        i = skip_piece(b, i);
    }
    open && !s.ends_with(['\n', '\r'])
}

/// True if a line directive begins at `at`.
pub(crate) fn at_directive(s: &[u8], at: usize) -> bool {
    s[at] == b'#' && (at == 0 || matches!(s[at - 1], b'\n' | b'\r'))
}

/// The index of what ends the line that `at` is in.
pub(crate) fn line_end(s: &[u8], at: usize) -> usize {
    let end = s[at..].iter().position(|b| matches!(b, b'\n' | b'\r'));
    end.map_or(s.len(), |n| at + n)
}

/// The index of the line after the one that `at` is in.
pub(crate) fn skip_line(s: &[u8], at: usize) -> usize {
    let end = line_end(s, at);
    let newline = if s[end..].starts_with(b"\r\n") { 2 } else { 1 };
    (end + newline).min(s.len())
}

/// A configuration string without the line directives in it.
pub(crate) fn without_directives(config: &str) -> Cow<'_, str> {
    if !config.contains("\n#") && !config.contains("\r#") {
        return Cow::Borrowed(config);
    }
    let b = config.as_bytes();
    let (mut out, mut i, mut start) = (String::new(), 0, 0);
    while i < b.len() {
        if i > 0 && at_directive(b, i) {
            out.push_str(&config[start..i]);
            i = skip_line(b, i);
            start = i;
        } else {
            i = skip_piece(b, i);
        }
    }
    out.push_str(&config[start..]);
    Cow::Owned(out)
}

/// The index behind the string or `\<..>` sequence that begins at `at`, or one behind `at`.
pub(crate) fn skip_unit(s: &[u8], at: usize) -> usize {
    match s[at] {
        b'\'' => s[at + 1..]
            .iter()
            .position(|b| *b == b'\'')
            .map_or(s.len(), |n| at + n + 2),
        b'"' => skip_double_quote(s, at),
        b'\\' if s.get(at + 1) == Some(&b'<') => skip_hex(s, at),
        _ => at + 1,
    }
}

fn skip_double_quote(s: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < s.len() && s[i] != b'"' {
        i = match (s[i], s.get(i + 1)) {
            (b'\\', Some(b'<')) => skip_hex(s, i),
            (b'\\', Some(_)) => i + 2,
            _ => i + 1,
        };
    }
    (i + 1).min(s.len())
}

fn skip_hex(s: &[u8], at: usize) -> usize {
    let mut i = at + 2;
    while i < s.len() && s[i] != b'>' {
        i = if at_comment(s, i) {
            skip_comment(s, i)
        } else {
            i + 1
        };
    }
    (i + 1).min(s.len())
}

/// Takes one argument from `s` at `from`: comments become spaces, blanks around it go.
/// Returns it and the index of its comma or of the end.
fn one_argument(s: &str, from: usize, stop_at_comma: bool) -> (Cow<'_, str>, usize) {
    let b = s.as_bytes();
    let mut out = String::new();
    let (mut i, mut start) = (from, from);
    while i < b.len() && !(stop_at_comma && b[i] == b',') {
        if at_comment(b, i) {
            out.push_str(s[start..i].trim_end_matches(is_blank));
            out.push(' ');
            while i < b.len() && (at_comment(b, i) || is_blank(b[i] as char)) {
                i = if at_comment(b, i) {
                    skip_comment(b, i)
                } else {
                    i + 1
                };
            }
            start = i;
        } else {
            i = skip_unit(b, i);
        }
    }
    if out.is_empty() {
        return (Cow::Borrowed(s[start..i].trim_matches(is_blank)), i);
    }
    out.push_str(&s[start..i]);
    (Cow::Owned(String::from(out.trim_matches(is_blank))), i)
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// Splits a configuration string at its commas. An empty string has no arguments;
/// an empty argument behind the last comma does not count.
pub fn split_args(config: &str) -> Vec<String> {
    let mut args = Vec::new();
    let mut at = 0;
    while at < config.len() {
        let (arg, end) = one_argument(config, at, true);
        if !arg.is_empty() || end < config.len() {
            args.push(arg.into_owned());
        }
        at = end + 1;
    }
    args
}

/// Bytes that [`split_args`] takes at most: each argument is a text of its own in a list.
pub fn bytes_to_split(config: &str) -> usize {
    2 * config.len() + 96 * count_args(config)
}

/// Bytes that an element takes at most while it is built. Each byte, each argument and each word of
/// an argument counts. IPFilter takes most.
pub fn bytes_to_build(config: &str) -> usize {
    let (b, mut i, mut args, mut words, mut most) = (config.as_bytes(), 0, 1usize, 0usize, 0);
    while i < b.len() {
        if b[i] == b',' {
            (args, words) = (args + 1, 0);
        }
        words += usize::from(is_blank(b[i] as char));
        most = words.max(most);
        i = skip_piece(b, i);
    }
    16 * b.len() + 384 * args + 160 * most
}

/// How many arguments [`split_args`] makes at most, without making them.
pub fn count_args(config: &str) -> usize {
    let (b, mut i, mut count) = (config.as_bytes(), 0, 1usize);
    while i < b.len() {
        count += usize::from(b[i] == b',');
        i = skip_piece(b, i);
    }
    count
}

/// Splits an argument at blanks outside quotes.
pub fn split_words(arg: &str) -> Vec<String> {
    let (text, _) = one_argument(arg, 0, false);
    let b = text.as_bytes();
    let mut words = Vec::new();
    let mut i = 0;
    while i < b.len() {
        let start = i;
        while i < b.len() && !is_blank(b[i] as char) {
            i = skip_unit(b, i);
        }
        if i > start {
            words.push(String::from(&text[start..i]));
        }
        i += 1;
    }
    words
}

/// The word of a number, from 0; nothing if there are fewer.
pub(crate) fn nth_word(arg: &str, number: usize) -> String {
    let (text, _) = one_argument(arg, 0, false);
    let (b, mut i, mut seen) = (text.as_bytes(), 0, 0);
    while i < b.len() {
        let start = i;
        while i < b.len() && !is_blank(b[i] as char) {
            i = skip_unit(b, i);
        }
        if i > start {
            if seen == number {
                return String::from(&text[start..i]);
            }
            seen += 1;
        }
        i += 1;
    }
    String::new()
}

/// Takes the first word off; returns it and the rest.
pub fn shift_word(arg: &str) -> (String, String) {
    let (text, _) = one_argument(arg, 0, false);
    let b = text.as_bytes();
    let mut i = 0;
    while i < b.len() && !is_blank(b[i] as char) {
        i = skip_unit(b, i);
    }
    (
        String::from(&text[..i]),
        String::from(text[i..].trim_start_matches(is_blank)),
    )
}

/// Removes comments and quotes, and resolves escapes: the bytes a string argument means.
pub fn unquote_bytes(arg: &str) -> Vec<u8> {
    let (text, _) = one_argument(arg, 0, false);
    let b = text.as_bytes();
    let mut out = Vec::new();
    let (mut i, mut quote) = (0, 0);
    while i < b.len() {
        let escape =
            b[i] == b'\\' && i + 1 < b.len() && (quote == b'"' || (quote == 0 && b[i + 1] == b'<'));
        match b[i] {
            q @ (b'"' | b'\'') if quote == 0 => quote = q,
            q if q == quote && quote != 0 => quote = 0,
            _ if escape => {
                i = unescape(b, i, &mut out);
                continue;
            }
            other => out.push(other),
        }
        i += 1;
    }
    out
}

/// Like [`unquote_bytes`], as text; bytes that are not UTF-8 are replaced.
pub fn unquote(arg: &str) -> String {
    String::from_utf8_lossy(&unquote_bytes(arg)).into_owned()
}

/// Resolves the escape at `at`; returns the index behind it.
fn unescape(b: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let c = b[at + 1];
    let simple = match c {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\n' => return at + 2,
        b'\r' => return at + if b.get(at + 2) == Some(&b'\n') { 3 } else { 2 },
        b'0'..=b'7' => return octal(b, at + 1, out),
        b'x' => return hex_number(b, at + 2, out),
        b'<' => return hex_bytes(b, at, out),
        other => other,
    };
    out.push(simple);
    at + 2
}

fn octal(b: &[u8], from: usize, out: &mut Vec<u8>) -> usize {
    let digits = b[from..]
        .iter()
        .take(3)
        .take_while(|d| (b'0'..=b'7').contains(d));
    let (n, value) = digits.fold((0, 0u16), |(n, v), d| (n + 1, v * 8 + u16::from(d - b'0')));
    out.push(value.to_le_bytes()[0]);
    from + n
}

fn hex_digit(d: u8) -> Option<u8> {
    (d as char).to_digit(16).and_then(|v| u8::try_from(v).ok())
}

fn hex_number(b: &[u8], from: usize, out: &mut Vec<u8>) -> usize {
    let digits = b[from..].iter().map_while(|d| hex_digit(*d));
    let (n, value) = digits.fold((0, 0u8), |(n, v), d| (n + 1, (v << 4) | d));
    out.push(value);
    from + n
}

/// `\<48 65>`: the hexadecimal digits pairwise, everything else in between ignored.
fn hex_bytes(b: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let end = skip_hex(b, at);
    let (mut i, mut high) = (at + 2, None);
    while i < end {
        if at_comment(b, i) {
            i = skip_comment(b, i);
            continue;
        }
        if let Some(d) = hex_digit(b[i]) {
            high = match high {
                None => Some(d),
                Some(h) => {
                    out.push((h << 4) | d);
                    None
                }
            };
        }
        i += 1;
    }
    end
}

/// Writes `s` as a string in double quotes.
pub fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '\\' | '"' | '$' => out.extend(['\\', c]),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 32 || c as u32 == 127 => {
                out.push_str(&alloc::format!("\\{:03o}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writes `s` bare if that reads back as the same word, otherwise as a string.
pub fn quote_if_needed(s: &str) -> Cow<'_, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@+*%=".contains(&b);
    if !s.is_empty() && s.bytes().all(plain) && !s.contains("//") && !s.contains("/*") {
        Cow::Borrowed(s)
    } else {
        Cow::Owned(quote(s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn arguments_split_at_commas_outside_quotes() {
        assert_eq!(
            split_args(" a b , \"c,d\" /* x, */ , 'e,' "),
            vec!["a b", "\"c,d\"", "'e,'"]
        );
        assert_eq!(count_args(" a b , \"c,d\" /* x, */ , 'e,' "), 3);
        assert_eq!(split_args(""), Vec::<String>::new());
        assert_eq!(split_args("a,,b,"), vec!["a", "", "b"]);
        assert_eq!(split_args("a // c, d\n e"), vec!["a e"]);
        assert_eq!(split_args("\\<41,42>"), vec!["\\<41,42>"]);
    }

    #[test]
    fn words_split_at_blanks_outside_quotes() {
        assert_eq!(
            split_words(" a \"b c\" d'e f' "),
            vec!["a", "\"b c\"", "d'e f'"]
        );
        assert_eq!(shift_word("DATA  x y"), ("DATA".into(), "x y".into()));
    }

    #[test]
    fn escapes_mean_bytes() {
        assert_eq!(
            unquote_bytes(r#""a\n\x41\101\<42 4/*c*/3>"d'\n'"#),
            b"a\nAABCd\\n"
        );
        assert_eq!(unquote_bytes("\\<00 ff>"), vec![0, 255]);
        assert_eq!(unquote("\"\\"), "\\");
    }

    #[test]
    fn unterminated_input_ends_at_the_end() {
        for s in [
            "\"", "'", "\\<", "/*", "\"\\", "\\<4", "/", "\"\\x", "\"\\<",
        ] {
            let _ = (split_args(s), split_words(s), unquote_bytes(s));
        }
    }

    #[test]
    fn quoting_is_undone_by_unquoting() {
        for s in ["", "a\"b\\c$d", "t\tn\nr\r\u{1}", "ü"] {
            assert_eq!(unquote(&quote(s)), s);
        }
    }
}
