// SPDX-License-Identifier: Apache-2.0
//! A list of statements with every name resolved, ready to be instantiated. Names and
//! configuration strings are parts of the text: a large configuration is held once.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use crate::ast::{Config, Formal};
use crate::source::SourcePos;

/// The class of an element in a body.
#[derive(Clone, Debug)]
pub enum Class<'a> {
    /// A class of the registry.
    Native(&'a str),
    /// A class of this configuration.
    Compound(Rc<CompoundClass<'a>>),
    /// The inside of a compound element's ports, or of a group's.
    Tunnel,
    /// Unknown; an error was reported.
    Unknown,
}

/// The overloads of a compound element class.
#[derive(Debug)]
pub struct CompoundClass<'a> {
    pub name: &'a str,
    pub overloads: Vec<Body<'a>>,
    /// The class that comes next when no overload fits.
    pub extends: Option<Class<'a>>,
}

/// An element's name: as written, or `Class@N`.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    pub text: &'a str,
    /// Zero for a name as written.
    number: u32,
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        match self.number {
            0 => Ok(()),
            number => write!(f, "@{number}"),
        }
    }
}

/// One element.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    pub name: Name<'a>,
    pub class: Class<'a>,
    /// With line directives.
    pub raw_config: &'a str,
    pub place: SourcePos,
}

impl<'a> Member<'a> {
    /// The configuration string; empty if there is none.
    pub fn config(&self) -> Config<'a> {
        Config {
            raw: self.raw_config,
            place: self.place,
        }
    }
}

/// One end of a connection: element and port.
pub type End = (usize, usize);

/// One connection.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    from: (u32, u32),
    to: (u32, u32),
    pub place: SourcePos,
}

/// Indices are below the bytes of the text, which are counted in 32 bits.
pub fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Link {
    pub fn new(from: End, to: End, place: SourcePos) -> Self {
        Self {
            from: (narrow(from.0), narrow(from.1)),
            to: (narrow(to.0), narrow(to.1)),
            place,
        }
    }

    pub fn from(&self) -> End {
        (self.from.0 as usize, self.from.1 as usize)
    }

    pub fn to(&self) -> End {
        (self.to.0 as usize, self.to.1 as usize)
    }
}

/// A resolved list of statements. In a compound, members 0 and 1 are `input` and `output`.
#[derive(Debug, Default)]
pub struct Body<'a> {
    pub formals: Vec<Formal<'a>>,
    pub defines: BTreeMap<String, String>,
    pub members: Vec<Member<'a>>,
    pub links: Vec<Link>,
    /// How many compounds surround it.
    pub depth: usize,
    pub inputs: usize,
    pub outputs: usize,
    names: BTreeMap<&'a str, u32>,
    /// Click numbers anonymous elements by position; a group counts as three.
    count: u32,
}

/// The member that is the inside of a compound's inputs.
pub const INPUT: usize = 0;
/// The member that is the inside of a compound's outputs.
pub const OUTPUT: usize = 1;

impl<'a> Body<'a> {
    /// The body of a file.
    pub fn file() -> Self {
        Self::default()
    }

    /// The body of a compound element at `depth`.
    pub fn compound(formals: Vec<Formal<'a>>, depth: usize, place: SourcePos) -> Self {
        let mut body = Self {
            formals,
            depth,
            ..Self::default()
        };
        for name in ["input", "output"] {
            body.add(name, Class::Tunnel, "", place);
        }
        body.count = 0;
        body
    }

