// SPDX-License-Identifier: Apache-2.0
//! Names in chains: elements that are there, new ones and anonymous ones.
use alloc::format;

use super::Resolver;
use crate::ast::Config;
use crate::body::{Body, Class, Member};
use crate::source::SourcePos;

impl<'a> Resolver<'_, 'a> {
    /// The element a name stands for; a class makes a new one.
    pub(super) fn named(
        &mut self,
        name: &'a str,
        class: Option<Class<'a>>,
        config: Option<Config<'a>>,
        body: &mut Body<'a>,
        place: SourcePos,
    ) -> Option<usize> {
        let raw = config.map_or("", |c| c.raw);
        let mut anonymous_of = self.class(name);
        if let (Some(member), None) = (body.find(name), &anonymous_of) {
            self.check_reference(name, &body.members[member], class, config, place);
            return Some(member);
        }
        if class.is_none() && anonymous_of.is_none() {
            anonymous_of = self.take(name);
        }
        match (anonymous_of, class) {
            (Some(_), Some(_)) => {
                let message = format!("class '{name}' used as element name");
                self.errors.add(place, message);
                None
            }
            (Some(of), None) => self.new_member(body, place, |body, place| {
                body.add_anonymous(name, of, raw, place)
            }),
            (None, Some(class)) => {
                self.check_name(name, place);
                self.new_member(body, place, |body, place| body.add(name, class, raw, place))
            }
            (None, None) => self.undeclared(name, config, body, place),
        }
    }

    /// An element that is not there; it is known from here on, so that one mistake is one error.
    fn undeclared(
        &mut self,
        name: &'a str,
        config: Option<Config<'a>>,
        body: &mut Body<'a>,
        place: SourcePos,
    ) -> Option<usize> {
        let is_class = config.is_some() || name.starts_with(|c: char| c.is_uppercase());
        let what = if is_class {
            "undeclared element or unknown class"
        } else {
            "undeclared element"
        };
        let hint = self.hint(name, body);
        self.errors.add(place, format!("{what} '{name}'{hint}"));
        self.new_member(body, place, |body, place| {
            body.add(name, Class::Unknown, "", place)
        })
    }

    /// Refuses parts that a mention of an existing element must not have.
    fn check_reference(
        &mut self,
        name: &str,
        member: &Member<'a>,
        class: Option<Class<'a>>,
        config: Option<Config<'a>>,
        place: SourcePos,
    ) {
        if matches!(member.class, Class::Unknown) {
            return;
        }
        if class.is_some() {
            let message = format!("redeclaration of element '{name}'");
            let note = format!("element '{name}' previously declared here");
            self.errors
                .add_with_note(place, message, (member.place, note));
        } else if config.is_some() {
            let message = format!("configuration string ignored on reference to element '{name}'");
            self.errors.add(place, message);
        }
    }

    /// Handlers of elements whose names are numbers could not be told from others.
    fn check_name(&mut self, name: &str, place: SourcePos) {
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if name.split('/').any(digits) {
            let message = format!("element name '{name}' has all-digit component");
            self.errors.add(place, message);
        }
    }
}
