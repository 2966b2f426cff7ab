// SPDX-License-Identifier: Apache-2.0
//! Trees back to text.
use core::fmt::{self, Display, Formatter};

use crate::ast::{Arrow, ClassBody, ClassRef, Compound, Ports, Statement, Step, Term, What};

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
impl Display for Statement<'_> {
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
            Self::Require(config) => write!(f, "require({});", config.text()),
            Self::Provide(config) => write!(f, "provide({});", config.text()),
            Self::Define(config) => write!(f, "define({});", config.text()),
        }
    }
}

impl Display for Step<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Separated(&self.terms, ", ").fmt(f)?;
        match self.arrow {
            Some((Arrow::Single, _)) => f.write_str(" ->"),
            Some((Arrow::Pairwise, _)) => f.write_str(" =>"),
            None => Ok(()),
        }
    }
}

impl Display for Term<'_> {
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
            write!(f, "({})", config.text())?;
        }
        match &self.outputs {
            Some(ports) => write!(f, " {ports}"),
            None => Ok(()),
        }
    }
}

impl Display for Compound<'_> {
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
