// SPDX-License-Identifier: Apache-2.0
//! Work the sender of a frame has left to its network card: checksums and segmentation.
//!
//! Frames from taps and packet sockets say what is left to do in a `virtio_net_hdr`. Towards
//! another host port that header goes along; a guest's ring has no such thing, so the switch
//! does the work itself.
mod checksum;
mod segment;
mod vnet;

pub use checksum::complete;
pub use segment::Segments;
pub use vnet::{Checksum, Gso, GsoKind, Offload};
