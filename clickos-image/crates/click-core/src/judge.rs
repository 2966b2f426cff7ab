// SPDX-License-Identifier: Apache-2.0
//! Whether each thread could have a copy of what a configuration wants on all threads.
//!
//! This is judged whatever the number of threads is: what runs on one also runs on several.
use alloc::format;
use alloc::string::String;

use click_lang::{Errors, Flat, FlatElement, Limits, Phase, SourcePos, Subject, text};

use crate::asked::{ASKING, BINDING, asked, full, inside};
use crate::engine::class::Class;
use crate::engine::graph::Graph;
use crate::spread::{Directory, NAME_BYTES, Spread, copy_of};

/// Elements of these classes share tables of the router.
pub const TOGETHER: [&[&str]; 2] = [
    &["FromHost", "KernelTap", "KernelTun", "ToHost"],
    &[
        "IPsecAES",
        "IPsecAuthHMACSHA1",
        "IPsecDES",
        "IPsecESPEncap",
        "IPsecESPUnencap",
        "IPsecEncap",
        "RadixIPsecLookup",
    ],
];
/// Classes of elements that thread 0 runs: it has the devices, the sockets, and the files that are written.
const OF_THREAD_0: [&str; 11] = [
    "ChatterSocket",
    "ControlSocket",
    "DriverManager",
    "FromDevice",
    "FromSocket",
    "McastSocket",
    "Socket",
    "ToDevice",
    "ToDump",
    "ToIPSummaryDump",
    "ToSocket",
];
/// Types of `Script` that thread 0 runs.
const SCRIPTS_OF_THREAD_0: [&str; 2] = ["DRIVER", "SIGNAL"];
/// Elements of a configuration that may have copies.
const MOST: usize = 64;
/// The step that an error about memory or work names.
const JUDGING: &str = "judging what is to run on all threads";

/// The configuration, whose graph has no errors.
struct Judge<'a> {
    flat: &'a Flat,
    classes: &'a [Option<&'static Class>],
    graph: &'a Graph,
    /// What is to have copies.
    spread: Spread,
}

