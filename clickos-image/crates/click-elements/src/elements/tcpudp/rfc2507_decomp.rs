// SPDX-License-Identifier: Apache-2.0
//! Undoes what RFC2507Comp does.
//!
//! # Synopsis
//! `RFC2507Decomp`: packets are as they were before RFC2507Comp, as long as none was lost in between.
//! # Ports
//! 1/1, agnostic. Packets begin with the IP header again. The element drops damaged packets
//! and those of unknown connections.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A packet is sent uncompressed if its TCP flags differ from those of the packet before, or if a
//! changed urgent pointer does not match the urgent flag. No messages are printed.
//! # Example
//! `... -> RFC2507Comp -> link :: Null -> RFC2507Decomp -> ...`
use crate::prelude::*;
use crate::rfc2507::{COMPRESSED, CONTEXTS, FULL, HEADERS, Headers, OTHER, decompress};

pub static ELEMENT: Class = Class {
    name: "RFC2507Decomp",
    build: |_| {
        Some(Box::new(RFC2507Decomp {
            contexts: [None; CONTEXTS],
        }))
    },
    ..Class::DEFAULT
};

struct RFC2507Decomp {
    contexts: [Option<Headers>; CONTEXTS],
}

impl RFC2507Decomp {
    /// Octets that go, and headers that come in their place.
    fn front(&mut self, data: &[u8]) -> Option<(usize, Option<Headers>)> {
        let kind = *data.first()?;
        if kind == OTHER {
            return Some((1, None));
        }
        let number = usize::from(*data.get(1)?);
        let context = self.contexts.get_mut(number).filter(|_| number > 0)?;
        match kind {
            FULL => {
                *context = Some(*data.get(2..)?.first_chunk()?);
                Some((2, None))
            }
            COMPRESSED => {
                let headers = context.as_mut()?;
                let rest = decompress(headers, data)?;
                Some((data.len() - rest.len(), Some(*headers)))
            }
            _ => None,
        }
    }
}

impl InPlace for RFC2507Decomp {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some((gone, headers)) = self.front(packet.data()) else {
            return DROPPED;
        };
        packet.pull(gone);
        if let Some(headers) = headers {
            if !packet.push(HEADERS) {
                return DROPPED;
            }
            packet.data_mut()[..HEADERS].copy_from_slice(&headers);
        }
        0
    }
}

impl Element for RFC2507Decomp {
    in_place!(plain);
}
