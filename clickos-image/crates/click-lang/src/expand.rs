// SPDX-License-Identifier: Apache-2.0
//! Variables in configuration strings: `$name`, `${name}`, `${name[1]}`, `${name[$n]}`, `${name-default}`.
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use crate::text;

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
    variables: Vec<Variable>,
    parent: Option<Rc<Level>>,
}

#[derive(Debug)]
struct Variable {
    name: String,
    value: String,
    /// An argument was expanded by its caller; its dollars are not ours.
    is_argument: bool,
}

impl Scope {
    /// Variables around the whole configuration, such as those of a command line.
    pub fn global(variables: &[(String, String)]) -> Self {
        let value = |(n, v): &(String, String)| Variable {
            name: n.clone(),
            value: v.clone(),
            is_argument: false,
        };
        let inner = Level {
            depth: 0,
            variables: variables.iter().map(value).collect(),
            parent: None,
        };
        Self {
            inner: Rc::new(inner),
        }
    }

    /// The top of a configuration: what it defines counts where nobody around it has given a value.
    pub fn top(&self, defines: &[(String, String)]) -> Self {
        let given = |name: &String| self.inner.variables.iter().any(|v| v.name == *name);
        let own = defines.iter().filter(|(name, _)| !given(name));
        self.enter(0, Vec::new(), &own.cloned().collect::<Vec<_>>())
    }

    /// The inside of a body at `depth` seen from here: only the bodies around its definition are visible.
    pub fn enter(
        &self,
        depth: usize,
        arguments: Vec<(String, String)>,
        defines: &[(String, String)],
    ) -> Self {
        let mut parent = Some(&self.inner);
        while let Some(level) = parent.filter(|l| l.depth > depth) {
            parent = level.parent.as_ref();
        }
        let argument = |(name, value)| Variable {
            name,
            value,
            is_argument: true,
        };
        let define = |(n, v): &(String, String)| Variable {
            name: n.clone(),
            value: v.clone(),
            is_argument: false,
        };
        let variables = arguments
            .into_iter()
            .map(argument)
            .chain(defines.iter().map(define))
            .collect();
        Self {
            inner: Rc::new(Level {
                depth: depth + 1,
                variables,
                parent: parent.cloned(),
            }),
        }
    }

    fn find(&self, name: &str) -> Option<&Variable> {
        let mut level = Some(&self.inner);
        while let Some(l) = level {
            if let Some(variable) = l.variables.iter().find(|v| v.name == name) {
                return Some(variable);
            }
            level = l.parent.as_ref();
        }
        None
    }

    /// Expands `config`; a variable that is not defined stays as it is.
    /// `None` if the result is longer than `budget` bytes.
    pub fn expand(&self, config: &str, budget: usize) -> Option<String> {
        self.expand_nested(config, budget, 0)
    }

    fn expand_nested(&self, config: &str, budget: usize, nesting: usize) -> Option<String> {
        let b = config.as_bytes();
        let mut out = String::new();
        let (mut i, mut start, mut in_string) = (0, 0, false);
        while i < b.len() {
            match b[i] {
                b'\\' if in_string => i += 1,
                b'"' => in_string = !in_string,
                b'\'' if !in_string => i = text::skip_unit(b, i) - 1,
                b'/' if !in_string && text::at_comment(b, i) => i = text::skip_comment(b, i) - 1,
                b'$' if nesting <= MAX_NESTING => {
                    if let Some((reference, end)) = Reference::at(config, i) {
                        if let Some(value) = self.value(&reference, budget, nesting)? {
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
            if out.len() > budget {
                return None;
            }
        }
        out.push_str(&config[start..]);
        (out.len() <= budget).then_some(out)
    }

    /// The value of a reference: outer `None` when it is too long, inner when it is not defined.
    #[expect(
        clippy::option_option,
        reason = "the two mean different things and meet only in expand_nested"
    )]
    fn value(
        &self,
        reference: &Reference<'_>,
        budget: usize,
        nesting: usize,
    ) -> Option<Option<String>> {
        let text = match (self.find(reference.name), reference.default) {
            (Some(v), _) if v.is_argument => v.value.clone(),
            (Some(v), _) => self.expand_nested(&v.value, budget, nesting + 1)?,
            (None, Some(default)) => self.expand_nested(default, budget, nesting + 1)?,
            (None, None) => return Some(None),
        };
        let word = |n: usize| {
            text::split_words(&text)
                .into_iter()
                .nth(n)
                .unwrap_or_default()
        };
        let index = reference.index.and_then(|i| self.index(i));
        Some(Some(index.map_or_else(|| text.clone(), word)))
    }
}

impl Scope {
    /// The number of a word: written out, or a variable's value.
    fn index(&self, text: &str) -> Option<usize> {
        let value = match text.strip_prefix('$') {
            Some(name) => self.find(name)?.value.trim(),
            None => text,
        };
        value.parse().ok()
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
    fn at(config: &'a str, at: usize) -> Option<(Self, usize)> {
        let rest = &config[at + 1..];
        if let Some(braced) = rest.strip_prefix('{') {
            let end = braced.find('}')?;
            return Some((Self::braced(&braced[..end]), at + 1 + end + 2));
        }
        let len = match rest.as_bytes().first()? {
            b'?' | b'#' => 1,
            _ => name_len(rest),
        };
        let plain = Self {
            name: &rest[..len],
            index: None,
            default: None,
        };
        (len > 0).then_some((plain, at + 1 + len))
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
        scope().expand(s, 100_000).unwrap()
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
        assert!(scope().expand("$loop", 1000).is_none());
        assert!(scope().expand("$loop", 100_000).is_some());
    }

    #[test]
    fn arguments_are_not_expanded_again() {
        let inner = scope().enter(
            0,
            vec![("x".into(), "$a".into())],
            &[("y".into(), "$x!".into())],
        );
        assert_eq!(inner.expand("$x $y $a", 100).unwrap(), "$a $a! 1 2");
    }
}
