// SPDX-License-Identifier: Apache-2.0
//! A learning Ethernet switch with a port at which all frames can be overheard.
//!
//! # Synopsis
//! `ListenEtherSwitch([TIMEOUT, CAPACITY])`: learns from source addresses behind which port hosts are, and forgets them when
//! they were silent for TIMEOUT (default 300s; 0: nothing is learnt). CAPACITY (default 8192, at most the router's limit of
//! table entries) addresses are known at a time, or a few more; where there is no room, the one that was silent longest
//! of four goes.
//! # Ports
//! Any number of inputs and one output more, push. The last output gets every frame that is long enough for a header, the
//! others what those of EtherSwitch get: frames to unknown hosts and to groups leave by all ports but their own, those to a
//! host behind their own port by none.
//! # Handlers
//! * `table` (read): the known addresses with their ports. `timeout` (read, write): TIMEOUT in seconds.
//! * `state` (read, write): what was learned, the newest that fits; a guest that moves to another host takes it along.
//! # Differences from Click
//! It may have one port.
//! # Example
//! `s :: ListenEtherSwitch; FromDevice(0) -> s -> q0 :: Queue -> ToDevice(0); FromDevice(1) -> [1] s [1] -> q1 :: Queue -> ToDevice(1);
//! s[2] -> ToDump(all.pcap);`
use crate::learning_switch::{CLASS, build};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ListenEtherSwitch",
    ports: "-/=+",
    build: |a| {
        let listener = a.outputs().checked_sub(1);
        build(a, listener)
    },
    ..CLASS
};
