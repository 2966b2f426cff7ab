// SPDX-License-Identifier: Apache-2.0
//! Syntax tree to bodies: every class and element name is looked up where it stands.
mod chain;
mod declare;
mod name;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ast::{ClassRef, Config, Ports, Statement, Term, What};
use crate::body::{Body, Class, Group};
use crate::error::{Errors, Limits};
use crate::flat::Requirement;
use crate::parser::{Parser, is_too_long};
use crate::source::{SourcePos, Sources};
use crate::suggest::did_you_mean;
use chain::Ends;

/// The registry, as the resolver of names sees it.
pub trait Classes {
    /// True if there is an element class of this name.
    fn knows(&self, name: &str) -> bool;
    /// Why a class known by name cannot be used here.
    fn unavailable(&self, name: &str) -> Option<&str>;
    /// All names, for suggestions.
    fn names(&self) -> Vec<&str>;
    /// True if any name is taken for a class where it is first used as one.
    fn takes_any(&self) -> bool {
        false
    }
}

/// The file's body and what it requires.
pub struct Resolved<'a> {
    pub body: Body<'a>,
    pub requirements: Vec<Requirement>,
}

/// Resolves a whole configuration. It is parsed statement by statement, so that its syntax tree
/// never exists as a whole.
pub fn resolve<'a>(
    sources: &'a Sources,
    classes: &dyn Classes,
    limits: &Limits,
    errors: &mut Errors,
) -> Resolved<'a> {
    let mut body = Body::file();
    let mut resolver = Resolver {
        sources,
        classes,
        limits,
        errors,
        scope: BTreeMap::new(),
        undo: Vec::new(),
        taken: BTreeSet::new(),
        requirements: Vec::new(),
        provided: Vec::new(),
        files: Vec::new(),
        file: 0,
    };
    if !is_too_long(sources.text(), limits, resolver.errors) {
        resolver.read_file(0, &mut body);
        for index in sources.appended() {
            resolver.read_file(*index, &mut body);
        }
    }
    resolver.finish(&mut body, SourcePos::default());
    Resolved {
        body,
        requirements: resolver.requirements,
    }
}

struct Resolver<'r, 'a> {
    sources: &'a Sources,
    classes: &'r dyn Classes,
    limits: &'r Limits,
    errors: &'r mut Errors,
    /// Classes of the configuration that are visible here.
    scope: BTreeMap<&'a str, Class<'a>>,
    /// The scope so far, to leave a compound.
    undo: Vec<(&'a str, Option<Class<'a>>)>,
    /// Unknown names that were taken for classes.
    taken: BTreeSet<&'a str>,
    requirements: Vec<Requirement>,
    provided: Vec<String>,
    /// The files read so far; each is read once.
    files: Vec<usize>,
    /// The file that is being read.
    file: usize,
}

