// SPDX-License-Identifier: Apache-2.0
//! The syntax of xl's configuration files, xl.cfg(5): `KEY = VALUE` by lines or semicolons.
//!
//! A value is a text in quotes, a number, or a list in brackets. A number in quotes is the same
//! number, so both are texts here. The last value of a key counts; `+=` appends.

use std::fmt::Display;

/// Nested lists; a pair of a handler and a value needs two.
const MAX_DEPTH: usize = 4;

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    List(Vec<Value>),
}

/// One statement.
#[derive(Debug, PartialEq)]
pub struct Setting {
    pub line: usize,
    pub key: String,
    pub value: Value,
}

/// Reads all statements, in their order.
///
/// # Errors
/// The first line that is not a statement, as `line N: reason`.
pub fn parse(text: &str) -> Result<Vec<Setting>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut settings: Vec<Setting> = Vec::new();
    loop {
        reader.skip(|c| c.is_ascii_whitespace() || c == ';');
        if reader.peek().is_none() {
            return Ok(settings);
        }
        let line = reader.line();
        let key = reader.key()?;
        let appends = reader.operator()?;
        let value = reader.value(0)?;
        reader.end_of_statement()?;
        let earlier = settings.iter().position(|setting| setting.key == key);
        let value = match earlier.map(|at| settings.remove(at).value) {
            Some(first) if appends => joined(first, value)
                .ok_or_else(|| format!("line {line}: {key}: += joins two texts or two lists"))?,
            _ => value,
        };
        settings.push(Setting { line, key, value });
    }
}

