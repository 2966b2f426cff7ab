// SPDX-License-Identifier: Apache-2.0
//! Statements that declare something: classes, requirements, variables.
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Resolver;
use crate::ast::{ClassBody, Compound, Config, Overload};
use crate::body::{Body, Class, CompoundClass, Group, INPUT, OUTPUT};
use crate::flat::Requirement;
use crate::source::{SourcePos, library_name};
use crate::text;

/// Steps of work for one requirement or variable.
const DECLARATION: usize = 16;
/// Bytes of one requirement.
const REQUIREMENT_MAX: usize = 4096;
/// Steps of work for one overload, which is a body of its own.
const OVERLOAD: usize = 32;
const DECLARING: &str = "reading declarations";

impl<'a> Resolver<'_, 'a> {
    pub(super) fn element_class(
        &mut self,
        name: &'a str,
        body: &ClassBody<'a>,
        place: SourcePos,
        around: &Body<'a>,
    ) {
        let limit = self.limits.elements;
        if self.undo.len() >= limit {
            let message = format!("more than {limit} element classes");
            return self.errors.add(place, message);
        }
        let class = match body {
            ClassBody::Synonym(of) => self
                .class(of)
                .unwrap_or_else(|| self.unknown_class(of, "unknown element class", place)),
            ClassBody::Compound(compound) => self.compound(compound, name, around.depth),
        };
        self.set_class(name, class);
    }

    pub(super) fn compound(
        &mut self,
        compound: &Compound<'a>,
        name: &'a str,
        depth: usize,
    ) -> Class<'a> {
        let extends = compound.extends.then(|| {
            self.class(name).unwrap_or_else(|| {
                self.unknown_class(name, "cannot extend unknown element class", compound.place)
            })
        });
        let overloads = compound.overloads.iter();
        let overloads = overloads.map(|o| self.overload(o, name, depth)).collect();
        Class::Compound(Rc::new(CompoundClass {
            name,
            overloads,
            extends,
        }))
    }

    fn overload(&mut self, overload: &Overload<'a>, name: &str, depth: usize) -> Body<'a> {
        let mark = self.undo.len();
        let mut body = Body::compound(overload.formals.clone(), depth + 1, overload.place);
        if !self.spend(OVERLOAD, overload.place, DECLARING) {
            return body;
        }
        self.statements(&overload.statements, &mut body);
        self.leave_scope(mark);
        self.finish(&mut body, overload.place);
        let tunnels = Group {
            input: INPUT,
            output: OUTPUT,
        };
        let printable = if name.is_empty() {
            "<anonymous compound>"
        } else {
            name
        };
        (body.inputs, body.outputs) = self.check_tunnels(&body, tunnels, printable, overload.place);
        body
    }

    /// The arguments of a statement; none if the memory does not take them.
    pub(super) fn arguments(&mut self, config: &Config<'a>) -> Vec<String> {
        let text = config.text();
        let (limits, place) = (self.limits, config.place);
        if limits.memory.has_text(text::bytes_to_split(&text)) {
            return text::split_args(&text);
        }
        self.errors.out_of_memory(limits, place, DECLARING);
        Vec::new()
    }

    pub(super) fn require(&mut self, config: &Config<'a>, body: &mut Body<'a>) {
        for arg in self.arguments(config) {
            let steps = DECLARATION + self.provided.len();
            if !self.spend(steps, config.place, DECLARING) {
                return;
            }
            if arg.len() > REQUIREMENT_MAX {
                let message = format!(
                    "requirement of {} bytes, the limit is {REQUIREMENT_MAX}",
                    arg.len()
                );
                self.errors.add(config.place, message);
                continue;
            }
            if let Some(name) = library_name(&arg) {
                self.library(&name, config.place, body);
                continue;
            }
            let words = text::split_words(&arg);
            let (kind, value) = match words.as_slice() {
                [] => continue,
                [word] if word == "compact_config" => (word.clone(), String::new()),
                [name] => ("package".to_string(), text::unquote(name)),
                [kind, value] if kind == "package" => (kind.clone(), text::unquote(value)),
                _ => {
                    let message = format!(
                        "syntax error at requirement: expected \"package NAME\", found \"{arg}\""
                    );
                    self.errors.add(config.place, message);
                    continue;
                }
            };
            if !self.provided.contains(&value) {
                self.requirements.push(Requirement {
                    kind,
                    value,
                    place: config.place,
                });
            }
        }
    }

    fn library(&mut self, name: &str, place: SourcePos, body: &mut Body<'a>) {
        if body.depth > 0 {
            let message = "'require library' must be used at file scope";
            self.errors.add(place, message);
            return;
        }
        match self.sources.library(self.file, name) {
            Ok(index) => self.read_file(index, body),
            Err(message) => self.errors.add(place, message),
        }
    }

    pub(super) fn define(&mut self, config: &Config<'a>, body: &mut Body<'a>) {
        for arg in self.arguments(config) {
            if !self.spend(DECLARATION + arg.len(), config.place, DECLARING) {
                return;
            }
            let (variable, value) = text::shift_word(&arg);
            let name = variable.strip_prefix('$').unwrap_or("");
            let valid =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let known =
                body.defines.contains_key(name) || body.formals.iter().any(|f| f.name == name);
            if arg.is_empty() {
                continue;
            } else if !valid {
                let message =
                    format!("bad 'define' declaration: expected a variable, found '{variable}'");
                self.errors.add(config.place, message);
            } else if known {
                let message = format!("parameter '${name}' multiply defined");
                self.errors.add(config.place, message);
            } else {
                body.defines.insert(name.to_string(), value);
            }
        }
    }
}
