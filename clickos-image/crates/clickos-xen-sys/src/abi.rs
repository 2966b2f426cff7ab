// SPDX-License-Identifier: Apache-2.0
//! Numbers and structures of Xen's interface, by the public header that defines them.

/// This domain (`xen.h`).
pub(crate) const DOMID_SELF: u16 = 0x7ff0;

/// Hypercalls (`xen.h`).
pub(crate) const SET_TRAP_TABLE: usize = 0;
pub(crate) const MMU_UPDATE: usize = 1;
pub(crate) const MEMORY_OP: usize = 12;
pub(crate) const UPDATE_VA_MAPPING: usize = 14;
pub(crate) const CONSOLE_IO: usize = 18;
pub(crate) const GRANT_TABLE_OP: usize = 20;
pub(crate) const SCHED_OP: usize = 29;
pub(crate) const EVENT_CHANNEL_OP: usize = 32;
pub(crate) const HVM_OP: usize = 34;

/// `memory.h`.
pub(crate) const ADD_TO_PHYSMAP: usize = 7;
pub(crate) const SPACE_SHARED_INFO: u32 = 0;
pub(crate) const SPACE_GRANT_TABLE: u32 = 1;

/// `grant_table.h`.
pub(crate) const SETUP_TABLE: usize = 2;
pub(crate) const QUERY_SIZE: usize = 6;

/// `sched.h`.
pub(crate) const YIELD: usize = 0;
pub(crate) const SHUTDOWN: usize = 2;
pub(crate) const POLL: usize = 3;

/// `event_channel.h`.
pub(crate) const CLOSE: usize = 3;
pub(crate) const SEND: usize = 4;
pub(crate) const ALLOC_UNBOUND: usize = 6;
/// Event channels of the two-level interface, 64 words of 64 bits.
pub(crate) const EVENT_CHANNELS: u32 = 4096;
/// An interrupt line that no guest has: Xen accepts the number and never raises it.
pub(crate) const NO_LINE: u64 = 255;

/// `hvm/hvm_op.h` and `hvm/params.h`.
pub(crate) const SET_PARAM: usize = 0;
pub(crate) const GET_PARAM: usize = 1;
pub(crate) const PARAM_CALLBACK_IRQ: u32 = 0;
pub(crate) const PARAM_STORE_PFN: u32 = 1;
pub(crate) const PARAM_STORE_EVTCHN: u32 = 2;
pub(crate) const PARAM_CONSOLE_PFN: u32 = 17;
pub(crate) const PARAM_CONSOLE_EVTCHN: u32 = 18;

/// Offsets within the shared page (`struct shared_info`, `xen.h` and `arch-x86/xen.h`): 32 virtual
/// processors of 64 bytes, then pending and mask words, then the wall clock.
pub(crate) mod shared_info {
    pub(crate) const EVENT_UPCALL_PENDING: usize = 0;
    pub(crate) const EVENT_UPCALL_MASK: usize = 1;
    pub(crate) const CR2: usize = 16;
    /// `struct vcpu_time_info`.
    pub(crate) const TIME: usize = 32;
    pub(crate) const EVENT_PENDING: usize = 32 * 64;
    pub(crate) const EVENT_MASK: usize = EVENT_PENDING + 512;
    pub(crate) const WALL_VERSION: usize = EVENT_MASK + 512;
    pub(crate) const WALL_SECONDS: usize = WALL_VERSION + 4;
    pub(crate) const WALL_NANOSECONDS: usize = WALL_VERSION + 8;
    pub(crate) const WALL_SECONDS_HIGH: usize = WALL_VERSION + 12;
}

/// `struct start_info` (`xen.h`): what a PV guest is started with.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StartInfo {
    pub magic: [u8; 32],
    pub nr_pages: u64,
    /// Machine address of the shared page.
    pub shared_info: u64,
    pub flags: u32,
    pub store_mfn: u64,
    pub store_evtchn: u32,
    pub console_mfn: u64,
    pub console_evtchn: u32,
    /// Address of the top page table.
    pub pt_base: u64,
    pub nr_pt_frames: u64,
    /// Address of the list of machine frames by page frame.
    pub mfn_list: u64,
    pub mod_start: u64,
    pub mod_len: u64,
    pub command_line: [u8; COMMAND_LINE],
}

/// Bytes of a command line with its end (`MAX_GUEST_CMDLINE`).
pub(crate) const COMMAND_LINE: usize = 1024;

/// `struct hvm_start_info` (`arch-x86/hvm/start_info.h`): what a PVH guest is started with.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HvmStartInfo {
    pub magic: u32,
    pub version: u32,
    pub flags: u32,
    pub nr_modules: u32,
    pub modlist_paddr: u64,
    pub cmdline_paddr: u64,
    pub rsdp_paddr: u64,
    pub memmap_paddr: u64,
    pub memmap_entries: u32,
    pub reserved: u32,
}

/// Value of [`HvmStartInfo::magic`].
pub(crate) const HVM_START_MAGIC: u32 = 0x336e_c578;

/// An entry of the memory map.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryMapEntry {
    pub address: u64,
    pub size: u64,
    pub kind: u32,
    pub reserved: u32,
}

/// Value of [`MemoryMapEntry::kind`] for memory.
pub(crate) const MEMORY_MAP_RAM: u32 = 1;

#[repr(C)]
pub(crate) struct AddToPhysmap {
    pub domid: u16,
    pub size: u16,
    pub space: u32,
    pub index: u64,
    pub frame: u64,
}

#[repr(C)]
pub(crate) struct SetupTable {
    pub domid: u16,
    pub frames: u32,
    pub status: i16,
    pub list: *mut u64,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct QuerySize {
    pub domid: u16,
    pub frames: u32,
    pub max_frames: u32,
    pub status: i16,
}

#[repr(C)]
pub(crate) struct HvmParam {
    pub domid: u16,
    pub pad: u16,
    pub index: u32,
    pub value: u64,
}

#[repr(C)]
pub(crate) struct AllocUnbound {
    pub domid: u16,
    pub remote: u16,
    pub port: u32,
}

#[repr(C)]
pub(crate) struct Poll {
    pub ports: *const u32,
    pub count: u32,
    pub timeout: u64,
}

#[repr(C)]
pub(crate) struct MmuUpdate {
    pub pointer: u64,
    pub value: u64,
}

/// `struct trap_info` (`arch-x86/xen.h`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct TrapInfo {
    pub vector: u8,
    pub flags: u8,
    pub selector: u16,
    pub address: u64,
}
