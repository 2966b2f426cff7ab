// SPDX-License-Identifier: Apache-2.0
//! docs/control-protocol.md, case by case, on the simulated store.
#![cfg(test)]

mod bed;
mod element_nodes;
mod files;
mod requests;
mod router_specs;
mod store;

use bed::{Bed, DOMID};

fn running() -> (String, String) {
    ("Running".into(), String::new())
}
