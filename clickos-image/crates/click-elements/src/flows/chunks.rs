// SPDX-License-Identifier: Apache-2.0
//! An array that grows without moving what it holds, so that growing never takes long.
use core::ops::{Index, IndexMut};

use click_core::memory;

use crate::prelude::*;

/// Items of a chunk, up to the first long one.
const CHUNK: usize = 1024;
/// Items of a long chunk, and of all the others before: of large items it fills large pages, so that the processor
/// finds its way to a million of them.
const LONG: usize = 32 * CHUNK;

/// An array in chunks.
pub struct Chunks<T> {
    chunks: Vec<Box<[T]>>,
    long: Vec<Box<[T]>>,
}

/// Items in one block, unless less than the reserve would be left.
fn chunk<T: Clone>(blank: &T, len: usize) -> Option<Box<[T]>> {
    let bytes = len * size_of::<T>();
    memory::has_room(bytes + memory::RESERVE).then(|| vec![blank.clone(); len].into_boxed_slice())
}

impl<T: Clone> Chunks<T> {
    /// No items.
    pub fn new() -> Self {
        Self {
            chunks: Vec::new(),
            long: Vec::new(),
        }
    }

    /// Makes an item at `index`; new ones are `blank`. `None` if the memory does not take them.
    #[must_use]
    pub fn reach(&mut self, index: u32, blank: &T) -> Option<()> {
        let index = index as usize;
        while self.chunks.len() < (index / CHUNK + 1).min(LONG / CHUNK) {
            self.chunks.push(chunk(blank, CHUNK)?);
        }
        while self.long.len() < index / LONG {
            self.long.push(chunk(blank, LONG)?);
        }
        Some(())
    }
}

/// True for a long chunk, then the chunk and the place in it.
#[inline]
fn place(index: u32) -> (bool, usize, usize) {
    let index = index as usize;
    match (index / LONG).checked_sub(1) {
        Some(chunk) => (true, chunk, index % LONG),
        None => (false, index / CHUNK, index % CHUNK),
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        match place(index) {
            (true, chunk, at) => &self.long[chunk][at],
            (false, chunk, at) => &self.chunks[chunk][at],
        }
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        match place(index) {
            (true, chunk, at) => &mut self.long[chunk][at],
            (false, chunk, at) => &mut self.chunks[chunk][at],
        }
    }
}
