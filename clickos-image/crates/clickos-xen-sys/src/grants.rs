// SPDX-License-Identifier: Apache-2.0
//! Grants: pages that another domain may map or copy (table version 1).
use crate::abi;
use crate::hypercall::{Refused, operate};
use crate::pages::{PAGE_SIZE, Pages};
use crate::shared::Shared;
use crate::state::{Kind, frame_of, kind};
use crate::{pv, pvh};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Entries of a page of the table.
const PER_PAGE: u32 = (PAGE_SIZE / 8) as u32;
/// References below are Xen's own (`GNTTAB_NR_RESERVED_ENTRIES`: console, store).
const FIRST: u32 = 8;
/// Flags of an entry (`grant_table.h`): access may begin; only reading; the other side uses it.
const PERMIT: u16 = 1;
const READ_ONLY: u16 = 4;
const IN_USE: u16 = 8 | 16;

/// Why a page is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// No memory for a page of the table.
    Memory,
    /// All references of the guest are in use: the number there are.
    Full(u32),
    Xen(Refused),
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => write!(f, "grants: no memory for the table"),
            Self::Full(limit) => write!(f, "grants: all {limit} references are in use"),
            Self::Xen(refused) => write!(f, "grants: {refused}"),
        }
    }
}

/// The guest's grant table.
struct Table {
    pages: Vec<Pages>,
    /// References that are not in use.
    free: Vec<u32>,
    /// Addresses of the pages of the references that are.
    owners: BTreeMap<u32, usize>,
}

/// Only the guest's one processor uses it, and never within an exception.
struct Cell(RefCell<Table>);
// SAFETY: a guest has one processor and takes no interrupts, so there is one thread only; on other
// hosts nothing can be granted, because hypercalls need a boot.
unsafe impl Sync for Cell {}

static TABLE: Cell = Cell(RefCell::new(Table {
    pages: Vec::new(),
    free: Vec::new(),
    owners: BTreeMap::new(),
}));

impl Table {
    fn entry(&self, reference: u32) -> (&Shared, usize) {
        let page = &self.pages[(reference / PER_PAGE) as usize];
        (page, 8 * (reference % PER_PAGE) as usize)
    }

    fn grant(&mut self, address: usize, to: u16, flags: u16) -> Result<u32, GrantError> {
        if self.free.is_empty() {
            self.grow()?;
        }
        let reference = self.free.pop().ok_or(GrantError::Memory)?;
        let (page, at) = self.entry(reference);
        page.write(at + 2, to);
        page.write(at + 4, frame_of(address) as u32);
        page.release(at, flags);
        self.owners.insert(reference, address);
        Ok(reference)
    }

    /// Ends a grant; false if the other side still uses the page.
    fn end(&mut self, reference: u32) -> bool {
        if !self.owners.contains_key(&reference) {
            return true;
        }
        let (page, at) = self.entry(reference);
        // A new use cannot begin any more; one that began is seen in the same step.
        let before = page.clear_bits(at, u64::from(PERMIT | READ_ONLY));
        if before as u16 & IN_USE != 0 {
            return false;
        }
        self.owners.remove(&reference);
        self.free.push(reference);
        true
    }

    /// One more page of references.
    fn grow(&mut self) -> Result<(), GrantError> {
        let index = self.pages.len() as u32;
        let limit = limit().map_err(GrantError::Xen)?;
        if index >= limit {
            return Err(GrantError::Full(limit * PER_PAGE));
        }
        let page = Pages::new(1).ok_or(GrantError::Memory)?;
        map(&page, index).map_err(GrantError::Xen)?;
        self.pages.push(page);
        let first = (index * PER_PAGE).max(FIRST);
        self.free.extend((first..(index + 1) * PER_PAGE).rev());
        Ok(())
    }
}

/// How many pages Xen allows the table to have.
fn limit() -> Result<u32, Refused> {
    let mut argument = abi::QuerySize {
        domid: abi::DOMID_SELF,
        ..abi::QuerySize::default()
    };
    // SAFETY: the structure is the one of this operation, which changes nothing.
    unsafe { operate(abi::GRANT_TABLE_OP, abi::QUERY_SIZE, &mut argument) }?;
    Ok(argument.max_frames)
}

/// Puts page `index` of the table where a page of the heap was.
fn map(page: &Pages, index: u32) -> Result<(), Refused> {
    let address = page.address(0);
    match kind() {
        // SAFETY: the page is fresh, belongs to the table for ever, and nothing refers to it.
        Kind::Pvh => unsafe { pvh::place(abi::SPACE_GRANT_TABLE, u64::from(index), address) },
        // SAFETY: as above.
        Kind::Pv => unsafe { pv::place_grant_page(index, address) },
    }
}

/// Lets domain `to` use page `index` of `pages`; gives the reference.
///
/// # Errors
/// No reference is free, or no memory for the table.
pub fn grant(pages: &Pages, index: usize, to: u16, read_only: bool) -> Result<u32, GrantError> {
    let flags = if read_only {
        PERMIT | READ_ONLY
    } else {
        PERMIT
    };
    let address = pages.address(index);
    TABLE.0.borrow_mut().grant(address, to, flags)
}

/// Ends a grant; false if the other domain still uses the page: then it may be tried again.
pub fn end(reference: u32) -> bool {
    TABLE.0.borrow_mut().end(reference)
}

/// True if a page within this range of addresses is granted.
pub(crate) fn any_granted(range: Range<usize>) -> bool {
    let table = TABLE.0.borrow();
    let mut owners = table.owners.values();
    owners.any(|address| range.contains(address))
}

/// Writes what they hold to all granted pages. A live migration sends pages again that the guest has
/// written, but not those that a backend has written by a grant. Packets lie in such pages.
pub(crate) fn rewrite() {
    for address in TABLE.0.borrow().owners.values() {
        // SAFETY: a page of `Pages`, which lives while it is granted. Its users reach it by volatile
        // accesses, atomics and copies. A step that changes no value disturbs none of them.
        let word = unsafe { AtomicU64::from_ptr(*address as *mut u64) };
        // The processor writes in both cases.
        let _ = word.compare_exchange(0, 0, SeqCst, SeqCst);
    }
}

/// After a restore: the table is empty, and its pages have to be put in place again.
pub(crate) fn restore() -> Result<(), Refused> {
    let mut table = TABLE.0.borrow_mut();
    for (index, page) in table.pages.iter().enumerate() {
        map(page, index as u32)?;
    }
    let end = table.pages.len() as u32 * PER_PAGE;
    table.owners.clear();
    table.free = (FIRST..end.max(FIRST)).rev().collect();
    Ok(())
}
