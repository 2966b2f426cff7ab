// SPDX-License-Identifier: Apache-2.0
//! Sets an address annotation of packets from their data.
//!
//! # Synopsis
//! `GetIPAddress([OFFSET, ANNO, IP])`: the address is OFFSET bytes after the start (usually 16, the destination of an
//! IP header), or with IP `src` or `dst` that one of the marked IP header; one of the two is needed. It goes into ANNO,
//! four bytes (default DST_IP).
//! # Ports
//! 1/1, agnostic. A packet too short for an address there keeps its annotation.
//! # Handlers
//! None of its own.
//! # Example
//! `Strip(14) -> GetIPAddress(16) -> arp;`
use click_core::anno;
use click_core::value::WordAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "GetIPAddress",
    args: &[optional("OFFSET"), optional("ANNO"), keyword("IP")],
    build: |a| {
        let (offset, ip) = (a.opt("OFFSET"), a.opt::<String>("IP"));
        let anno = a.or("ANNO", WordAnno(anno::DST_IP));
        let from = match (offset?, ip?.as_deref()) {
            (Some(offset), None) => From::Data(offset),
            (None, Some("src")) => From::Header(12),
            (None, Some("dst")) => From::Header(16),
            (None, Some(word)) => {
                a.error("IP", format!("expected src or dst, got \"{word}\""));
                return None;
            }
            (offset, _) => {
                let got = if offset.is_some() { "both" } else { "none" };
                a.error(
                    "OFFSET",
                    format!("expected one of OFFSET and IP, got {got}"),
                );
                return None;
            }
        };
        Some(Box::new(GetIPAddress {
            from,
            anno: anno?.0,
        }))
    },
    ..Class::DEFAULT
};

/// An offset in bytes from the start of the data, or of the IP header.
#[derive(Clone, Copy)]
enum From {
    Data(usize),
    Header(usize),
}

struct GetIPAddress {
    from: From,
    anno: usize,
}

impl InPlace for GetIPAddress {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let (bytes, at) = match self.from {
            From::Data(at) => (Some(packet.data()), at),
            From::Header(at) => (packet.network(), at),
        };
        let address = bytes.and_then(|b| b.get(at..)?.first_chunk::<4>().copied());
        if let Some(address) = address {
            let anno = packet.anno_mut();
            anno.set_u32(self.anno, u32::from_le_bytes(address));
        }
        0
    }
}

impl Element for GetIPAddress {
    in_place!(plain);
}
