// SPDX-License-Identifier: Apache-2.0
//! The ports that the addresses of a segment belong to.
use rustc_hash::FxHashMap;
use vale_proto::Mac;

/// The addresses that the toolstack gave, kept in step with the ports of a switch, which learns none of them from frames.
#[derive(Default)]
pub struct StaticTable(FxHashMap<(u32, u64), usize>);

fn key(segment: u32, mac: Mac) -> (u32, u64) {
    let [a, b, c, d, e, f] = mac.0;
    (segment, u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

impl StaticTable {
    /// The index of the port with this address.
    pub fn find(&self, segment: u32, mac: Mac) -> Option<usize> {
        self.0.get(&key(segment, mac)).copied()
    }

    /// Adds a port; false if another has its address.
    pub fn insert(&mut self, segment: u32, mac: Mac, index: usize) -> bool {
        let free = !self.0.contains_key(&key(segment, mac));
        if free {
            self.0.insert(key(segment, mac), index);
        }
        free
    }

    /// Removes the address of a port.
    pub fn remove(&mut self, segment: u32, mac: Mac) {
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
