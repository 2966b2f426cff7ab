// SPDX-License-Identifier: Apache-2.0
//! Variables in configuration strings: `$name`, `${name}`, `${name[1]}`, `${name[$n]}`, `${name-default}`.
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Memory;
use crate::{sort, text};

/// Expansions nested deeper than this stay as they are.
const MAX_NESTING: usize = 10;

/// The variables visible at a place.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    inner: Rc<Level>,
}

#[derive(Debug, Default)]
struct Level {
    depth: usize,
    variables: BTreeMap<String, Variable>,
    parent: Option<Rc<Level>>,
}

#[derive(Debug)]
struct Variable {
    value: String,
    /// An argument was expanded by its caller; its dollars are not ours.
    is_argument: bool,
}

/// The work and bytes that an expansion may still use.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes of its result, and of all values on the way to it at a time.
    pub bytes: usize,
    /// Steps of work: bytes read, and scopes searched.
    pub steps: usize,
    /// Memory for large results.
    pub memory: Memory,
}

/// The budget that an expansion used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// The bytes of [`Room`].
    Bytes,
    /// The steps of [`Room`].
    Steps,
    /// The memory of [`Room`].
    Memory,
}

fn defined((name, value): &(String, String)) -> (String, Variable) {
    let variable = Variable {
        value: value.clone(),
        is_argument: false,
    };
    (name.clone(), variable)
}

impl Scope {
    /// Variables around the whole configuration, such as those of a command line.
    pub fn global(variables: &[(String, String)]) -> Self {
        let inner = Level {
            depth: 0,
            // The first of two values of a name counts.
            variables: sort::tree(variables.iter().rev().map(defined)),
            parent: None,
        };
        Self {
            inner: Rc::new(inner),
        }
    }

    /// The top of a configuration: its definitions apply to names without a value from outside.
    pub fn top(&self, defines: &BTreeMap<String, String>) -> Self {
        let given = |name: &String| self.inner.variables.contains_key(name);
        let own = defines.iter().filter(|(name, _)| !given(name));
        let own = sort::tree(own.map(|(n, v)| (n.clone(), v.clone())));
        self.enter(0, Vec::new(), &own)
    }

    /// The inside of a body at `depth` seen from here: only the bodies around its definition are visible.
    pub fn enter(
        &self,
        depth: usize,
        arguments: Vec<(String, String)>,
        defines: &BTreeMap<String, String>,
    ) -> Self {
        let mut parent = Some(&self.inner);
        while let Some(level) = parent.filter(|l| l.depth > depth) {
            parent = level.parent.as_ref();
        }
        let own = defines
            .iter()
            .map(|(n, v)| defined(&(n.clone(), v.clone())));
        let mut variables: BTreeMap<_, _> = sort::tree(own);
        for (name, value) in arguments {
            let is_argument = true;
            variables.insert(name, Variable { value, is_argument });
        }
        Self {
            inner: Rc::new(Level {
                depth: depth + 1,
                variables,
                parent: parent.cloned(),
            }),
        }
    }

    /// Bytes that a scope takes for these definitions, and copies on the way to it.
    pub(crate) fn bytes(defines: &BTreeMap<String, String>) -> usize {
        let each = defines.iter().map(|(n, v)| n.len() + v.len() + 128);
        3 * each.sum::<usize>()
    }

    fn find(&self, name: &str, room: &mut Room) -> Result<Option<&Variable>, TooMuch> {
        let mut level = Some(&self.inner);
        while let Some(l) = level {
            room.step(1)?;
            if let Some(variable) = l.variables.get(name) {
                return Ok(Some(variable));
            }
            level = l.parent.as_ref();
        }
        Ok(None)
    }

    /// Expands `config`; a variable that is not defined stays as it is. Takes the steps from `room`.
    ///
    /// # Errors
    /// The result, or the work for it, does not fit into `room`.
    pub fn expand(&self, config: &str, room: &mut Room) -> Result<String, TooMuch> {
        let bytes = room.bytes;
        let expanded = self.expand_nested(config, room, 0);
        room.bytes = bytes;
        expanded
    }

