// SPDX-License-Identifier: Apache-2.0
//! Names for addresses, to be used wherever an address is expected.
//!
//! # Synopsis
//! `AddressInfo(NAME ADDRESS [ADDRESS ...], ...)`: each ADDRESS is an IP address, a prefix such as
//! `10.0.0.1/24`, an Ethernet address, or a name. A prefix with host bits is an address, too, if none stands alone.
//! `NAME:ip`, `NAME:ipnet` and `NAME:eth` say which is meant; `NAME:bcast` is the last address of the network, `NAME:gw`
//! the first.
//! `vif0`, `vif1` ... name the Ethernet addresses of the devices without being defined; in the program `click` the names of
//! the machine's network interfaces stand for their addresses, and `NAME:gw` for the gateway of a default route, if there is one.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! `vif0`, `vif1` ... stand for the devices' Ethernet addresses. The names of the machine's
//! interfaces are read with the configuration; a guest does not know them. IPv6 addresses are not
//! known.
//! # Example
//! `AddressInfo(inside 10.0.1.1/24 vif0:eth); ARPResponder(inside);`
use click_core::text::split_words;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AddressInfo",
    ports: "0/0",
    args: &[rest("NAME")],
    defines_names: true,
    build: |a| {
        for line in a.rest().to_vec() {
            let words = split_words(&line);
            let Some((name, addresses)) = words.split_first().filter(|(_, a)| !a.is_empty()) else {
                a.error("NAME", format!("expected \"NAME ADDRESS\", got \"{line}\""));
                continue;
            };
            a.define(name, addresses);
        }
        Some(Box::new(AddressInfo))
    },
    ..Class::DEFAULT
};

struct AddressInfo;

impl Element for AddressInfo {}
