// SPDX-License-Identifier: Apache-2.0
//! PV guests: frames are the machine's, and page tables change by hypercalls only.
use crate::abi::{self, MmuUpdate, SetupTable};
use crate::hypercall::{Refused, call, operate};
use crate::state::frame_of;
use alloc::vec;

/// Flush one address after a change (`UVMF_INVLPG`).
const FLUSH_ONE: usize = 2;
const PRESENT: u64 = 1;
/// Present, writable, for ring 3, where a PV guest runs.
const WRITABLE: u64 = 7;
const READ_ONLY: u64 = 5;

/// Maps the machine frame at a page of the guest, or unmaps the page with 0 for `entry`.
///
/// # Safety
/// Nothing may refer to the content of the page at `address`, and `entry` must be a page that
/// only volatile accesses reach, or none.
pub(crate) unsafe fn map_page(address: usize, entry: u64) -> Result<(), Refused> {
    let arguments = [address, entry as usize, FLUSH_ONE, 0];
    // SAFETY: the caller's promise; Xen refuses what is not this guest's.
    unsafe { call(abi::UPDATE_VA_MAPPING, arguments) }.map(drop)
}

/// Puts page `index` of the grant table where the page at `address` was.
///
/// # Safety
/// As for [`map_page`].
pub(crate) unsafe fn place_grant_page(index: u32, address: usize) -> Result<(), Refused> {
    let mut list = vec![0_u64; index as usize + 1];
    let mut argument = SetupTable {
        domid: abi::DOMID_SELF,
        frames: index + 1,
        status: 0,
        list: list.as_mut_ptr(),
    };
    // SAFETY: the structure is the one of this operation, and the list has room for its frames.
    unsafe { operate(abi::GRANT_TABLE_OP, abi::SETUP_TABLE, &mut argument) }?;
    if argument.status != 0 {
        return Err(Refused(i64::from(argument.status)));
    }
    // SAFETY: the caller's promise.
    unsafe { map_page(address, list[index as usize] << 12 | WRITABLE) }
}

/// The page tables that the domain builder made, as far as they cover the first GiB.
pub(crate) struct Tables {
    /// Address of the table of 2 MiB each.
    second: usize,
}

impl Tables {
    const SPAN: usize = 2 << 20;
    /// Memory that one table of 2 MiB each covers; a PV guest uses no more.
    pub(crate) const MAX: usize = 512 * Self::SPAN;

    /// Finds the tables below the top one.
    ///
    /// # Safety
    /// `top` must be the address of this guest's top table, as the start info gives it.
    pub(crate) unsafe fn find(top: usize) -> Self {
        // SAFETY: the builder mapped address 0 and all of its tables.
        let second = unsafe { Self::below(Self::below(top)) };
        Self { second }
    }

    /// The table that the first entry of a table refers to.
    ///
    /// # Safety
    /// `table` must be a mapped page table whose first entry is present.
    unsafe fn below(table: usize) -> usize {
        // SAFETY: the caller's promise.
        let entry = unsafe { (table as *const u64).read_volatile() };
        page_of(entry >> 12 & 0xff_ffff_ffff)
    }

    /// Maps everything below `end`; tables are made of the pages from `free` on. Gives the first
    /// page that was not needed.
    ///
    /// # Safety
    /// The pages from `free` to `end` must be this guest's and not in use.
    pub(crate) unsafe fn extend(&self, mut free: usize, end: usize) -> Result<usize, Refused> {
        for index in 0..end.div_ceil(Self::SPAN) {
            let entry = self.second + 8 * index;
            // SAFETY: `index` is below 512, since `end` is at most `MAX`.
            if unsafe { (entry as *const u64).read_volatile() } & PRESENT == 0 {
                // SAFETY: the caller's promise; lower addresses were mapped before.
                unsafe { self.add(index, free, end) }?;
                free += crate::PAGE_SIZE;
            }
        }
        Ok(free)
    }

    /// Makes a table of the page at `table` and hooks it in as number `index`.
    ///
    /// # Safety
    /// The page must be mapped and not in use.
    unsafe fn add(&self, index: usize, table: usize, end: usize) -> Result<(), Refused> {
        for slot in 0..512 {
            let page = index * Self::SPAN + slot * crate::PAGE_SIZE;
            let entry = if page < end {
                frame_of(page) << 12 | WRITABLE
            } else {
                0
            };
            // SAFETY: 512 words are the page.
            unsafe { (table as *mut u64).add(slot).write_volatile(entry) };
        }
        let frame = frame_of(table) << 12;
        let place = frame_of(self.second) << 12 | (8 * index) as u64;
        let mut update = MmuUpdate {
            pointer: place,
            value: frame | WRITABLE,
        };
        let pointer: *mut MmuUpdate = &mut update;
        // SAFETY: nothing refers to the page; as a table it must not be writable.
        unsafe { map_page(table, frame | READ_ONLY) }?;
        // SAFETY: one update of an entry that was empty.
        unsafe {
            call(
                abi::MMU_UPDATE,
                [pointer as usize, 1, 0, abi::DOMID_SELF as usize],
            )
        }
        .map(drop)
    }
}

/// The guest's address of a machine frame.
pub(crate) fn page_of(machine_frame: u64) -> usize {
    const MACHINE_TO_PHYSICAL: usize = 0xffff_8000_0000_0000;
    let entry = MACHINE_TO_PHYSICAL + 8 * machine_frame as usize;
    // SAFETY: Xen maps this list into every PV guest; frames come from the start info or a table.
    let own = unsafe { (entry as *const u64).read_volatile() };
    own as usize * crate::PAGE_SIZE
}

/// Maps a page of Xen's where one of the guest's was.
///
/// # Safety
/// As for [`map_page`].
pub(crate) unsafe fn place(machine_address: u64, address: usize) -> Result<(), Refused> {
    // SAFETY: the caller's promise.
    unsafe { map_page(address, machine_address & !0xfff | WRITABLE) }
}
