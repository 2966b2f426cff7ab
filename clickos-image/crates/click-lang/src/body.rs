// SPDX-License-Identifier: Apache-2.0
//! A list of statements with every name resolved, ready to be instantiated.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ast::Formal;
use crate::error::Place;

/// What an element of a body is an instance of.
#[derive(Clone, Debug)]
pub enum Class {
    /// A class of the registry.
    Native(Rc<str>),
    /// A class of this configuration.
    Compound(Rc<CompoundClass>),
    /// The inside of a compound element's ports, or of a group's.
    Tunnel,
    /// Unknown; an error was reported.
    Unknown,
}

/// The overloads of a compound element class.
#[derive(Debug)]
pub struct CompoundClass {
    pub name: String,
    pub overloads: Vec<Body>,
    /// What is tried when no overload fits.
    pub extends: Option<Class>,
}

/// One element.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub class: Class,
    pub config: String,
    pub place: Place,
}

/// One end of a connection: element and port.
pub type End = (usize, usize);

/// One connection.
#[derive(Clone, Debug)]
pub struct Link {
    pub from: End,
    pub to: End,
    pub place: Place,
}

/// A resolved list of statements. In a compound, members 0 and 1 are `input` and `output`.
#[derive(Debug, Default)]
pub struct Body {
    pub formals: Vec<Formal>,
    pub defines: Vec<(String, String)>,
    pub members: Vec<Member>,
    pub links: Vec<Link>,
    /// How many compounds surround it.
    pub depth: usize,
    pub inputs: usize,
    pub outputs: usize,
    names: BTreeMap<String, usize>,
    /// Click numbers anonymous elements by position; a group counts as three.
    count: usize,
    anonymous: Vec<usize>,
}

/// The member that is the inside of a compound's inputs.
pub const INPUT: usize = 0;
/// The member that is the inside of a compound's outputs.
pub const OUTPUT: usize = 1;

impl Body {
    /// The body of a file.
    pub fn file() -> Self {
        Self::default()
    }

    /// The body of a compound element at `depth`.
    pub fn compound(formals: Vec<Formal>, depth: usize, place: &Place) -> Self {
        let mut body = Self {
            formals,
            depth,
            ..Self::default()
        };
        for name in ["input", "output"] {
            body.add(name, Class::Tunnel, String::new(), place.clone());
        }
        body.count = 0;
        body
    }

    /// The member called `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Adds a named member.
    pub fn add(&mut self, name: &str, class: Class, config: String, place: Place) -> usize {
        let index = self.members.len();
        self.names.insert(name.to_string(), index);
        self.members.push(Member {
            name: name.to_string(),
            class,
            config,
            place,
        });
        self.count += 1;
        index
    }

    /// Adds a member called `Class@N`; the name is made unique by `finish`.
    pub fn add_anonymous(
        &mut self,
        class_name: &str,
        class: Class,
        config: String,
        place: Place,
    ) -> usize {
        let index = self.members.len();
        let name = format!("{class_name}@{}", self.count + 1);
        self.members.push(Member {
            name,
            class,
            config,
            place,
        });
        self.anonymous.push(index);
        self.count += 1;
        index
    }

    /// Begins a group: two tunnels that `input` and `output` mean until `end_group`.
    pub fn begin_group(&mut self, place: &Place) -> (Group, Option<usize>, Option<usize>) {
        let input = self.members.len();
        for _ in 0..2 {
            let (name, config) = (String::new(), String::new());
            self.members.push(Member {
                name,
                class: Class::Tunnel,
                config,
                place: place.clone(),
            });
        }
        self.count += 3;
        let outer = (self.find("input"), self.find("output"));
        self.names.insert("input".to_string(), input);
        self.names.insert("output".to_string(), input + 1);
        (
            Group {
                input,
                output: input + 1,
            },
            outer.0,
            outer.1,
        )
    }

    /// Ends a group.
    pub fn end_group(&mut self, outer_input: Option<usize>, outer_output: Option<usize>) {
        for (name, outer) in [("input", outer_input), ("output", outer_output)] {
            match outer {
                Some(index) => self.names.insert(name.to_string(), index),
                None => self.names.remove(name),
            };
        }
    }

    /// Adds a connection.
    pub fn link(&mut self, from: End, to: End, place: &Place) {
        self.links.push(Link {
            from,
            to,
            place: place.clone(),
        });
    }

    /// How many ports of `member` are in use: one more than the highest.
    pub fn ports_in_use(&self, member: usize) -> (usize, usize) {
        let count = |ends: &mut dyn Iterator<Item = End>| {
            ends.filter(|e| e.0 == member)
                .map(|e| e.1 + 1)
                .max()
                .unwrap_or(0)
        };
        (
            count(&mut self.links.iter().map(|l| l.to)),
            count(&mut self.links.iter().map(|l| l.from)),
        )
    }

    /// Checks the ports of a pair of tunnels; returns the numbers of inputs and outputs.
    pub fn check_tunnels(
        &self,
        group: Group,
        name: &str,
        complain: &mut dyn FnMut(String),
    ) -> (usize, usize) {
        let (wrong_in, inputs) = self.ports_in_use(group.input);
        let (outputs, wrong_out) = self.ports_in_use(group.output);
        if wrong_in > 0 {
            complain(format!("{name}: \"input\" can only be used as an output"));
        }
        if wrong_out > 0 {
            complain(format!("{name}: \"output\" can only be used as an input"));
        }
        for port in 0..inputs {
            if !self.links.iter().any(|l| l.from == (group.input, port)) {
                complain(format!("{name}: input {port} is not used"));
            }
        }
        for port in 0..outputs {
            if !self.links.iter().any(|l| l.to == (group.output, port)) {
                complain(format!("{name}: output {port} is not used"));
            }
        }
        (inputs, outputs)
    }

    /// Gives anonymous members their final names.
    pub fn finish(&mut self) {
        for index in core::mem::take(&mut self.anonymous) {
            let name = self.unique_name(&self.members[index].name);
            self.names.insert(name.clone(), index);
            self.members[index].name = name;
        }
    }

    fn unique_name(&self, wanted: &str) -> String {
        let (class, number) = wanted.rsplit_once('@').unwrap_or((wanted, "1"));
        let first = number.parse::<usize>().unwrap_or(1);
        let mut name = wanted.to_string();
        for n in first.. {
            if !self.names.contains_key(&name) {
                break;
            }
            name = format!("{class}@{}", n + 1);
        }
        name
    }
}

/// A pair of tunnels.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub input: usize,
    pub output: usize,
}
