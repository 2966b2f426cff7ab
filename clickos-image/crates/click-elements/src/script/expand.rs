// SPDX-License-Identifier: Apache-2.0
//! Substitution in the text of instructions: `$name`, `${name}`, `$(handler arguments)`.
use click_core::text;

/// `$(` nested deeper than this is an error.
const MAX_NESTING: usize = 32;

/// The values of references.
pub trait Values {
    /// The value of a variable; a name without one stays as it is.
    fn variable(&self, name: &str) -> Option<String>;
    /// The value of a handler, called with a parameter; a call that fails is reported, and is kept as it is.
    fn handler(&mut self, name: &str, param: &str) -> Option<String>;
    /// Bytes a result may have.
    fn limit(&self) -> usize;
    /// Counts bytes that were looked at.
    ///
    /// # Errors
    /// They are more than one slice of the router allows.
    fn spend(&mut self, bytes: usize) -> Result<(), String>;
}

/// Expands `input`. Nothing is expanded between single quotes, and a value between double quotes
/// cannot end the string.
pub fn expand(input: &str, values: &mut dyn Values) -> Result<String, String> {
    let room = values.limit();
    nested(input, values, 0, room)
}

/// `room`: the bytes that this text and those inside it may have together.
fn nested(
    input: &str,
    values: &mut dyn Values,
    depth: usize,
    room: usize,
) -> Result<String, String> {
    if depth > MAX_NESTING {
        return Err(format!("references nested deeper than {MAX_NESTING}"));
    }
    values.spend(input.len() + 1)?;
    let fits = |bytes| match bytes <= room {
        true => Ok(room - bytes),
        false => Err(format!("the text is longer than {room} bytes")),
    };
    let b = input.as_bytes();
    let (mut out, mut i, mut start, mut in_string) = (String::new(), 0, 0, false);
    while i < b.len() {
        match b[i] {
            b'\\' if in_string => i += 1,
            b'"' => in_string = !in_string,
            b'\'' if !in_string => i = behind_quote(b, i) - 1,
            b'$' => {
                if let Some((reference, end)) = Reference::at(input, i, values)? {
                    let left = fits(out.len())?;
                    if let Some(value) = reference.value(values, depth, left)? {
                        values.spend(value.len())?;
                        fits(out.len() + i - start + value.len())?;
                        out.push_str(&input[start..i]);
                        push(&mut out, &value, in_string);
                        start = end;
                    }
                    i = end - 1;
                }
            }
            _ => {}
        }
        i += 1;
    }
    fits(out.len() + input.len() - start)?;
    out.push_str(&input[start..]);
    Ok(out)
}

use crate::prelude::*;

fn push(out: &mut String, value: &str, in_string: bool) {
    if in_string {
        let quoted = text::quote(value);
        out.push_str(&quoted[1..quoted.len() - 1]);
    } else {
        out.push_str(value);
    }
}

fn behind_quote(b: &[u8], at: usize) -> usize {
    let quote = b[at];
    let mut i = at + 1;
    while i < b.len() && b[i] != quote {
        i += if b[i] == b'\\' && quote == b'"' { 2 } else { 1 };
    }
    (i + 1).min(b.len())
}

