// SPDX-License-Identifier: Apache-2.0
//! Real shared memory behind [`Memory`]: the only unsafe code of this crate.
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use crate::Memory;
#[cfg(feature = "std")]
use crate::layout::{CHUNK, Layout, PAGE};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A region of memory another protection domain can write at any time.
pub struct Mapping {
    base: NonNull<u8>,
    size: usize,
    /// Dropped with the mapping, which unmaps the region.
    #[cfg(feature = "std")]
    _owner: Option<Box<dyn Send>>,
}

// SAFETY: raw pointers, atomics and copies alone reach the region, from any thread. There is no
// other interior state, and the owner is `Send` itself.
unsafe impl Send for Mapping {}

// SAFETY: as above. All methods take `&self` and may run at once, as those of the peer do. No method
// reaches the owner.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Takes memory that is shared by other means, such as granted pages.
    ///
    /// # Safety
    /// As long as the mapping lives, `base` must be page aligned and valid for reads and writes of
    /// `size` bytes. Meanwhile no reference to these bytes may exist.
    pub unsafe fn from_raw(base: NonNull<u8>, size: usize) -> Self {
        Self {
            base,
            size,
            #[cfg(feature = "std")]
            _owner: None,
        }
    }

    /// As [`Mapping::from_raw`], with the memory's owner, which is dropped after the last use.
    ///
    /// # Safety
    /// As there, as long as `owner` lives.
    #[cfg(feature = "std")]
    pub unsafe fn with_owner(base: NonNull<u8>, size: usize, owner: Box<dyn Send>) -> Self {
        let _owner = Some(owner);
        Self { base, size, _owner }
    }

    /// Maps the first `size` bytes of a file that cannot shrink.
    #[cfg(feature = "std")]
    pub(crate) fn of_file(
        file: std::os::fd::BorrowedFd<'_>,
        size: usize,
    ) -> rustix::io::Result<Self> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let base = unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::SHARED, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        let owner = Box::new(FileMapping { base, size });
        // Large pages, if the administrator allows them for shared memory. Nothing depends on them.
        // SAFETY: the advice changes no bytes of the mapping, which was made just now.
        let _ = unsafe { madvise(base.as_ptr().cast(), size, Advice::LinuxHugepage) };
        // SAFETY: mapped just now, until `owner` is dropped; no other code knows the address.
        Ok(unsafe { Self::with_owner(base, size, owner) })
    }

    /// The address of `len` bytes at `at`.
    fn at(&self, at: usize, len: usize, align: usize) -> *mut u8 {
        assert!(
            at <= self.size && len <= self.size - at && at % align == 0,
            "outside of the region"
        );
        // SAFETY: `at` was just checked to lie within the region of `size` bytes at `base`.
        unsafe { self.base.as_ptr().add(at) }
    }
}

/// Memory [`Mapping::of_file`] mapped.
#[cfg(feature = "std")]
struct FileMapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the address range belongs to this value alone, and unmapping works from any thread.
#[cfg(feature = "std")]
unsafe impl Send for FileMapping {}

#[cfg(feature = "std")]
impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: `of_file` mapped exactly this range, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// The buffers of a region of version 2 where the guest uses them: blocks of a private page and a
/// chunk of the region. The block of chunk `n` begins `n` times [`Blocks::SIZE`] after the first.
#[cfg(feature = "std")]
pub struct Blocks {
    area: FileMapping,
    first: NonNull<u8>,
    count: usize,
}

#[cfg(feature = "std")]
impl Blocks {
    /// Bytes of a block, and the unit of its address.
    pub const SIZE: usize = PAGE + CHUNK;

