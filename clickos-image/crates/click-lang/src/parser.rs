// SPDX-License-Identifier: Apache-2.0
//! Tokens to a syntax tree. After an error it continues with the next statement.
mod compound;
mod term;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ast::{Arrow, ClassBody, Config, Statement, Step, Term, What};
use crate::error::{Errors, Limits, MAX_DEPTH};
use crate::lexer::{Kind, Lexer, Token};
use crate::source::{SourcePos, Sources};

/// Parses a configuration and adds the errors to `errors`. It returns the valid statements all the
/// same, so that later steps can find more errors.
pub fn parse<'a>(sources: &'a Sources, limits: &Limits, errors: &mut Errors) -> Vec<Statement<'a>> {
    let (text, base) = sources.file(0);
    if is_too_long(text, limits, errors) {
        return Vec::new();
    }
    let mut parser = Parser::new(text, base, limits);
    core::iter::from_fn(|| parser.next_statement(errors)).collect()
}

/// Reports a text that is longer than the limit.
pub(crate) fn is_too_long(text: &str, limits: &Limits, errors: &mut Errors) -> bool {
    let (bytes, limit) = (text.len(), limits.config_bytes.min(u32::MAX as usize - 1));
    if bytes > limit {
        let message = format!("the configuration has {bytes} bytes, the limit is {limit}");
        errors.add(SourcePos(0), message);
    }
    bytes > limit
}

/// The end of a list of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    /// `}` or `||`
    Brace,
    /// `)`
    Paren,
}

/// Makes statements one by one.
pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    peeked: Option<Token<'a>>,
    depth: usize,
    /// Statements and elements that the statement under way has so far: a tree holds them all.
    parts: usize,
    /// Parts since the parser last looked for memory.
    unprobed: usize,
    max_parts: usize,
    limits: Limits,
}

/// An error was reported; the caller continues after the statement.
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// Parts between two looks for memory; their bytes come out of the reserve.
const PARTS_PER_PROBE: usize = 512;

