// SPDX-License-Identifier: Apache-2.0
//! Text to tokens, on demand: whether parentheses hold a configuration string or
//! a group is known to the parser only.
use crate::error::{Errors, is_hidden};
use crate::source::{Directive, SourcePos};
use crate::text;

/// The kind of a token.
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

#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub place: SourcePos,
}

pub struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    /// The place of the text's beginning.
    base: SourcePos,
    max_directives: usize,
    pub errors: Errors,
}

/// Bytes of a file's name in a line directive; each error repeats it. A longer one does not count, nor one with
/// characters that a terminal obeys.
const FILE_NAME_MAX: usize = 1024;

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
    pub fn new(text: &'a str, base: SourcePos, max_directives: usize) -> Self {
        let errors = Errors::default();
        Self {
            text,
            pos: 0,
            base,
            max_directives,
            errors,
        }
    }

    pub fn place(&self) -> SourcePos {
        self.place_of(self.pos)
    }

    fn place_of(&self, pos: usize) -> SourcePos {
        let offset = u32::try_from(pos).unwrap_or(u32::MAX);
        SourcePos(self.base.0.saturating_add(offset))
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.pos).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b) = self.peek() {
            if b.is_ascii_whitespace() || b == 11 {
                self.pos += 1;
            } else if text::at_comment(self.bytes(), self.pos) {
                self.pos = text::skip_comment(self.bytes(), self.pos);
            } else if text::at_directive(self.bytes(), self.pos) {
                self.line_directive();
            } else {
                break;
            }
        }
    }

    /// `# 12 "file"` or `#line 12 "file"`: the next line is line 12 of that file.
    fn line_directive(&mut self) {
        let (start, end) = (self.pos, text::line_end(self.bytes(), self.pos));
        self.pos = text::skip_line(self.bytes(), self.pos);
        let body = self.text[start + 1..end].trim();
        let body = body.strip_prefix("line").unwrap_or(body).trim_start();
        let digits = body
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(body.len());
        let Ok(line) = body[..digits].parse::<u32>() else {
            let place = self.place_of(start);
            self.errors
                .add(place, "unknown preprocessor directive: expected \"# LINE\"");
            return;
        };
        let name = body[digits..].trim();
        let at = self.place();
        // flags may follow the name
        let (word, _) = text::shift_word(name);
        let named = word.starts_with('"') && word.len() <= FILE_NAME_MAX;
        let name = text::unquote(&word);
        let is_plain = !name.contains(|c: char| c.is_control() || is_hidden(c));
        let file = (named && is_plain).then(|| name.into());
        let directive = Directive { at, line, file };
        self.errors.directive(directive, self.max_directives);
    }

    pub fn next(&mut self) -> Token<'a> {
        self.skip_blanks();
        let (place, rest) = (self.place(), &self.text[self.pos..]);
        let (kind, len) = Self::classify(rest);
        self.pos += len;
        Token {
            kind,
            text: &rest[..len],
            place,
        }
    }

    /// True if the next token is a variable.
    pub fn variable_follows(&mut self) -> bool {
        let pos = self.pos;
        let found = self.next().kind == Kind::Variable;
        self.pos = pos;
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
    pub fn config(&mut self) -> &'a str {
        let (start, mut depth) = (self.pos, 1usize);
        while let Some(b) = self.peek() {
            let bytes = self.bytes();
            match b {
                b'(' => depth += 1,
                b')' if depth == 1 => break,
                b')' => depth -= 1,
                _ if text::at_directive(bytes, self.pos) => {
                    self.line_directive();
                    continue;
                }
                _ => {}
            }
            self.pos = text::skip_piece(bytes, self.pos);
        }
        &self.text[start..self.pos]
    }
}
