// SPDX-License-Identifier: Apache-2.0
//! The associations that the routes of an element name.
use super::{Associations, Terms};
use crate::prelude::*;

/// An association by its terms.
#[derive(Clone)]
struct Tunnel {
    terms: Terms,
    /// Its number in the shared list, once it is there.
    number: Option<u32>,
}

/// All of them, sorted by SPI.
#[derive(Clone, Default)]
pub struct Tunnels(Vec<Tunnel>);

impl Tunnels {
    fn find(&self, spi: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&spi, |tunnel| tunnel.terms.spi)
    }

    /// The number of an association.
    pub fn number(&self, spi: u32) -> Option<u32> {
        self.0[self.find(spi).ok()?].number
    }

    /// Notes terms, if some are given; other ones for the same SPI must be there to replace them.
    ///
    /// # Errors
    /// The SPI has other terms.
    pub fn agree(&mut self, given: Option<Terms>, replace: bool) -> Result<(), String> {
        let Some(terms) = given else {
            return Ok(());
        };
        match self.find(terms.spi) {
            Ok(at) if replace || self.0[at].terms == terms => self.0[at].terms = terms,
            Ok(_) => return Err(format!("SPI {} has other terms", terms.spi)),
            Err(at) => self.0.insert(
                at,
                Tunnel {
                    terms,
                    number: None,
                },
            ),
        }
        Ok(())
    }

    /// Forgets all but these SPIs, which are sorted.
    pub fn keep(&mut self, used: &[u32], shared: &mut Associations) {
        self.0.retain(|tunnel| {
            let keep = used.binary_search(&tunnel.terms.spi).is_ok();
            if let (false, Some(number)) = (keep, tunnel.number) {
                shared.remove(number);
            }
            keep
        });
    }

    /// Makes the associations those of the terms; one whose terms are as before continues counting.
    pub fn associate(&mut self, shared: &mut Associations) {
        for Tunnel { terms, number } in &mut self.0 {
            if let Some(before) = *number {
                if shared.get(before).is_some_and(|a| a.terms == *terms) {
                    continue;
                }
                shared.remove(before);
            }
            *number = Some(shared.add(terms.clone()));
        }
    }

    /// Lets each go on where one of the same terms was in the list of a router before.
    pub fn go_on(&self, shared: &mut Associations, old: &Self, before: &mut Associations) {
        for Tunnel { terms, number } in &self.0 {
            let was = old.number(terms.spi).and_then(|n| before.get(n));
            let now = number.and_then(|n| shared.get(n));
            if let (Some(now), Some(was)) = (now, was) {
                now.go_on(was);
            }
        }
    }
}
