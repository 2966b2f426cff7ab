// SPDX-License-Identifier: Apache-2.0
//! Queues in front of a link, where no packet waits: a link that runs takes packets as they come.
use click_lang::Flat;

use super::ROUTER_LINK;

const QUEUE: &str = "Queue";
/// Between a Queue and its link: one input, one output, and they work pushed as well as pulled.
const AGNOSTIC: [&str; 4] = ["Counter", "CounterMP", "Null", "Print"];
/// They look for Queues around them.
const SEEKERS: [&str; 2] = ["RED", "AdaptiveRED"];

/// Makes a Null of each Queue without a name that only a link empties. No one reads its handlers. A Queue in a
/// circle stays, since packets would run in it without an end.
pub fn drop_idle(flat: &mut Flat) {
    if flat.elements.iter().any(|e| SEEKERS.contains(&&*e.class)) {
        return;
    }
    for queue in 0..flat.elements.len() {
        if is_unnamed_queue(flat, queue) && leads_to_link(flat, queue) {
            let config = make_null(flat, queue);
            if is_in_circle(flat, queue) {
                flat.elements[queue].class = QUEUE.into();
                flat.elements[queue].config = config;
            }
        }
    }
}

fn is_unnamed_queue(flat: &Flat, element: usize) -> bool {
    let element = &flat.elements[element];
    &*element.class == QUEUE && element.name.contains('@')
}

/// Returns the arguments of before.
fn make_null(flat: &mut Flat, element: usize) -> String {
    let element = &mut flat.elements[element];
    element.class = "Null".into();
    std::mem::take(&mut element.config)
}

fn leads_to_link(flat: &Flat, queue: usize) -> bool {
    let mut at = queue;
    for _ in 0..flat.elements.len() {
        let mut next = flat.connections.iter().filter(|c| c.from.0 == at);
        let (Some(only), None) = (next.next(), next.next()) else {
            return false;
        };
        at = only.to.0;
        let class = &*flat.elements[at].class;
        if class == ROUTER_LINK {
            return true;
        }
        if !AGNOSTIC.contains(&class) {
            return false;
        }
    }
    false
}

/// True if a packet can come back to an element without passing a Queue.
fn is_in_circle(flat: &Flat, start: usize) -> bool {
    let mut seen = vec![false; flat.elements.len()];
    let mut waiting = vec![start];
    while let Some(at) = waiting.pop() {
        for to in outputs(flat, at) {
            if to == start {
                return true;
            }
            if &*flat.elements[to].class != QUEUE && !std::mem::replace(&mut seen[to], true) {
                waiting.push(to);
            }
        }
    }
    false
}

/// The elements that get what an element sends.
fn outputs(flat: &Flat, element: usize) -> impl Iterator<Item = usize> + '_ {
    let own = flat.connections.iter().filter(move |c| c.from.0 == element);
    own.map(|c| c.to.0)
}
