// SPDX-License-Identifier: Apache-2.0
//! Elements whose signals tell if a pull or a push is worth a try.
//!
//! A task that found nothing sleeps only if every element that could give it packets has a signal.
//! Each of these elements wakes the task.
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::engine::element::Signal;
use crate::engine::{Edge, Engine, Watch};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Engine {
    #[inline]
    pub fn is_readable(&mut self, me: usize, port: usize) -> bool {
        match &self.slots[me].upstream[port] {
            Some(w) => w.always || w.signals.iter().any(|s| self.slots[*s].readable),
            None => self.begin_to_watch_upstream(me, port),
        }
    }

    #[cold]
    fn begin_to_watch_upstream(&mut self, me: usize, port: usize) -> bool {
        let watch = self.watch(me, port, Direction::Up);
        let signals = watch.signals.iter();
        signals.for_each(|s| self.slots[*s].readers.push(me));
        self.slots[me].upstream[port] = Some(watch);
        self.is_readable(me, port)
    }

    #[inline]
    pub fn is_writable(&mut self, me: usize, port: usize) -> bool {
        match &self.slots[me].downstream[port] {
            Some(w) => w.always || w.signals.iter().any(|s| self.slots[*s].writable),
            None => self.begin_to_watch_downstream(me, port),
        }
    }

    #[cold]
    fn begin_to_watch_downstream(&mut self, me: usize, port: usize) -> bool {
        let watch = self.watch(me, port, Direction::Down);
        let signals = watch.signals.iter();
        signals.for_each(|s| self.slots[*s].writers.push(me));
        self.slots[me].downstream[port] = Some(watch);
        self.is_writable(me, port)
    }

    /// The elements behind an output that report whether they have room; none if it has to be tried always.
    #[cfg(feature = "threads")]
    pub fn heeded_behind(&self, me: usize, port: usize) -> Vec<usize> {
        let watch = self.watch(me, port, Direction::Down);
        match watch.always {
            true => Vec::new(),
            false => watch.signals,
        }
    }

    fn edges(&self, element: usize, direction: Direction) -> &[Option<Edge>] {
        match direction {
            Direction::Up => &self.slots[element].inputs,
            Direction::Down => &self.slots[element].outputs,
        }
    }

    fn watch(&self, me: usize, port: usize, direction: Direction) -> Watch {
        let mut watch = Watch {
            always: false,
            signals: Vec::new(),
        };
        let mut seen = BTreeSet::from([me]);
        let mut pending: Vec<Edge> = self
            .edges(me, direction)
            .get(port)
            .copied()
            .flatten()
            .into_iter()
            .collect();
        while let Some(edge) = pending.pop() {
            if !seen.insert(edge.element) {
                continue;
            }
            let Some(element) = &self.slots[edge.element].element else {
                continue;
            };
            let next: Vec<Edge> = self
                .edges(edge.element, direction)
                .iter()
                .copied()
                .flatten()
                .collect();
            match element.signal() {
                Signal::Own => watch.signals.push(edge.element),
                Signal::PassThrough if !next.is_empty() => pending.extend(next),
                Signal::PassThrough | Signal::Always => watch.always = true,
            }
        }
        watch
    }
}
