// SPDX-License-Identifier: Apache-2.0
//! The first Rust code of a guest: finds out where everything is, then runs the application.
use crate::abi::{self, HvmStartInfo, MemoryMapEntry, StartInfo};
use crate::hypercall::Refused;
use crate::state::{self, STATE};
use crate::{PAGE_SIZE, cpu, events, heap, pv, pvh, traps};
use core::arch::global_asm;
use core::sync::atomic::Ordering::Relaxed;

global_asm!(include_str!("entry.s"));
global_asm!(include_str!("runtime.s"));

unsafe extern "C" {
    static xen_hypercall_page: u8;
    static xen_shared_info: u8;
    static xen_stack_guard: u8;
    static mut xen_page_directories: [u64; LARGE_PAGES];
    static mut xen_small_pages: [[u64; 512]; SPLIT];
    /// Begin and end of the image, and the end of its instructions, from the linker.
    static xen_image_start: u8;
    static xen_image_end: u8;
    static xen_text_end: u8;
}

unsafe extern "Rust" {
    /// The application; `clickos_os::entry!` defines it.
    safe fn xen_main() -> !;
}

/// Called by `entry.s`: `kind` 0 is PV, 1 PVH; `info` is the address of what Xen tells a guest.
#[unsafe(no_mangle)]
extern "C" fn xen_boot(kind: u64, info: usize) -> ! {
    STATE
        .hypercalls
        .store(&raw const xen_hypercall_page as usize, Relaxed);
    STATE
        .shared_info
        .store(&raw const xen_shared_info as usize, Relaxed);
    // SAFETY: `entry.s` passes on what Xen gave, at the start and once.
    let started = unsafe {
        match kind {
            0 => start_pv(info),
            _ => start_pvh(info),
        }
    };
    if let Err(refused) = started {
        panic!("boot: {refused}");
    }
    heap::keep_reserve();
    xen_main()
}

/// # Safety
/// To be called once, with the address of the start info.
unsafe fn start_pv(info: usize) -> Result<(), Refused> {
    // SAFETY: the caller's promise.
    let info = unsafe { (info as *const StartInfo).read() };
    state::set_command_line(&info.command_line);
    let shared_info = STATE.shared_info.load(Relaxed);
    // SAFETY: the page is in the image for this and nothing else.
    unsafe { pv::place(info.shared_info, shared_info) }?;
    STATE.frames.store(info.mfn_list as usize, Relaxed);
    STATE.frame_count.store(info.nr_pages as usize, Relaxed);
    STATE.console.store(pv::page_of(info.console_mfn), Relaxed);
    STATE.console_port.store(info.console_evtchn, Relaxed);
    STATE.store.store(pv::page_of(info.store_mfn), Relaxed);
    STATE.store_port.store(info.store_evtchn, Relaxed);
    events::mask();
    traps::install_pv()?;
    // SAFETY: nothing refers to the page; a stack that grows into it is a fault.
    unsafe { pv::map_page(&raw const xen_stack_guard as usize, 0) }?;
    // SAFETY: the builder's start info is about this guest.
    unsafe { take_pv_memory(&info) }
}

/// # Safety
/// `info` must be the guest's start info.
unsafe fn take_pv_memory(info: &StartInfo) -> Result<(), Refused> {
    let tables_end = info.pt_base as usize + info.nr_pt_frames as usize * PAGE_SIZE;
    let list_end = info.mfn_list as usize + info.nr_pages as usize * 8;
    // The builder's stack follows its tables.
    let free = tables_end.max(list_end).next_multiple_of(PAGE_SIZE) + PAGE_SIZE;
    let end = (info.nr_pages as usize * PAGE_SIZE).min(pv::Tables::MAX);
    // SAFETY: the builder puts nothing behind its stack, and nothing below the image.
    unsafe {
        let free = pv::Tables::find(info.pt_base as usize).extend(free, end)?;
        heap::add(PAGE_SIZE, &raw const xen_image_start as usize);
        heap::add(free, end);
    }
    Ok(())
}

/// # Safety
/// To be called once, with the address of the PVH start info.
unsafe fn start_pvh(info: usize) -> Result<(), Refused> {
    // SAFETY: the caller's promise.
    let info = unsafe { (info as *const HvmStartInfo).read() };
    assert!(info.magic == abi::HVM_START_MAGIC, "not started by Xen");
    // SAFETY: a text that ends with 0, in memory of this guest that is not the heap's yet.
    state::set_command_line(unsafe { pvh_command_line(info.cmdline_paddr) });
    install_hypercall_page();
    traps::install_pvh();
    pvh::connect()?;
    // SAFETY: the tables were made by `entry.s`; nothing refers to the guard page.
    unsafe { protect() };
    // SAFETY: the map is part of what the caller promises.
    unsafe { take_pvh_memory(&info) };
    Ok(())
}

