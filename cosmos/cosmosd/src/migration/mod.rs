// SPDX-License-Identifier: Apache-2.0
//! Moves guests between hosts: away from this one, and to it.

mod source;
mod target;
