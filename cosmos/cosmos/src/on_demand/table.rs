// SPDX-License-Identifier: Apache-2.0
//! The addresses that have a guest or get one, with the frames that wait for it.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use cosmos_proto::Uuid;

/// Frames that wait for one guest; later ones are dropped.
const HELD: usize = 8;
/// After a guest could not be made, its address gets none for this time.
const PENALTY: Duration = Duration::from_secs(1);

/// The treatment of a frame.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// A guest is to be made; the frame waits.
    Make,
    /// Nothing: the frame waits, or was dropped.
    Nothing,
    /// The guest runs: the frame is to be sent to it.
    Send,
    /// As many guests as may be run already.
    Full,
}

#[derive(Debug)]
enum Place {
    Coming(Vec<Vec<u8>>),
    Up(Guest),
    /// The guest is being destroyed.
    Going(Uuid, Vec<Vec<u8>>),
    Refused(Instant),
}

#[derive(Debug)]
struct Guest {
    uuid: Uuid,
    /// Packets that the guest had sent when it was last seen to send one.
    sent: u64,
    since: Instant,
}

/// At most `most` guests at a time.
pub struct Table {
    places: HashMap<Ipv4Addr, Place>,
    most: usize,
    idle: Duration,
}

impl Table {
    pub fn new(most: usize, idle: Duration) -> Self {
        Self {
            places: HashMap::new(),
            most,
            idle,
        }
    }

    /// Notes a guest that an earlier run of this program made.
    pub fn adopt(&mut self, address: Ipv4Addr, uuid: Uuid, now: Instant) {
        self.places.insert(address, Place::up(uuid, now));
    }

    /// Decides on a frame for an address.
    pub fn frame(&mut self, address: Ipv4Addr, frame: &[u8], now: Instant) -> Step {
        let count = self.places.len();
        match self.places.get_mut(&address) {
            Some(Place::Coming(held) | Place::Going(_, held)) => {
                if held.len() < HELD {
                    held.push(frame.to_vec());
                }
                Step::Nothing
            }
            Some(Place::Up(_)) => Step::Send,
            Some(Place::Refused(at)) if now.duration_since(*at) < PENALTY => Step::Nothing,
            None if count >= self.most => Step::Full,
            _ => {
                let coming = Place::Coming(vec![frame.to_vec()]);
                self.places.insert(address, coming);
                Step::Make
            }
        }
    }

    /// The guest runs; returns the frames that waited for it.
    pub fn made(&mut self, address: Ipv4Addr, uuid: Uuid, now: Instant) -> Vec<Vec<u8>> {
        match self.places.insert(address, Place::up(uuid, now)) {
            Some(Place::Coming(held)) => held,
            _ => Vec::new(),
        }
    }

    /// The guest could not be made, or could not be destroyed: then it is still there.
    pub fn refused(&mut self, address: Ipv4Addr, now: Instant) {
        let place = match self.places.remove(&address) {
            Some(Place::Going(uuid, _)) => Place::up(uuid, now),
            _ => Place::Refused(now),
        };
        self.places.insert(address, place);
    }

    /// The guest is gone; returns true if frames wait for a new one.
    pub fn gone(&mut self, address: Ipv4Addr) -> bool {
        match self.places.remove(&address) {
            Some(Place::Going(_, held)) if !held.is_empty() => {
                self.places.insert(address, Place::Coming(held));
                true
            }
            _ => false,
        }
    }

    /// Forgets refusals that are over. Returns the guests to destroy: those that have sent nothing
    /// for the idle time, and those without a port.
    ///
    /// `sent`: how many packets the port for an address has sent; none if there is no port.
    pub fn idle(
        &mut self,
        now: Instant,
        sent: impl Fn(Ipv4Addr) -> Option<u64>,
    ) -> Vec<(Ipv4Addr, Uuid)> {
        let mut idle = Vec::new();
        self.places.retain(|address, place| match place {
            Place::Refused(at) => now.duration_since(*at) < PENALTY,
            Place::Up(guest) => {
                if guest.is_idle(sent(*address), now, self.idle) {
                    let uuid = guest.uuid.clone();
                    idle.push((*address, uuid.clone()));
                    *place = Place::Going(uuid, Vec::new());
                }
                true
            }
            Place::Coming(_) | Place::Going(..) => true,
        });
        idle
    }

