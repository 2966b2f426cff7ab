// SPDX-License-Identifier: Apache-2.0
//! Statements that declare something: classes, requirements, variables.
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Resolver;
use crate::ast::{ClassBody, Compound, Config};
use crate::body::{Body, Class, CompoundClass, Group, INPUT, OUTPUT};
use crate::error::Place;
use crate::flat::Requirement;
use crate::text;

impl Resolver<'_> {
    pub(super) fn element_class(
        &mut self,
        name: &str,
        body: &ClassBody,
        place: &Place,
        around: &Body,
    ) {
        let class = match body {
            ClassBody::Synonym(of) => self
                .class(of)
                .unwrap_or_else(|| self.unknown_class(of, "unknown element class", place)),
            ClassBody::Compound(compound) => self.compound(compound, name, around.depth),
        };
        self.set_class(name, class);
    }

    pub(super) fn compound(&mut self, compound: &Compound, name: &str, depth: usize) -> Class {
        let extends = compound.extends.then(|| {
            self.class(name).unwrap_or_else(|| {
                self.unknown_class(name, "cannot extend unknown class", &compound.place)
            })
        });
        let printable = if name.is_empty() {
            "compound element"
        } else {
            name
        };
        let mut overloads = Vec::new();
        for overload in &compound.overloads {
            let mark = self.undo.len();
            let mut body = Body::compound(overload.formals.clone(), depth + 1, &overload.place);
            self.statements(&overload.statements, &mut body);
            self.leave_scope(mark);
            body.finish();
            let tunnels = Group {
                input: INPUT,
                output: OUTPUT,
            };
            let errors = &mut *self.errors;
            let mut complain = |message: String| errors.add(&overload.place, message);
            (body.inputs, body.outputs) = body.check_tunnels(tunnels, printable, &mut complain);
            overloads.push(body);
        }
        Class::Compound(Rc::new(CompoundClass {
            name: name.to_string(),
            overloads,
            extends,
        }))
    }

    pub(super) fn require(&mut self, config: &Config) {
        for arg in text::split_args(&config.text) {
            let words = text::split_words(&arg);
            let (kind, value) = match words.as_slice() {
                [] => continue,
                [word] if word == "compact_config" => (word.clone(), String::new()),
                [name] => ("package".to_string(), text::unquote(name)),
                [kind, value] if kind == "package" => (kind.clone(), text::unquote(value)),
                [kind, _] if kind == "library" => {
                    self.errors.add(
                        &config.place,
                        "require(library): libraries are not available here",
                    );
                    continue;
                }
                _ => {
                    self.errors.add(
                        &config.place,
                        format!("expected \"package NAME\", found \"{arg}\""),
                    );
                    continue;
                }
            };
            if !self.provided.contains(&value) {
                self.requirements.push(Requirement {
                    kind,
                    value,
                    place: config.place.clone(),
                });
            }
        }
    }

    pub(super) fn define(&mut self, config: &Config, body: &mut Body) {
        for arg in text::split_args(&config.text) {
            let (variable, value) = text::shift_word(&arg);
            let name = variable.strip_prefix('$').unwrap_or("");
            let valid =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if arg.is_empty() {
                continue;
            } else if !valid {
                self.errors.add(
                    &config.place,
                    format!("define: expected a variable, found \"{variable}\""),
                );
            } else if body.defines.iter().any(|(n, _)| n == name)
                || body.formals.iter().any(|f| f.name == name)
            {
                self.errors
                    .add(&config.place, format!("define: ${name} is defined twice"));
            } else {
                body.defines.push((name.to_string(), value));
            }
        }
    }
}