impl<'a> Resolver<'_, 'a> {
    fn spend(&mut self, steps: usize, place: SourcePos, what: &str) -> bool {
        self.errors.spend(steps, self.limits, place, what)
    }

    fn finish(&mut self, body: &mut Body<'a>, place: SourcePos) {
        let left = self.limits.steps.saturating_sub(self.errors.steps());
        let steps = body.finish(left);
        self.spend(steps, place, "numbering elements without a name");
    }

    fn read_file(&mut self, index: usize, body: &mut Body<'a>) {
        if self.files.contains(&index) {
            return;
        }
        self.files.push(index);
        let outer = core::mem::replace(&mut self.file, index);
        let (text, base) = self.sources.file(index);
        let mut parser = Parser::new(text, base, self.limits);
        while let Some(statement) = parser.next_statement(self.errors) {
            self.statement(&statement, body);
        }
        self.file = outer;
    }

    fn statements(&mut self, statements: &[Statement<'a>], body: &mut Body<'a>) {
        for statement in statements {
            self.statement(statement, body);
        }
    }

    fn statement(&mut self, statement: &Statement<'a>, body: &mut Body<'a>) {
        match statement {
            Statement::Chain(steps) => self.chain(steps, body),
            Statement::ElementClass {
                name,
                body: class,
                place,
            } => self.element_class(name, class, *place, body),
            Statement::Require(config) => self.require(config, body),
            Statement::Provide(config) => {
                let provided = self.arguments(config);
                self.provided.extend(provided);
            }
            Statement::Define(config) => self.define(config, body),
        }
    }

    fn class(&self, name: &'a str) -> Option<Class<'a>> {
        if let Some(class) = self.scope.get(name) {
            return Some(class.clone());
        }
        let known = self.classes.knows(name)
            || self.classes.unavailable(name).is_some()
            || self.taken.contains(name);
        known.then_some(Class::Native(name))
    }

    /// An unknown class, if there is to be one.
    fn take(&mut self, name: &'a str) -> Option<Class<'a>> {
        if !self.classes.takes_any() {
            return None;
        }
        self.taken.insert(name);
        Some(Class::Native(name))
    }

    fn set_class(&mut self, name: &'a str, class: Class<'a>) {
        let before = self.scope.insert(name, class);
        self.undo.push((name, before));
    }

    fn leave_scope(&mut self, mark: usize) {
        for (name, before) in self.undo.drain(mark..).rev() {
            match before {
                Some(class) => self.scope.insert(name, class),
                None => self.scope.remove(name),
            };
        }
    }

    fn unknown_class(&mut self, name: &'a str, what: &str, place: SourcePos) -> Class<'a> {
        if let Some(class) = self.take(name) {
            return class;
        }
        let hint = self.hint(name, &Body::default());
        self.errors.add(place, format!("{what} '{name}'{hint}"));
        Class::Unknown
    }

    fn hint(&self, name: &str, body: &Body<'_>) -> String {
        if self.errors.is_full() {
            return String::new();
        }
        let scope = self.scope.keys().copied();
        let members = body.members.iter().map(|m| m.name.text);
        let known = self.classes.names().into_iter().chain(scope);
        did_you_mean(name, known.chain(members))
    }

    /// The members of one step; `None` if one of them is unknown.
    fn terms(
        &mut self,
        terms: &[Term<'a>],
        body: &mut Body<'a>,
        lone: bool,
        first: bool,
    ) -> Option<Vec<Ends>> {
        let spread = lone.then(|| shared_declaration(terms)).flatten();
        let mut all = Vec::with_capacity(terms.len());
        // `a, b :: Class(config)`: one declaration for all
        let shared = spread.map(|term| (self.term_class(term, body), term.config));
        for term in terms {
            let (class, config) = shared
                .clone()
                .unwrap_or_else(|| (self.term_class(term, body), term.config));
            all.extend(self.term(term, class, config, body, first));
        }
        (all.len() == terms.len()).then_some(all)
    }

    fn term_class(&mut self, term: &Term<'a>, body: &Body<'a>) -> Option<Class<'a>> {
        Some(match term.class.as_ref()? {
            ClassRef::Name(name, place) => self
                .class(name)
                .unwrap_or_else(|| self.unknown_class(name, "unknown element class", *place)),
            ClassRef::Compound(compound) => self.compound(compound, "", body.depth),
        })
    }

    fn term(
        &mut self,
        term: &Term<'a>,
        class: Option<Class<'a>>,
        config: Option<Config<'a>>,
        body: &mut Body<'a>,
        first: bool,
    ) -> Option<Ends> {
        let raw = config.map_or("", |c| c.raw);
        let member = match &term.what {
            What::Group(statements) => return self.group(statements, term, body),
            What::Implicit => self.implicit(term, body, first),
            What::Compound(compound) => {
                let anonymous = self.compound(compound, "", body.depth);
                self.new_member(body, term.place, |body, place| {
                    body.add_anonymous("", anonymous, raw, place)
                })
            }
            What::Name(name) => self.named(name, class, config, body, term.place),
        };
        member.map(|member| Ends {
            input: member,
            output: member,
            inputs: term.inputs.as_deref().cloned(),
            outputs: term.outputs.as_deref().cloned(),
        })
    }

    fn implicit(&mut self, term: &Term<'_>, body: &Body<'a>, first: bool) -> Option<usize> {
        let member = body.find(if first { "input" } else { "output" });
        if member.is_none() {
            let message = "only compound elements have implicit ports";
            self.errors.add(term.place, message);
        }
        member
    }

    fn new_member(
        &mut self,
        body: &mut Body<'a>,
        place: SourcePos,
        add: impl FnOnce(&mut Body<'a>, SourcePos) -> usize,
    ) -> Option<usize> {
        (!self.is_full(body, place)).then(|| add(body, place))
    }

    /// Reports a body that has all elements it may have.
    fn is_full(&mut self, body: &Body<'a>, place: SourcePos) -> bool {
        let limit = self.limits.elements;
        let full = body.members.len() >= limit.saturating_mul(2);
        if full {
            let message = format!("more than {limit} elements");
            self.errors.add(place, message);
        }
        full
    }

    fn group(
        &mut self,
        statements: &[Statement<'a>],
        term: &Term<'a>,
        body: &mut Body<'a>,
    ) -> Option<Ends> {
        if self.is_full(body, term.place) {
            return None;
        }
        let (group, outer_input, outer_output) = body.begin_group(term.place);
        self.statements(statements, body);
        body.end_group(outer_input, outer_output);
        let (inputs, outputs) = self.check_tunnels(body, group, "<anonymous group>", term.place);
        let all = |n: usize| {
            (n > 1).then(|| Ports {
                list: (0..n).collect(),
                open: false,
            })
        };
        Some(Ends {
            input: group.input,
            output: group.output,
            inputs: term.inputs.as_deref().cloned().or_else(|| all(inputs)),
            outputs: term.outputs.as_deref().cloned().or_else(|| all(outputs)),
        })
    }

    fn check_tunnels(
        &mut self,
        body: &Body<'a>,
        group: Group,
        name: &str,
        place: SourcePos,
    ) -> (usize, usize) {
        let steps = body.links.len().saturating_mul(4);
        let what = format!("'{name}': checking its ports");
        if !self.spend(steps, place, &what) {
            return (0, 0);
        }
        let errors = &mut *self.errors;
        body.check_tunnels(group, name, &mut |message| errors.add(place, message))
    }
}

/// The declaration at the end of `a, b, c :: Class(config)`, if that is what the terms are.
fn shared_declaration<'t, 'a>(terms: &'t [Term<'a>]) -> Option<&'t Term<'a>> {
    let (last, others) = terms.split_last()?;
    let plain = |t: &Term<'_>| t.inputs.is_none() && t.outputs.is_none();
    let bare =
        |t: &Term<'_>| matches!(t.what, What::Name(_)) && t.class.is_none() && t.config.is_none();
    let shared = !others.is_empty()
        && last.class.is_some()
        && terms.iter().all(plain)
        && others.iter().all(bare);
    shared.then_some(last)
}
