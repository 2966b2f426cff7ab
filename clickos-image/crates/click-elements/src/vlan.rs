// SPDX-License-Identifier: Apache-2.0
//! VLAN tags (IEEE 802.1Q): the arguments, handlers and annotation that elements share.
use click_core::{ArgContext, anno};

use crate::prelude::*;

/// EtherType of a tag.
pub const ETHERTYPE: u16 = 0x8100;
/// Bytes of an Ethernet header without a tag.
pub const UNTAGGED: usize = HEADER - 4;
/// Bytes of an Ethernet header with a tag.
pub const HEADER: usize = 18;
const ID: u16 = 0xfff;

/// Marks the frame, and its network header after `header` bytes if it is long enough and not marked there.
pub fn mark_frame(packet: &mut Packet, header: usize) {
    packet.set_mac_offset(0);
    let marked = packet.network_offset() == isize::try_from(header).ok();
    if packet.len() >= header && !marked {
        packet.set_network(header, 0);
    }
}

/// The tag control information of the annotation.
pub fn annotation(packet: &Packet) -> u16 {
    let anno = packet.anno();
    u16::from_be_bytes([anno.u8(anno::VLAN_TCI), anno.u8(anno::VLAN_TCI + 1)])
}

/// Sets the annotation.
pub fn annotate(packet: &mut Packet, tci: u16) {
    let [high, low] = tci.to_be_bytes();
    packet.anno_mut().set_u8(anno::VLAN_TCI, high);
    packet.anno_mut().set_u8(anno::VLAN_TCI + 1, low);
}

/// Tag control information, `ANNO` if it is that of the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tci {
    Fixed(u16),
    Annotation,
}

impl FromArg for Tci {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match text {
            "ANNO" => Ok(Self::Annotation),
            _ => u16::from_arg(text, at).map(Self::Fixed),
        }
    }
}

/// The number of a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(pub u16);

impl FromArg for Id {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        within(u16::from_arg(text, at)?, ID).map(Self)
    }
}

/// The VLAN whose frames have no tag; -1 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native(pub Option<u16>);

impl FromArg for Native {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match text {
            "-1" => Ok(Self(None)),
            _ => Id::from_arg(text, at).map(|id| Self(Some(id.0))),
        }
    }
}

/// A priority.
struct Priority(u16);

impl FromArg for Priority {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        within(u16::from_arg(text, at)?, 7).map(Self)
    }
}

fn within(value: u16, most: u16) -> Result<u16, String> {
    match value <= most {
        true => Ok(value),
        false => Err(format!("{value} is out of range, the most is {most}")),
    }
}

/// The tag that an element writes.
pub struct Tag {
    tci: Tci,
}

impl Tag {
    /// Reads VLAN_TCI, VLAN_PCP and VLAN_ID.
    pub fn of(a: &mut Args<'_>) -> Option<Self> {
        let (tci, id) = (a.opt::<Tci>("VLAN_TCI"), a.or("VLAN_ID", Id(0)));
        let priority = a.or("VLAN_PCP", Priority(0))?.0 << 13;
        let id = id?.0;
        let tci = match tci? {
            Some(Tci::Annotation) => Tci::Annotation,
            Some(Tci::Fixed(tci)) => Tci::Fixed(tci | priority),
            None => Tci::Fixed(id | priority),
        };
        Some(Self { tci })
    }

    /// The tag control information for a packet.
    pub fn of_packet(&self, packet: &Packet) -> u16 {
        match self.tci {
            Tci::Fixed(tci) => tci,
            Tci::Annotation => annotation(packet),
        }
    }

    fn fixed(&self) -> u16 {
        match self.tci {
            Tci::Fixed(tci) => tci,
            Tci::Annotation => 0,
        }
    }
}

/// The handler `vlan_tci`.
pub const fn vlan_tci<T: Part<Tag>>() -> Handler<T> {
    read_write(
        "vlan_tci",
        |me, _| match me.part().tci {
            Tci::Annotation => text("ANNO"),
            Tci::Fixed(tci) => text(tci),
        },
        set!(|me, tci, _| me.part_mut().tci = tci),
    )
}

/// The handler `vlan_id`.
pub const fn vlan_id<T: Part<Tag>>() -> Handler<T> {
    read_write(
        "vlan_id",
        |me, _| text(me.part().fixed() & ID),
        set!(|me, Id(id), _| {
            let tag = me.part_mut();
            tag.tci = Tci::Fixed(tag.fixed() & !ID | id);
        }),
    )
}

/// The handler `vlan_pcp`.
pub const fn vlan_pcp<T: Part<Tag>>() -> Handler<T> {
    read_write(
        "vlan_pcp",
        |me, _| text(me.part().fixed() >> 13),
        set!(|me, Priority(priority), _| {
            let tag = me.part_mut();
            tag.tci = Tci::Fixed(tag.fixed() & 0x1fff | priority << 13);
        }),
    )
}

/// True if frames with this tag control information have no tag.
pub fn is_native(tci: u16, native: Option<u16>) -> bool {
    native == Some(tci & ID)
}

/// The handler `native_vlan`.
pub fn native_text(native: Option<u16>) -> String {
    native.map_or_else(|| "-1".to_string(), |id| id.to_string())
}