    fn expand_nested(
        &self,
        config: &str,
        room: &mut Room,
        nesting: usize,
    ) -> Result<String, TooMuch> {
        let b = config.as_bytes();
        room.step(b.len().saturating_add(1))?;
        let mut out = String::new();
        let (mut i, mut start, mut in_string) = (0, 0, false);
        while i < b.len() {
            match b[i] {
                b'\\' if in_string => i += 1,
                b'"' => in_string = !in_string,
                b'\'' if !in_string => i = text::skip_unit(b, i) - 1,
                b'/' if !in_string && text::at_comment(b, i) => i = text::skip_comment(b, i) - 1,
                b'$' if nesting <= MAX_NESTING => {
                    if let Some((reference, end)) = Reference::at(config, i, room)? {
                        // The value is made next to what is here already.
                        let bytes = room.bytes;
                        room.bytes = bytes.saturating_sub(out.len());
                        let value = self.value(&reference, room, nesting)?;
                        room.bytes = bytes;
                        if let Some(value) = value {
                            room.affords(&out, i - start + 2 * value.len())?;
                            out.push_str(&config[start..i]);
                            push_value(&mut out, &value, in_string);
                            start = end;
                        }
                        i = end - 1;
                    }
                }
                _ => {}
            }
            i += 1;
            room.holds(out.len())?;
        }
        let rest = &config[start..];
        room.holds(out.len().saturating_add(rest.len()))?;
        room.affords(&out, rest.len())?;
        out.push_str(rest);
        Ok(out)
    }

    /// The value of a reference; none if it is not defined.
    fn value(
        &self,
        reference: &Reference<'_>,
        room: &mut Room,
        nesting: usize,
    ) -> Result<Option<String>, TooMuch> {
        let text = match (self.find(reference.name, room)?, reference.default) {
            (Some(v), _) if v.is_argument => {
                room.step(v.value.len())?;
                room.holds(v.value.len())?;
                room.affords("", v.value.len())?;
                v.value.clone()
            }
            (Some(v), _) => self.expand_nested(&v.value, room, nesting + 1)?,
            (None, Some(default)) => self.expand_nested(default, room, nesting + 1)?,
            (None, None) => return Ok(None),
        };
        let index = match reference.index {
            Some(index) => self.index(index, room)?,
            None => None,
        };
        Ok(Some(match index {
            Some(n) => text::nth_word(&text, n),
            None => text,
        }))
    }

    /// The number of a word: written out, or a variable's value.
    fn index(&self, text: &str, room: &mut Room) -> Result<Option<usize>, TooMuch> {
        let value = match text.strip_prefix('$') {
            Some(name) => match self.find(name, room)? {
                Some(variable) => variable.value.trim(),
                None => return Ok(None),
            },
            None => text,
        };
        room.step(value.len())?;
        Ok(value.parse().ok())
    }
}

impl Room {
    fn step(&mut self, steps: usize) -> Result<(), TooMuch> {
        self.steps = self.steps.checked_sub(steps).ok_or(TooMuch::Steps)?;
        Ok(())
    }

    /// A growing text has its old and its new place at a time, and an escaped value a third.
    fn affords(&self, text: &str, more: usize) -> Result<(), TooMuch> {
        let has = self.memory.has_text(3 * text.len().saturating_add(more));
        has.then_some(()).ok_or(TooMuch::Memory)
    }

    fn holds(&self, bytes: usize) -> Result<(), TooMuch> {
        let fits = bytes <= self.bytes;
        fits.then_some(()).ok_or(TooMuch::Bytes)
    }
}

/// Inside a string the value is escaped, so it cannot end the string.
fn push_value(out: &mut String, value: &str, in_string: bool) {
    if in_string {
        let quoted = text::quote(value);
        out.push_str(&quoted[1..quoted.len() - 1]);
    } else {
        out.push_str(value);
    }
}

struct Reference<'a> {
    name: &'a str,
    index: Option<&'a str>,
    default: Option<&'a str>,
}

fn name_len(s: &str) -> usize {
    s.bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count()
}