/// # Safety
/// `address` must be 0, or of a text that ends with 0 and does not change meanwhile.
unsafe fn pvh_command_line<'a>(address: u64) -> &'a [u8] {
    if address == 0 {
        return b"";
    }
    // SAFETY: the caller's promise.
    unsafe { core::ffi::CStr::from_ptr(address as *const core::ffi::c_char) }.to_bytes()
}

/// Finds Xen among the hypervisors' leaves and lets it fill in the page.
fn install_hypercall_page() {
    const XEN: [u32; 3] = [0x566e_6558, 0x6558_4d4d, 0x4d4d_566e];
    let found = (0..256)
        .map(|n| 0x4000_0000 + 0x100 * n)
        .find(|leaf| cpu::cpuid(*leaf)[1..] == XEN);
    let base = found.expect("a PVH guest runs on Xen");
    let register = cpu::cpuid(base + 2)[1];
    let page = STATE.hypercalls.load(Relaxed) as u64;
    // SAFETY: the register that Xen names takes the address of a page, ours for this purpose.
    unsafe { cpu::write_msr(register, page) };
}

/// Large pages from address 0 that become small ones: those of the image up to its stack.
const SPLIT: usize = 3;
const LARGE_PAGE_BITS: usize = 21;
/// Those that `entry.s` maps.
const LARGE_PAGES: usize = 2048;
/// Bits of a page table's entry (Intel SDM volume 3, 4.5).
const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const LARGE: u64 = 0x80;

/// Lets nothing but the image's instructions be executed, lets nothing change them, and leaves the
/// stack's guard page out.
///
/// # Safety
/// The page tables must be the ones of `entry.s`.
unsafe fn protect() {
    let guard = &raw const xen_stack_guard as usize;
    let text = &raw const xen_image_start as usize..&raw const xen_text_end as usize;
    assert!(
        guard.max(text.end) >> LARGE_PAGE_BITS < SPLIT,
        "the image is too large"
    );
    let data = PRESENT | WRITABLE | cpu::no_execute();
    let small = |page: usize| match page {
        _ if page == guard => 0,
        _ if text.contains(&page) => page as u64 | PRESENT,
        _ => page as u64 | data,
    };
    // SAFETY: the tables are ours, identity mapped and not otherwise in use; all pages but the
    // guard stay where they were.
    unsafe {
        for large in 0..SPLIT {
            let first = large << LARGE_PAGE_BITS;
            let table = &raw mut xen_small_pages[large];
            table.write_volatile(core::array::from_fn(|slot| small(first + slot * PAGE_SIZE)));
            let entry = table as u64 | PRESENT | WRITABLE;
            (&raw mut xen_page_directories[large]).write_volatile(entry);
        }
        for large in SPLIT..LARGE_PAGES {
            let entry = (large << LARGE_PAGE_BITS) as u64 | data | LARGE;
            (&raw mut xen_page_directories[large]).write_volatile(entry);
        }
        core::arch::asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack));
    }
}

/// Entries of the memory map that are looked at.
const RANGES: usize = 16;
/// Memory that the page tables of `entry.s` map.
const MAPPED: u64 = (LARGE_PAGES << LARGE_PAGE_BITS) as u64;

/// # Safety
/// `info` must be the guest's start info.
unsafe fn take_pvh_memory(info: &HvmStartInfo) {
    // Copied first: the map itself lies in memory that becomes heap.
    let mut ranges = [(0, 0); RANGES];
    let map = info.memmap_paddr as *const MemoryMapEntry;
    for (index, range) in ranges
        .iter_mut()
        .enumerate()
        .take(info.memmap_entries as usize)
    {
        // SAFETY: the map has this number of entries.
        let entry = unsafe { map.add(index).read() };
        let end = entry.address.saturating_add(entry.size).min(MAPPED);
        if entry.kind == abi::MEMORY_MAP_RAM {
            *range = (entry.address as usize, end as usize);
        }
    }
    let image = (
        &raw const xen_image_start as usize,
        &raw const xen_image_end as usize,
    );
    for (start, end) in ranges {
        // SAFETY: memory of the guest by the map. The null pointer and the image are kept out. The
        // start info was copied and is not needed any more.
        unsafe {
            heap::add(start.max(PAGE_SIZE), end.min(image.0));
            heap::add(start.max(image.1), end);
        }
    }
}