/// What is to have copies. Adds what is wrong with it to `errors`.
pub(crate) fn judge(
    flat: &Flat,
    classes: &[Option<&'static Class>],
    graph: &Graph,
    limits: &Limits,
    errors: &mut Errors,
) -> Spread {
    let mut judge = Judge {
        flat,
        classes,
        graph,
        spread: Spread::default(),
    };
    judge.admit_all(limits, errors);
    if errors.is_empty() {
        judge.check_names(limits, errors);
    }
    judge.spread
}

impl Judge<'_> {
    /// Checks all that is to have copies, but for names in arguments.
    fn admit_all(&mut self, limits: &Limits, errors: &mut Errors) {
        let flat = self.flat;
        let elements = &flat.elements;
        let count = |e: &FlatElement| match *e.class == *ASKING {
            true => text::count_args(&e.config),
            false => 0,
        };
        if elements.iter().map(count).sum::<usize>() > MOST {
            let asking = elements.iter().position(|e| *e.class == *ASKING);
            let message = format!("ELEMENT: more than {MOST} elements with copies");
            return self.add(asking.unwrap_or(0), message, errors);
        }
        let largest = elements.iter().map(|e| text::bytes_to_build(&e.config));
        let bytes = largest.max().unwrap_or(0) + elements.len() * NAME_BYTES;
        if !errors.has_memory(bytes, limits, SourcePos::default(), JUDGING) {
            return;
        }
        for (asking, names) in asked(flat) {
            let work = names.len() * (elements.len() + flat.connections.len());
            if !errors.spend(work, limits, elements[asking].place, JUDGING) {
                return;
            }
            for name in names {
                match self.admit(&name) {
                    Ok(()) => self.spread.0.push(name),
                    Err(message) => self.add(asking, format!("ELEMENT: {message}"), errors),
                }
            }
        }
    }

    fn add(&self, element: usize, message: String, errors: &mut Errors) {
        let element = &self.flat.elements[element];
        let subject = Subject {
            phase: Phase::Configuring,
            element: element.label(),
        };
        errors.add_about(element.place, subject, message);
    }

    fn class(&self, element: usize) -> &'static str {
        self.classes[element].map_or("", |class| class.name)
    }

    /// Checks an element that is to have copies, without those that others name.
    fn admit(&self, name: &str) -> Result<(), String> {
        let elements = || self.flat.elements.iter().enumerate();
        if !elements().any(|(_, e)| inside(&e.name, name).is_some()) {
            return Err(format!("no element \"{name}\""));
        }
        let overlaps =
            |other: &&String| inside(name, other).is_some() || inside(other, name).is_some();
        if self.spread.0.iter().any(|other| overlaps(&other)) {
            return Err(format!("\"{name}\" is named twice"));
        }
        if let Some((_, e)) = elements().find(|(_, e)| copy_of(&e.name, name).is_some()) {
            return Err(format!("{} is the name of a copy", e.name));
        }
        elements()
            .filter(|(_, e)| inside(&e.name, name).is_some())
            .try_for_each(|(n, e)| match self.refused(n) {
                Some(why) => Err(format!("\"{name}\" contains {}, which {why}", e.label())),
                None => Ok(()),
            })?;
        self.is_pushed(name)
    }

    /// Why an element cannot have copies, if that is so.
    fn refused(&self, element: usize) -> Option<&'static str> {
        let class = self.class(element);
        if [ASKING, BINDING].contains(&class) {
            return Some("binds threads itself");
        }
        if TOGETHER.iter().any(|classes| classes.contains(&class)) {
            return Some("shares tables with others of its kind");
        }
        let config = &self.flat.elements[element].config;
        let is_typed = class == "Script"
            && text::split_args(config)
                .iter()
                .any(|arg| is_type_of_thread_0(arg));
        let is_of_thread_0 = OF_THREAD_0.contains(&class) || is_typed;
        is_of_thread_0.then_some("runs on thread 0 only")
    }

    /// Queues between threads are pushed to, so packets have to be pushed into an element with copies and out of it.
    fn is_pushed(&self, name: &str) -> Result<(), String> {
        for c in &self.flat.connections {
            let [from, to] = [c.from.0, c.to.0].map(|end| &*self.flat.elements[end].name);
            let (starts, ends) = (inside(from, name).is_some(), inside(to, name).is_some());
            if starts == ends || !self.graph.output_is_pull(c.from.0, c.from.1) {
                continue;
            }
            return Err(match ends {
                true => format!(
                    "{to} pulls packets into \"{name}\" from {from}; put an Unqueue between them"
                ),
                false => format!(
                    "{to} pulls packets out of \"{name}\" from {from}; end \"{name}\" with an Unqueue, and put a Queue behind it"
                ),
            });
        }
        Ok(())
    }

    /// Names must not lead out of an element with copies, nor into it.
    fn check_names(&self, limits: &Limits, errors: &mut Errors) {
        let elements = &self.flat.elements;
        let directory = Directory::new(elements.iter().map(|e| &*e.name));
        for (n, e) in elements.iter().enumerate() {
            let work = e.config.len() * (1 + e.name.matches('/').count());
            if !errors.spend(work, limits, e.place, JUDGING) {
                return;
            }
            if let Some(message) = self.misled(n, &directory) {
                self.add(n, message, errors);
            }
        }
    }

    /// The fault of the first name in the arguments of an element that leads to another thread.
    fn misled(&self, element: usize, directory: &Directory<'_>) -> Option<String> {
        let e = &self.flat.elements[element];
        if self.class(element) == BINDING {
            let lines = text::split_args(&e.config);
            let mut bound = lines
                .iter()
                .filter_map(|line| text::split_words(line).into_iter().next());
            let inner = bound.find(|name| self.spread.of(&full(&e.name, name)).is_some())?;
            return Some(format!("binds {inner}, which runs on all threads"));
        }
        let own = (&*e.name, self.class(element), &*e.config);
        let name_of = |other: usize| &*self.flat.elements[other].name;
        self.spread.misled(own, directory, name_of)
    }
}

/// True for the argument of a `Script` that belongs to thread 0.
fn is_type_of_thread_0(arg: &str) -> bool {
    let (keyword, value) = text::shift_word(arg);
    let kind = text::split_words(&value)
        .into_iter()
        .next()
        .unwrap_or_default();
    keyword == "TYPE" && SCRIPTS_OF_THREAD_0.contains(&&*kind.to_ascii_uppercase())
}
