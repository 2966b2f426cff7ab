// SPDX-License-Identifier: Apache-2.0
//! What a configuration wants on all threads (`FlowThreadSched`), and the queues that join threads.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::{Flat, text};

/// The class of elements that ask for copies, and the one that they become.
pub(crate) const ASKING: &str = "FlowThreadSched";
pub(crate) const BINDING: &str = "StaticThreadSched";
/// Classes of queues that join threads, with their other names: any thread pushes, one pulls.
#[cfg(feature = "threads")]
pub const QUEUES: [&str; 7] = [
    "CPUQueue",
    "FullNoteQueue",
    "NotifierQueue",
    "Queue",
    "QuickNoteQueue",
    "SimpleQueue",
    "ThreadSafeQueue",
];
/// The largest capacity of a queue between threads: each sender has a ring of as many slots.
#[cfg(feature = "threads")]
pub const MAX_CAPACITY: usize = 1 << 16;

/// The rest of `element` after the name of a compound element, or nothing for the element itself.
pub(crate) fn inside<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let rest = element.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The full name of what an element of the name `by` calls `name`.
pub(crate) fn full(by: &str, name: &str) -> String {
    match by.rsplit_once('/') {
        Some((outer, _)) => format!("{outer}/{name}"),
        None => name.into(),
    }
}

/// The elements that ask for copies, and the full names of what they ask for.
pub(crate) fn asked(flat: &Flat) -> impl Iterator<Item = (usize, Vec<String>)> + '_ {
    let elements = flat.elements.iter().enumerate();
    elements.filter(|(_, e)| *e.class == *ASKING).map(|(n, e)| {
        let names = text::split_args(&e.config);
        (n, names.iter().map(|name| full(&e.name, name)).collect())
    })
}
