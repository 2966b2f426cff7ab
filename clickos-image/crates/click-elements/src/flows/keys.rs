// SPDX-License-Identifier: Apache-2.0
//! A keyed hash of flows: who does not know the keys cannot choose flows that share a place.
use super::id::FlowId;

/// Random numbers that senders do not know.
#[derive(Clone, Copy)]
pub struct Keys(pub [u64; 4]);

/// Both halves of a product, each bit of which depends on many of both factors.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

impl Keys {
    /// The hash of a flow in a map.
    #[inline]
    pub fn hash(&self, id: &FlowId, map: u16) -> u64 {
        let rest = u64::from(id.ports()) << 16 | u64::from(map);
        let [a, b, c, d] = self.0;
        fold(fold(id.addresses() ^ a, rest ^ b) ^ c, d | 1)
    }
}
