// SPDX-License-Identifier: Apache-2.0
//! An array that grows without moving what it holds, so that growing never takes long.
use core::ops::{Index, IndexMut};

use crate::prelude::*;

/// Items of a chunk.
const CHUNK: usize = 1024;

/// An array in chunks.
pub struct Chunks<T> {
    chunks: Vec<Box<[T]>>,
}

impl<T: Clone> Chunks<T> {
    /// No items.
    pub fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// Makes sure that there is an item at `index`; new ones are `blank`.
    pub fn reach(&mut self, index: u32, blank: &T) {
        while self.chunks.len() <= index as usize / CHUNK {
            self.chunks
                .push(vec![blank.clone(); CHUNK].into_boxed_slice());
        }
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}
