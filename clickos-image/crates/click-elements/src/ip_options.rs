// SPDX-License-Identifier: Apache-2.0
//! What a router does to the options of IP headers: record route and timestamps (RFC 791, section 3.1).
pub mod source_route;

use click_wire::ipv4::{HEADER, View as Header};

use crate::prelude::*;

const END: u8 = 0;
const NOTHING: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
/// The longest header.
const LONGEST: usize = 60;
const MS_A_DAY: u64 = 86_400_000;

/// Where a router writes itself into headers.
pub struct Writer<'a> {
    /// The address it writes.
    pub address: Ipv4Addr,
    /// Its other addresses.
    pub others: &'a [Ipv4Addr],
    pub now_ns: u64,
}

/// The length in the marked header; 0 without one.
#[inline]
fn length(packet: &Packet) -> usize {
    let first = packet.network().and_then(|bytes| bytes.first());
    first.map_or(0, |first| usize::from(first & 15) * 4)
}

/// True if the marked header has options.
#[inline]
pub fn are_in(packet: &Packet) -> bool {
    length(packet) > HEADER
}

impl Writer<'_> {
    /// Handles the options of the marked header; on an error the packet is unchanged.
    ///
    /// # Errors
    /// The offset in the header of the byte that is wrong.
    #[inline]
    pub fn run(&self, packet: &mut Packet) -> Result<(), u8> {
        if are_in(packet) {
            return self.run_options(packet);
        }
        Ok(())
    }

    #[cold]
    fn run_options(&self, packet: &mut Packet) -> Result<(), u8> {
        let length = length(packet);
        let bytes = packet.network_mut().filter(|bytes| length <= bytes.len());
        let Some(bytes) = bytes else {
            return Ok(());
        };
        let mut copy = [0; LONGEST];
        let header = &mut copy[..length];
        header.copy_from_slice(&bytes[..length]);
        let wrong = |at: usize| u8::try_from(at).expect("at most 60");
        if self.walk(header).map_err(wrong)? {
            bytes[..length].copy_from_slice(header);
            Header::new_unchecked(&mut bytes[..length]).fill_checksum();
        }
        Ok(())
    }

    /// Goes through the options; whether one changed.
    fn walk(&self, header: &mut [u8]) -> Result<bool, usize> {
        let (mut at, mut changed) = (HEADER, false);
        while at < header.len() {
            let kind = header[at];
            match kind {
                END => break,
                NOTHING => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let length = header.get(at + 1).map_or(0, |l| usize::from(*l));
            let least = match kind {
                RECORD_ROUTE => 3,
                TIMESTAMP => 4,
                _ => 2,
            };
            if length < least || at + length > header.len() {
                return Err(at + 1);
            }
            let option = &mut header[at..at + length];
            changed |= match kind {
                RECORD_ROUTE => self.record(option).map_err(|e| at + e)?,
                TIMESTAMP => self.stamp(option).map_err(|e| at + e)?,
                _ => false,
            };
            at += length;
        }
        Ok(changed)
    }

    fn record(&self, option: &mut [u8]) -> Result<bool, usize> {
        let place = usize::from(option[2]).wrapping_sub(1);
        if place == option.len() {
            return Ok(false);
        }
        let room = option
            .get_mut(place..)
            .and_then(|o| o.first_chunk_mut::<4>());
        let room = room.filter(|_| place >= 3).ok_or(2usize)?;
        *room = self.address.octets();
        option[2] += 4;
        Ok(true)
    }

    fn stamp(&self, option: &mut [u8]) -> Result<bool, usize> {
        let (place, flags) = (usize::from(option[2]).wrapping_sub(1), option[3] & 15);
        if !(4..usize::MAX).contains(&place) {
            return Err(2);
        }
        let ms = (self.now_ns / 1_000_000 % MS_A_DAY) as u32;
        let (address, ms) = (self.address.octets(), ms.to_be_bytes());
        let room = option.get_mut(place..).unwrap_or_default();
        match flags {
            0 if room.len() >= 4 => {
                room[..4].copy_from_slice(&ms);
                option[2] += 4;
            }
            1 if room.len() >= 8 => {
                room[..4].copy_from_slice(&address);
                room[4..8].copy_from_slice(&ms);
                option[2] += 8;
            }
            3 if room.len() >= 8 => {
                let named = Ipv4Addr::new(room[0], room[1], room[2], room[3]);
                if named != self.address && !self.others.contains(&named) {
                    return Ok(false);
                }
                room[4..8].copy_from_slice(&ms);
                option[2] += 8;
            }
            // one more router that found no room
            0 | 1 if option[3] < 0xf0 => option[3] += 0x10,
            _ => return Err(3),
        }
        Ok(true)
    }
}
