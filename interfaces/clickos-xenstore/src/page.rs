// SPDX-License-Identifier: Apache-2.0
//! The shared store page (the one place of this crate with `unsafe` code).
//!
//! Only volatile copies touch the page; no reference to it ever exists, because the other side may
//! change it at any time. Layout: `struct xenstore_domain_interface` of `xen/io/xs_wire.h`.
#![allow(unsafe_code)]

use crate::ring::{Index, Page, RING_SIZE};
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

/// Bytes of the page.
pub const PAGE_SIZE: usize = 4096;

/// A store page at a fixed address.
pub struct SharedPage {
    base: NonNull<u8>,
}

// SAFETY: `base` points to shared memory that belongs to no thread, and `new` demands that only
// this value uses it on this side.
unsafe impl Send for SharedPage {}

impl SharedPage {
    /// Wraps the page at `base`.
    ///
    /// # Safety
    /// As long as the value lives, `base` must be aligned to 4 bytes and valid for reads and
    /// writes of [`PAGE_SIZE`] bytes. Nothing else on this side may access that memory.
    pub unsafe fn new(base: NonNull<u8>) -> Self {
        Self { base }
    }

    fn index(&self, index: Index) -> NonNull<u32> {
        let offset = 2 * RING_SIZE
            + 4 * match index {
                Index::ReqCons => 0,
                Index::ReqProd => 1,
                Index::RspCons => 2,
                Index::RspProd => 3,
            };
        // SAFETY: 2 * RING_SIZE + 12 + 4 bytes are within the page that `new` was promised.
        unsafe { self.base.add(offset) }.cast()
    }

    fn half(&self, half: usize, offset: usize, len: usize) -> NonNull<u8> {
        assert!(
            offset <= RING_SIZE && len <= RING_SIZE - offset,
            "ring offset beyond its half"
        );
        // SAFETY: half is 0 or 1 and offset is at most RING_SIZE, so this stays within the page.
        unsafe { self.base.add(half * RING_SIZE + offset) }
    }
}

impl Page for SharedPage {
    fn load(&self, index: Index) -> u32 {
        // SAFETY: `index` gives an address within the page, aligned because the base is.
        let value = unsafe { self.index(index).read_volatile() };
        fence(Ordering::Acquire);
        value
    }

    fn store(&mut self, index: Index, value: u32) {
        fence(Ordering::SeqCst);
        // SAFETY: as in `load`.
        unsafe { self.index(index).write_volatile(value) };
        fence(Ordering::SeqCst);
    }

    fn write_request(&mut self, offset: usize, bytes: &[u8]) {
        let base = self.half(0, offset, bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: `half` checked that bytes.len() bytes from `base` are within the page.
            unsafe { base.add(at).write_volatile(*byte) };
        }
    }

    fn read_response(&self, offset: usize, out: &mut [u8]) {
        let base = self.half(1, offset, out.len());
        for (at, byte) in out.iter_mut().enumerate() {
            // SAFETY: `half` checked that out.len() bytes from `base` are within the page.
            *byte = unsafe { base.add(at).read_volatile() };
        }
    }
}

/// A store page that is a file's first 4096 bytes, as on the process host.
#[cfg(feature = "std")]
pub struct MappedPage {
    page: SharedPage,
}

#[cfg(feature = "std")]
impl MappedPage {
    /// Maps the ring file.
    ///
    /// # Errors
    /// The system's, or `InvalidInput` if the file is too short.
    pub fn map(file: impl std::os::fd::AsFd) -> std::io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let size = rustix::fs::fstat(&file)?.st_size;
        if size < PAGE_SIZE as i64 {
            let text = format!("store ring: {size} bytes, {PAGE_SIZE} are needed");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a fresh address, so no memory in use is replaced.
        let base = unsafe {
            mmap(
                core::ptr::null_mut(),
                PAGE_SIZE,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).expect("a mapping is never at address 0");
        // SAFETY: the mapping is page-aligned, PAGE_SIZE long, lives until drop, and is known here
        // only. The file belongs to the toolstack, which does not truncate it while we live.
        let page = unsafe { SharedPage::new(base) };
        Ok(Self { page })
    }
}

#[cfg(feature = "std")]
impl Drop for MappedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length and nothing uses it any more.
        // An error could only mean a wrong address; there is nothing to undo then.
        let _ = unsafe { rustix::mm::munmap(self.page.base.as_ptr().cast(), PAGE_SIZE) };
    }
}

#[cfg(feature = "std")]
impl Page for MappedPage {
    fn load(&self, index: Index) -> u32 {
        self.page.load(index)
    }

    fn store(&mut self, index: Index, value: u32) {
        self.page.store(index, value);
    }

    fn write_request(&mut self, offset: usize, bytes: &[u8]) {
        self.page.write_request(offset, bytes);
    }

    fn read_response(&self, offset: usize, out: &mut [u8]) {
        self.page.read_response(offset, out);
    }
}
