// SPDX-License-Identifier: Apache-2.0
//! Tokens to a syntax tree. After an error it goes on with the next statement.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ast::{
    Arrow, ClassBody, ClassRef, Compound, Config, Formal, Overload, Ports, Statement, Step, Term,
    What,
};
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

    /// `{ overload || overload || ... }`
    fn compound(&mut self) -> Parsed<Compound> {
        let place = self.next().place;
        self.enter(&place)?;
        let compound = self.compound_inside(place);
        self.depth -= 1;
        compound
    }

    fn compound_inside(&mut self, place: Place) -> Parsed<Compound> {
        let (mut overloads, mut extends) = (Vec::new(), false);
        loop {
            if self.kind() == Kind::Dots {
                let dots = self.next();
                extends = true;
                if overloads.is_empty() || self.kind() != Kind::Char('}') {
                    return self.fail(
                        &dots.place,
                        "\"...\" must come last, behind at least one overload",
                    );
                }
            } else {
                let place = self.peek().place.clone();
                let formals = self.formals()?;
                let statements = self.statements(Until::Brace);
                overloads.push(Overload {
                    formals,
                    statements,
                    place,
                });
            }
            if self.accept(Kind::BarBar) {
                continue;
            }
            if self.accept(Kind::Char('}')) {
                return Ok(Compound {
                    overloads,
                    extends,
                    place,
                });
            }
            return self.fail(&place, "this \"{\" has no matching \"}\"");
        }
    }

    /// `$a, KEY $b, __REST__ $c |`; the bar may be missing only when there are no parameters.
    fn formals(&mut self) -> Parsed<Vec<Formal>> {
        let mut formals: Vec<Formal> = Vec::new();
        if self.kind() == Kind::Char('|') {
            self.next();
            return Ok(formals);
        }
        loop {
            let mut keyword = String::new();
            let place = self.peek().place.clone();
            if self.kind() == Kind::Ident {
                if formals.is_empty() && !self.lexer.variable_follows() {
                    return Ok(formals);
                }
                keyword = self.next().text.to_string();
            }
            if self.kind() != Kind::Variable {
                return if formals.is_empty() {
                    Ok(formals)
                } else {
                    self.unexpected("a parameter such as $name")
                };
            }
            let name = self.next().text[1..].to_string();
            self.check_formal(&place, &formals, &keyword, &name);
            formals.push(Formal { keyword, name });
            if self.accept(Kind::Char('|')) {
                return Ok(formals);
            }
            if !self.accept(Kind::Char(',')) {
                return self.unexpected("\",\" or \"|\" behind a parameter");
            }
        }
    }

    fn check_formal(&mut self, place: &Place, before: &[Formal], keyword: &str, name: &str) {
        if before.iter().any(|f| f.name == name) {
            self.lexer
                .errors
                .add(place, format!("parameter ${name} is defined twice"));
        }
        if !keyword.is_empty() && before.iter().any(|f| f.keyword == keyword) {
            self.lexer
                .errors
                .add(place, format!("parameter keyword {keyword} is used twice"));
        }
        let out_of_order = before.last().is_some_and(|l| {
            l.keyword == "__REST__" || (keyword.is_empty() && !l.keyword.is_empty())
        });
        if out_of_order {
            let message =
                "parameters out of order: positional ones come first, then keywords, then __REST__";
            self.lexer.errors.add(place, message);
        }
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

    fn terms(&mut self, nested: bool, first_step: bool) -> Parsed<Vec<Term>> {
        let mut terms = Vec::new();
        loop {
            match self.term(nested, first_step, terms.is_empty())? {
                Some(term) => terms.push(term),
                None => return Ok(terms),
            }
            if !self.accept(Kind::Char(',')) {
                return Ok(terms);
            }
        }
    }

    /// One element; `None` where a list may end with a comma.
    fn term(&mut self, nested: bool, first_step: bool, first_term: bool) -> Parsed<Option<Term>> {
        let place = self.peek().place.clone();
        let inputs = self.ports()?;
        let what = match self.kind() {
            Kind::Ident => What::Name(self.next().text.to_string()),
            Kind::Char('{') => What::Compound(self.compound()?),
            Kind::Char('(') => What::Group(self.group()?),
            _ => return self.implicit(nested, first_step, first_term, inputs, place),
        };
        let class = self.class()?;
        let config = self.config()?;
        let outputs = self.ports()?;
        Ok(Some(Term {
            inputs,
            what,
            class,
            config,
            outputs,
            place,
        }))
    }

    /// Inside braces or parentheses a chain may begin or end with an arrow.
    fn implicit(
        &mut self,
        nested: bool,
        first_step: bool,
        first_term: bool,
        ports: Option<Ports>,
        place: Place,
    ) -> Parsed<Option<Term>> {
        let may_stand_alone = ports.is_some() || first_term;
        let is_implicit = nested
            && match self.kind() {
                Kind::Arrow | Kind::PairArrow => first_step && may_stand_alone,
                Kind::Char(',') => ports.is_some(),
                Kind::ColonColon => false,
                _ => !first_step && may_stand_alone,
            };
        if !is_implicit {
            if ports.is_none() && !first_term {
                return Ok(None);
            }
            return self.unexpected("an element");
        }
        let (inputs, outputs) = if first_step {
            (None, ports)
        } else {
            (ports, None)
        };
        Ok(Some(Term {
            inputs,
            what: What::Implicit,
            class: None,
            config: None,
            outputs,
            place,
        }))
    }

    fn group(&mut self) -> Parsed<Vec<Statement>> {
        let place = self.next().place;
        self.enter(&place)?;
        let statements = self.statements(Until::Paren);
        self.depth -= 1;
        if !self.accept(Kind::Char(')')) {
            return self.fail(&place, "this \"(\" has no matching \")\"");
        }
        Ok(statements)
    }

    fn class(&mut self) -> Parsed<Option<ClassRef>> {
        if !self.accept(Kind::ColonColon) {
            return Ok(None);
        }
        match self.kind() {
            Kind::Ident => {
                let token = self.next();
                Ok(Some(ClassRef::Name(token.text.to_string(), token.place)))
            }
            Kind::Char('{') => Ok(Some(ClassRef::Compound(self.compound()?))),
            _ => self.unexpected("an element class"),
        }
    }

    fn ports(&mut self) -> Parsed<Option<Ports>> {
        if !self.accept(Kind::Char('[')) {
            return Ok(None);
        }
        let mut ports = Ports {
            list: Vec::new(),
            open: false,
        };
        loop {
            if self.accept(Kind::Char(']')) {
                ports.open = true;
                if ports.list.is_empty() {
                    ports.list.push(0);
                }
                return Ok(Some(ports));
            }
            let first = self.port()?;
            if self.accept(Kind::Char('-')) {
                let last = self.port()?;
                ports.list.extend(first..=last);
            } else {
                ports.list.push(first);
            }
            if self.accept(Kind::Char(']')) {
                return Ok(Some(ports));
            }
            if !self.accept(Kind::Char(',')) {
                return self.unexpected("\",\" or \"]\" behind a port number");
            }
        }
    }

    fn port(&mut self) -> Parsed<usize> {
        let token = self.peek().clone();
        let number = if token.kind == Kind::Ident {
            token.text.parse::<usize>().ok()
        } else {
            None
        };
        match number {
            Some(n) if n < self.max_ports => {
                self.next();
                Ok(n)
            }
            Some(n) => {
                let message = format!("port {n} is beyond the limit of {} ports", self.max_ports);
                self.fail(&token.place, message)
            }
            None => self.unexpected("a port number"),
        }
    }
}
