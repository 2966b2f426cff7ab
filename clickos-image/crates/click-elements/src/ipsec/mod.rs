// SPDX-License-Identifier: Apache-2.0
//! Security associations: what IPsec elements know of each other. RadixIPsecLookup makes them and marks packets with
//! their numbers; the other elements find them by these marks, in the list that all elements of a router
//! share. [`route`] is a route with an association, [`tunnels`] the associations
//! of an element's routes, [`replay`] the window of sequence numbers, [`chained`] what ciphers do.
pub mod chained;
pub mod replay;
pub mod route;
pub mod tunnels;

use alloc::rc::Rc;
use core::cell::{RefCell, RefMut};

use aes::Aes128;
use des::Des;
use hmac::{Hmac, Mac};
use sha1::Sha1;

use crate::prelude::*;
use replay::Window;

/// Bytes of a key.
pub const KEY: usize = 16;
/// Bytes in front of an encrypted payload: SPI, sequence number, initialization vector.
pub const ESP_HEADER: usize = 16;
/// Bytes of a digest behind it.
pub const DIGEST: usize = 12;
/// Where the SPI is annotated, as in Click.
const SPI_ANNO: usize = 32;
/// Where the association's number is annotated, plus one.
const NUMBER_ANNO: usize = 40;

/// The arguments of an association.
#[derive(Clone, PartialEq, Eq)]
pub struct Terms {
    pub spi: u32,
    pub encrypt_key: [u8; KEY],
    pub auth_key: [u8; KEY],
    /// The first sequence number.
    pub replay: u32,
    /// Sequence numbers that may come late.
    pub window: u8,
}

/// A security association.
pub struct Association {
    pub terms: Terms,
    pub aes: Aes128,
    pub des: Des,
    pub hmac: Hmac<Sha1>,
    /// The next sequence number to send.
    pub next: u32,
    pub window: Window,
}

impl Association {
    fn new(terms: Terms) -> Self {
        use aes::cipher::KeyInit;
        let [k0, k1, k2, k3, k4, k5, k6, k7, ..] = terms.encrypt_key;
        Self {
            aes: Aes128::new(&terms.encrypt_key.into()),
            des: Des::new(&[k0, k1, k2, k3, k4, k5, k6, k7].into()),
            hmac: <Hmac<Sha1> as Mac>::new_from_slice(&terms.auth_key)
                .expect("keys may have any length"),
            next: terms.replay,
            window: Window::new(terms.replay, terms.window),
            terms,
        }
    }

    /// Continues where another one of the same terms was.
    pub fn go_on(&mut self, before: &Self) {
        if self.terms == before.terms {
            (self.next, self.window) = (before.next, before.window);
        }
    }

    /// The sequence number of the packet that is sent now; behind the last comes the first again.
    pub fn take_number(&mut self) -> u32 {
        let number = self.next;
        self.next = match number {
            0 => self.terms.replay,
            _ => number.wrapping_add(1),
        };
        number
    }
}

/// The associations of a router, by number; the places of removed ones are used again.
#[derive(Default)]
pub struct Associations {
    places: Vec<Option<Association>>,
}

impl Associations {
    /// Adds an association; its number.
    pub fn add(&mut self, terms: Terms) -> u32 {
        let made = Some(Association::new(terms));
        let place = match self.places.iter().position(Option::is_none) {
            Some(free) => {
                self.places[free] = made;
                free
            }
            None => {
                self.places.push(made);
                self.places.len() - 1
            }
        };
        u32::try_from(place).expect("tables are limited")
    }

    /// Removes one.
    pub fn remove(&mut self, number: u32) {
        if let Some(place) = self.places.get_mut(number as usize) {
            *place = None;
        }
    }

    /// The association with a number.
    pub fn get(&mut self, number: u32) -> Option<&mut Association> {
        self.places.get_mut(number as usize)?.as_mut()
    }
}

/// The associations, as elements share them.
pub type Shared = Rc<RefCell<Associations>>;

/// Marks a packet as one of an association.
pub fn mark(packet: &mut Packet, spi: u32, number: u32) {
    packet.anno_mut().set_u32(SPI_ANNO, spi);
    packet.anno_mut().set_u32(NUMBER_ANNO, number + 1);
}

/// Messages of one kind that an element prints.
const COMPLAINTS: u32 = 5;

/// The common part of elements that work on marked packets.
#[derive(Default)]
pub struct User {
    shared: Shared,
    complaints: u32,
}

impl User {
    /// To be called by `initialize`.
    pub fn connect(&mut self, ctx: &mut Context<'_>) {
        self.shared = ctx.shared();
    }

    /// The association a packet is marked with; without one there is a message.
    pub fn association(
        &mut self,
        ctx: &mut Context<'_>,
        packet: &Packet,
    ) -> Option<RefMut<'_, Association>> {
        let (spi, number) = (packet.anno().u32(SPI_ANNO), packet.anno().u32(NUMBER_ANNO));
        let found = RefMut::filter_map(self.shared.borrow_mut(), |list| {
            let found = list.get(number.checked_sub(1)?)?;
            (found.terms.spi == spi).then_some(found)
        });
        if found.is_err() && self.complaints < COMPLAINTS {
            self.complaints += 1;
            let line = format!("{}: packet without a security association", ctx.name());
            ctx.print(&line);
        }
        found.ok()
    }

    /// Prints a message, unless there were enough.
    pub fn complain(&mut self, ctx: &mut Context<'_>, message: &str) {
        if self.complaints < COMPLAINTS {
            self.complaints += 1;
            let line = format!("{}: {message}", ctx.name());
            ctx.print(&line);
        }
    }
}

/// The part of a packet that is encrypted by blocks of `block` bytes, and the vector in front of it. As in Click 8 bytes
/// of the digest are part of it where the blocks need them. `None` if the lengths do not fit.
pub fn payload(data: &mut [u8], block: usize) -> Option<(&mut [u8; 8], &mut [u8])> {
    let (header, rest) = data.split_first_chunk_mut::<ESP_HEADER>()?;
    let length = rest.len().checked_sub(DIGEST)?.next_multiple_of(block);
    let vector = header.last_chunk_mut::<8>()?;
    let whole = rest.get_mut(..length)?;
    Some((vector, whole))
}

/// XORs `with` into the beginning of `block`.
pub fn xor(block: &mut [u8], with: &[u8; 8]) {
    block.iter_mut().zip(with).for_each(|(b, w)| *b ^= w);
}

/// The first bytes of a block.
pub fn first(block: &[u8]) -> [u8; 8] {
    block
        .first_chunk()
        .copied()
        .expect("a block has 8 bytes at least")
}
