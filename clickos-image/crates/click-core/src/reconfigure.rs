// SPDX-License-Identifier: Apache-2.0
//! Configuration strings that say what handlers changed.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::text;

use crate::engine::class::{Arg, ArgKind, Class};

/// Sets the argument with the name of `handler` to `value` in `config`; `pattern3` is the third
/// after the first PATTERN. Returns `None` if there is no such argument, if it is a secret, or if `value` cannot stand
/// in a configuration string.
pub fn with_argument(class: &Class, config: &str, handler: &str, value: &str) -> Option<String> {
    if text::split_args(value).len() > 1 {
        return None;
    }
    let mut given = text::split_args(config);
    if let Some(numbered) = of_rest(class, handler).and_then(|n| given.get_mut(n)) {
        *numbered = value.into();
        return Some(given.join(", "));
    }
    let named = |a: &&Arg| a.kind != ArgKind::Rest && a.name.eq_ignore_ascii_case(handler);
    let arg = class.args.iter().find(named).filter(|arg| !arg.is_secret)?;
    match place(class, arg, &given) {
        Some(index) if keyword(class, &given[index]).is_none() => given[index] = value.into(),
        Some(index) => given[index] = format!("{} {value}", arg.name),
        None => given.push(format!("{} {value}", arg.name)),
    }
    Some(given.join(", "))
}

/// The index of the argument that `pattern3` means, in a class that has only such arguments.
fn of_rest(class: &Class, handler: &str) -> Option<usize> {
    let name = handler.trim_end_matches(|c: char| c.is_ascii_digit());
    let ports = |a: &Arg| a.kind == ArgKind::Rest && a.name.eq_ignore_ascii_case(name);
    let only = class.args.first().is_some_and(ports) && class.args.len() == 1;
    handler[name.len()..].parse().ok().filter(|_| only)
}

/// The argument that `text` gives by keyword.
fn keyword<'a>(class: &'a Class, text: &str) -> Option<&'a Arg> {
    let (word, value) = text::shift_word(text);
    let known = |a: &&Arg| a.name == word && a.kind != ArgKind::Rest;
    let arg = class.args.iter().find(known)?;
    let lone = value.is_empty() && arg.kind != ArgKind::Keyword;
    (!lone).then_some(arg)
}

/// Where among the given arguments `arg` is.
fn place(class: &Class, arg: &Arg, given: &[String]) -> Option<usize> {
    let keywords: Vec<_> = given.iter().map(|text| keyword(class, text)).collect();
    let by_keyword = |a: &Arg| {
        let mut names = keywords.iter().map(|k| k.map(|k| k.name));
        names.position(|name| name == Some(a.name))
    };
    if let Some(index) = by_keyword(arg) {
        return Some(index);
    }
    let positional = |a: &&Arg| matches!(a.kind, ArgKind::Mandatory | ArgKind::Optional);
    let mut free = class
        .args
        .iter()
        .filter(positional)
        .filter(|a| by_keyword(a).is_none());
    let nth = free.position(|a| a.name == arg.name)?;
    let mut bare = (0..given.len()).filter(|index| keywords[*index].is_none());
    bare.nth(nth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::class::{keyword, mandatory, optional, rest, secret};

    const CLASS: Class = Class {
        args: &[mandatory("A"), optional("B"), keyword("C"), secret("KEY")],
        ..Class::DEFAULT
    };

    const LIST: Class = Class {
        args: &[rest("PATTERN")],
        ..Class::DEFAULT
    };

    #[test]
    fn arguments_stay_where_they_are() {
        let set = |config, handler| with_argument(&CLASS, config, handler, "9");
        assert_eq!(set("1", "a").as_deref(), Some("9"));
        assert_eq!(set("1", "b").as_deref(), Some("1, B 9"));
        assert_eq!(set("1, 2", "b").as_deref(), Some("1, 9"));
        assert_eq!(set("C 3, 1, 2", "b").as_deref(), Some("C 3, 1, 9"));
        assert_eq!(set("A 1, 2", "b").as_deref(), Some("A 1, 9"));
        assert_eq!(set("C 3, 1", "c").as_deref(), Some("C 9, 1"));
        assert_eq!(set("1", "d"), None);
        assert_eq!(set("1", "key"), None, "a secret");
        assert_eq!(with_argument(&CLASS, "1", "a", "x, y"), None);
        let set = |handler| with_argument(&LIST, "1, 2", handler, "9");
        assert_eq!(set("pattern1").as_deref(), Some("1, 9"));
        assert_eq!(
            [set("pattern2"), set("pattern"), set("9")],
            [None, None, None]
        );
    }
}
