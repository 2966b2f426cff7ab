// SPDX-License-Identifier: Apache-2.0
//! Syntax tree to bodies: every class and element name is looked up where it stands.
mod declare;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ast::{ClassRef, Config, Ports, Statement, Step, Term, What};
use crate::body::{Body, Class};
use crate::error::{Errors, Limits, Place};
use crate::flat::Requirement;
use crate::ports::{Side, pairs};
use crate::suggest::did_you_mean;
use crate::text;

/// What the parser of names has to know about the registry.
pub trait Classes {
    /// Whether there is an element class of this name.
    fn knows(&self, name: &str) -> bool;
    /// Why a class known by name cannot be used here.
    fn unavailable(&self, name: &str) -> Option<&str>;
    /// All names, for suggestions.
    fn names(&self) -> Vec<&str>;
}

/// The file's body and what it requires.
pub struct Resolved {
    pub body: Body,
    pub requirements: Vec<Requirement>,
}

/// Resolves a whole configuration.
pub fn resolve(
    statements: &[Statement],
    classes: &dyn Classes,
    limits: &Limits,
    errors: &mut Errors,
) -> Resolved {
    let mut resolver = Resolver {
        classes,
        limits,
        errors,
        scope: BTreeMap::new(),
        undo: Vec::new(),
        requirements: Vec::new(),
        provided: Vec::new(),
    };
    let mut body = Body::file();
    resolver.statements(statements, &mut body);
    body.finish();
    Resolved {
        body,
        requirements: resolver.requirements,
    }
}

struct Resolver<'a> {
    classes: &'a dyn Classes,
    limits: &'a Limits,
    errors: &'a mut Errors,
    /// Classes of the configuration that are visible here.
    scope: BTreeMap<String, Class>,
    /// What the scope was, to leave a compound.
    undo: Vec<(String, Option<Class>)>,
    requirements: Vec<Requirement>,
    provided: Vec<String>,
}

/// The members a term stands for: its inputs and its outputs differ for groups.
struct Ends {
    input: usize,
    output: usize,
    inputs: Option<Ports>,
    outputs: Option<Ports>,
}

