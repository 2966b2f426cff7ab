// SPDX-License-Identifier: Apache-2.0
//! Trees and flat configurations back to text.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use crate::ast::{Arrow, ClassBody, ClassRef, Compound, Ports, Statement, Step, Term, What};
use crate::flat::{Flat, FlatConnection};

struct Separated<'a, T>(&'a [T], &'a str);

impl<T: Display> Display for Separated<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(self.1)?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// Statements as text; parsing it gives the same tree again.
impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(steps) => write!(f, "{};", Separated(steps, " ")),
            Self::ElementClass {
                name,
                body: ClassBody::Synonym(of),
                ..
            } => {
                write!(f, "elementclass {name} {of};")
            }
            Self::ElementClass {
                name,
                body: ClassBody::Compound(compound),
                ..
            } => {
                write!(f, "elementclass {name} {compound}")
            }
            Self::Require(config) => write!(f, "require({});", config.text),
            Self::Provide(config) => write!(f, "provide({});", config.text),
            Self::Define(config) => write!(f, "define({});", config.text),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Separated(&self.terms, ", ").fmt(f)?;
        match self.arrow {
            Some((Arrow::Single, _)) => f.write_str(" ->"),
            Some((Arrow::Pairwise, _)) => f.write_str(" =>"),
            None => Ok(()),
        }
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(ports) = &self.inputs {
            write!(f, "{ports} ")?;
        }
        match &self.what {
            What::Name(name) => f.write_str(name)?,
            What::Compound(compound) => compound.fmt(f)?,
            What::Group(statements) => write!(f, "({})", Separated(statements, " "))?,
            What::Implicit => {}
        }
        match &self.class {
            Some(ClassRef::Name(name, _)) => write!(f, " :: {name}")?,
            Some(ClassRef::Compound(compound)) => write!(f, " :: {compound}")?,
            None => {}
        }
        if let Some(config) = &self.config {
            write!(f, "({})", config.text)?;
        }
        match &self.outputs {
            Some(ports) => write!(f, " {ports}"),
            None => Ok(()),
        }
    }
}

impl Display for Compound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, overload) in self.overloads.iter().enumerate() {
            f.write_str(if index > 0 { " || " } else { " " })?;
            for (n, formal) in overload.formals.iter().enumerate() {
                let space = if formal.keyword.is_empty() { "" } else { " " };
                let comma = if n > 0 { ", " } else { "" };
                write!(f, "{comma}{}{space}${}", formal.keyword, formal.name)?;
            }
            f.write_str(if overload.formals.is_empty() {
                ""
            } else {
                " | "
            })?;
            Separated(&overload.statements, " ").fmt(f)?;
        }
        f.write_str(if self.extends { " || ... }" } else { " }" })
    }
}

impl Display for Ports {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{}{}]",
            Separated(&self.list, ", "),
            if self.open { "," } else { "" }
        )
    }
}

/// A flat configuration as text: requirements, declarations, chains.
impl Display for Flat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for requirement in &self.requirements {
            let words = format!("{} {}", requirement.kind, requirement.value);
            writeln!(f, "require({});", words.trim_end())?;
        }
        for e in &self.elements {
            match e.config.trim() {
                "" => writeln!(f, "{} :: {};", e.name, e.class)?,
                config => writeln!(f, "{} :: {}({config});", e.name, e.class)?,
            }
        }
        if !self.connections.is_empty() {
            writeln!(f)?;
        }
        self.chains()
            .into_iter()
            .try_for_each(|chain| writeln!(f, "{chain};"))
    }
}

impl Flat {
    /// Connections as chains, each as long as a single path of port 0 goes.
    fn chains(&self) -> Vec<String> {
        let mut next: BTreeMap<usize, usize> = BTreeMap::new();
        let mut fed: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, c) in self.connections.iter().enumerate() {
            next.entry(c.from.0).or_insert(index);
            *fed.entry(c.to.0).or_default() += 1;
        }
        let mut used = alloc::vec![false; self.connections.len()];
        let middle = |c: &FlatConnection| {
            fed.contains_key(&c.from.0)
                && next
                    .get(&c.from.0)
                    .is_some_and(|n| self.connections[*n].from == c.from)
        };
        let mut order: Vec<usize> = (0..self.connections.len()).collect();
        order.sort_by_key(|i| middle(&self.connections[*i]));
        let mut chains = Vec::new();
        for start in order {
            let mut at = Some(start);
            let mut chain = String::new();
            while let Some(index) = at.filter(|i| !used[*i]) {
                used[index] = true;
                self.write_link(&mut chain, &self.connections[index]);
                at = next.get(&self.connections[index].to.0).copied();
            }
            if !chain.is_empty() {
                chains.push(chain);
            }
        }
        chains
    }

    fn write_link(&self, chain: &mut String, c: &FlatConnection) {
        if chain.is_empty() {
            chain.push_str(&self.elements[c.from.0].name);
        }
        if c.from.1 > 0 {
            chain.push_str(&alloc::format!(" [{}]", c.from.1));
        }
        chain.push_str("\n    -> ");
        if c.to.1 > 0 {
            chain.push_str(&alloc::format!("[{}] ", c.to.1));
        }
        chain.push_str(&self.elements[c.to.0].name);
    }
}
