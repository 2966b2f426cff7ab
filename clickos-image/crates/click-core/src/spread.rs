// SPDX-License-Identifier: Apache-2.0
//! What is to have copies on all threads, and which names in arguments lead out of it or into it.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::text;

use crate::asked::inside;

/// Classes whose arguments name handlers, or are free texts: what they name may run anywhere.
const CALLERS: [&str; 16] = [
    "BalancedThreadSched",
    "ChatterSocket",
    "ControlSocket",
    "DriverManager",
    "FlowThreadSched",
    "IP6Print",
    "IPClassifier",
    "IPFilter",
    "IPPrint",
    "Message",
    "Print",
    "ScheduleInfo",
    "Script",
    "StaticThreadSched",
    "StreamInspector",
    "StringMatcher",
];
/// Bytes that the name of an element takes in a `Directory`.
pub(crate) const NAME_BYTES: usize = 64;

/// Elements by their full names.
pub struct Directory<'a>(BTreeMap<&'a str, usize>);

impl<'a> Directory<'a> {
    /// A directory of elements with these names, in the order of their numbers.
    pub fn new(names: impl Iterator<Item = &'a str>) -> Self {
        Self(names.enumerate().map(|(n, name)| (name, n)).collect())
    }

    /// The element that an element of the name `from` calls `name`: in its compound, or in those around it. With the
    /// length of the name of the compound that it is in.
    fn find(&self, from: &str, name: &str) -> Option<(usize, usize)> {
        let mut around = from;
        while let Some((outer, _)) = around.rsplit_once('/') {
            if let Some(found) = self.0.get(format!("{outer}/{name}").as_str()) {
                return Some((*found, outer.len()));
            }
            around = outer;
        }
        self.0.get(name).map(|found| (*found, 0))
    }

    /// The elements that an element of this name, class and configuration names; each with the length of the name of
    /// the compound that it was found in.
    pub fn named_by(
        &self,
        name: &str,
        class: &str,
        config: &str,
    ) -> impl Iterator<Item = (usize, usize)> {
        let args = match CALLERS.contains(&class) {
            true => Vec::new(),
            false => text::split_args(config),
        };
        let words = args.into_iter().flat_map(|arg| text::split_words(&arg));
        words.filter_map(|word| self.find(name, &word))
    }
}

/// The full names of elements and compound elements that are to have copies, however many threads there are.
#[derive(Debug, Default)]
pub(crate) struct Spread(pub(crate) Vec<String>);

impl Spread {
    /// True if nothing is to have copies.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of what is to have copies, and of the copy, if an element is inside of one: `f` and `f@1` for `f@1/a`.
    pub(crate) fn of<'a>(&'a self, element: &'a str) -> Option<(&'a str, &'a str)> {
        self.0.iter().find_map(|name| {
            let copy = match inside(element, name) {
                Some(_) => Some(name.len()),
                None => copy_of(element, name),
            };
            Some((&**name, &element[..copy?]))
        })
    }

    /// The element that `f@0/a` stands for: thread 0's copy, which has the name that the configuration gives it.
    pub(crate) fn on_first(&self, element: &str) -> Option<String> {
        self.0.iter().find_map(|name| {
            let rest = element.strip_prefix(name.as_str())?.strip_prefix("@0")?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{name}{rest}"))
        })
    }

    /// The fault of the first name in the arguments of an element that leads to another thread: out of an element with
    /// copies, or into one.
    pub(crate) fn misled<'n>(
        &self,
        (name, class, config): (&str, &str, &str),
        directory: &Directory<'_>,
        name_of: impl Fn(usize) -> &'n str,
    ) -> Option<String> {
        let own = self.of(name);
        let mut named = directory.named_by(name, class, config);
        named.find_map(|(other, around)| {
            let other = name_of(other);
            match own {
                None => self
                    .of(other)
                    .map(|_| format!("names {other}, which runs on several threads")),
                Some((of, copy)) => inside(&name[..around], copy)
                    .is_none()
                    .then(|| format!("names {other}, which the copies of \"{of}\" would share")),
            }
        })
    }
}

/// The length of the name of a copy of `name`, if `element` has that name or is in the copy.
pub(crate) fn copy_of(element: &str, name: &str) -> Option<usize> {
    let rest = element.strip_prefix(name)?.strip_prefix('@')?;
    let number = rest.split('/').next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some(name.len() + 1 + number.len())
}
