// SPDX-License-Identifier: Apache-2.0
//! Copies of elements for other threads, and what brings each flow to one of them (`FlowThreadSched`).
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use click_lang::{
    Errors, Flat, FlatConnection, FlatElement, Limits, Phase, SourcePos, Subject, sort, text,
};

use crate::asked::{BINDING, MAX_CAPACITY, QUEUES, asked, inside};
use crate::config::value::number;

/// Bytes that a copied element takes in the flat configuration, besides its texts.
const ELEMENT_BYTES: usize = 256;
/// The step that an error about memory names.
const COPYING: &str = "copying elements for all threads";
/// Packets of each queue to a copy, and from it.
const CAPACITY: usize = 1024;

/// The elements that have copies on all threads.
#[derive(Debug, Default)]
pub struct Copies {
    /// Full names of elements and of compound elements.
    names: Vec<String>,
    threads: usize,
}

impl Copies {
    /// True if no element has copies.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many threads have a copy.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The rest of an element's full name, if the element has copies, and the name before that.
    fn split<'a>(&'a self, element: &'a str) -> Option<(&'a str, &'a str)> {
        let split = |name: &'a String| Some((&**name, inside(element, name)?));
        self.names.iter().find_map(split)
    }

    /// The name on a thread of an element that has copies.
    pub fn name_on(&self, thread: usize, element: &str) -> Option<String> {
        let (name, rest) = self.split(element)?;
        Some(match thread {
            0 => element.to_string(),
            thread => format!("{name}@{thread}{rest}"),
        })
    }

    /// True for copies, and for what leads to them: nothing that the configuration declares.
    pub fn made(&self, element: &str) -> bool {
        let is_copy = |name: &String| {
            let rest = element.strip_prefix(name.as_str())?.strip_prefix('@')?;
            let (number, _) = rest.split_once('/').unwrap_or((rest, ""));
            number.parse::<usize>().ok()
        };
        let copies = self.names.iter().filter_map(is_copy);
        copies.into_iter().any(|number| number < self.threads)
    }
}

/// Copies the elements that `FlowThreadSched` names. What is wrong is added to `errors`.
///
/// A thread may have `packets`. A copy that is behind does not take those for the others.
pub fn copy(
    flat: &mut Flat,
    (threads, packets): (usize, usize),
    limits: &Limits,
    errors: &mut Errors,
) -> Copies {
    let mut copies = Copies {
        names: Vec::new(),
        threads,
    };
    for (index, names) in asked(flat).collect::<Vec<_>>() {
        let asking = &mut flat.elements[index];
        let place = asking.place;
        // its class is another one afterwards
        let subject = Subject {
            phase: Phase::Configuring,
            element: asking.label(),
        };
        let asked = text::split_args(&asking.config);
        let bound = asked.iter().flat_map(|name| {
            let others = (1..threads).map(move |thread| format!("{name}@{thread} {thread}"));
            core::iter::once(format!("{name} 0")).chain(others)
        });
        let bound: Vec<String> = bound.collect();
        asking.class = BINDING.into();
        asking.config = bound.join(", ");
        copies.names.extend(names.iter().cloned());
        for name in names {
            let is_own = |e: &&FlatElement| inside(&e.name, &name).is_some();
            let own = flat.elements.iter().filter(is_own);
            let bytes: usize = own
                .map(|e| ELEMENT_BYTES + e.name.len() + e.config.len())
                .sum();
            // each of them has a queue and what empties it on each thread
            let is_inside = |n: usize| inside(&flat.elements[n].name, &name).is_some();
            let crossing = flat.connections.iter();
            let crossing = crossing.filter(|c| is_inside(c.from.0) != is_inside(c.to.0));
            let bytes = bytes + crossing.count() * 2 * (ELEMENT_BYTES + name.len());
            if !errors.plan(bytes.saturating_mul(threads), limits, place, COPYING) {
                return Copies::default();
            }
            let copying = Copying {
                flat: &mut *flat,
                name,
                threads,
                place,
                limits,
                capacity: (packets / threads.max(1)).clamp(1, CAPACITY).to_string(),
            };
            if let Err(message) = copying.run() {
                errors.add_about(place, subject, message);
                return Copies::default();
            }
        }
    }
    sort::by_key(&mut flat.connections, |c| (c.from, c.to, c.place));
    flat.connections.dedup_by_key(|c| (c.from, c.to));
    copies
}

/// The copies of one element.
struct Copying<'a> {
    flat: &'a mut Flat,
    name: String,
    threads: usize,
    place: SourcePos,
    limits: &'a Limits,
    /// Of queues to and from other threads.
    capacity: String,
}

