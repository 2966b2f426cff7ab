// SPDX-License-Identifier: Apache-2.0
//! Tests from outside, in one program: each program is linked on its own.
#![cfg(test)]
mod common;
mod guest;
mod hostile;
mod instructions;
mod lost_store;
mod pressure;
mod store;
mod vcpus;
mod vcpus_hostile;
mod versions;
