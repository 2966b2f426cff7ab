// SPDX-License-Identifier: Apache-2.0
//! The system call filter: what is not listed here ends the process.
use super::at;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// Calls allowed with any arguments. None of them can name a file, a socket or a process.
const CALLS: [libc::c_long; 23] = [
    // The rings' and the store's events, the console.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_ppoll,
    libc::SYS_restart_syscall,
    // The toolstack passes the descriptors of a new vif; the guest checks the size of its rings.
    libc::SYS_recvmsg,
    libc::SYS_fstat,
    // Last words wait a moment for the store; time, where the vDSO has none.
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    // Memory without pages that can be executed (see below for mmap), locks of the library.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_getrandom,
    // The end: abort(3) blocks signals and asks who it is.
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Installs the filter for good, for all threads.
pub(super) fn install(helpers: usize) -> Result<(), String> {
    let program = at("system call filter", program(helpers))?;
    let applied = match helpers {
        0 => apply_filter(&program),
        _ => apply_filter_all_threads(&program),
    };
    at("system call filter", applied)
}

fn program(helpers: usize) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = CALLS.map(|call| (call, Vec::new())).into();
    if helpers > 0 {
        // Each configuration has its own, by which its threads wake each other.
        rules.insert(libc::SYS_eventfd2, Vec::new());
        // Channels of the standard library yield while another thread sends.
        rules.insert(libc::SYS_sched_yield, Vec::new());
    }
    rules.insert(libc::SYS_mmap, vec![memory_for_data()?, rings()?]);
    rules.insert(libc::SYS_tgkill, vec![own_abort()?]);
    rules.insert(libc::SYS_fcntl, vec![is_open()?, seals()?]);
    let architecture = std::env::consts::ARCH.try_into()?;
    let deny = SeccompAction::KillProcess;
    SeccompFilter::new(rules, deny, SeccompAction::Allow, architecture)?.try_into()
}

/// mmap: memory without a file, that cannot be executed.
fn memory_for_data() -> Result<SeccompRule, seccompiler::BackendError> {
    let (prot, flags) = (libc::PROT_EXEC as u64, libc::MAP_ANONYMOUS as u64);
    SeccompRule::new(vec![masked(2, prot, 0)?, masked(3, flags, flags)?])
}

/// mmap: memory that a descriptor of the guest shares, that cannot be executed.
fn rings() -> Result<SeccompRule, seccompiler::BackendError> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let flags = (libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    SeccompRule::new(vec![
        masked(2, u64::MAX, prot)?,
        masked(3, flags, libc::MAP_SHARED as u64)?,
    ])
}

/// fcntl: F_GET_SEALS; rings that could shrink would end the guest.
fn seals() -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![masked(1, u64::MAX, libc::F_GET_SEALS as u64)?])
}

/// fcntl: F_GETFD; a debug build of the standard library asks before it closes a descriptor.
fn is_open() -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![masked(1, u64::MAX, libc::F_GETFD as u64)?])
}

/// tgkill: SIGABRT to this process.
fn own_abort() -> Result<SeccompRule, seccompiler::BackendError> {
    let own = u64::from(std::process::id());
    SeccompRule::new(vec![
        masked(0, u64::MAX, own)?,
        masked(2, u64::MAX, libc::SIGABRT as u64)?,
    ])
}

fn masked(
    argument: u8,
    mask: u64,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(mask),
        value,
    )
}