    pub(crate) fn of_file(
        file: std::os::fd::BorrowedFd<'_>,
        layout: Layout,
    ) -> rustix::io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
        let (count, protection) = (layout.chunks(), ProtFlags::READ | ProtFlags::WRITE);
        let size = (count + 1) * Self::SIZE;
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), size, protection, MapFlags::PRIVATE) }?;
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        let area = FileMapping { base, size };
        // SAFETY: less than one block further, and the area has one more than needed.
        let first = unsafe { base.add(base.as_ptr().align_offset(Self::SIZE)) };
        for n in 0..count {
            let at = (layout.first_chunk() + n * CHUNK) as u64;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: replaces pages of the area, which no other code knows yet.
            unsafe {
                let to = first.add(n * Self::SIZE + PAGE).as_ptr();
                mmap(to.cast(), CHUNK, protection, flags, file, at)?;
            }
        }
        Ok(Self { area, first, count })
    }

    /// The first block, at a multiple of [`Blocks::SIZE`]. All blocks stay mapped, and this
    /// process does not use them otherwise, until `self` is dropped.
    pub fn first(&self) -> NonNull<u8> {
        debug_assert!(self.area.size > self.count * Self::SIZE);
        self.first
    }

    /// The number of blocks.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Memory for Mapping {
    fn size(&self) -> usize {
        self.size
    }

    fn load(&self, at: usize) -> u32 {
        let word = self.at(at, 4, 4).cast();
        // SAFETY: in the region and aligned, since `at` checks and `base` is page aligned. Both
        // sides access it by atomics only, and the reference ends with this statement.
        unsafe { AtomicU32::from_ptr(word).load(Ordering::Acquire) }
    }

    fn store(&self, at: usize, value: u32) {
        let word = self.at(at, 4, 4).cast();
        // SAFETY: as in `load`.
        unsafe { AtomicU32::from_ptr(word).store(value, Ordering::Release) }
    }

    fn load_descriptor(&self, at: usize) -> u64 {
        let word = self.at(at, 8, 8).cast();
        // SAFETY: as in `load`.
        unsafe { AtomicU64::from_ptr(word).load(Ordering::Relaxed) }
    }

    fn store_descriptor(&self, at: usize, value: u64) {
        let word = self.at(at, 8, 8).cast();
        // SAFETY: as in `load`.
        unsafe { AtomicU64::from_ptr(word).store(value, Ordering::Relaxed) }
    }

    fn load_descriptors(&self, at: usize, into: &mut [u64]) {
        let words = self.at(at, size_of_val(into), 8).cast::<u64>();
        for (n, word) in into.iter_mut().enumerate() {
            // SAFETY: `words` points to as many words of the region as `into` has, which `at` checked,
            // and is aligned. Both sides access them by atomics only.
            *word = unsafe { AtomicU64::from_ptr(words.add(n)).load(Ordering::Relaxed) };
        }
    }

    fn store_descriptors(&self, at: usize, from: &[u64]) {
        let words = self.at(at, size_of_val(from), 8).cast::<u64>();
        for (n, word) in from.iter().enumerate() {
            // SAFETY: as in `load_descriptors`.
            unsafe { AtomicU64::from_ptr(words.add(n)).store(*word, Ordering::Relaxed) }
        }
    }

    /// Copies of a known length need no call: a cache line or the whole of `into`.
    #[inline]
    fn read_head<const N: usize>(&self, at: usize, len: usize, into: &mut [u8; N]) {
        if N < LINE || len > N || at > self.size.saturating_sub(N) || self.size < N {
            return self.read(at, &mut into[..len]);
        }
        // SAFETY: `at + N` lies in the region of `size` bytes at `base`, as just checked.
        let from = unsafe { self.base.as_ptr().add(at) };
        // SAFETY: N bytes from `from` on lie in the region, `into` has N, and `LINE` is no more than N, as just
        // checked. `into` is private, so they do not overlap. The peer may write meanwhile: any bytes are fine,
        // they are checked on the copy.
        unsafe {
            match len <= LINE {
                true => ptr::copy_nonoverlapping(from, into.as_mut_ptr(), LINE),
                false => ptr::copy_nonoverlapping(from, into.as_mut_ptr(), N),
            }
        }
        // The copy is the only read: nothing may be read from the region again in its place.
        compiler_fence(Ordering::SeqCst);
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        let from = self.at(at, into.len(), 1);
        // SAFETY: in the region (checked); `into` is private, so they do not overlap. The peer may
        // write meanwhile: any bytes are fine, they are checked on the copy.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
        // The copy is the only read: nothing may be read from the region again in its place.
        compiler_fence(Ordering::SeqCst);
    }

    fn write(&self, at: usize, from: &[u8]) {
        let into = self.at(at, from.len(), 1);
        // SAFETY: in the region (checked); `from` is private, so they do not overlap.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) }
    }

    fn copy_from(&self, at: usize, source: &Self, source_at: usize, len: usize) {
        let (from, into) = (source.at(source_at, len, 1), self.at(at, len, 1));
        // SAFETY: both ranges lie in their regions (checked). They may overlap if both mappings
        // are of one file, so this is `copy`.
        unsafe { ptr::copy(from, into, len) }
        compiler_fence(Ordering::SeqCst);
    }

    fn prefetch(&self, at: usize) {
        let line = self.base.as_ptr().wrapping_add(at);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing that the program sees, from any address, and SSE is part of
        // x86-64.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}