fn joined(first: Value, second: Value) -> Option<Value> {
    match (first, second) {
        (Value::Text(first), Value::Text(second)) => Some(Value::Text(first + &second)),
        (Value::List(mut first), Value::List(second)) => {
            first.extend(second);
            Some(Value::List(first))
        }
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    fn wrong(&self, what: impl Display) -> String {
        let found = match self.peek() {
            None => "the end of the file".to_owned(),
            Some('\n') => "the end of the line".to_owned(),
            Some(c) => format!("{c:?}"),
        };
        format!("line {}: expected {what}, got {found}", self.line())
    }

    /// Skips characters and comments.
    fn skip(&mut self, skipped: fn(char) -> bool) {
        while let Some(next) = self.peek() {
            if next == '#' {
                self.take(|c| c != '\n');
            } else if skipped(next) {
                self.next();
            } else {
                return;
            }
        }
    }

    fn take(&mut self, wanted: fn(char) -> bool) -> &str {
        let begin = self.at;
        while self.peek().is_some_and(wanted) {
            self.next();
        }
        &self.text[begin..self.at]
    }

    fn blanks(&mut self) {
        self.take(|c| c == ' ' || c == '\t' || c == '\r');
    }

    fn key(&mut self) -> Result<String, String> {
        let is_letter = self
            .peek()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !is_letter {
            return Err(self.wrong("KEY = VALUE"));
        }
        let key = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        Ok(key.to_owned())
    }

    /// Returns whether it appends.
    fn operator(&mut self) -> Result<bool, String> {
        self.blanks();
        let appends = self.peek() == Some('+');
        if appends {
            self.next();
        }
        if self.peek() != Some('=') {
            return Err(self.wrong("= behind the key"));
        }
        self.next();
        self.blanks();
        Ok(appends)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote).map(Value::Text),
            Some('[') if depth == MAX_DEPTH => Err(format!(
                "line {}: lists are nested more than {MAX_DEPTH} deep",
                self.line()
            )),
            Some('[') => self.list(depth).map(Value::List),
            Some(c) if c.is_ascii_digit() => Ok(Value::Text(
                self.take(|c| c.is_ascii_alphanumeric()).to_owned(),
            )),
            _ => Err(self.wrong("a text in quotes, a number or a list")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value>, String> {
        self.next();
        let mut values = Vec::new();
        loop {
            self.skip(|c| c.is_ascii_whitespace());
            if self.peek() == Some(']') {
                break;
            }
            values.push(self.value(depth + 1)?);
            self.skip(|c| c.is_ascii_whitespace());
            match self.peek() {
                Some(',') => self.next(),
                Some(']') => break,
                _ => return Err(self.wrong(", or ] in the list")),
            };
        }
        self.next();
        Ok(values)
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    return Err(self.wrong(format!("{quote} at the end of the text")));
                }
                Some(c) if c == quote => {
                    self.next();
                    return Ok(text);
                }
                Some('\\') => text.push(self.escaped()?),
                Some(c) => {
                    self.next();
                    text.push(c);
                }
            }
        }
    }

    /// One escape sequence: those of C without `\u`.
    fn escaped(&mut self) -> Result<char, String> {
        self.next();
        let code = match self.peek() {
            Some('x') => {
                self.next();
                return self.number(2, 16);
            }
            Some('0'..='3') => return self.number(3, 8),
            Some('a') => 7,
            Some('b') => 8,
            Some('t') => b'\t',
            Some('n') => b'\n',
            Some('v') => 11,
            Some('f') => 12,
            Some('r') => b'\r',
            Some(c @ ('\\' | '\'' | '"' | '?')) => c as u8,
            _ => return Err(self.wrong("an escape sequence of C")),
        };
        self.next();
        Ok(char::from(code))
    }

    fn number(&mut self, digits: usize, radix: u32) -> Result<char, String> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.peek().and_then(|c| c.to_digit(radix));
            code = code * radix + digit.ok_or_else(|| self.wrong(format!("{digits} digits")))?;
            self.next();
        }
        // Bytes beyond ASCII would need a second one to be a character.
        let char = char::from_u32(code).filter(char::is_ascii);
        char.ok_or_else(|| {
            format!(
                "line {}: expected a character of ASCII, got {code}",
                self.line()
            )
        })
    }

    fn end_of_statement(&mut self) -> Result<(), String> {
        self.skip(|c| c == ' ' || c == '\t' || c == '\r');
        match self.peek() {
            None | Some('\n' | ';') => Ok(()),
            _ => Err(self.wrong("the end of the line or ;")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn only(source: &str) -> Value {
        let mut settings = parse(source).unwrap();
        assert_eq!(settings.len(), 1, "{source}");
        settings.remove(0).value
    }

    #[test]
    fn statements_end_at_lines_and_semicolons() {
        let settings =
            parse("# a comment\nname = \"a;b\"; memory=12\t# more\n\n;;x = [ ]").unwrap();
        let seen: Vec<_> = settings
            .iter()
            .map(|s| (s.line, s.key.as_str(), s.value.clone()))
            .collect();
        assert_eq!(
            seen,
            [
                (2, "name", text("a;b")),
                (2, "memory", text("12")),
                (4, "x", Value::List(vec![]))
            ]
        );
    }

    #[test]
    fn values_are_texts_and_lists() {
        assert_eq!(only("a = 0x1f"), text("0x1f"));
        assert_eq!(only("a = '\"'"), text("\""));
        assert_eq!(only(r#"a = "\x41\102\t\"\\""#), text("AB\t\"\\"));
        let list = Value::List(vec![text("1"), Value::List(vec![text("b"), text("c")])]);
        assert_eq!(only("a = [ 1, # one\n ['b',\n'c' ], ]"), list);
    }

    #[test]
    fn the_last_one_counts_and_more_is_appended() {
        assert_eq!(only("a = 1\na = 2"), text("2"));
        assert_eq!(only("a = 'x'\na += 'y'"), text("xy"));
        assert_eq!(
            only("a = ['x']\na += ['y']"),
            Value::List(vec![text("x"), text("y")])
        );
        assert_eq!(only("a += 3"), text("3"));
        assert!(
            parse("a = 'x'\na += ['y']")
                .unwrap_err()
                .contains("line 2: a: +=")
        );
    }

    #[test]
    fn mistakes_name_the_line() {
        for (source, words) in [
            ("\n= 3", "line 2: expected KEY = VALUE, got '='"),
            (
                "a",
                "line 1: expected = behind the key, got the end of the file",
            ),
            ("a =", "expected a text in quotes, a number or a list"),
            ("a = true", "got 't'"),
            (
                "a = 'x\n'",
                "expected ' at the end of the text, got the end of the line",
            ),
            (
                "a = 'x' b = 1",
                "expected the end of the line or ;, got 'b'",
            ),
            ("a = ['x' 'y']", "expected , or ] in the list"),
            ("a = ['x'", "got the end of the file"),
            (r"a = '\q'", "expected an escape sequence of C, got 'q'"),
            (r"a = '\x4'", "expected 2 digits"),
            (r"a = '\xff'", "expected a character of ASCII, got 255"),
            ("a = [[[[[1]]]]]", "more than 4 deep"),
        ] {
            let error = parse(source).unwrap_err();
            assert!(error.contains(words), "{source}: {error}");
        }
    }
}
