// SPDX-License-Identifier: Apache-2.0
//! The door with a real store. Needs root and NOXEN_PREFIX.
#![cfg(test)]
mod as_root;
