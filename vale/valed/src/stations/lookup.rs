// SPDX-License-Identifier: Apache-2.0
//! The destination of a frame: a replaceable stage of the switch.
use rustc_hash::FxHashMap;
use vale_proto::Mac;

/// Decides from segment and destination MAC. The switch keeps it in step with its ports.
pub trait Lookup: Send {
    /// The index of the port with this address.
    fn find(&self, segment: u32, mac: Mac) -> Option<usize>;
    /// Adds a port; false if another has its address.
    fn insert(&mut self, segment: u32, mac: Mac, index: usize) -> bool;
    /// Removes the address of a port.
    fn remove(&mut self, segment: u32, mac: Mac);
}

/// The addresses that the toolstack gave; the switch learns none from frames.
#[derive(Default)]
pub struct StaticTable(FxHashMap<(u32, u64), usize>);

fn key(segment: u32, mac: Mac) -> (u32, u64) {
    let [a, b, c, d, e, f] = mac.0;
    (segment, u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

impl Lookup for StaticTable {
    fn find(&self, segment: u32, mac: Mac) -> Option<usize> {
        self.0.get(&key(segment, mac)).copied()
    }

    fn insert(&mut self, segment: u32, mac: Mac, index: usize) -> bool {
        let free = !self.0.contains_key(&key(segment, mac));
        if free {
            self.0.insert(key(segment, mac), index);
        }
        free
    }

    fn remove(&mut self, segment: u32, mac: Mac) {
        self.0.remove(&key(segment, mac));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_one_port_of_its_segment() {
        let mut table = StaticTable::default();
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        assert!(table.insert(1, mac, 3) && table.insert(2, mac, 4));
        assert!(!table.insert(1, mac, 5));
        assert_eq!(
            (table.find(1, mac), table.find(2, mac), table.find(3, mac)),
            (Some(3), Some(4), None)
        );
        table.remove(1, mac);
        assert_eq!((table.find(1, mac), table.find(2, mac)), (None, Some(4)));
    }
}
