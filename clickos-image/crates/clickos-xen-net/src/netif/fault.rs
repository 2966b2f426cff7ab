// SPDX-License-Identifier: Apache-2.0
//! What no honest backend does; it closes the device.
use super::ring::BadIndex;
use core::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Index(&'static str, BadIndex),
    /// An answer to a request that was not made.
    Id(&'static str, u16),
    /// A grant that is in use although its request was answered.
    Grant(&'static str, u16),
    /// Something that was not offered to it, such as extra information.
    Flags(u16),
    /// The grant table is full.
    NoGrant,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(ring, bad) => write!(f, "{ring} ring: {bad}"),
            Self::Id(ring, id) => write!(f, "{ring} ring: response to request {id}, not made"),
            Self::Grant(ring, id) => write!(f, "{ring} ring: request {id} is answered but in use"),
            Self::Flags(flags) => write!(f, "rx ring: flags {flags:#x} were not offered"),
            Self::NoGrant => write!(f, "grant table: is full"),
        }
    }
}
