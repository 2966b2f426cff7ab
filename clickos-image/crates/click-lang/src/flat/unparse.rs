// SPDX-License-Identifier: Apache-2.0
//! A flat configuration as text, in the form Click prints it: requirements, declarations, chains.
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use super::{Flat, FlatConnection};
use crate::{sort, text};

impl Display for Flat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_requirements(f)?;
        for e in &self.elements {
            match e.config.trim() {
                "" => writeln!(f, "{} :: {};", e.name, e.class)?,
                config => {
                    let end = if text::ends_in_comment(config) {
                        "\n"
                    } else {
                        ""
                    };
                    writeln!(f, "{} :: {}({config}{end});", e.name, e.class)?;
                }
            }
        }
        if !self.elements.is_empty() {
            writeln!(f)?;
        }
        self.write_chains(f)
    }
}

impl Flat {
    fn write_requirements(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "require(" })?;
            f.write_str(&requirement.kind)?;
            if !requirement.value.is_empty() {
                write!(f, " {}", text::quote_if_needed(&requirement.value))?;
            }
        }
        f.write_str(if self.requirements.is_empty() {
            ""
        } else {
            ");\n\n"
        })
    }

    /// Chains that nothing leads to come first, then what is left: circles.
    fn write_chains(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let order = ByInput::of(&self.connections);
        let next: Vec<Option<usize>> = (0..order.0.len()).map(|n| order.next(n)).collect();
        let mut starts = vec![true; next.len()];
        next.iter().flatten().for_each(|n| starts[*n] = false);
        let mut used = vec![false; next.len()];
        let chains = (0..next.len()).filter(|n| starts[*n]).chain(0..next.len());
        for start in chains {
            let mut at = Some(start).filter(|n| !used[*n]);
            let is_chain = at.is_some();
            while let Some(n) = at.filter(|n| !used[*n]) {
                used[n] = true;
                self.write_link(f, order.0[n], n == start)?;
                at = next[n];
            }
            if is_chain {
                f.write_str(";\n")?;
            }
        }
        Ok(())
    }

    fn write_link(&self, f: &mut Formatter<'_>, c: &FlatConnection, first: bool) -> fmt::Result {
        if first {
            f.write_str(&self.elements[c.from.0].name)?;
            if c.from.1 > 0 {
                write!(f, " [{}]", c.from.1)?;
            }
            f.write_str(" -> ")?;
        } else {
            f.write_str("\n    -> ")?;
        }
        if c.to.1 > 0 {
            write!(f, "[{}] ", c.to.1)?;
        }
        f.write_str(&self.elements[c.to.0].name)
    }
}

/// Connections in the order of the inputs they lead to.
struct ByInput<'a>(Vec<&'a FlatConnection>, Vec<usize>);

impl<'a> ByInput<'a> {
    fn of(connections: &'a [FlatConnection]) -> Self {
        let mut list: Vec<_> = connections.iter().collect();
        sort::by_key(&mut list, |c| (c.to, c.from));
        let mut by_output: Vec<usize> = (0..list.len()).collect();
        sort::by_key(&mut by_output, |n| list[*n].from);
        Self(list, by_output)
    }

    /// The connection that continues a chain: from output 0 of the element whose input 0 was
    /// reached, to an input 0 if there is one.
    fn next(&self, n: usize) -> Option<usize> {
        let end = self.0[n].to;
        if end.1 != 0 {
            return None;
        }
        let first = self.1.partition_point(|i| self.0[*i].from < end);
        let from_there = || {
            let rest = self.1[first..].iter().copied();
            rest.take_while(|i| self.0[*i].from == end)
                .filter(|i| *i != n)
        };
        let straight = from_there().find(|i| self.0[*i].to.1 == 0);
        straight.or_else(|| from_there().last())
    }
}
