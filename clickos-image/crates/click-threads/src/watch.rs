// SPDX-License-Identifier: Apache-2.0
//! What the loop of a thread knows of the ends of queues there: what they wait for, and when it is there.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use click_core::threads::{InTransit, Underway};
use vale_handoff::{Receiver, Sender};

use crate::gauge::Gauge;

/// How often the thread's loop looks at an inlet that waits for room until any room is enough. Before, half of the
/// queue has to be empty, so that the two sides do not meet for each burst.
const LOOKS: u32 = 64;

/// A place for a packet in a ring.
pub type Slot = Option<InTransit>;

/// Tells the thread's loop that an end waits for the other side.
pub struct Watch {
    /// The end's element.
    pub element: usize,
    /// True while it waits.
    pub waits: Rc<Cell<bool>>,
    /// What it waits for.
    pub far: Far,
}

/// A ring to another thread, and what this one sent into it.
pub struct Out {
    pub sender: Sender<Slot>,
    pub underway: Underway,
}

impl Out {
    /// A ring into which nothing was sent.
    pub fn new(sender: Sender<Slot>) -> Self {
        Self {
            sender,
            underway: Underway::default(),
        }
    }

    /// Packets that the other thread has taken do not count here any more; true if there are some.
    pub fn settle(&mut self) -> bool {
        self.underway.settle(self.sender.unreturned())
    }

    /// How many of `n` packets the thread may push, by what others wait for.
    pub fn fair(&mut self, gauge: &Gauge, n: usize, waits: bool) -> usize {
        gauge.fair(n, waits, || self.sender.unreturned())
    }
}

/// What an end waits for.
pub enum Far {
    /// Room in the queue; and how often the loop looked.
    Room(Arc<Gauge>, Cell<u32>, Rc<RefCell<Out>>),
    /// Packets in rings; and whether this thread leaves room to those that wait, until none does.
    Packets(Rc<RefCell<Vec<Receiver<Slot>>>>, Arc<Gauge>, Rc<Cell<bool>>),
}

impl Watch {
    /// True if what it waits for is there, and the element has to run; `takes` if the thread may have more packets.
    pub fn is_due(&self, takes: bool) -> bool {
        match &self.far {
            Far::Room(..) if !self.waits.get() => false,
            Far::Room(gauge, looks, out) => {
                let has_room = match looks.get() >= LOOKS {
                    true => gauge.has_room(),
                    false => gauge.is_half_empty(),
                };
                let is_due = has_room && out.borrow_mut().fair(gauge, 1, true) > 0;
                looks.set(if is_due {
                    0
                } else {
                    looks.get().saturating_add(1)
                });
                is_due
            }
            Far::Packets(_, gauge, leaves_room) => {
                (takes && self.has_packets()) || (leaves_room.get() && !gauge.is_awaited())
            }
        }
    }

    /// True if it waits for packets, and some have come.
    fn has_packets(&self) -> bool {
        match &self.far {
            Far::Packets(receivers, ..) if self.waits.get() => {
                receivers.borrow_mut().iter_mut().any(|r| r.waiting() > 0)
            }
            _ => false,
        }
    }

    /// True if it will be due without another thread, so that this one must not sleep.
    pub fn keeps_awake(&self, takes: bool) -> bool {
        match &self.far {
            // room that others wait for does not count: this thread would poll until they take it
            Far::Room(gauge, _, out) => {
                self.waits.get() && gauge.has_room() && out.borrow_mut().fair(gauge, 1, true) > 0
            }
            Far::Packets(..) => self.is_due(takes),
        }
    }

    /// Looks which packets the other side has taken; true if it has taken some.
    pub fn settle(&self) -> bool {
        matches!(&self.far, Far::Room(_, _, out) if out.borrow_mut().settle())
    }

    /// True if packets are on their way to the other side.
    pub fn is_underway(&self) -> bool {
        matches!(&self.far, Far::Room(_, _, out) if !out.borrow().underway.is_empty())
    }

    /// True if it waits for what no thread tells: room, of which another one may make less, or that this thread takes the
    /// packets that have come.
    pub fn is_full(&self, takes: bool) -> bool {
        match self.far {
            Far::Room(..) => self.waits.get(),
            Far::Packets(..) => !takes && self.has_packets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that nothing empties has room that no thread may take if all wait, each with its share in the queue.
    #[test]
    fn a_thread_sleeps_while_the_room_is_for_others() {
        let gauge: Arc<Gauge> = Arc::new(Gauge::new("Queue", 100, 3));
        let (sender, _receiver) = vale_handoff::ring(gauge.slots);
        let out = Rc::new(RefCell::new(Out::new(sender)));
        let watch = Watch {
            element: 0,
            waits: Rc::new(Cell::new(true)),
            far: Far::Room(Arc::clone(&gauge), Cell::new(LOOKS), Rc::clone(&out)),
        };
        gauge.begin_wait();
        assert!(watch.keeps_awake(true), "the queue is empty");
        let share = 33;
        assert_eq!(gauge.reserve(share, &mut 0), share);
        (0..share).for_each(|_| assert!(out.borrow_mut().sender.push(|_| {})));
        assert!(watch.keeps_awake(true), "no other thread waits");
        gauge.begin_wait();
        assert!(gauge.has_room() && !watch.is_due(true));
        assert!(
            !watch.keeps_awake(true),
            "it would poll until another pushes"
        );
        gauge.end_wait();
        assert!(watch.keeps_awake(true) && watch.is_due(true));
    }

    /// A thread whose elements hold all packets that it may have would find nothing in the queue again and again.
    #[test]
    fn a_thread_sleeps_while_it_may_have_no_packet_of_another() {
        let gauge: Arc<Gauge> = Arc::new(Gauge::new("Queue", 100, 1));
        let (mut sender, receiver) = vale_handoff::ring::<Slot>(gauge.slots);
        let receivers = Rc::new(RefCell::new(vec![receiver]));
        let watch = Watch {
            element: 0,
            waits: Rc::new(Cell::new(true)),
            far: Far::Packets(receivers, gauge, Rc::default()),
        };
        assert!(!watch.is_due(true) && !watch.is_full(false));
        assert!(sender.push(|_| {}) && sender.publish());
        assert!(watch.is_due(true) && watch.keeps_awake(true) && !watch.is_full(true));
        assert!(!watch.is_due(false) && !watch.keeps_awake(false));
        assert!(watch.is_full(false), "no thread tells when it may");
    }
}
