// SPDX-License-Identifier: Apache-2.0
//! A table of flows with a fixed capacity: found by address and port in both directions, forgotten in the order
//! in which they fell silent.
mod changes;
mod chunks;
mod copies;
mod counts;
mod delta;
mod endpoints;
mod freed;
mod id;
mod index;
mod keys;
mod order;
mod peers;
mod sequence;
mod table;
mod watch;

pub use changes::Changes;
pub use chunks::Chunks;
pub use copies::{Copied, changes, is_older, state, wanted};
pub use counts::Counts;
pub use delta::Delta;
pub use freed::Freed;
pub use id::FlowId;
pub use index::{At, Index};
pub use keys::Keys;
pub use order::{ListId, Order, Seconds, Times};
pub use sequence::Shift;
pub use table::{Flow, FlowTable, MAX_FLOWS};
pub use watch::Watch;
