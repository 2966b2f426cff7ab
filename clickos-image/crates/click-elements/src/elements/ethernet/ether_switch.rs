// SPDX-License-Identifier: Apache-2.0
//! A learning Ethernet switch.
//!
//! # Synopsis
//! `EtherSwitch([TIMEOUT, CAPACITY])`: learns from source addresses behind which port hosts are, and forgets them when they
//! were silent for TIMEOUT (default 300s; 0: nothing is learnt). CAPACITY (default 8192, at most the router's limit of
//! table entries) addresses are known at a time, or a few more; where there is no room, the one that was silent longest
//! of four goes.
//! # Ports
//! Any number of inputs and as many outputs, push. Frames to unknown hosts and to groups leave by all ports but their own;
//! those to a host behind their own port, and those too short for a header, are dropped.
//! # Handlers
//! * `table` (read): the known addresses with their ports. `timeout` (read, write): TIMEOUT in seconds.
//! * `state` (read, write): what was learned, the newest that fits; a guest that moves to another host takes it along.
//! # Differences from Click
//! It may have one port.
//! # Example
//! `s :: EtherSwitch; FromDevice(0) -> s -> q0 :: Queue -> ToDevice(0); FromDevice(1) -> [1] s [1] -> q1 :: Queue -> ToDevice(1);`
use crate::learning_switch::{CLASS, build};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EtherSwitch",
    ports: "-/=",
    build: |a| build(a, None),
    ..CLASS
};
