// SPDX-License-Identifier: Apache-2.0
//! Writes consecutive numbers into packets.
//!
//! # Synopsis
//! `NumberPacket([OFFSET, NET_ORDER])`: a number of 8 bytes, from 0 upwards, OFFSET bytes (default 40) behind the
//! packet's begin. The lowest byte comes first, with NET_ORDER (default false) the highest. A packet that is too
//! short becomes longer; one that has no room is dropped.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `count` (read): packets numbered.
//! # Differences from Click
//! The elements of the group `fastclick`, PaintRR and StripTCPHeader are FastClick's. Times are
//! those of the router's clock, which stands still within a slice. The router's limit of flows
//! bounds numbers, delays and counts. NumberPacket does not change the IP length of a packet that
//! it makes longer. CheckNumberPacket and RecordTimestamp report the first fault only;
//! RecordTimestamp has no TXDEV. In TimestampDiff `stddev` takes the first delay as its parameter.
//! GTPDecap checks the message, skips extension headers, cuts off padding, and drops other
//! messages; its `drops` and GTPEncap's `teid` are ours. StripTCPHeader passes a packet without a
//! whole header.
//! # Example
//! `RatedSource -> NumberPacket(0) -> r :: RecordTimestamp(OFFSET 0) -> Queue -> ToDevice(0);`
use crate::packet_number::{NumberPacket, PacketNumber};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "NumberPacket",
    args: &[optional("OFFSET"), keyword("NET_ORDER")],
    handlers: &[read("count", |me: &mut NumberPacket, _| text(me.count()))],
    build: |a| {
        let place = PacketNumber::arguments(a)?;
        Some(Box::new(NumberPacket::new(place)))
    },
    ..Class::DEFAULT
};