/// More parts than any statement has whose elements and connections are allowed.
fn most_parts(limits: &Limits) -> usize {
    let all = limits.elements.saturating_add(limits.connections);
    all.saturating_mul(2).saturating_add(1 << 10)
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, base: SourcePos, limits: &Limits) -> Self {
        Self {
            lexer: Lexer::new(text, base, limits.elements),
            peeked: None,
            depth: 0,
            parts: 0,
            unprobed: 0,
            max_parts: most_parts(limits),
            limits: *limits,
        }
    }

    /// The next statement that can be understood; what is wrong is added to `errors`.
    pub(crate) fn next_statement(&mut self, errors: &mut Errors) -> Option<Statement<'a>> {
        core::mem::swap(&mut self.lexer.errors, errors);
        let statement = self.one_of(Until::End);
        core::mem::swap(&mut self.lexer.errors, errors);
        statement
    }

    fn peek(&mut self) -> &Token<'a> {
        let Self { lexer, peeked, .. } = self;
        peeked.get_or_insert_with(|| lexer.next())
    }

    fn kind(&mut self) -> Kind {
        self.peek().kind
    }

    fn next(&mut self) -> Token<'a> {
        self.peeked.take().unwrap_or_else(|| self.lexer.next())
    }

    fn accept(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.next();
        }
        found
    }

    fn fail<T>(&mut self, place: SourcePos, message: impl Into<String>) -> Parsed<T> {
        self.lexer.errors.add(place, message);
        Err(Reported)
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = *self.peek();
        let message = match token.kind {
            Kind::End => format!("syntax error at the end: expected {expected}"),
            _ => {
                let found = token.text.escape_debug();
                format!("syntax error near '{found}': expected {expected}")
            }
        };
        self.fail(token.place, message)
    }

    fn statements(&mut self, until: Until) -> Vec<Statement<'a>> {
        let list: Vec<_> = core::iter::from_fn(|| self.one_of(until)).collect();
        for (place, arrow) in doubtful_starts(&list) {
            let message = format!("suggest 'input {arrow}' or '[0] {arrow}' to start connection");
            self.lexer.errors.warn(place, &message);
        }
        list
    }

    /// The next statement of a list, if there is one.
    fn one_of(&mut self, until: Until) -> Option<Statement<'a>> {
        loop {
            if self.lexer.errors.is_exhausted() {
                return None;
            }
            if until == Until::End {
                self.parts = 0;
            }
            let kind = self.kind();
            match (kind, until) {
                (Kind::End, _)
                | (Kind::Char('}') | Kind::BarBar, Until::Brace)
                | (Kind::Char(')'), Until::Paren) => return None,
                (Kind::Char(';'), _) => {
                    self.next();
                }
                _ => match self.statement(until != Until::End) {
                    Ok(statement) => return Some(statement),
                    Err(Reported) => self.recover(until),
                },
            }
        }
    }

    /// Skips what is left of a statement, up to what ends the list it is in.
    fn recover(&mut self, until: Until) {
        let mut nesting = 0usize;
        loop {
            let kind = self.kind();
            match (kind, until) {
                (Kind::End, _) => return,
                (Kind::Char('('), _) => {
                    self.next();
                    self.lexer.config();
                    continue;
                }
                (Kind::Char('{'), _) => nesting += 1,
                (Kind::Char('}'), _) if nesting > 0 => nesting -= 1,
                (Kind::Char('}') | Kind::BarBar, Until::Brace) if nesting == 0 => return,
                (Kind::Char(')'), Until::Paren) if nesting == 0 => return,
                (
                    Kind::Char(';')
                    | Kind::ElementClass
                    | Kind::Require
                    | Kind::Provide
                    | Kind::Define,
                    _,
                ) if nesting == 0 => {
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    /// Counts a part of the statement; one too many is passed over.
    fn count(&mut self, place: SourcePos, parts: usize) -> Parsed<()> {
        self.parts += parts;
        self.unprobed += parts;
        if self.unprobed >= PARTS_PER_PROBE {
            self.unprobed = 0;
            self.lexer
                .errors
                .has_memory(0, &self.limits, place, "parsing");
        }
        if self.lexer.errors.is_exhausted() {
            return Err(Reported);
        }
        let limit = self.max_parts;
        if self.parts <= limit {
            return Ok(());
        }
        self.next();
        let message = format!("more than {limit} elements and statements in one");
        self.fail(place, message)
    }

    fn statement(&mut self, nested: bool) -> Parsed<Statement<'a>> {
        let place = self.peek().place;
        self.count(place, 1)?;
        let kind = self.kind();
        match kind {
            Kind::ElementClass => self.element_class(),
            Kind::Require | Kind::Provide | Kind::Define => {
                self.next();
                let config = self.mandatory_config()?;
                Ok(match kind {
                    Kind::Require => Statement::Require(config),
                    Kind::Provide => Statement::Provide(config),
                    _ => Statement::Define(config),
                })
            }
            _ => self.chain(nested).map(Statement::Chain),
        }
    }

    fn mandatory_config(&mut self) -> Parsed<Config<'a>> {
        match self.config()? {
            Some(config) => Ok(config),
            None => self.unexpected("'('"),
        }
    }

    /// A configuration string, if one follows.
    fn config(&mut self) -> Parsed<Option<Config<'a>>> {
        if self.kind() != Kind::Char('(') {
            return Ok(None);
        }
        let open = self.next();
        let place = self.lexer.place();
        let raw = self.lexer.config();
        if !self.accept(Kind::Char(')')) {
            return self.fail(open.place, "this '(' has no matching ')'");
        }
        Ok(Some(Config { raw, place }))
    }

    fn element_class(&mut self) -> Parsed<Statement<'a>> {
        let place = self.next().place;
        if self.kind() != Kind::Ident {
            return self.unexpected("a name for the element class");
        }
        let name = self.next().text;
        let body = match self.kind() {
            Kind::Ident => ClassBody::Synonym(self.next().text),
            Kind::Char('{') => ClassBody::Compound(Box::new(self.compound()?)),
            _ => return self.unexpected("'{' or the name of an element class"),
        };
        Ok(Statement::ElementClass { name, body, place })
    }

    fn enter(&mut self, place: SourcePos) -> Parsed<()> {
        if self.depth == MAX_DEPTH {
            return self.fail(
                place,
                format!("compound elements nested deeper than {MAX_DEPTH}"),
            );
        }
        self.depth += 1;
        Ok(())
    }

    fn chain(&mut self, nested: bool) -> Parsed<Vec<Step<'a>>> {
        if !nested && matches!(self.kind(), Kind::Arrow | Kind::PairArrow) {
            let arrow = *self.peek();
            return self.fail(arrow.place, format!("syntax error near '{}'", arrow.text));
        }
        let mut steps: Vec<Step<'a>> = Vec::new();
        loop {
            let terms = self.terms(nested, steps.is_empty())?;
            let implicit = terms.iter().any(|t| matches!(t.what, What::Implicit));
            let arrow = match self.kind() {
                Kind::Arrow => Some(Arrow::Single),
                Kind::PairArrow => Some(Arrow::Pairwise),
                _ => None,
            };
            let Some(arrow) = arrow else {
                steps.push(Step { terms, arrow: None });
                self.end_of_chain()?;
                return Ok(steps);
            };
            let place = self.next().place;
            if implicit && !steps.is_empty() {
                return self.fail(
                    place,
                    "the compound's output cannot be in the middle of a chain",
                );
            }
            steps.push(Step {
                terms,
                arrow: Some((arrow, place)),
            });
        }
    }

    fn end_of_chain(&mut self) -> Parsed<()> {
        match self.kind() {
            Kind::Char(';' | '{' | '}' | ')' | '[')
            | Kind::End
            | Kind::Ident
            | Kind::BarBar
            | Kind::ElementClass
            | Kind::Require
            | Kind::Provide
            | Kind::Define => Ok(()),
            _ => self.unexpected("'->' or ';'"),
        }
    }
}

/// Chains that begin with an arrow, and so with the compound's input, behind a chain that does not
/// end with its output. Perhaps the author meant one chain.
fn doubtful_starts(list: &[Statement<'_>]) -> Vec<(SourcePos, &'static str)> {
    let mut ended = true;
    let mut doubtful = Vec::new();
    for statement in list {
        let Statement::Chain(steps) = statement else {
            continue;
        };
        if let ([Step { terms, arrow }, ..], false) = (&steps[..], ended) {
            let bare = matches!(&terms[..], [t] if matches!(t.what, What::Implicit) && t.outputs.is_none());
            let sign = if matches!(arrow, Some((Arrow::Pairwise, _))) {
                "=>"
            } else {
                "->"
            };
            doubtful.extend(bare.then(|| (terms[0].place, sign)));
        }
        ended = match steps.last().map(|step| &step.terms[..]) {
            Some(
                [
                    Term {
                        what: What::Name(name),
                        ..
                    },
                ],
            ) => *name == "output",
            Some(
                [
                    Term {
                        what: What::Implicit,
                        ..
                    },
                ],
            ) => true,
            _ => false,
        };
    }
    doubtful
}
