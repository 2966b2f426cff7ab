// SPDX-License-Identifier: Apache-2.0
//! Memory that somebody else may change at any time: read and written by volatile accesses only.
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A range of shared memory. No reference into it ever exists.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<u8>,
    len: usize,
}

/// Numbers that are read and written in one access.
pub trait Word: Copy + private::Sealed {}

mod private {
    pub trait Sealed {}
}

macro_rules! words {
    ($($word:ty),*) => { $(impl private::Sealed for $word {} impl Word for $word {})* };
}
words!(u8, u16, u32, u64);

impl Shared {
    /// Takes a range.
    ///
    /// # Safety
    /// `base` must be page aligned and valid for reads and writes of `len` bytes as long as this
    /// value is used, and nothing on this side may hold a reference into it.
    pub(crate) unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len }
    }

    /// Bytes of the range.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn at<T>(&self, offset: usize, count: usize) -> NonNull<T> {
        let size = count * size_of::<T>();
        let within = offset <= self.len && size <= self.len - offset;
        assert!(
            within && offset % align_of::<T>() == 0,
            "access of {size} bytes at {offset} of {} shared bytes",
            self.len
        );
        // SAFETY: just checked to be within the range that `new` was promised.
        unsafe { self.base.add(offset) }.cast()
    }

    /// Reads a word.
    pub fn read<T: Word>(&self, offset: usize) -> T {
        // SAFETY: `at` gives an aligned address within the range; any bytes are a number.
        unsafe { self.at::<T>(offset, 1).read_volatile() }
    }

    /// Writes a word.
    pub fn write<T: Word>(&self, offset: usize, value: T) {
        // SAFETY: as in `read`.
        unsafe { self.at::<T>(offset, 1).write_volatile(value) }
    }

    /// Reads a word; what the other side wrote before it is visible afterwards.
    pub fn acquire<T: Word>(&self, offset: usize) -> T {
        let value = self.read(offset);
        fence(Ordering::Acquire);
        value
    }

    /// Writes a word after everything that was written before.
    pub fn release<T: Word>(&self, offset: usize, value: T) {
        fence(Ordering::Release);
        self.write(offset, value);
    }

    /// Clears bits of a 64-bit word in one step; gives what it was.
    pub fn clear_bits(&self, offset: usize, bits: u64) -> u64 {
        let word = self.at::<u64>(offset, 1);
        // SAFETY: aligned and within the range; both sides change the word by atomics only, and
        // the reference ends with this statement.
        unsafe { AtomicU64::from_ptr(word.as_ptr()).fetch_and(!bits, Ordering::SeqCst) }
    }

    /// Copies out of the range.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        let from = self.at::<u8>(offset, into.len());
        // SAFETY: within the range, and `into` is private, so they do not overlap. The other side
        // may write meanwhile: any bytes are fine, they are checked on the copy.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len()) }
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Copies into the range.
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        let into = self.at::<u8>(offset, from.len());
        // SAFETY: within the range, and `from` is private, so they do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), into.as_ptr(), from.len()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::Pages;

    #[test]
    fn words_and_bytes() {
        let pages = Pages::new(1).unwrap();
        let shared = &*pages;
        shared.write(8, 0x1122_3344_5566_7788_u64);
        assert_eq!(shared.read::<u8>(8), 0x88);
        assert_eq!(shared.clear_bits(8, 0x8), 0x1122_3344_5566_7788);
        assert_eq!(shared.read::<u64>(8), 0x1122_3344_5566_7780);
        shared.copy_in(4093, b"end");
        let mut three = [0; 3];
        shared.copy_out(4093, &mut three);
        assert_eq!(&three, b"end");
    }

    #[test]
    #[should_panic(expected = "4 bytes at 4093 of 4096")]
    fn nothing_beyond_the_end() {
        Pages::new(1).unwrap().copy_in(4093, b"ends");
    }

    #[test]
    #[should_panic(expected = "4 bytes at 2 ")]
    fn words_are_aligned() {
        Pages::new(1).unwrap().read::<u32>(2);
    }
}
