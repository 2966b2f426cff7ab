// SPDX-License-Identifier: Apache-2.0
//! Adds or verifies digests of ESP packets.
//!
//! # Synopsis
//! `IPsecAuthHMACSHA1(VERIFY)`: with 0 the first 12 bytes of the HMAC-SHA1 of the data are put behind it (RFC 2404); with
//! 1 they are compared and removed. The key is that of the packet's association, which `RadixIPsecLookup` chose.
//! # Ports
//! 1/1-2, agnostic. Packets whose digest is wrong leave by output 1, or are dropped, the first five with a message; so
//! are packets without an association.
//! # Handlers
//! * `drops` (read): packets whose digest was wrong.
//! # Differences from Click
//! Packets of a wrong length are dropped. Where packets are pulled, output 1 is push.
//! # Example
//! `rt[0] -> StripIPHeader -> IPsecAES(0) -> IPsecAuthHMACSHA1(1) -> IPsecESPUnencap -> CheckIPHeader -> ...`
use hmac::Mac;

use crate::ipsec::{Association, DIGEST, User};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecAuthHMACSHA1",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("VERIFY")],
    handlers: &[read("drops", |me: &mut IPsecAuthHMACSHA1, _| {
        text(me.drops)
    })],
    build: |a| {
        let verify = a.need("VERIFY")?;
        Some(Box::new(IPsecAuthHMACSHA1 {
            verify,
            drops: 0,
            user: User::default(),
        }))
    },
    ..Class::DEFAULT
};

struct IPsecAuthHMACSHA1 {
    verify: bool,
    drops: u64,
    user: User,
}

fn is_right(association: &Association, data: &[u8]) -> bool {
    let Some((data, digest)) = data.split_last_chunk::<DIGEST>() else {
        return false;
    };
    let mac = association.hmac.clone().chain_update(data);
    mac.verify_truncated_left(digest).is_ok()
}

fn add(association: &Association, packet: &mut Packet) -> bool {
    let mac = association.hmac.clone().chain_update(packet.data());
    let digest = mac.finalize().into_bytes();
    let length = packet.len();
    let room = packet.put(DIGEST);
    if room {
        packet.data_mut()[length..].copy_from_slice(&digest[..DIGEST]);
    }
    room
}

impl InPlace for IPsecAuthHMACSHA1 {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(association) = self.user.association(ctx, packet) else {
            return DROPPED;
        };
        if !self.verify {
            return if add(&association, packet) {
                0
            } else {
                DROPPED
            };
        }
        let right = is_right(&association, packet.data());
        drop(association);
        if right {
            packet.take(DIGEST);
            return 0;
        }
        self.drops += 1;
        self.user.complain(ctx, "wrong SHA1 digest");
        1
    }
}

impl Element for IPsecAuthHMACSHA1 {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.user.connect(ctx);
        Ok(())
    }
}
