// SPDX-License-Identifier: Apache-2.0
//! What the ring logic needs of shared memory; the tests have a model that runs under loom.

/// Memory shared with a hostile peer. Offsets are in bytes from the region's start and come from
/// checked descriptors or the layout; an implementation may panic outside of the region.
pub trait Memory {
    /// Bytes in the region.
    fn size(&self) -> usize;
    /// Reads an aligned word with acquire ordering.
    fn load(&self, at: usize) -> u32;
    /// Writes an aligned word with release ordering.
    fn store(&self, at: usize, value: u32);
    /// Reads an aligned descriptor; the load of an index orders it.
    fn load_descriptor(&self, at: usize) -> u64;
    /// Writes an aligned descriptor; the store of an index orders it.
    fn store_descriptor(&self, at: usize, value: u64);
    /// Reads aligned descriptors that follow each other.
    fn load_descriptors(&self, at: usize, into: &mut [u64]) {
        for (n, word) in into.iter_mut().enumerate() {
            *word = self.load_descriptor(at + n * 8);
        }
    }
    /// Writes aligned descriptors that follow each other.
    fn store_descriptors(&self, at: usize, from: &[u64]) {
        for (n, word) in from.iter().enumerate() {
            self.store_descriptor(at + n * 8, *word);
        }
    }
    /// Copies `len` bytes, N at most, out of the region. Other bytes of the region may follow them.
    fn read_head<const N: usize>(&self, at: usize, len: usize, into: &mut [u8; N]) {
        self.read(at, &mut into[..len]);
    }
    /// Copies out of the region.
    fn read(&self, at: usize, into: &mut [u8]);
    /// Copies into the region.
    fn write(&self, at: usize, from: &[u8]);
    /// Copies `len` bytes from `source_at` of another region. The owners of both may write
    /// meanwhile.
    fn copy_from(&self, at: usize, source: &Self, source_at: usize, len: usize) {
        let mut chunk = [0; 256];
        for done in (0..len).step_by(chunk.len()) {
            let part = &mut chunk[..(len - done).min(256)];
            source.read(source_at + done, part);
            self.write(at + done, part);
        }
    }
    /// Starts to load the cache line at `at`.
    fn prefetch(&self, _at: usize) {}
    /// A sequentially consistent fence.
    fn fence(&self);
}