impl Resolver<'_> {
    fn statements(&mut self, statements: &[Statement], body: &mut Body) {
        for statement in statements {
            match statement {
                Statement::Chain(steps) => self.chain(steps, body),
                Statement::ElementClass {
                    name,
                    body: class,
                    place,
                } => {
                    self.element_class(name, class, place, body);
                }
                Statement::Require(config) => self.require(config),
                Statement::Provide(config) => self.provided.extend(text::split_args(&config.text)),
                Statement::Define(config) => self.define(config, body),
            }
        }
    }

    fn class(&self, name: &str) -> Option<Class> {
        if let Some(class) = self.scope.get(name) {
            return Some(class.clone());
        }
        let known = self.classes.knows(name) || self.classes.unavailable(name).is_some();
        known.then(|| Class::Native(name.into()))
    }

    fn set_class(&mut self, name: &str, class: Class) {
        let before = self.scope.insert(name.to_string(), class);
        self.undo.push((name.to_string(), before));
    }

    fn leave_scope(&mut self, mark: usize) {
        for (name, before) in self.undo.drain(mark..).rev() {
            match before {
                Some(class) => self.scope.insert(name, class),
                None => self.scope.remove(&name),
            };
        }
    }

    fn unknown_class(&mut self, name: &str, what: &str, place: &Place) -> Class {
        let hint = self.hint(name, &Body::default());
        self.errors.add(place, format!("{what} \"{name}\"{hint}"));
        Class::Unknown
    }

    fn hint(&self, name: &str, body: &Body) -> String {
        if self.errors.is_full() {
            return String::new();
        }
        let scope = self.scope.keys().map(String::as_str);
        let members = body.members.iter().map(|m| m.name.as_str());
        did_you_mean(
            name,
            self.classes.names().into_iter().chain(scope).chain(members),
        )
    }

    fn chain(&mut self, steps: &[Step], body: &mut Body) {
        let mut left: Option<(Vec<Side>, crate::ast::Arrow, &Place)> = None;
        for (index, step) in steps.iter().enumerate() {
            let lone = steps.len() == 1;
            let ends = self.terms(&step.terms, body, lone, index == 0);
            let Some(ends) = ends else {
                left = None;
                continue;
            };
            if let Some((outputs, arrow, place)) = left.take() {
                let inputs: Vec<Side> = ends
                    .iter()
                    .map(|e| Side {
                        element: e.input,
                        ports: e.inputs.clone(),
                    })
                    .collect();
                match pairs(&outputs, &inputs, arrow, self.limits.ports) {
                    Ok(list) if body.links.len() + list.len() <= self.limits.connections => {
                        list.into_iter()
                            .for_each(|(from, to)| body.link(from, to, place));
                    }
                    Ok(_) => {
                        let limit = self.limits.connections;
                        self.errors
                            .add(place, format!("more than {limit} connections"));
                    }
                    Err(message) => self.errors.add(place, message),
                }
            } else if index == 0
                && ends
                    .iter()
                    .any(|e| e.inputs.is_some() && e.input == e.output)
            {
                self.errors
                    .add(&step.terms[0].place, "input ports at the start of a chain");
            }
            match &step.arrow {
                Some((arrow, place)) => {
                    let side = |e: &Ends| Side {
                        element: e.output,
                        ports: e.outputs.clone(),
                    };
                    left = Some((ends.iter().map(side).collect(), *arrow, place));
                }
                None if ends
                    .iter()
                    .any(|e| e.outputs.is_some() && e.input == e.output) =>
                {
                    self.errors
                        .add(&step.terms[0].place, "output ports at the end of a chain");
                }
                None => {}
            }
        }
    }

    /// The members of one step; `None` if one of them is unknown.
    fn terms(
        &mut self,
        terms: &[Term],
        body: &mut Body,
        lone: bool,
        first: bool,
    ) -> Option<Vec<Ends>> {
        let spread = lone.then(|| shared_declaration(terms)).flatten();
        let mut all = Vec::new();
        let mut complete = true;
        // `a, b :: Class(config)`: one declaration for all
        let shared = spread.map(|term| (self.term_class(term, body), term.config.as_ref()));
        for term in terms {
            let (class, config) = shared
                .clone()
                .unwrap_or_else(|| (self.term_class(term, body), term.config.as_ref()));
            match self.term(term, class, config, body, first) {
                Some(ends) => all.push(ends),
                None => complete = false,
            }
        }
        complete.then_some(all)
    }

    fn term_class(&mut self, term: &Term, body: &Body) -> Option<Class> {
        Some(match term.class.as_ref()? {
            ClassRef::Name(name, place) => self
                .class(name)
                .unwrap_or_else(|| self.unknown_class(name, "unknown element class", place)),
            ClassRef::Compound(compound) => self.compound(compound, "", body.depth),
        })
    }

    fn term(
        &mut self,
        term: &Term,
        class: Option<Class>,
        config: Option<&Config>,
        body: &mut Body,
        first: bool,
    ) -> Option<Ends> {
        let (inputs, outputs) = (term.inputs.clone(), term.outputs.clone());
        let whole = |m: usize| {
            Some(Ends {
                input: m,
                output: m,
                inputs: inputs.clone(),
                outputs: outputs.clone(),
            })
        };
        let text = config.map_or_else(String::new, |c| c.text.clone());
        match &term.what {
            What::Implicit => {
                let name = if first { "input" } else { "output" };
                let member = body.find(name);
                if member.is_none() {
                    self.errors
                        .add(&term.place, "only compound elements have implicit ports");
                }
                whole(member?)
            }
            What::Compound(compound) => {
                let anonymous = self.compound(compound, "", body.depth);
                self.new_member(
                    |b, p| b.add_anonymous("", anonymous, text, p),
                    body,
                    &term.place,
                )
                .and_then(whole)
            }
            What::Group(statements) => self.group(statements, term, body),
            What::Name(name) => self
                .named(name, class, config.is_some(), text, body, &term.place)
                .and_then(whole),
        }
    }

    fn new_member(
        &mut self,
        add: impl FnOnce(&mut Body, Place) -> usize,
        body: &mut Body,
        place: &Place,
    ) -> Option<usize> {
        if body.members.len() >= self.limits.elements.saturating_mul(2) {
            self.errors.add(
                place,
                format!("more than {} elements", self.limits.elements),
            );
            return None;
        }
        Some(add(body, place.clone()))
    }

    fn named(
        &mut self,
        name: &str,
        class: Option<Class>,
        configured: bool,
        config: String,
        body: &mut Body,
        place: &Place,
    ) -> Option<usize> {
        let anonymous_of = self.class(name);
        if let (Some(member), None) = (body.find(name), &anonymous_of) {
            if class.is_some() {
                let before = body.members[member].place.clone();
                self.errors
                    .add(place, format!("{name}: declared twice, first at {before}"));
            } else if configured {
                self.errors.add(
                    place,
                    format!("{name}: a configuration string belongs to the declaration"),
                );
            }
            return Some(member);
        }
        match (anonymous_of, class) {
            (Some(_), Some(_)) => {
                self.errors.add(
                    place,
                    format!("\"{name}\" is an element class, not a name for an element"),
                );
                None
            }
            (Some(of), None) => {
                self.new_member(|b, p| b.add_anonymous(name, of, config, p), body, place)
            }
            (None, Some(class)) => {
                self.new_member(|b, p| b.add(name, class, config, p), body, place)
            }
            (None, None) => {
                let what = if configured {
                    "unknown element class"
                } else {
                    "undeclared element or unknown class"
                };
                let hint = self.hint(name, body);
                self.errors.add(place, format!("{what} \"{name}\"{hint}"));
                // known from here on, so that one mistake is one error
                self.new_member(
                    |b, p| b.add(name, Class::Unknown, String::new(), p),
                    body,
                    place,
                )
            }
        }
    }

    fn group(&mut self, statements: &[Statement], term: &Term, body: &mut Body) -> Option<Ends> {
        let (group, outer_input, outer_output) = body.begin_group(&term.place);
        self.statements(statements, body);
        body.end_group(outer_input, outer_output);
        let errors = &mut *self.errors;
        let mut complain = |message: String| errors.add(&term.place, message);
        let (inputs, outputs) = body.check_tunnels(group, "group", &mut complain);
        let all = |n: usize| {
            (n > 1).then(|| Ports {
                list: (0..n).collect(),
                open: false,
            })
        };
        Some(Ends {
            input: group.input,
            output: group.output,
            inputs: term.inputs.clone().or_else(|| all(inputs)),
            outputs: term.outputs.clone().or_else(|| all(outputs)),
        })
    }
}

/// The declaration at the end of `a, b, c :: Class(config)`, if that is what the terms are.
fn shared_declaration(terms: &[Term]) -> Option<&Term> {
    let (last, others) = terms.split_last()?;
    let plain = |t: &Term| t.inputs.is_none() && t.outputs.is_none();
    let bare =
        |t: &Term| matches!(t.what, What::Name(_)) && t.class.is_none() && t.config.is_none();
    let shared = !others.is_empty()
        && last.class.is_some()
        && terms.iter().all(plain)
        && others.iter().all(bare);
    shared.then_some(last)
}
