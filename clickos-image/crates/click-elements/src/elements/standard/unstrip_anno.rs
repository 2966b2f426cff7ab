// SPDX-License-Identifier: Apache-2.0
//! Puts bytes back in front of packets, as many as an annotation says.
//!
//! # Synopsis
//! `UnstripAnno([ANNO])`: the annotation of 2 bytes at ANNO (default 16) is the number of bytes, such as `Search` stripped.
//! # Ports
//! 1/1, agnostic. Packets that would become too long are dropped.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! See `Search`.
//! # Example
//! `s :: Search("\r\n\r\n") -> Print(BODY) -> UnstripAnno -> ...; s[1] -> Discard;`
use crate::numbers::WordAnno;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "UnstripAnno",
    args: &[optional("ANNO")],
    build: |a| {
        let anno = a.or("ANNO", WordAnno::DEFAULT)?;
        Some(Box::new(UnstripAnno { anno: anno.0 }))
    },
    ..Class::DEFAULT
};

struct UnstripAnno {
    anno: usize,
}

impl InPlace for UnstripAnno {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let length = packet.anno().u16(self.anno);
        kept_if(packet.push(length.into()))
    }
}

impl Element for UnstripAnno {
    in_place!(plain);
}
