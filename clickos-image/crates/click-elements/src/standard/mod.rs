// SPDX-License-Identifier: Apache-2.0
//! What elements of group `standard` share.
pub mod fifo;
pub mod probability;
pub mod rate_anno;
pub mod stride;
