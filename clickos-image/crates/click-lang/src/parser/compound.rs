// SPDX-License-Identifier: Apache-2.0
//! Compound elements: overloads and their parameters.
use alloc::format;
use alloc::vec::Vec;

use super::{Parsed, Parser, Until};
use crate::ast::{Compound, Formal, Overload};
use crate::lexer::Kind;
use crate::source::SourcePos;

/// Parameters of a compound element.
const MAX_FORMALS: usize = 256;

impl<'a> Parser<'a> {
    /// `{ overload || overload || ... }`
    pub(super) fn compound(&mut self) -> Parsed<Compound<'a>> {
        let place = self.next().place;
        self.enter(place)?;
        let compound = self.compound_inside(place);
        self.depth -= 1;
        compound
    }

    fn compound_inside(&mut self, place: SourcePos) -> Parsed<Compound<'a>> {
        let (mut overloads, mut extends) = (Vec::new(), false);
        loop {
            if self.kind() == Kind::Dots {
                let dots = self.next();
                extends = true;
                if overloads.is_empty() || self.kind() != Kind::Char('}') {
                    return self.fail(
                        dots.place,
                        "'...' should occur last, after one or more compounds",
                    );
                }
            } else {
                let place = self.peek().place;
                self.count(place, 1)?;
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
            return self.fail(place, "this '{' has no matching '}'");
        }
    }

    /// `$a, KEY $b, __REST__ $c |`; the bar may be missing only when there are no parameters.
    fn formals(&mut self) -> Parsed<Vec<Formal<'a>>> {
        let mut formals: Vec<Formal<'a>> = Vec::new();
        if self.kind() == Kind::Char('|') {
            self.next();
            return Ok(formals);
        }
        loop {
            let mut keyword = "";
            let place = self.peek().place;
            if self.kind() == Kind::Ident {
                if formals.is_empty() && !self.lexer.variable_follows() {
                    return Ok(formals);
                }
                keyword = self.next().text;
            }
            if self.kind() != Kind::Variable {
                return if formals.is_empty() {
                    Ok(formals)
                } else {
                    self.unexpected("a parameter such as $name")
                };
            }
            let name = &self.next().text[1..];
            self.check_formal(place, &formals, keyword, name);
            if formals.len() == MAX_FORMALS {
                let message = format!("more than {MAX_FORMALS} parameters");
                return self.fail(place, message);
            }
            formals.push(Formal { keyword, name });
            if self.accept(Kind::Char('|')) {
                return Ok(formals);
            }
            if !self.accept(Kind::Char(',')) {
                return self.unexpected("',' or '|' behind a parameter");
            }
        }
    }

    fn check_formal(&mut self, place: SourcePos, before: &[Formal<'a>], keyword: &str, name: &str) {
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
}
