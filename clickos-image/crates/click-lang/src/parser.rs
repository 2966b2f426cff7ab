// SPDX-License-Identifier: Apache-2.0
//! Tokens to a syntax tree. After an error it goes on with the next statement.
mod compound;
mod term;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ast::{Arrow, ClassBody, Config, Statement, Step, What};
use crate::error::{Errors, Limits, MAX_DEPTH, Place};
use crate::lexer::{Kind, Lexer, Token};

/// Parses a configuration; the errors found are added to `errors`, and what was
/// understood is returned all the same so that later errors can be found too.
pub fn parse(name: &str, text: &str, limits: &Limits, errors: &mut Errors) -> Vec<Statement> {
    if text.len() > limits.config_bytes {
        let message = format!(
            "the configuration has {} bytes, the limit is {}",
            text.len(),
            limits.config_bytes
        );
        errors.add(&Place::start(name), message);
        return Vec::new();
    }
    let lexer = Lexer::new(name, text);
    let mut parser = Parser {
        lexer,
        peeked: None,
        depth: 0,
        max_ports: limits.ports,
    };
    core::mem::swap(&mut parser.lexer.errors, errors);
    let statements = parser.statements(Until::End);
    core::mem::swap(&mut parser.lexer.errors, errors);
    statements
}

/// What ends a list of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    /// `}` or `||`
    Brace,
    /// `)`
    Paren,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    peeked: Option<Token<'a>>,
    depth: usize,
    max_ports: usize,
}

/// An error was reported; the caller goes on behind the statement.
struct Reported;

type Parsed<T> = Result<T, Reported>;

impl<'a> Parser<'a> {
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

    fn fail<T>(&mut self, place: &Place, message: impl Into<String>) -> Parsed<T> {
        self.lexer.errors.add(place, message);
        Err(Reported)
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = self.peek().clone();
        let found = match token.kind {
            Kind::End => "the end of the configuration".to_string(),
            _ => format!("\"{}\"", token.text.escape_debug()),
        };
        self.fail(&token.place, format!("expected {expected}, found {found}"))
    }

    fn statements(&mut self, until: Until) -> Vec<Statement> {
        let mut list = Vec::new();
        loop {
            let kind = self.kind();
            match (kind, until) {
                (Kind::End, _)
                | (Kind::Char('}') | Kind::BarBar, Until::Brace)
                | (Kind::Char(')'), Until::Paren) => return list,
                (Kind::Char(';'), _) => {
                    self.next();
                }
                _ => match self.statement(until != Until::End) {
                    Ok(statement) => list.push(statement),
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

    fn statement(&mut self, nested: bool) -> Parsed<Statement> {
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

    fn mandatory_config(&mut self) -> Parsed<Config> {
        match self.config()? {
            Some(config) => Ok(config),
            None => self.unexpected("\"(\""),
        }
    }

    /// A configuration string, if one follows.
    fn config(&mut self) -> Parsed<Option<Config>> {
        if self.kind() != Kind::Char('(') {
            return Ok(None);
        }
        let open = self.next();
        let place = self.lexer.place();
        let text = self.lexer.config();
        if !self.accept(Kind::Char(')')) {
            return self.fail(&open.place, "this \"(\" has no matching \")\"");
        }
        Ok(Some(Config { text, place }))
    }

    fn element_class(&mut self) -> Parsed<Statement> {
        let place = self.next().place;
        if self.kind() != Kind::Ident {
            return self.unexpected("a name for the element class");
        }
        let name = self.next().text.to_string();
        let body = match self.kind() {
            Kind::Ident => ClassBody::Synonym(self.next().text.to_string()),
            Kind::Char('{') => ClassBody::Compound(self.compound()?),
            _ => return self.unexpected("\"{\" or the name of an element class"),
        };
        Ok(Statement::ElementClass { name, body, place })
    }

    fn enter(&mut self, place: &Place) -> Parsed<()> {
        if self.depth == MAX_DEPTH {
            return self.fail(
                place,
                format!("compound elements nested deeper than {MAX_DEPTH}"),
            );
        }
        self.depth += 1;
        Ok(())
    }

    fn chain(&mut self, nested: bool) -> Parsed<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
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
                    &place,
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
            _ => self.unexpected("\"->\" or \";\""),
        }
    }
}
