// SPDX-License-Identifier: Apache-2.0
//! Copies share their bytes, and no caller can see it: packets against plain vectors.
use click_packet::{Batch, Packet, PacketPool};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Copy(usize),
    Repeat(usize, usize),
    CopyAll,
    UniqueifyAll,
    Drop(usize),
    Write(usize, u8),
    Push(usize, u8),
    Put(usize, usize),
    Pull(usize, usize),
    Unstrip(usize),
    Annotate(usize, usize, u8),
    Mac(usize, usize),
    Clear,
}

/// Lengths around the bounds of what is kept and shared.
const LENGTHS: [usize; 6] = [0, 20, 64, 384, 1500, 9000];

fn step() -> impl Strategy<Value = Step> {
    let n = || 0usize..64;
    prop_oneof![
        3 => (0..LENGTHS.len()).prop_map(|n| Step::Make(LENGTHS[n])),
        6 => n().prop_map(Step::Copy),
        1 => (n(), 0usize..5).prop_map(|(at, n)| Step::Repeat(at, n)),
        1 => Just(Step::CopyAll),
        1 => Just(Step::UniqueifyAll),
        4 => n().prop_map(Step::Drop),
        3 => (n(), any::<u8>()).prop_map(|(at, byte)| Step::Write(at, byte)),
        1 => (n(), any::<u8>()).prop_map(|(at, byte)| Step::Push(at, byte)),
        1 => (n(), 0usize..600).prop_map(|(at, n)| Step::Put(at, n)),
        2 => (n(), 0usize..20).prop_map(|(at, n)| Step::Pull(at, n)),
        2 => n().prop_map(Step::Unstrip),
        3 => (n(), 0usize..48, any::<u8>()).prop_map(|(at, n, byte)| Step::Annotate(at, n, byte)),
        1 => (n(), 0usize..3000).prop_map(|(at, n)| Step::Mac(at, n)),
        1 => Just(Step::Clear),
    ]
}

/// The expected packet.
#[derive(Clone, Default)]
struct Model {
    /// The stripped bytes, the last ones at the end.
    stripped: Vec<u8>,
    data: Vec<u8>,
    annotations: Vec<u8>,
    mac: Option<isize>,
}

struct World {
    pool: PacketPool,
    batch: Batch,
    model: Vec<Model>,
}

const LIMIT: usize = 40;

impl World {
    fn at(&mut self, n: usize) -> Option<(&mut Packet, &mut Model)> {
        let n = n.checked_rem(self.model.len())?;
        Some((self.batch.iter_mut().nth(n)?, &mut self.model[n]))
    }

    fn make(&mut self, len: usize) {
        let number = self.model.len() as u8;
        if let Some(packet) = self.pool.packet_from(&vec![number; len]) {
            self.batch.push_back(packet);
            self.model.push(Model {
                data: vec![number; len],
                annotations: vec![0; 48],
                ..Model::default()
            });
        }
    }

    fn repeat(&mut self, n: usize, times: usize) {
        let Some(n) = n.checked_rem(self.model.len()) else {
            return;
        };
        let (before, mut copies) = (self.batch.len(), Batch::new());
        let packet = self.batch.iter_mut().nth(n).unwrap();
        self.pool.repeat(packet, times, &mut copies);
        assert_eq!(copies.len(), times.min(LIMIT - before));
        self.model.extend(vec![self.model[n].clone(); copies.len()]);
        self.batch.append(&mut copies);
    }

    fn copy_all(&mut self) {
        let mut copies = Batch::new();
        self.pool.duplicate_all(&mut self.batch, &mut copies);
        let models = self.model[..copies.len()].to_vec();
        assert_eq!(copies.len(), self.model.len().min(LIMIT - self.model.len()));
        self.model.extend(models);
        self.batch.append(&mut copies);
    }

    fn drop_one(&mut self, n: usize) {
        if let Some(n) = n.checked_rem(self.model.len()) {
            self.model.remove(n);
            let mut seen = 0;
            self.batch.retain_mut(|_| {
                seen += 1;
                seen != n + 1
            });
        }
    }

    fn change(&mut self, step: &Step) -> Option<()> {
        match *step {
            Step::Write(n, byte) => {
                let (packet, model) = self.at(n)?;
                packet.data_mut().fill(byte);
                model.data.fill(byte);
            }
            Step::Push(n, byte) => {
                let (packet, model) = self.at(n)?;
                assert!(packet.push(1));
                packet.data_mut()[0] = byte;
                assert!(packet.prepend(&[byte, 1, !byte]));
                for byte in [byte, !byte, 1, byte] {
                    model.data.insert(0, byte);
                    model.stripped.pop();
                }
                model.mac = model.mac.map(|mac| mac + 4);
            }
            Step::Put(n, len) => {
                let (packet, model) = self.at(n)?;
                assert!(packet.put(len));
                model.data.resize(model.data.len() + len, 0);
            }
            Step::Pull(n, len) => {
                let (packet, model) = self.at(n)?;
                packet.pull(len);
                let len = len.min(model.data.len());
                model.stripped.extend(model.data.drain(..len));
                model.mac = model.mac.map(|mac| mac - len as isize);
            }
            Step::Unstrip(n) => {
                let (packet, model) = self.at(n)?;
                let len = model.stripped.len();
                assert!(packet.push(len));
                model.data.splice(..0, model.stripped.drain(..));
                model.mac = model.mac.map(|mac| mac + len as isize);
            }
            Step::Annotate(n, offset, byte) => {
                let (packet, model) = self.at(n)?;
                packet.anno_mut().set_u8(offset, byte);
                model.annotations[offset] = byte;
            }
            Step::Mac(n, offset) => {
                let (packet, model) = self.at(n)?;
                packet.set_mac_offset(offset as isize);
                model.mac = Some(offset as isize);
            }
            _ => {}
        }
        Some(())
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Make(len) => self.make(len),
            Step::Copy(n) => self.repeat(n, 1),
            Step::Repeat(n, times) => self.repeat(n, times),
            Step::CopyAll => self.copy_all(),
            Step::UniqueifyAll => self.batch.uniqueify(),
            Step::Drop(n) => self.drop_one(n),
            Step::Clear => {
                self.batch.clear();
                self.model.clear();
            }
            _ => drop(self.change(step)),
        }
    }

    fn check(&self) {
        assert_eq!(self.pool.in_use(), self.model.len());
        for (packet, model) in self.batch.iter().zip(&self.model) {
            assert_eq!(packet.data(), model.data);
            assert_eq!(packet.anno().bytes()[..], model.annotations);
            assert_eq!(packet.mac_offset(), model.mac);
        }
    }
}

proptest! {
    #[test]
    fn who_changes_a_copy_changes_no_other(steps in prop::collection::vec(step(), 0..120)) {
        let mut world = World {
            pool: PacketPool::new(LIMIT),
            batch: Batch::new(),
            model: Vec::new(),
        };
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