impl Copying<'_> {
    fn run(mut self) -> Result<(), String> {
        let is_inside = |e: &FlatElement| inside(&e.name, &self.name).is_some();
        let elements = &self.flat.elements;
        let own: Vec<usize> = (0..elements.len())
            .filter(|n| is_inside(&elements[*n]))
            .collect();
        let maps = self.copy_elements(&own)?;
        self.copy_connections(&own, &maps)
    }

    fn add(&mut self, name: String, class: &str, config: &str) -> Result<usize, String> {
        let limit = self.limits.elements;
        if self.flat.elements.len() >= limit {
            return Err(format!(
                "ELEMENT: more than {limit} elements with the copies of {}",
                self.name
            ));
        }
        self.flat.elements.push(FlatElement {
            name,
            class: class.into(),
            config: config.to_string(),
            place: self.place,
        });
        Ok(self.flat.elements.len() - 1)
    }

    /// The numbers of all copies, by thread and by the place in `own`.
    fn copy_elements(&mut self, own: &[usize]) -> Result<Vec<Vec<usize>>, String> {
        let mut maps = vec![own.to_vec()];
        for thread in 1..self.threads {
            let mut map = Vec::with_capacity(own.len());
            for original in own {
                let FlatElement {
                    name,
                    class,
                    config,
                    place,
                } = self.flat.elements[*original].clone();
                let rest = inside(&name, &self.name).unwrap_or_default();
                let copy = self.add(format!("{}@{thread}{rest}", self.name), "", &config)?;
                self.flat.elements[copy].class = Rc::clone(&class);
                self.flat.elements[copy].place = place;
                map.push(copy);
            }
            maps.push(map);
        }
        Ok(maps)
    }

    fn link(
        &mut self,
        from: (usize, usize),
        to: (usize, usize),
        place: SourcePos,
    ) -> Result<(), String> {
        let limit = self.limits.connections;
        if self.flat.connections.len() >= limit {
            return Err(format!(
                "ELEMENT: more than {limit} connections with the copies of {}",
                self.name
            ));
        }
        self.flat
            .connections
            .push(FlatConnection { from, to, place });
        Ok(())
    }

    fn copy_connections(&mut self, own: &[usize], maps: &[Vec<usize>]) -> Result<(), String> {
        let place_of = |element: usize| own.binary_search(&element).ok();
        let mut entries: Vec<((usize, usize), usize)> = Vec::new();
        for at in 0..self.flat.connections.len() {
            let c = self.flat.connections[at].clone();
            match (place_of(c.from.0), place_of(c.to.0)) {
                (Some(from), Some(to)) => {
                    for map in &maps[1..] {
                        self.link((map[from], c.from.1), (map[to], c.to.1), c.place)?;
                    }
                }
                (Some(from), None) => {
                    for (thread, map) in maps.iter().enumerate().skip(1) {
                        let to = self.way_back(thread, at, c.to)?;
                        self.link((map[from], c.from.1), to, c.place)?;
                    }
                }
                (None, Some(to)) => {
                    let known = entries.iter().find(|(entry, _)| *entry == c.to);
                    let switch = match known.map(|(_, switch)| *switch) {
                        Some(switch) => switch,
                        None => {
                            let to = (to, c.to.1);
                            let switch = self.entrance(entries.len(), maps, to, c.place)?;
                            entries.push((c.to, switch));
                            switch
                        }
                    };
                    self.flat.connections[at].to = (switch, 0);
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Adds what distributes the packets for one input of all copies; returns the switch.
    fn entrance(
        &mut self,
        number: usize,
        maps: &[Vec<usize>],
        (to, input): (usize, usize),
        place: SourcePos,
    ) -> Result<usize, String> {
        let (name, capacity) = (self.name.clone(), self.capacity.clone());
        let switch = self.add(
            format!("{name}@0/FlowHashSwitch@in{number}"),
            "FlowHashSwitch",
            "",
        )?;
        self.link((switch, 0), (maps[0][to], input), place)?;
        for (thread, map) in maps.iter().enumerate().skip(1) {
            let queue = self.add(
                format!("{name}@{thread}/Queue@in{number}"),
                "Queue",
                &capacity,
            )?;
            let unqueue = self.add(
                format!("{name}@{thread}/Unqueue@in{number}"),
                "Unqueue",
                "32",
            )?;
            self.link((switch, thread), (queue, 0), place)?;
            self.link((queue, 0), (unqueue, 0), place)?;
            self.link((unqueue, 0), (map[to], input), place)?;
        }
        Ok(switch)
    }

    /// True if several threads can push to an element: a queue without an output 1 that is not too long.
    fn joins_threads(&self, element: usize) -> bool {
        let FlatElement { class, config, .. } = &self.flat.elements[element];
        let capacity = || {
            let first = text::split_args(config).into_iter().next()?;
            let (keyword, value) = text::shift_word(&first);
            let given = if keyword == "CAPACITY" { value } else { first };
            usize::try_from(number(&given)?).ok()
        };
        let has_more_outputs = || {
            let mut connections = self.flat.connections.iter();
            connections.any(|c| c.from.0 == element && c.from.1 > 0)
        };
        QUEUES.contains(&&**class)
            && !has_more_outputs()
            && (config.trim().is_empty() || capacity().is_some_and(|n| n <= MAX_CAPACITY))
    }

    /// Where a copy sends what leaves: to the queue behind it, or to one of its own whose packets go there.
    fn way_back(
        &mut self,
        thread: usize,
        number: usize,
        to: (usize, usize),
    ) -> Result<(usize, usize), String> {
        if self.joins_threads(to.0) {
            return Ok(to);
        }
        let (name, place) = (self.name.clone(), self.place);
        let capacity = self.capacity.clone();
        let queue = self.add(
            format!("{name}@0/Queue@out{number}_{thread}"),
            "Queue",
            &capacity,
        )?;
        let unqueue = self.add(
            format!("{name}@0/Unqueue@out{number}_{thread}"),
            "Unqueue",
            "32",
        )?;
        self.link((queue, 0), (unqueue, 0), place)?;
        self.link((unqueue, 0), to, place)?;
        Ok((queue, 0))
    }
}
