// SPDX-License-Identifier: Apache-2.0
//! Tests from outside, in one program: each program is linked on its own.
#![cfg(test)]
mod common;
mod control;
mod daemon;
mod differential;
mod guests;
mod hostile_rings;
mod interfaces;
mod kept;
mod netmap;
mod paths;
mod survival;