    /// The member called `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).map(|n| *n as usize)
    }

    /// Adds a named member.
    pub fn add(
        &mut self,
        name: &'a str,
        class: Class<'a>,
        config: &'a str,
        at: SourcePos,
    ) -> usize {
        self.names.insert(name, narrow(self.members.len()));
        self.push(name, 0, class, config, at)
    }

    /// Adds a member called `Class@N`; the name is made unique by `finish`.
    pub fn add_anonymous(
        &mut self,
        class_name: &'a str,
        class: Class<'a>,
        config: &'a str,
        at: SourcePos,
    ) -> usize {
        self.push(class_name, self.count + 1, class, config, at)
    }

    fn push(
        &mut self,
        text: &'a str,
        number: u32,
        class: Class<'a>,
        raw_config: &'a str,
        place: SourcePos,
    ) -> usize {
        self.members.push(Member {
            name: Name { text, number },
            class,
            raw_config,
            place,
        });
        self.count += 1;
        self.members.len() - 1
    }

    /// Begins a group: two tunnels that `input` and `output` mean until `end_group`.
    pub fn begin_group(&mut self, place: SourcePos) -> (Group, Option<usize>, Option<usize>) {
        let outer = (self.find("input"), self.find("output"));
        let count = self.count;
        let input = self.add("input", Class::Tunnel, "", place);
        let output = self.add("output", Class::Tunnel, "", place);
        self.count = count + 3;
        (Group { input, output }, outer.0, outer.1)
    }

    /// Ends a group.
    pub fn end_group(&mut self, outer_input: Option<usize>, outer_output: Option<usize>) {
        for (name, outer) in [("input", outer_input), ("output", outer_output)] {
            match outer {
                Some(index) => self.names.insert(name, narrow(index)),
                None => self.names.remove(name),
            };
        }
    }

    /// Adds a connection.
    pub fn link(&mut self, from: End, to: End, place: SourcePos) {
        self.links.push(Link::new(from, to, place));
    }

    /// How many ports of each member are in use, one more than the highest: inputs and outputs.
    pub fn ports_in_use(&self) -> Vec<(u32, u32)> {
        let mut used = alloc::vec![(0, 0); self.members.len()];
        for link in &self.links {
            let inputs = &mut used[link.to.0 as usize].0;
            *inputs = link.to.1.saturating_add(1).max(*inputs);
            let outputs = &mut used[link.from.0 as usize].1;
            *outputs = link.from.1.saturating_add(1).max(*outputs);
        }
        used
    }

    /// Checks the ports of a pair of tunnels; returns the numbers of inputs and outputs.
    pub fn check_tunnels(
        &self,
        group: Group,
        name: &str,
        complain: &mut dyn FnMut(String),
    ) -> (usize, usize) {
        if self.links.iter().any(|l| l.to().0 == group.input) {
            complain(format!("'{name}' pseudoelement 'input' used as output"));
        }
        if self.links.iter().any(|l| l.from().0 == group.output) {
            complain(format!("'{name}' pseudoelement 'output' used as input"));
        }
        let ends = |end: fn(&Link) -> End, member| {
            let mut own = BTreeSet::new();
            let ends = self.links.iter().map(end).filter(|e| e.0 == member);
            own.extend(ends.map(|e| e.1));
            own
        };
        let used = [ends(Link::from, group.input), ends(Link::to, group.output)];
        let counts = [0, 1].map(|side: usize| used[side].last().map_or(0, |last| last + 1));
        for (side, what) in ["input", "output"].into_iter().enumerate() {
            for port in (0..counts[side]).filter(|p| !used[side].contains(p)) {
                complain(format!("'{name}' {what} {port} unused"));
            }
        }
        (counts[0], counts[1])
    }

    /// Gives anonymous members their final names, and forgets what only resolving needs.
    ///
    /// Returns the steps of work this took.
    pub fn finish(&mut self, most_steps: usize) -> usize {
        let mut steps = self.members.len();
        let mut taken = BTreeSet::new();
        taken.extend(self.names.keys().filter_map(numbered));
        for member in self.members.iter_mut().filter(|m| m.name.number > 0) {
            let name = &mut member.name;
            if taken.contains(&(name.text, name.number)) {
                while steps <= most_steps && taken.contains(&(name.text, name.number)) {
                    name.number += 1;
                    steps += 1;
                }
                taken.insert((name.text, name.number));
            }
        }
        self.names = BTreeMap::new();
        self.members.shrink_to_fit();
        self.links.shrink_to_fit();
        steps
    }
}

/// Class and number of a written name that looks like an anonymous element's.
fn numbered<'a>(name: &&'a str) -> Option<(&'a str, u32)> {
    let (class, number) = name.rsplit_once('@')?;
    Some((class, number.parse().ok()?))
}

/// A pair of tunnels.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub input: usize,
    pub output: usize,
}
