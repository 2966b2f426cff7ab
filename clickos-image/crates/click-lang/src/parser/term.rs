// SPDX-License-Identifier: Apache-2.0
//! What stands between arrows: elements, groups, ports.
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Parsed, Parser, Until};
use crate::ast::{ClassRef, Ports, Statement, Term, What};
use crate::lexer::Kind;
use crate::source::SourcePos;

impl<'a> Parser<'a> {
    pub(super) fn terms(&mut self, nested: bool, first_step: bool) -> Parsed<Vec<Term<'a>>> {
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
    fn term(
        &mut self,
        nested: bool,
        first_step: bool,
        first_term: bool,
    ) -> Parsed<Option<Term<'a>>> {
        let place = self.peek().place;
        self.count(place, 1)?;
        let inputs = self.ports()?;
        let what = match self.kind() {
            Kind::Ident => What::Name(self.next().text),
            Kind::Char('{') => What::Compound(Box::new(self.compound()?)),
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
        ports: Option<Box<Ports>>,
        place: SourcePos,
    ) -> Parsed<Option<Term<'a>>> {
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

    fn group(&mut self) -> Parsed<Vec<Statement<'a>>> {
        let place = self.next().place;
        self.enter(place)?;
        let statements = self.statements(Until::Paren);
        self.depth -= 1;
        if !self.accept(Kind::Char(')')) {
            return self.fail(place, "this '(' has no matching ')'");
        }
        Ok(statements)
    }

    fn class(&mut self) -> Parsed<Option<ClassRef<'a>>> {
        if !self.accept(Kind::ColonColon) {
            return Ok(None);
        }
        match self.kind() {
            Kind::Ident => {
                let token = self.next();
                Ok(Some(ClassRef::Name(token.text, token.place)))
            }
            Kind::Char('{') => Ok(Some(ClassRef::Compound(Box::new(self.compound()?)))),
            _ => self.unexpected("an element class"),
        }
    }

    fn ports(&mut self) -> Parsed<Option<Box<Ports>>> {
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
                return Ok(Some(Box::new(ports)));
            }
            let place = self.peek().place;
            let first = self.port()?;
            let last = if self.accept(Kind::Char('-')) {
                self.port()?
            } else {
                first
            };
            self.check_count(ports.list.len(), first, last, place)?;
            ports.list.extend(first..=last);
            if self.accept(Kind::Char(']')) {
                return Ok(Some(Box::new(ports)));
            }
            if !self.accept(Kind::Char(',')) {
                return self.unexpected("',' or ']' behind a port number");
            }
        }
    }

    /// A list has as many ports as an element, and all lists of a statement are held at once.
    fn check_count(
        &mut self,
        before: usize,
        first: usize,
        last: usize,
        at: SourcePos,
    ) -> Parsed<()> {
        let more = last.saturating_add(1).saturating_sub(first);
        let limit = self.limits.ports;
        if before + more > limit {
            return self.fail(at, format!("more than {limit} ports in a list"));
        }
        if more > 1 {
            self.count(at, more)
        } else {
            Ok(())
        }
    }

    fn port(&mut self) -> Parsed<usize> {
        let token = *self.peek();
        let number = if token.kind == Kind::Ident {
            token.text.parse::<usize>().ok()
        } else {
            None
        };
        match number {
            Some(n) if n < self.limits.ports => {
                self.next();
                Ok(n)
            }
            Some(n) => {
                let message = format!(
                    "port {n} is beyond the limit of {} ports",
                    self.limits.ports
                );
                self.fail(token.place, message)
            }
            None => self.unexpected("a port number"),
        }
    }
}