    /// The guests that run.
    pub fn running(&self) -> impl Iterator<Item = (Ipv4Addr, Uuid)> {
        self.places
            .iter()
            .filter_map(|(address, place)| match place {
                Place::Up(guest) => Some((*address, guest.uuid.clone())),
                _ => None,
            })
    }
}

impl Place {
    fn up(uuid: Uuid, since: Instant) -> Self {
        Self::Up(Guest {
            uuid,
            sent: 0,
            since,
        })
    }
}

impl Guest {
    fn is_idle(&mut self, sent: Option<u64>, now: Instant, most: Duration) -> bool {
        match sent {
            None => true,
            Some(sent) if sent != self.sent => {
                (self.sent, self.since) = (sent, now);
                false
            }
            Some(_) => now.duration_since(self.since) >= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn uuid() -> Uuid {
        Uuid::of_random(7)
    }

    fn table(most: usize) -> (Table, Instant) {
        (Table::new(most, Duration::from_secs(60)), Instant::now())
    }

    #[test]
    fn frames_wait_for_their_guest_and_few_of_them() {
        let (mut table, now) = table(9);
        assert_eq!(table.frame(A, b"0", now), Step::Make);
        for n in 1..=HELD {
            assert_eq!(table.frame(A, n.to_string().as_bytes(), now), Step::Nothing);
        }
        let held = table.made(A, uuid(), now);
        assert_eq!((held.len(), &held[0][..]), (HELD, &b"0"[..]));
        assert_eq!(table.frame(A, b"x", now), Step::Send);
        assert_eq!(table.running().count(), 1);
    }

    #[test]
    fn no_more_guests_than_allowed() {
        let (mut table, now) = table(1);
        table.frame(A, b"", now);
        assert_eq!(table.frame(B, b"", now), Step::Full);
        table.refused(A, now);
        assert_eq!(table.frame(A, b"", now), Step::Nothing);
        let later = now + PENALTY;
        assert!(table.idle(later, |_| None).is_empty());
        assert_eq!(table.frame(B, b"", later), Step::Make);
    }

    #[test]
    fn a_guest_that_sends_nothing_goes_and_comes_again() {
        let (mut table, now) = table(9);
        table.frame(A, b"", now);
        table.made(A, uuid(), now);
        let later = now + Duration::from_secs(59);
        assert!(table.idle(later, |_| Some(5)).is_empty());
        let much_later = later + Duration::from_secs(60);
        assert_eq!(table.idle(much_later, |_| Some(5)), [(A, uuid())]);
        assert_eq!(table.frame(A, b"again", much_later), Step::Nothing);
        assert!(table.gone(A));
        assert_eq!(table.made(A, uuid(), much_later), [b"again"]);
    }

    #[test]
    fn a_guest_that_could_not_be_destroyed_counts_and_is_tried_again() {
        let (mut table, now) = table(1);
        table.adopt(A, uuid(), now);
        assert_eq!(table.idle(now, |_| None), [(A, uuid())]);
        table.refused(A, now);
        assert_eq!(table.running().collect::<Vec<_>>(), [(A, uuid())]);
        let later = now + PENALTY;
        assert_eq!(table.idle(later, |_| None), [(A, uuid())]);
        table.refused(A, later);
        assert_eq!(table.frame(B, b"", later), Step::Full);
        assert_eq!(table.frame(A, b"", later), Step::Send);
    }

    #[test]
    fn a_guest_without_a_port_is_forgotten() {
        let (mut table, now) = table(9);
        table.adopt(A, uuid(), now);
        assert_eq!(table.idle(now, |_| None), [(A, uuid())]);
        assert!(!table.gone(A));
        assert_eq!(table.frame(A, b"", now), Step::Make);
    }
}
