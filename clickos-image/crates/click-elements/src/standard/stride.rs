// SPDX-License-Identifier: Apache-2.0
//! Stride scheduling over ports (Waldspurger and Weihl 1995): who has more tickets comes more often.
use crate::prelude::*;

/// The stride of one ticket.
const STRIDE_ONE: u64 = 1 << 16;
/// More tickets than these count as these.
const MAX_TICKETS: u64 = 1 << 15;

struct Client {
    tickets: u64,
    pass: u64,
}

impl Client {
    fn stride(&self) -> u64 {
        STRIDE_ONE / self.tickets.max(1)
    }
}

/// The ports that take turns.
pub struct Stride {
    clients: Vec<Client>,
    /// Ports with tickets; the one whose turn it is comes first.
    order: Vec<usize>,
    /// Memory for ports that had their turn and go back into the order.
    had_turn: Vec<usize>,
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
        let client = |tickets: &u64| {
            let mut client = Client {
                tickets: (*tickets).min(MAX_TICKETS),
                pass: 0,
            };
            client.pass = client.stride();
            client
        };
        let mut stride = Self {
            clients: tickets.iter().map(client).collect(),
            order: Vec::with_capacity(tickets.len()),
            had_turn: Vec::with_capacity(tickets.len()),
        };
        // the first of equal ports comes first
        for port in (0..tickets.len()).rev().filter(|p| tickets[*p] > 0) {
            stride.insert(port);
        }
        stride
    }

    fn insert(&mut self, port: usize) {
        let pass = self.clients[port].pass;
        let later = |other: &usize| pass <= self.clients[*other].pass;
        let place = self.order.iter().position(later);
        self.order.insert(place.unwrap_or(self.order.len()), port);
    }

    /// Offers the turn to port after port until `attempt` gives something.
    pub fn turn<T>(&mut self, mut attempt: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let mut result = None;
        let mut tried = 0;
        while tried < self.order.len() && result.is_none() {
            let port = self.order[tried];
            result = attempt(port);
            self.clients[port].pass += self.clients[port].stride();
            tried += 1;
        }
        self.had_turn.clear();
        self.had_turn.extend(self.order.drain(..tried));
        for index in 0..tried {
            self.insert(self.had_turn[index]);
        }
        result
    }

    /// Continues where `old`, for the same ports, is.
    pub fn take_passes(&mut self, old: &Self) {
        for (client, old) in self.clients.iter_mut().zip(&old.clients) {
            client.pass = old.pass;
        }
        self.order.clear();
        for port in (0..self.clients.len()).rev() {
            if self.clients[port].tickets > 0 {
                self.insert(port);
            }
        }
    }

    /// Sets the tickets of a port; one that had none comes in behind the next.
    fn set_tickets(&mut self, port: usize, tickets: u64) {
        let before = core::mem::replace(&mut self.clients[port].tickets, tickets.min(MAX_TICKETS));
        if tickets == 0 {
            self.order.retain(|p| *p != port);
        } else if before == 0 {
            let next = self.order.first().map(|p| self.clients[*p].pass);
            self.clients[port].pass = next.map_or(0, |pass| pass + self.clients[port].stride());
            self.insert(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_in_proportion_to_tickets() {
        let mut stride = Stride::new(&[1, 2, 5, 0]);
        let mut turns = [0; 4];
        for _ in 0..800 {
            turns[stride.turn(Some).expect("somebody has tickets")] += 1;
        }
        assert_eq!(turns, [100, 200, 500, 0]);
    }
}
