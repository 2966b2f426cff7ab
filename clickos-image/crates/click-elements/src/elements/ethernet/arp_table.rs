// SPDX-License-Identifier: Apache-2.0
//! A table of Ethernet addresses that several `ARPQuerier`s use.
//!
//! # Synopsis
//! `ARPTable([CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, CAPACITY_SLIM_FACTOR, TIMEOUT])`: as in `ARPQuerier`.
//! # Ports
//! 0/0.
//! # Handlers
//! * `table` (read): address, whether known, Ethernet address, age in seconds. `count` (read): entries.
//! * `length` (read): packets that wait. `drops` (read): packets that the table dropped while they
//!   waited.
//! * `insert` (write): `IP ETH`; packets that wait for it wait on until it is heard of. `delete` (write): `IP`.
//!   `clear` (write).
//! * `state` (read, write): what was learned, the newest that fits; a guest that moves to another host takes it along.
//! # Differences from Click
//! ENTRY_CAPACITY 0 means the router's limit of table entries. At most a sixteenth of the router's
//! packets wait. In ARPQuerier `insert` sends the waiting packets and `delete` forgets the entry;
//! `drops` includes the drops of the table.
//! # Example
//! `t :: ARPTable; a :: ARPQuerier(10.0.0.1, vif0, TABLE t); b :: ARPQuerier(10.0.0.2, vif0, TABLE t);`
use alloc::rc::Rc;
use core::cell::RefCell;

use crate::arp_table::{ARPTable, Bounds, KEYWORDS, Table};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ARPTable",
    ports: "0/0",
    args: &KEYWORDS,
    handlers: &ARPTable::HANDLERS,
    build: |a| {
        let table = Table::new(Bounds::argument(a)?);
        let table = Rc::new(RefCell::new(table));
        Some(Box::new(ARPTable { table }))
    },
    live: true,
    ..Class::DEFAULT
};
