// SPDX-License-Identifier: Apache-2.0
//! Instructions that Rust has no word for.
use core::arch::x86_64::{__cpuid, _rdtsc};

/// The time stamp counter.
pub(crate) fn counter() -> u64 {
    // SAFETY: every processor that runs 64-bit code has the instruction.
    unsafe { _rdtsc() }
}

/// The registers eax, ebx, ecx, edx that `cpuid` gives.
#[allow(unused_unsafe, reason = "safe since Rust 1.94")]
pub(crate) fn cpuid(leaf: u32) -> [u32; 4] {
    // SAFETY: every processor that runs 64-bit code has the instruction.
    let result = unsafe { __cpuid(leaf) };
    [result.eax, result.ebx, result.ecx, result.edx]
}

/// A random number of the processor, if it has them.
pub(crate) fn random() -> Option<u64> {
    const RDRAND: u32 = 1 << 30;
    if cpuid(1)[2] & RDRAND == 0 {
        return None;
    }
    (0..10).find_map(|_| rdrand())
}

fn rdrand() -> Option<u64> {
    let (value, good): (u64, u8);
    // SAFETY: the caller saw that the processor has the instruction, which changes one register.
    unsafe {
        core::arch::asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) good,
                         options(nomem, nostack));
    }
    (good != 0).then_some(value)
}

/// Sets a model-specific register.
///
/// # Safety
/// The register exists, and its new value breaks nothing that code relies on.
pub(crate) unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("wrmsr", in("ecx") register, in("eax") value as u32,
                         in("edx") (value >> 32) as u32, options(nostack));
    }
}

/// The bit of a page table's entry that forbids execution, switched on; 0 if the processor has none.
pub(crate) fn no_execute() -> u64 {
    const FEATURES: u32 = 0x8000_0001;
    const NX: u32 = 1 << 20;
    /// Long mode is enabled and active, and the bit exists (Intel SDM volume 4, IA32_EFER).
    const EFER: (u32, u64) = (0xc000_0080, 0xd00);
    if cpuid(FEATURES)[3] & NX == 0 {
        return 0;
    }
    // SAFETY: the guest runs in long mode already, so only the bit changes, which no entry has yet.
    unsafe { write_msr(EFER.0, EFER.1) };
    1 << 63
}
