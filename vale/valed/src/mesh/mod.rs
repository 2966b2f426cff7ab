// SPDX-License-Identifier: Apache-2.0
//! Frames between workers.
pub(crate) mod blocked;
pub(crate) mod handoff;
