// SPDX-License-Identifier: Apache-2.0
//! The list of a region's grant references, in pages of their own.
//!
//! So the Xen store holds one reference however large the region is. A page holds up to
//! [`PER_PAGE`] references in the order of the region's pages. Its last word is the reference of
//! the next directory page, or 0.
use crate::layout::PAGE;
use crate::memory::Memory;

/// References in one directory page.
pub const PER_PAGE: usize = PAGE / 4 - 1;
const AT_NEXT: usize = PER_PAGE * 4;

/// Directory pages for a region of `pages` pages.
pub fn pages(region_pages: usize) -> usize {
    region_pages.div_ceil(PER_PAGE)
}

/// Fills zeroed directory pages, whose own references are `own`.
pub fn write(memory: &impl Memory, own: &[u32], references: &[u32]) {
    for (page, part) in references.chunks(PER_PAGE).enumerate() {
        for (at, reference) in part.iter().enumerate() {
            memory.store(page * PAGE + at * 4, *reference);
        }
        let next = own.get(page + 1).copied().unwrap_or(0);
        memory.store(page * PAGE + AT_NEXT, next);
    }
}

/// Reads the first references of a copy of one directory page into `into`; returns the next
/// page's.
pub fn read(page: &[u32; PAGE / 4], into: &mut [u32]) -> u32 {
    let count = into.len().min(PER_PAGE);
    into[..count].copy_from_slice(&page[..count]);
    page[PER_PAGE]
}
