// SPDX-License-Identifier: Apache-2.0
//! Tests from outside, in one program: each program is linked on its own.
#![cfg(test)]
mod anew;
mod changes;
mod check_config;
mod clients;
mod disk;
mod ends;
mod life;
mod moves;
mod offload;
mod plug;
mod spoof;
mod store;
mod vcpus;
mod vifs;
