// SPDX-License-Identifier: Apache-2.0
//! Maps granted pages.
use crate::{open, request};
use ring::Mapping;
use ring::layout::PAGE;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

/// `IOCTL_GNTDEV_MAP_GRANT_REF`: count (32 bits, 32 unused), out: index, then a domain and a
/// reference (32 bits each) per page.
const MAP: libc::c_ulong = request(b'G', 0, 24);

/// Mapped pages of a guest. The guest cannot revoke them while they are mapped. They outlive the
/// guest: Xen frees its domain only after they are unmapped.
struct Pages {
    base: NonNull<u8>,
    size: usize,
    /// Closing it drops the grants, so the memory is unmapped first.
    _device: File,
}

// SAFETY: the address range belongs to this value alone, and unmapping works from any thread.
unsafe impl Send for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `map` mapped exactly this range. The ring's mapping, which used it, owned this
        // value and is gone. Only a wrong address gives an error.
        let _ = unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// Maps the pages that a domain has granted to dom0, one after another.
///
/// # Errors
/// The kernel's: a reference may be no grant to dom0.
pub fn map(domid: u16, references: &[u32]) -> io::Result<Mapping> {
    let pages = Pages::map(domid, references, libc::PROT_READ | libc::PROT_WRITE)?;
    let (base, size) = (pages.base, pages.size);
    // SAFETY: `base` is page aligned and valid for `size` bytes until `pages` is dropped. The
    // mapping owns `pages`, and no other code has the address.
    Ok(unsafe { Mapping::with_owner(base, size, Box::new(pages)) })
}

/// Copies a page that a domain has granted to dom0, also read-only.
///
/// # Errors
/// As [`map`].
pub fn read(domid: u16, reference: u32) -> io::Result<[u32; PAGE / 4]> {
    let page = Pages::map(domid, &[reference], libc::PROT_READ)?;
    let words = page.base.cast::<u32>();
    // SAFETY: each word lies in the page, which is mapped until the end of this function. The
    // guest may write meanwhile: volatile reads take any value once.
    Ok(std::array::from_fn(|at| unsafe {
        words.add(at).read_volatile()
    }))
}

impl Pages {
    fn map(domid: u16, references: &[u32], protection: libc::c_int) -> io::Result<Self> {
        let device = open("/dev/xen/gntdev")?;
        let index = announce(&device, domid, references)?;
        let (size, fd) = (references.len() * PAGE, device.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let base = unsafe { libc::mmap(null_mut(), size, protection, libc::MAP_SHARED, fd, index) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            size,
            _device: device,
        })
    }
}

/// Registers the grants with the driver; it returns the offset at which to map them.
fn announce(device: &File, domid: u16, references: &[u32]) -> io::Result<libc::off_t> {
    let mut words = vec![references.len() as u64, 0];
    words.extend(
        references
            .iter()
            .map(|r| u64::from(domid) | u64::from(*r) << 32),
    );
    // SAFETY: `words` lives through the call. It holds the header and the pairs that the driver
    // reads, and the second word, which the driver writes.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), MAP, words.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    libc::off_t::try_from(words[1]).map_err(io::Error::other)
}
