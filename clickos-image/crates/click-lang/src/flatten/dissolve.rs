// SPDX-License-Identifier: Apache-2.0
//! Connections between elements, through however many tunnels.
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{Flattener, Node};
use crate::body::{End, Link};
use crate::flat::FlatConnection;
use crate::sort;

/// The links that leave tunnels, in the order of their ends.
struct Leaving(Vec<u32>);

impl Leaving {
    fn of(links: &[Link], nodes: &[Node]) -> Self {
        let is_tunnel = |l: &Link| nodes[l.from().0] == Node::Tunnel;
        let mut list: Vec<u32> = (0u32..)
            .zip(links)
            .filter(|(_, l)| is_tunnel(l))
            .map(|(i, _)| i)
            .collect();
        sort::by_key(&mut list, |i| links[*i as usize].from());
        Self(list)
    }

    fn from<'l>(&'l self, end: End, links: &'l [Link]) -> impl Iterator<Item = usize> + 'l {
        let first = self.0.partition_point(|i| links[*i as usize].from() < end);
        let rest = self.0[first..].iter().map(|i| *i as usize);
        rest.take_while(move |i| links[*i].from() == end)
    }
}

impl Flattener<'_, '_> {
    /// Connections between elements; tunnels are followed to their ends.
    pub(super) fn dissolve(&mut self) -> Vec<FlatConnection> {
        let links = core::mem::take(&mut self.links);
        let leaving = Leaving::of(&links, &self.nodes);
        let mut found = Vec::with_capacity(links.len().min(self.limits.connections));
        let mut steps = self.limits.connections.saturating_mul(16);
        for start in 0..links.len() {
            let ok = self.follow(start, &links, &leaving, &mut steps, &mut found);
            if !ok {
                break;
            }
        }
        sort::by_key(&mut found, |c| (c.from, c.to, c.place));
        found.dedup_by_key(|c| (c.from, c.to));
        found.shrink_to_fit();
        found
    }

    /// Adds the connections that begin with a link; false if there are too many.
    fn follow(
        &mut self,
        start: usize,
        links: &[Link],
        leaving: &Leaving,
        steps: &mut usize,
        found: &mut Vec<FlatConnection>,
    ) -> bool {
        let (first, limit) = (&links[start], self.limits.connections);
        let Node::Element(from) = self.nodes[first.from().0] else {
            return true;
        };
        let from = (from as usize, first.from().1);
        let mut pending = vec![(start, 0usize)];
        while let Some((index, passed)) = pending.pop() {
            let link = &links[index];
            *steps = steps.saturating_sub(1);
            if passed > links.len() {
                let message = "these compound ports are connected in a circle";
                self.give_up(link.place, message.to_string());
                return false;
            }
            if *steps == 0 || found.len() >= limit {
                self.give_up(link.place, format!("more than {limit} connections"));
                return false;
            }
            match self.nodes[link.to().0] {
                Node::Element(to) => found.push(FlatConnection {
                    from,
                    to: (to as usize, link.to().1),
                    place: first.place,
                }),
                Node::Unknown => {}
                Node::Tunnel => {
                    // Each counts when it is put here, so that the list stays as short as the steps.
                    for next in leaving.from(link.to(), links).take(*steps) {
                        *steps -= 1;
                        pending.push((next, passed + 1));
                    }
                }
            }
        }
        true
    }
}
