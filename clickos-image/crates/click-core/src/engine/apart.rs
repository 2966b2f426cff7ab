// SPDX-License-Identifier: Apache-2.0
//! Whether packets of different outputs meet again.

/// What becomes of packets that leave an element by different outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// They may meet again, so they keep their order.
    Meet,
    /// They do not, but their order may show, for instance on the console.
    Disjoint,
    /// They do not, and no one can see in which order they left.
    Unseen,
}
