// SPDX-License-Identifier: Apache-2.0
//! Tests from outside, in one program: each program is linked on its own.
#![cfg(test)]
mod click_threads;
mod conformance;
mod control;
mod flow_threads;
mod interfaces;
mod program;
mod stopping;
mod threads;
mod tools;
