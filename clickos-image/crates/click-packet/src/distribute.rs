// SPDX-License-Identifier: Apache-2.0
//! Distributes the packets of a batch to others.
use crate::batch::Batch;

impl Batch {
    /// Moves each packet, oldest first, to the end of the batch with the number that `to` has for it; it is dropped
    /// if that batch does not exist. `begins` is called with each batch that was empty. Packets that `to` has no number for stay.
    #[inline]
    pub fn distribute(&mut self, to: &[usize], others: &mut [Self], mut begins: impl FnMut(usize)) {
        let (head, tail) = self.range();
        let count = to.len().min(tail - head);
        if count == 0 {
            return;
        }
        // SAFETY: there is memory; the packets that are distributed are not this batch's any more, whatever happens.
        unsafe { self.set_range_or_reset(head + count, tail) };
        for (slot, to) in (head..).zip(&to[..count]) {
            // SAFETY: the slot held a packet, which is moved or dropped once; its memory stays.
            let packet = unsafe { self.slot(slot) };
            let Some(other) = others.get_mut(*to) else {
                // SAFETY: as above.
                drop(unsafe { packet.read() });
                continue;
            };
            if other.is_empty() {
                begins(*to);
            }
            // SAFETY: as above.
            unsafe { other.append_moved(packet) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::PacketPool;

    #[test]
    fn each_packet_goes_where_it_should_in_order() {
        let mut pool = PacketPool::new(64);
        let mut batch = Batch::new();
        (0..40u8).for_each(|n| batch.push_back(pool.packet_from(&[n]).unwrap()));
        let to: Vec<usize> = (0..37).map(|n| [2, 0, 9][n % 3]).collect();
        let mut others = [Batch::new(), Batch::new(), Batch::new()];
        let mut begun = Vec::new();
        batch.distribute(&to, &mut others, |n| begun.push(n));
        let first = |batch: &Batch| batch.iter().map(|p| p.data()[0]).collect::<Vec<_>>();
        let every_third = |from: u8| (from..37).step_by(3).collect::<Vec<_>>();
        assert_eq!(begun, [2, 0]);
        assert_eq!(first(&others[2]), every_third(0));
        assert_eq!(first(&others[0]), every_third(1));
        assert_eq!(others[1].len(), 0);
        assert_eq!(first(&batch), [37, 38, 39]);
        assert_eq!(pool.in_use(), 40 - 12);
    }

    #[test]
    fn nothing_is_distributed_of_nothing() {
        let mut batch = Batch::new();
        batch.distribute(&[0, 1], &mut [], |_| panic!("nothing begins"));
        assert!(batch.is_empty());
    }
}
