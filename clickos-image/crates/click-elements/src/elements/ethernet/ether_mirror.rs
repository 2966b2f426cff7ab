// SPDX-License-Identifier: Apache-2.0
//! Swaps the Ethernet source and destination of frames.
//!
//! # Synopsis
//! `EtherMirror`
//! # Ports
//! 1/1, agnostic. Frames too short for two addresses are dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> EtherMirror -> ToDevice(0);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherMirror",
    build: |_| Some(Box::new(EtherMirror)),
    ..Class::DEFAULT
};

struct EtherMirror;

impl InPlace for EtherMirror {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(addresses) = packet.data_mut().first_chunk_mut::<12>() else {
            return DROPPED;
        };
        let (to, from) = addresses.split_at_mut(6);
        to.swap_with_slice(from);
        0
    }
}

impl Element for EtherMirror {
    in_place!(plain);
}
