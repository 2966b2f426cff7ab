// SPDX-License-Identifier: Apache-2.0
//! The reasons for which port security drops a frame.

/// Why a guard refuses a frame; each has a counter at the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Lengths and versions that contradict each other.
    Malformed,
    /// An EtherType or a tag that the port may not send.
    Type,
    /// An address that is not the port's.
    Spoof,
    /// A message only routers and servers send, or a source route.
    Rogue,
    /// Fragments or headers hide what the packet carries.
    Hidden,
}
