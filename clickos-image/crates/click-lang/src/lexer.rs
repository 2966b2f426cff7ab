// SPDX-License-Identifier: Apache-2.0
//! Text to tokens, on demand: whether parentheses hold a configuration string or
//! a group is known to the parser only.
use alloc::rc::Rc;
use alloc::string::String;

use crate::error::{Errors, Place};
use crate::text;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ident,
    Variable,
    Arrow,
    PairArrow,
    ColonColon,
    BarBar,
    Dots,
    ElementClass,
    Require,
    Provide,
    Define,
    /// A character that stands for itself.
    Char(char),
    End,
}

#[derive(Clone, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub place: Place,
}

pub struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    file: Rc<str>,
    original_file: Rc<str>,
    line: u32,
    column: u32,
    pub errors: Errors,
}

const PUNCTUATION: [(&str, Kind); 5] = [
    ("->", Kind::Arrow),
    ("=>", Kind::PairArrow),
    ("::", Kind::ColonColon),
    ("||", Kind::BarBar),
    ("...", Kind::Dots),
];

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'@'
}

impl<'a> Lexer<'a> {
    pub fn new(name: &str, text: &'a str) -> Self {
        let file: Rc<str> = name.into();
        let errors = Errors::default();
        Self {
            text,
            pos: 0,
            original_file: file.clone(),
            file,
            line: 1,
            column: 1,
            errors,
        }
    }

    pub fn place(&self) -> Place {
        Place {
            file: self.file.clone(),
            line: self.line,
            column: self.column,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// Moves to `to`, counting lines and columns.
    fn advance(&mut self, to: usize) {
        let bytes = self.text.as_bytes();
        while self.pos < to {
            let b = bytes[self.pos];
            self.pos += 1;
            if b == b'\n' || (b == b'\r' && bytes.get(self.pos) != Some(&b'\n')) {
                self.line = self.line.saturating_add(1);
                self.column = 1;
            } else if b & 0xc0 != 0x80 {
                self.column = self.column.saturating_add(1);
            }
        }
    }

    fn at_line_start(&self) -> bool {
        self.pos == 0 || matches!(self.text.as_bytes()[self.pos - 1], b'\n' | b'\r')
    }

    fn skip_blanks(&mut self) {
        while let Some(b) = self.peek() {
            if b.is_ascii_whitespace() || b == 11 {
                self.advance(self.pos + 1);
            } else if text::at_comment(self.text.as_bytes(), self.pos) {
                self.advance(text::skip_comment(self.text.as_bytes(), self.pos));
            } else if b == b'#' && self.at_line_start() {
                self.line_directive();
            } else {
                break;
            }
        }
    }

    /// `# 12 "file"` or `#line 12 "file"`: the next line is line 12 of that file.
    fn line_directive(&mut self) {
        let place = self.place();
        let rest = &self.text[self.pos..];
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        let end = self.pos + line.len();
        let body = line[1..].trim();
        let body = body.strip_prefix("line").unwrap_or(body).trim_start();
        let digits = body
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(body.len());
        self.advance(end);
        let Ok(number) = body[..digits].parse::<u32>() else {
            self.errors
                .add(&place, "expected a line number behind \"#\"");
            return;
        };
        let name = text::unquote(body[digits..].trim());
        if body[digits..].trim().starts_with('"') {
            self.file = if name.is_empty() {
                self.original_file.clone()
            } else {
                name.as_str().into()
            };
        }
        let newline = if self.text[end..].starts_with("\r\n") {
            2
        } else {
            1
        };
        self.advance((end + newline).min(self.text.len()));
        self.line = number;
    }

    pub fn next(&mut self) -> Token<'a> {
        self.skip_blanks();
        let (place, start) = (self.place(), self.pos);
        let rest = &self.text[start..];
        let (kind, len) = Self::classify(rest);
        self.advance(start + len);
        Token {
            kind,
            text: &rest[..len],
            place,
        }
    }

    /// Whether the next token is a variable.
    pub fn variable_follows(&mut self) -> bool {
        let (pos, line, column, file) = (self.pos, self.line, self.column, self.file.clone());
        let found = self.next().kind == Kind::Variable;
        (self.pos, self.line, self.column, self.file) = (pos, line, column, file);
        found
    }

    fn classify(rest: &str) -> (Kind, usize) {
        let Some(first) = rest.chars().next() else {
            return (Kind::End, 0);
        };
        let b = rest.as_bytes();
        if is_word(b[0]) {
            let len = Self::word_len(b);
            return (Self::keyword(&rest[..len]), len);
        }
        if first == '$' {
            let len = b[1..]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
                .count();
            if len > 0 {
                return (Kind::Variable, len + 1);
            }
        }
        match PUNCTUATION.iter().find(|(s, _)| rest.starts_with(s)) {
            Some((s, kind)) => (*kind, s.len()),
            None => (Kind::Char(first), first.len_utf8()),
        }
    }

    /// A slash belongs to a word if a word character follows it.
    fn word_len(b: &[u8]) -> usize {
        let mut n = 0;
        while n < b.len()
            && (is_word(b[n]) || (b[n] == b'/' && b.get(n + 1).is_some_and(|c| is_word(*c))))
        {
            n += 1;
        }
        n
    }

    fn keyword(word: &str) -> Kind {
        match word {
            "elementclass" => Kind::ElementClass,
            "require" => Kind::Require,
            "provide" => Kind::Provide,
            "define" => Kind::Define,
            _ => Kind::Ident,
        }
    }

    /// Reads a configuration string up to its closing parenthesis, which it leaves.
    pub fn config(&mut self) -> String {
        let mut out = String::new();
        let (mut start, mut depth) = (self.pos, 1usize);
        while let Some(b) = self.peek() {
            let bytes = self.text.as_bytes();
            let next = match b {
                b'(' => {
                    depth += 1;
                    self.pos + 1
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    self.pos + 1
                }
                b'#' if self.at_line_start() => {
                    out.push_str(&self.text[start..self.pos]);
                    self.line_directive();
                    start = self.pos;
                    continue;
                }
                _ if text::at_comment(bytes, self.pos) => text::skip_comment(bytes, self.pos),
                _ => text::skip_unit(bytes, self.pos),
            };
            self.advance(next);
        }
        out.push_str(&self.text[start..self.pos]);
        out
    }
}
