// SPDX-License-Identifier: Apache-2.0
//! Removes ESP headers and padding.
//!
//! # Synopsis
//! `IPsecESPUnencap()`: for packets that `IPsecESPEncap` made. Each sequence number is accepted once; how many may come
//! late is the association's OOSIZE. Packets must come from a `RadixIPsecLookup`, which says what their association is.
//! # Ports
//! 1/1, agnostic. Packets without an association, those that came before or too late, and those whose padding is wrong
//! are dropped, the first five with a message.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Remembers at most 128 sequence numbers.
//! # Example
//! `rt[0] -> StripIPHeader -> IPsecAES(0) -> IPsecAuthHMACSHA1(1) -> IPsecESPUnencap -> CheckIPHeader -> ...`
use crate::ipsec::{ESP_HEADER, User};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecESPUnencap",
    build: |_| Some(Box::new(IPsecESPUnencap::default())),
    ..Class::DEFAULT
};

#[derive(Default)]
struct IPsecESPUnencap {
    user: User,
}

impl IPsecESPUnencap {
    fn accept(&mut self, ctx: &mut Context<'_>, packet: &Packet) -> Option<()> {
        let number = packet.data().get(4..8)?.first_chunk().copied()?;
        let mut association = self.user.association(ctx, packet)?;
        let accepted = association.window.accept(u32::from_be_bytes(number));
        drop(association);
        accepted
            .map_err(|replay| self.user.complain(ctx, &format!("{replay}")))
            .ok()
    }
}

/// Bytes of padding, its length and the protocol included, if they are as they must be.
fn padding(data: &[u8]) -> Option<usize> {
    let (rest, [length, _]) = data.get(ESP_HEADER..)?.split_last_chunk::<2>()?;
    let begin = rest.len().checked_sub(usize::from(*length))?;
    let right = rest[begin..].iter().zip(1..).all(|(b, n)| *b == n);
    right.then_some(usize::from(*length) + 2)
}

impl InPlace for IPsecESPUnencap {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if self.accept(ctx, packet).is_none() {
            return DROPPED;
        }
        let Some(length) = padding(packet.data()) else {
            self.user.complain(ctx, "wrong padding");
            return DROPPED;
        };
        packet.pull(ESP_HEADER);
        packet.take(length);
        0
    }
}

impl Element for IPsecESPUnencap {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.user.connect(ctx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_counts_up() {
        let packet = |rest: &[u8]| [&[0; ESP_HEADER], rest].concat();
        assert_eq!(padding(&packet(&[9, 1, 2, 3, 3, 4])), Some(5));
        assert_eq!(padding(&packet(&[0, 4])), Some(2));
        for wrong in [&[9, 1, 2, 2, 3, 4][..], &[1, 2, 3, 9, 4], &[4], &[]] {
            assert_eq!(padding(&packet(wrong)), None, "{wrong:?}");
        }
        assert_eq!(padding(&[0, 0]), None);
    }
}
