// SPDX-License-Identifier: Apache-2.0
//! Which thread runs which elements.
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use click_core::threads::{
    Answered, Assembled, Call, Directory, Link, MAX_CAPACITY, Place, QUEUES, TOGETHER, Threads,
};
use click_core::{ConfigError, HandlerError, text};

use crate::gauge::slots;
use crate::watch::Slot;

/// Classes of elements that thread 0 runs, since it has the sockets.
const OF_THREAD_0: [&str; 2] = ["ChatterSocket", "ControlSocket"];
/// The class of elements that move packets between queues and rest while the second one is full.
const HEEDING: &str = "Unqueue2";
/// Classes of stores that drop packets when they are full, so that no element rests in front of them.
const NEVER_FULL: [&str; 4] = ["CPUQueue", "FrontDropQueue", "MixedQueue", "SimpleQueue"];

/// A queue between threads.
pub struct Cut {
    /// Its element.
    pub element: usize,
    /// Its class.
    pub class: &'static str,
    /// Its capacity in packets.
    pub capacity: usize,
    /// The threads that push to it, without the one that pulls.
    pub senders: Vec<usize>,
    /// How many threads push to it.
    pub pushers: usize,
}

impl Cut {
    /// Bytes of its rings.
    fn bytes(&self) -> usize {
        let places = self.senders.len().saturating_mul(slots(self.capacity));
        places.saturating_mul(size_of::<Slot>())
    }
}

/// A configuration's elements by threads.
pub struct Plan {
    /// How many threads the program may have.
    pub threads: usize,
    /// The thread of each element.
    pub homes: Vec<usize>,
    /// The queues between threads.
    pub cuts: Vec<Cut>,
}

/// Sets of elements that one thread runs.
struct Islands(Vec<usize>);

impl Islands {
    fn of(&mut self, element: usize) -> usize {
        let mut at = element;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        self.0[one.max(other)] = one.min(other);
    }
}

