// SPDX-License-Identifier: Apache-2.0
//! Stride scheduling over ports (Waldspurger and Weihl 1995): who has more tickets comes more often.
use click_core::sort;

use crate::prelude::*;

/// The stride of one ticket.
const STRIDE_ONE: u64 = 1 << 16;
/// More tickets than these count as these.
const MAX_TICKETS: u64 = 1 << 15;

struct Client {
    tickets: u64,
    /// What a turn adds to the port's pass.
    stride: u64,
}

impl Client {
    fn new(tickets: u64) -> Self {
        let tickets = tickets.min(MAX_TICKETS);
        Self {
            tickets,
            stride: STRIDE_ONE / tickets.max(1),
        }
    }
}

/// A port with tickets, and its pass: the port with the lowest one is next.
#[derive(Clone, Copy)]
struct Turn {
    pass: u64,
    port: usize,
}

/// The ports that take turns.
pub struct Stride {
    clients: Vec<Client>,
    /// Ports with tickets; the one whose turn it is comes first.
    order: Vec<Turn>,
    /// Memory for ports that had their turn and go back into the order.
    had_turn: Vec<Turn>,
}

/// The handler `tickets` of a port.
pub const fn tickets<T: Part<Stride>>() -> Handler<T> {
    read_write(
        "tickets",
        |me, view| text(me.part().clients[view.port].tickets),
        |me, view, value| {
            let port = view.port;
            on_value(me, view, value, move |me, tickets, _| {
                me.part_mut().set_tickets(port, tickets);
            })
        },
    )
}

impl Stride {
    /// One argument per port: its tickets.
    pub fn from_args(args: &mut Args<'_>, ports: usize) -> Option<Self> {
        let given = args.rest().to_vec();
        if given.len() != ports {
            args.error(
                "TICKETS",
                format!("{ports} needed, one per port, got {}", given.len()),
            );
            return None;
        }
        let tickets: Vec<Option<u64>> = given.iter().map(|t| args.parse("TICKETS", t)).collect();
        let tickets: Option<Vec<u64>> = tickets.into_iter().collect();
        Some(Self::new(&tickets?))
    }

    fn new(tickets: &[u64]) -> Self {
        let mut stride = Self {
            clients: tickets.iter().map(|n| Client::new(*n)).collect(),
            order: Vec::with_capacity(tickets.len()),
            had_turn: Vec::with_capacity(tickets.len()),
        };
        // the first of equal ports comes first
        for port in (0..tickets.len()).rev().filter(|p| tickets[*p] > 0) {
            let pass = stride.clients[port].stride;
            stride.insert(Turn { pass, port });
        }
        stride
    }

    fn insert(&mut self, turn: Turn) {
        let later = |other: &Turn| turn.pass <= other.pass;
        let place = self.order.iter().position(later);
        self.order.insert(place.unwrap_or(self.order.len()), turn);
    }

    /// Offers the turn to port after port until `attempt` gives something.
    #[inline]
    pub fn turn<T>(&mut self, mut attempt: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let port = self.order.first()?.port;
        match attempt(port) {
            None => self.further_turn(attempt),
            result => {
                self.requeue_first();
                result
            }
        }
    }

    /// Counts the turn of the first port and moves it after those with lower passes.
    fn requeue_first(&mut self) {
        let Some((first, others)) = self.order.split_first_mut() else {
            return;
        };
        let pass = first.pass + self.clients[first.port].stride;
        let moved = Turn { pass, ..*first };
        let mut hole = first;
        for other in others {
            if pass <= other.pass {
                break;
            }
            *hole = *other;
            hole = other;
        }
        *hole = moved;
    }

    /// The same behind a first port that gave nothing.
    fn further_turn<T>(&mut self, mut attempt: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let mut result = None;
        let mut tried = 1;
        while tried < self.order.len() && result.is_none() {
            result = attempt(self.order[tried].port);
            tried += 1;
        }
        self.requeue(tried);
        result
    }

    /// Counts the turns of the first ports and puts them back into the order, before others with the same pass.
    fn requeue(&mut self, tried: usize) {
        let Self {
            clients,
            order,
            had_turn,
        } = self;
        had_turn.clear();
        for Turn { pass, port } in order[..tried].iter().copied() {
            let pass = pass + clients[port].stride;
            let place = had_turn.iter().position(|other| pass <= other.pass);
            had_turn.insert(place.unwrap_or(had_turn.len()), Turn { pass, port });
        }
        // the others move up into the free places in front of them, so none is written before it is read
        let (mut to, mut from) = (0, tried);
        for turn in had_turn.iter() {
            while order.get(from).is_some_and(|other| other.pass < turn.pass) {
                order[to] = order[from];
                (to, from) = (to + 1, from + 1);
            }
            order[to] = *turn;
            to += 1;
        }
    }

    /// Continues where `old`, for the same ports, is.
    pub fn take_passes(&mut self, old: &Self) {
        let mut turns = core::mem::take(&mut self.order);
        sort::by_key(&mut turns, |turn| turn.port);
        for mut turn in turns.into_iter().rev() {
            let before = old.order.iter().find(|other| other.port == turn.port);
            turn.pass = before.map_or(turn.pass, |before| before.pass);
            self.insert(turn);
        }
    }

    /// Sets the tickets of a port; one that had none comes in behind the next.
    fn set_tickets(&mut self, port: usize, tickets: u64) {
        let client = Client::new(tickets);
        let before = core::mem::replace(&mut self.clients[port], client).tickets;
        if tickets == 0 {
            self.order.retain(|turn| turn.port != port);
        } else if before == 0 {
            let next = self.order.first().map(|turn| turn.pass);
            let pass = next.map_or(0, |pass| pass + self.clients[port].stride);
            self.insert(Turn { pass, port });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn turns_are_in_proportion_to_tickets() {
        let mut stride = Stride::new(&[1, 2, 5, 0]);
        let mut turns = [0; 4];
        for _ in 0..800 {
            turns[stride.turn(Some).expect("somebody has tickets")] += 1;
        }
        assert_eq!(turns, [100, 200, 500, 0]);
    }

    /// Passes of ports with tickets in their order: who had a turn goes before those of the same pass.
    fn reference_turn(order: &mut Vec<(u64, usize)>, tickets: &[u64], has: u32) -> Option<usize> {
        let found = order.iter().position(|(_, port)| has & 1 << port != 0);
        let tried: Vec<_> = order
            .drain(..found.map_or(order.len(), |at| at + 1))
            .collect();
        for (pass, port) in &tried {
            let pass = pass + STRIDE_ONE / tickets[*port];
            let at = order.iter().position(|(other, _)| pass <= *other);
            order.insert(at.unwrap_or(order.len()), (pass, *port));
        }
        found.map(|at| tried[at].1)
    }

    proptest! {
        #[test]
        fn turns_are_those_of_a_sorted_list(
            tickets in prop::collection::vec(0u64..9, 1..9),
            has in prop::collection::vec(0u32..512, 1..200),
        ) {
            let mut stride = Stride::new(&tickets);
            let mut order: Vec<_> = stride.order.iter().map(|t| (t.pass, t.port)).collect();
            for has in has {
                let wanted = reference_turn(&mut order, &tickets, has);
                let got = stride.turn(|port| (has & 1 << port != 0).then_some(port));
                prop_assert_eq!(got, wanted);
            }
        }
    }
}
