// SPDX-License-Identifier: Apache-2.0
//! The place of each subscriber's ports, computed from its number alone.
use crate::prelude::*;

/// Subscribers, public addresses and ports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub subscribers: Prefix,
    pub public: Prefix,
    pub first_port: u16,
    pub last_port: u16,
    /// Ports of a subscriber.
    pub block: u32,
}

/// The addresses of a prefix.
pub fn count(prefix: Prefix) -> u64 {
    u64::from(!u32::from(prefix.mask)) + 1
}

fn number(prefix: Prefix, address: Ipv4Addr) -> Option<u32> {
    let (address, mask) = (u32::from(address), u32::from(prefix.mask));
    ((address ^ u32::from(prefix.address)) & mask == 0).then_some(address & !mask)
}

fn address(prefix: Prefix, number: u32) -> Ipv4Addr {
    (u32::from(prefix.address) & u32::from(prefix.mask) | number).into()
}

impl Layout {
    /// The most ports a subscriber can have.
    pub fn most(&self) -> u64 {
        let ports = u64::from(self.last_port - self.first_port) + 1;
        let per_address = count(self.subscribers).div_ceil(count(self.public));
        ports / per_address
    }

    fn per_address(&self) -> u32 {
        (u32::from(self.last_port - self.first_port) + 1) / self.block
    }

    /// The number of a subscriber.
    pub fn subscriber(&self, source: Ipv4Addr) -> Option<u32> {
        number(self.subscribers, source)
    }

    pub fn subscriber_address(&self, subscriber: u32) -> Ipv4Addr {
        address(self.subscribers, subscriber)
    }

    /// Public address and first port of a subscriber.
    pub fn place(&self, subscriber: u32) -> (Ipv4Addr, u16) {
        let (n, place) = (
            subscriber / self.per_address(),
            subscriber % self.per_address(),
        );
        let port = u32::from(self.first_port) + place * self.block;
        (address(self.public, n), port as u16)
    }

    /// The subscriber whose block a port is in.
    pub fn owner(&self, public: Ipv4Addr, port: u16) -> Option<Ipv4Addr> {
        let n = number(self.public, public)?;
        let place = u32::from(port.checked_sub(self.first_port)?) / self.block;
        let subscriber = n.checked_mul(self.per_address())?.checked_add(place)?;
        let known = u64::from(subscriber) < count(self.subscribers);
        (place < self.per_address() && known).then(|| self.subscriber_address(subscriber))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(address: [u8; 4], length: u32) -> Prefix {
        Prefix {
            address: address.into(),
            mask: (u32::MAX << (32 - length)).into(),
        }
    }

    fn layout(block: u32) -> Layout {
        Layout {
            subscribers: prefix([100, 64, 0, 0], 24),
            public: prefix([203, 0, 113, 4], 30),
            first_port: 1024,
            last_port: 65535,
            block,
        }
    }

    #[test]
    fn blocks_are_disjoint_and_lead_back() {
        assert_eq!(layout(1).most(), 1008);
        for block in [7, 512, 1008] {
            let layout = layout(block);
            let mut before = (Ipv4Addr::UNSPECIFIED, 0);
            for n in 0..256 {
                let (public, first) = layout.place(n);
                let last = first + (block - 1) as u16;
                assert!((public, first) > before, "{n}");
                before = (public, last);
                let subscriber = Some(Ipv4Addr::new(100, 64, 0, n as u8));
                assert_eq!(layout.owner(public, first), subscriber);
                assert_eq!(layout.owner(public, last), subscriber);
            }
            assert_eq!(layout.owner(before.0, 1023), None);
        }
    }

    #[test]
    fn ports_without_a_subscriber_have_none() {
        let layout = layout(1008);
        assert_eq!(layout.owner(Ipv4Addr::new(203, 0, 113, 8), 2000), None);
        assert_eq!(layout.subscriber(Ipv4Addr::new(100, 64, 1, 0)), None);
    }
}