impl Plan {
    /// Finds the threads of all elements. Thread 0 also has those of the classes `of_thread_0`.
    ///
    /// # Errors
    /// Elements of one island are bound to several threads, an element belongs to thread 0, or a queue between threads is
    /// too large.
    pub fn new(
        assembled: &mut Assembled,
        threads: usize,
        of_thread_0: &[&str],
    ) -> Result<Self, Vec<ConfigError>> {
        let elements = assembled.elements();
        let cuts = |e: &Place<'_>| QUEUES.contains(&e.class.name) && e.outputs <= 1;
        let is_queue: Vec<bool> = elements.iter().map(cuts).collect();
        let connections = assembled.connections();
        let mut islands = Islands((0..elements.len()).collect());
        for c in connections.iter().filter(|c| !is_queue[c.to.0]) {
            islands.join(c.from.0, c.to.0);
        }
        join_named(&elements, &is_queue, &mut islands);
        let bound = bindings(&elements, threads);
        let mut errors = Vec::new();
        let mut of_island: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        // those with tasks decide; others only where no task is bound
        for tasks in [true, false] {
            let decided: Vec<usize> = of_island.keys().copied().collect();
            for (element, thread) in &bound {
                let (element, thread) = (*element, *thread);
                let island = islands.of(element);
                if elements[element].class.task != tasks
                    || is_queue[element]
                    || decided.contains(&island)
                {
                    continue;
                }
                let (first, home) = *of_island.entry(island).or_insert((element, thread));
                if home != thread {
                    let other = elements[first].name;
                    errors.push((element, format!(
                        "bound to thread {thread}, but {other} on thread {home} is reached or named without a queue between them; \
                         put a Queue between them or bind both to one thread"
                    )));
                }
            }
        }
        if elements
            .iter()
            .any(|e| e.class.name == "BalancedThreadSched")
        {
            let has_task = |e: &usize| elements[*e].class.task && !is_queue[*e];
            let joined = connections.iter().flat_map(|c| [c.from.0, c.to.0]);
            let joined: BTreeSet<usize> = joined.filter(has_task).collect();
            spread(&joined, threads, &mut islands, &mut of_island);
        }
        let home = |element| {
            of_island
                .get(&islands.of(element))
                .map_or(0, |(_, home)| *home)
        };
        let homes: Vec<usize> = (0..elements.len()).map(home).collect();
        for (index, e) in elements.iter().enumerate() {
            let is_bound =
                OF_THREAD_0.contains(&e.class.name) || of_thread_0.contains(&e.class.name);
            if is_bound && homes[index] != 0 {
                errors.push((
                    index,
                    format!("runs on thread 0 only, not on thread {}", homes[index]),
                ));
            }
        }
        let classes: Vec<&'static str> = elements.iter().map(|e| e.class.name).collect();
        let names: Vec<String> = elements.iter().map(|e| e.name.to_string()).collect();
        let (mut cuts, mut ring_bytes) = (Vec::new(), 0);
        for element in (0..homes.len()).filter(|element| is_queue[*element]) {
            let pushers = connections.iter().filter(|c| c.to.0 == element);
            let mut senders: Vec<usize> = pushers.map(|c| homes[c.from.0]).collect();
            senders.sort_unstable();
            senders.dedup();
            let pushers = senders.len();
            senders.retain(|thread| *thread != homes[element]);
            if senders.is_empty() {
                continue;
            }
            let capacity = capacity(assembled, &names[element]);
            if capacity > MAX_CAPACITY {
                errors.push((
                    element,
                    format!(
                        "CAPACITY: expected at most {MAX_CAPACITY} between threads, got {capacity}"
                    ),
                ));
            }
            let class = classes[element];
            let cut = Cut {
                element,
                class,
                capacity,
                senders,
                pushers,
            };
            ring_bytes = cut.bytes().saturating_add(ring_bytes);
            if let Err(message) = assembled.has_memory(ring_bytes) {
                let name = &names[element];
                errors.push((
                    element,
                    format!("the places of {name} :: {class} {message}"),
                ));
                break;
            }
            cuts.push(cut);
        }
        let between: Vec<usize> = cuts.iter().map(|cut| cut.element).collect();
        for element in circles(assembled, &connections, &between) {
            let message = "is in a circle of queues that Unqueue2 empties on several threads, which may wait for each other \
                           without end; use Unqueue in place of one of them";
            errors.push((element, message.to_string()));
        }
        if errors.is_empty() {
            return Ok(Self {
                threads,
                homes,
                cuts,
            });
        }
        errors.sort();
        let error = |(element, message)| assembled.error(element, message);
        Err(errors.into_iter().map(error).collect())
    }

    /// Bytes of the rings of all queues between threads.
    pub fn ring_bytes(&self) -> usize {
        let all = self.cuts.iter().map(Cut::bytes);
        all.fold(0, usize::saturating_add)
    }

    /// The threads that have elements, 0 always.
    pub fn used(&self) -> Vec<usize> {
        let mut used = self.homes.clone();
        used.push(0);
        used.sort_unstable();
        used.dedup();
        used
    }
}

/// The queues between threads that make room only once they have some: what empties each queue of such a circle rests
/// while the next one is full. Elements that move packets also to a full queue end a circle.
fn circles(assembled: &Assembled, connections: &[Link], between: &[usize]) -> Vec<usize> {
    let elements = assembled.elements();
    let mut next = vec![Vec::new(); elements.len()];
    for c in connections.iter().filter(|c| assembled.is_pulled(c)) {
        next[c.from.0].push(c.to.0);
    }
    let heeding = (0..elements.len()).filter(|e| elements[*e].class.name == HEEDING);
    for element in heeding {
        let mut full = assembled.room_behind(element);
        full.retain(|queue| !NEVER_FULL.contains(&elements[*queue].class.name));
        next[element] = full;
    }
    let comes_back = |queue: &usize| {
        let (mut seen, mut waiting) = (vec![false; elements.len()], next[*queue].clone());
        while let Some(at) = waiting.pop() {
            if at == *queue {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                waiting.extend(&next[at]);
            }
        }
        false
    };
    between.iter().copied().filter(comes_back).collect()
}