impl<'a> Reference<'a> {
    /// The reference whose `$` is at `at`, and the index behind it.
    fn at(config: &'a str, at: usize, room: &mut Room) -> Result<Option<(Self, usize)>, TooMuch> {
        let rest = &config[at + 1..];
        if let Some(braced) = rest.strip_prefix('{') {
            let end = braced.find('}');
            room.step(end.unwrap_or(braced.len()))?;
            return Ok(end.map(|end| (Self::braced(&braced[..end]), at + 1 + end + 2)));
        }
        let len = match rest.as_bytes().first() {
            Some(b'?' | b'#') => 1,
            _ => name_len(rest),
        };
        let plain = Self {
            name: &rest[..len],
            index: None,
            default: None,
        };
        Ok((len > 0).then_some((plain, at + 1 + len)))
    }

    /// The inside of `${...}`.
    fn braced(inside: &'a str) -> Self {
        let inside = inside.trim_start();
        let (name, mut rest) = inside.split_at(name_len(inside));
        rest = rest.trim_start();
        let mut index = None;
        if let Some((number, behind)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            index = Some(number.trim());
            rest = behind.trim_start();
        }
        Self {
            name,
            index,
            default: rest.strip_prefix('-'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn scope() -> Scope {
        let v = |n: &str, v: &str| (String::from(n), String::from(v));
        Scope::global(&[
            v("a", "1 2"),
            v("b", "<$a>"),
            v("one", "1"),
            v("loop", "$loop$loop"),
            v("q", "x\"y, z"),
        ])
    }

    fn expand(s: &str) -> String {
        scope().expand(s, &mut room(100_000)).unwrap()
    }

    fn room(bytes: usize) -> Room {
        Room {
            bytes,
            steps: 1 << 20,
            memory: Memory::UNBOUNDED,
        }
    }

    #[test]
    fn references_of_all_kinds() {
        assert_eq!(
            expand("$a,${a},${a[1]},${none-d $a},$none"),
            "1 2,1 2,2,d 1 2,$none"
        );
        assert_eq!(
            expand("$b '$b' \"\\$b\" /* $b */ // $b"),
            "<1 2> '$b' \"\\$b\" /* $b */ // $b"
        );
        assert_eq!(expand("$ ${ ${a"), "$ ${ ${a");
        assert_eq!(expand("${a[$one]} ${a[$none]} ${a[x]}"), "2 1 2 1 2");
    }

    #[test]
    fn a_value_cannot_leave_its_string() {
        assert_eq!(expand("\"$q\""), "\"x\\\"y, z\"");
    }

    #[test]
    fn endless_recursion_is_cut() {
        let expand = |bytes| scope().expand("$loop", &mut room(bytes));
        assert_eq!(expand(1000), Err(TooMuch::Bytes));
        assert!(expand(100_000).is_ok());
    }

    #[test]
    fn values_that_come_to_nothing_take_steps() {
        let mut variables = vec![("v0".into(), String::new())];
        for n in 1..11 {
            let before = n - 1;
            variables.push((
                alloc::format!("v{n}"),
                alloc::format!("$v{before}").repeat(12),
            ));
        }
        let mut room = room(1000);
        let expanded = Scope::global(&variables).expand("$v10", &mut room);
        assert_eq!(expanded, Err(TooMuch::Steps));
    }

    #[test]
    fn a_brace_without_end_is_looked_for_in_the_steps_there_are() {
        let text = "${".repeat(5000);
        assert_eq!(
            scope().expand(&text, &mut room(1 << 20)),
            Err(TooMuch::Steps)
        );
    }

    #[test]
    fn values_on_the_way_share_the_bytes() {
        let big = "x".repeat(600);
        let scope = Scope::global(&[("a".into(), big.clone()), ("b".into(), "$a${a[9]}".into())]);
        assert_eq!(scope.expand("$b", &mut room(1000)), Err(TooMuch::Bytes));
        assert!(scope.expand("$b", &mut room(1200)).is_ok());
    }

    #[test]
    fn arguments_are_not_expanded_again() {
        let inner = scope().enter(
            0,
            vec![("x".into(), "$a".into())],
            &[("y".into(), "$x!".into())].into(),
        );
        assert_eq!(
            inner.expand("$x $y $a", &mut room(100)).unwrap(),
            "$a $a! 1 2"
        );
    }
}
