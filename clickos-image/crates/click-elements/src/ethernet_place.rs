// SPDX-License-Identifier: Apache-2.0
//! Where Ethernet addresses are: in packets, and in their annotations.
use click_core::value::ByteAnno;
use click_core::{ArgContext, anno};

use crate::prelude::*;

/// The place of an address in a packet.
#[derive(Clone, Copy)]
pub struct EtherPlace(pub usize);

impl FromArg for EtherPlace {
    fn from_arg(arg: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match arg.to_ascii_lowercase().as_str() {
            "dst" => Ok(Self(0)),
            "src" => Ok(Self(6)),
            _ => usize::from_arg(arg, at).map(Self),
        }
    }
}

/// The first of six bytes of annotations.
#[derive(Clone, Copy)]
pub struct EtherAnno(usize);

impl FromArg for EtherAnno {
    fn from_arg(arg: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let last = anno::SIZE - 6;
        match ByteAnno::from_arg(arg, at)?.0 {
            first if first <= last => Ok(Self(first)),
            _ => Err(format!("six bytes do not fit, the last place is {last}")),
        }
    }
}

impl EtherAnno {
    pub fn get(self, packet: &Packet) -> [u8; 6] {
        core::array::from_fn(|n| packet.anno().u8(self.0 + n))
    }

    pub fn set(self, packet: &mut Packet, address: [u8; 6]) {
        let anno = packet.anno_mut();
        for (n, byte) in address.into_iter().enumerate() {
            anno.set_u8(self.0 + n, byte);
        }
    }
}
