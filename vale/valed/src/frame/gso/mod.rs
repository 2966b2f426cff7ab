// SPDX-License-Identifier: Apache-2.0
//! Work that the sender of a frame has left to its network card: checksums and segmentation.
//!
//! A `virtio_net_hdr` describes this work for frames from taps and packet sockets. The switch
//! passes that header to other host ports. A guest's ring has a flag for checksums at most, so the
//! switch does the rest of the work itself.
mod checksum;
mod segment;
mod transport;
mod vnet;

pub use checksum::complete;
pub use segment::Segments;
pub use transport::Transport;
pub use vnet::{Checksum, TxOffload};