enum Reference<'a> {
    Variable(&'a str),
    Handler(&'a str),
}

impl<'a> Reference<'a> {
    /// The reference whose `$` is at `at`, and the index behind it.
    fn at(
        input: &'a str,
        at: usize,
        values: &mut dyn Values,
    ) -> Result<Option<(Self, usize)>, String> {
        let rest = &input[at + 1..];
        let (end, kind): (_, fn(&'a str) -> Self) = match rest.as_bytes().first() {
            Some(b'{') => (rest.find('}'), Self::Variable),
            Some(b'(') => (closing(rest.as_bytes()), Self::Handler),
            first => return Ok(first.and_then(|first| Self::bare(*first, rest, at))),
        };
        values.spend(end.unwrap_or(rest.len()))?;
        Ok(end.map(|end| (kind(&rest[1..end]), at + end + 2)))
    }

    /// A variable without braces.
    fn bare(first: u8, rest: &'a str, at: usize) -> Option<(Self, usize)> {
        match first {
            b'?' | b'#' | b'$' => Some((Self::Variable(&rest[..1]), at + 2)),
            b'0'..=b'9' => {
                let len = rest.bytes().take_while(u8::is_ascii_digit).count();
                Some((Self::Variable(&rest[..len]), at + 1 + len))
            }
            _ => {
                let name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                let len = rest.bytes().take_while(name).count();
                (len > 0).then_some((Self::Variable(&rest[..len]), at + 1 + len))
            }
        }
    }

    fn value(
        &self,
        values: &mut dyn Values,
        depth: usize,
        room: usize,
    ) -> Result<Option<String>, String> {
        match self {
            Self::Variable(name) => Ok(values.variable(name)),
            Self::Handler(call) => {
                let call = nested(call, values, depth + 1, room)?;
                let (name, param) = split_call(&call);
                Ok(values.handler(name, param))
            }
        }
    }
}

/// The index of the parenthesis that closes the one `b` begins with.
fn closing(b: &[u8]) -> Option<usize> {
    let (mut open, mut i) = (0usize, 0);
    while i < b.len() {
        match b[i] {
            b'(' => open += 1,
            b')' if open == 1 => return Some(i),
            b')' => open -= 1,
            b'"' | b'\'' => i = behind_quote(b, i) - 1,
            _ => {}
        }
        i += 1;
    }
    None
}

/// A handler's name and what is behind it.
pub fn split_call(call: &str) -> (&str, &str) {
    let call = call.trim_start();
    let (name, param) = call
        .split_once(|c: char| c.is_ascii_whitespace())
        .unwrap_or((call, ""));
    (name, param.trim_matches(|c: char| c.is_ascii_whitespace()))
}

/// Removes one layer of quotes; text without any stays as it is, blanks included.
pub fn unquoted(value: &str) -> String {
    if value.contains(['"', '\'']) || value.contains("\\<") {
        text::unquote(value)
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its steps of work.
    struct Fixed(usize);
    impl Values for Fixed {
        fn variable(&self, name: &str) -> Option<String> {
            match name {
                "x" => Some("a\"b".into()),
                "h" => Some("echo".into()),
                _ => None,
            }
        }
        fn handler(&mut self, name: &str, param: &str) -> Option<String> {
            (name == "echo").then(|| format!("<{param}>"))
        }
        fn limit(&self) -> usize {
            100
        }
        fn spend(&mut self, bytes: usize) -> Result<(), String> {
            self.0 = self.0.checked_sub(bytes).ok_or("too much work")?;
            Ok(())
        }
    }

    fn expanded(s: &str) -> String {
        expand(s, &mut Fixed(10_000)).unwrap()
    }

    #[test]
    fn references_of_all_kinds() {
        assert_eq!(expanded("$x ${x} $y"), "a\"b a\"b $y");
        assert_eq!(expanded("'$x' \"$x\""), "'$x' \"a\\\"b\"");
        assert_eq!(expanded("$($h 1 $(echo \")\")) ."), "<1 <\")\">> .");
        assert_eq!(expanded("$ $( ${ \"\\$x"), "$ $( ${ \"\\$x");
        assert_eq!(expanded("$(nothing 1) $x"), "$(nothing 1) a\"b");
    }

    #[test]
    fn references_without_end_take_steps() {
        for open in ["$(", "${"] {
            let error = expand(&open.repeat(1000), &mut Fixed(10_000));
            assert_eq!(error, Err("too much work".to_string()));
        }
    }

    #[test]
    fn nested_texts_share_the_room() {
        let inner = "i".repeat(40);
        let wide = "o".repeat(70);
        assert!(expand(&format!("{wide}$(echo {inner})"), &mut Fixed(10_000)).is_err());
        assert!(expand(&format!("$x$(echo {inner})"), &mut Fixed(10_000)).is_ok());
    }

    #[test]
    fn too_deep_and_too_long_are_errors() {
        let deep = "$(echo ".repeat(40) + &")".repeat(40);
        assert!(expand(&deep, &mut Fixed(10_000)).is_err());
        assert!(expand(&"$x ".repeat(100), &mut Fixed(10_000)).is_err());
    }
}
