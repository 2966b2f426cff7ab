// SPDX-License-Identifier: Apache-2.0
//! Exceptions: none is expected, each ends the guest with a message. NMIs are counted and ignored.
use crate::abi::{self, TrapInfo};
use crate::hypercall::{Refused, call};
use crate::state::{Kind, kind, shared_info};
use core::arch::asm;
use core::cell::UnsafeCell;

/// Exceptions that have a stub (`entry.s`).
const COUNT: usize = 20;
/// The exception that is no fault of the guest: a non-maskable interrupt.
const NMI: usize = 2;
/// The code segment of a PV guest (`FLAT_KERNEL_CS`), and of ours.
const PV_CODE: u16 = 0xe033;
const PVH_CODE: u16 = 8;
/// The task state segment's place in the descriptor table.
const TASK: u16 = 24;

unsafe extern "C" {
    static xen_pv_traps: [u64; COUNT];
    static xen_pvh_traps: [u64; COUNT];
    static xen_trap_stack_top: u8;
    static xen_nmi_stack_top: u8;
    static mut xen_gdt: [u64; 5];
}

/// The stack frame of a stub.
#[repr(C)]
struct Frame {
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

/// Reports an exception.
#[unsafe(no_mangle)]
extern "C" fn xen_trap(frame: &Frame) -> ! {
    panic!(
        "exception {} (error {:#x}) at {:#x}, stack {:#x}, address {:#x}",
        frame.vector,
        frame.error,
        frame.rip,
        frame.rsp,
        fault_address()
    )
}

fn fault_address() -> u64 {
    match kind() {
        Kind::Pv => shared_info().read(abi::shared_info::CR2),
        Kind::Pvh => {
            let address;
            // SAFETY: a PVH guest runs in ring 0 and may read the register.
            unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) };
            address
        }
    }
}

/// A PV guest tells Xen where its stubs are. Xen drops an NMI for which there is none.
pub(crate) fn install_pv() -> Result<(), Refused> {
    // An entry without an address ends the table.
    let mut table = [TrapInfo::default(); COUNT];
    // SAFETY: `entry.s` defines as many addresses, which nothing changes.
    let stubs = unsafe { xen_pv_traps };
    let stubs = stubs.into_iter().enumerate().filter(|(n, _)| *n != NMI);
    for (info, (vector, address)) in table.iter_mut().zip(stubs) {
        *info = TrapInfo {
            vector: vector as u8,
            flags: 0,
            selector: PV_CODE,
            address,
        };
    }
    // SAFETY: Xen copies the table, which ends with an entry of zeros.
    unsafe { call(abi::SET_TRAP_TABLE, [table.as_ptr() as usize, 0, 0, 0]) }.map(drop)
}

#[repr(C, packed)]
struct TaskState {
    reserved: u32,
    stacks: [u64; 3],
    reserved_more: u64,
    /// Stacks that interrupt gates choose by number.
    interrupt_stacks: [u64; 7],
    reserved_last: u64,
    reserved_word: u16,
    io_map: u16,
}

#[repr(C)]
struct Tables {
    gates: [[u64; 2]; COUNT],
    task: TaskState,
}

struct Once(UnsafeCell<Tables>);
// SAFETY: written by `install_pvh` only, once, before the processor gets its address.
unsafe impl Sync for Once {}

static TABLES: Once = Once(UnsafeCell::new(Tables {
    gates: [[0; 2]; COUNT],
    task: TaskState {
        reserved: 0,
        stacks: [0; 3],
        reserved_more: 0,
        interrupt_stacks: [0; 7],
        reserved_last: 0,
        reserved_word: 0,
        io_map: size_of::<TaskState>() as u16,
    },
}));

/// An interrupt gate on one of the interrupt stacks, which count from 1.
fn gate(address: u64, stack: u64) -> [u64; 2] {
    let low = address & 0xffff | u64::from(PVH_CODE) << 16 | stack << 32 | 0x8e << 40;
    [low | (address >> 16 & 0xffff) << 48, address >> 32]
}

/// A descriptor of the task state segment.
fn task_descriptor(base: u64) -> [u64; 2] {
    let limit = size_of::<TaskState>() as u64 - 1;
    let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    [low, base >> 32]
}

/// A PVH guest fills in the processor's own tables.
pub(crate) fn install_pvh() {
    let tables = TABLES.0.get();
    // SAFETY: called once at boot, before the tables are in use; `entry.s` defines the symbols.
    unsafe {
        (*tables).gates = xen_pvh_traps.map(|address| gate(address, 1));
        (*tables).gates[NMI] = gate(xen_pvh_traps[NMI], 2);
        (*tables).task.interrupt_stacks[0] = &raw const xen_trap_stack_top as u64;
        (*tables).task.interrupt_stacks[1] = &raw const xen_nmi_stack_top as u64;
        let task = &raw const (*tables).task as u64;
        let [low, high] = task_descriptor(task);
        (&raw mut xen_gdt[3]).write_volatile(low);
        (&raw mut xen_gdt[4]).write_volatile(high);
    }
    load(tables as u64);
}

fn load(gates: u64) {
    #[repr(C, packed)]
    struct Pointer {
        limit: u16,
        base: u64,
    }
    let pointer = Pointer {
        limit: (COUNT * 16 - 1) as u16,
        base: gates,
    };
    // SAFETY: the tables are complete and stay for ever; the guest runs in ring 0.
    unsafe {
        asm!("lidt [{}]", in(reg) &raw const pointer, options(nostack));
        asm!("ltr {:x}", in(reg) TASK, options(nostack));
    }
}