/// What the queue, which is built, says.
fn capacity(assembled: &mut Assembled, name: &str) -> usize {
    use click_core::threads::Answer;
    let read = Call::Read(format!("{name}.capacity"), String::new(), 1);
    match assembled.answer(read) {
        Ok(Answer::Text(text)) => text.trim().parse().unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// Joins elements that find each other by names in arguments, or by tables of the router.
fn join_named(elements: &[Place<'_>], is_queue: &[bool], islands: &mut Islands) {
    let directory = Directory::new(elements.iter().map(|e| e.name));
    for (index, e) in elements.iter().enumerate() {
        for (named, _) in directory.named_by(e.name, e.class.name, e.config) {
            if !is_queue[named] {
                islands.join(index, named);
            }
        }
    }
    for classes in TOGETHER {
        let mut all = (0..elements.len()).filter(|i| classes.contains(&elements[*i].class.name));
        if let Some(first) = all.next() {
            all.for_each(|other| islands.join(first, other));
        }
    }
}

/// Gives each island of `tasks` that has no thread yet to the one with the fewest islands.
fn spread(
    tasks: &BTreeSet<usize>,
    threads: usize,
    islands: &mut Islands,
    of_island: &mut BTreeMap<usize, (usize, usize)>,
) {
    let mut loads = vec![0; threads];
    let busy: BTreeSet<usize> = tasks.iter().map(|task| islands.of(*task)).collect();
    for (_, thread) in busy.iter().filter_map(|island| of_island.get(island)) {
        loads[*thread] += 1;
    }
    for task in tasks {
        let island = islands.of(*task);
        let least = (0..threads).min_by_key(|thread| loads[*thread]);
        if let (Entry::Vacant(vacant), Some(least)) = (of_island.entry(island), least) {
            vacant.insert((*task, least));
            loads[least] += 1;
        }
    }
}

/// What StaticThreadScheds say: the last one of an element counts.
fn bindings(elements: &[Place<'_>], threads: usize) -> BTreeMap<usize, usize> {
    // by the name of an element or of a compound one: the line, and the thread if there is such a one
    let mut lines: HashMap<String, (usize, Option<usize>)> = HashMap::new();
    let mut lines_before = 0;
    for sched in elements
        .iter()
        .filter(|e| e.class.name == "StaticThreadSched")
    {
        let around = sched.name.rsplit_once('/').map(|(outer, _)| outer);
        for line in text::split_args(sched.config) {
            let words = text::split_words(&line);
            let [name, thread] = words.as_slice() else {
                continue;
            };
            let full = around.map_or(name.clone(), |outer| format!("{outer}/{name}"));
            let thread = thread.parse().ok().filter(|thread| *thread < threads);
            lines.insert(full, (lines_before, thread));
            lines_before += 1;
        }
    }
    let binding = |(index, e): (usize, &Place<'_>)| {
        let (_, thread) = around(e.name).filter_map(|name| lines.get(name)).max()?;
        Some((index, (*thread)?))
    };
    elements.iter().enumerate().filter_map(binding).collect()
}

/// The name of an element, and those of the compound ones around it.
fn around(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| Some(name.rsplit_once('/')?.0))
}

/// One thread runs the elements of all, which have the plan's numbers of threads nevertheless.
struct Alone {
    threads: usize,
    homes: Vec<usize>,
}

/// All elements of a plan on one thread.
pub fn alone(plan: Plan) -> Rc<dyn Threads> {
    Rc::new(Alone {
        threads: plan.threads,
        homes: plan.homes,
    })
}

impl Threads for Alone {
    fn count(&self) -> usize {
        self.threads
    }

    fn home(&self, element: usize) -> usize {
        self.homes.get(element).copied().unwrap_or(0)
    }

    fn own(&self) -> Option<usize> {
        None
    }

    fn call(&self, _: usize, call: Call, serve: &mut dyn FnMut(Call) -> Answered) -> Answered {
        serve(call)
    }
}

/// The handler that a call is about.
pub fn name_of(call: &Call) -> &str {
    match call {
        Call::Read(name, ..) | Call::Info(name) => name,
        Call::Write(writes) | Call::Prepare(_, writes) => {
            writes.first().map_or("", |(name, _)| name)
        }
        Call::Settle(..) => "",
    }
}

/// A call that another thread cannot make.
pub fn refusal(call: &Call, why: String) -> HandlerError {
    HandlerError::rejected(why).named(name_of(call))
}
