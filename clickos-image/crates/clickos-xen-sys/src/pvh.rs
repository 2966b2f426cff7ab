// SPDX-License-Identifier: Apache-2.0
//! PVH guests: the hypercall page and shared pages are asked for, memory is mapped one to one.
use crate::abi::{self, AddToPhysmap, HvmParam};
use crate::hypercall::{Refused, operate};
use crate::state::STATE;
use crate::{PAGE_SIZE, events};
use core::sync::atomic::Ordering::Relaxed;

/// Puts a page of Xen's where the guest's page at `address` was.
///
/// # Safety
/// The page at `address` must belong to the caller, who reaches it through `Shared` only from now
/// on; its content is lost.
pub(crate) unsafe fn place(space: u32, index: u64, address: usize) -> Result<(), Refused> {
    let mut argument = AddToPhysmap {
        domid: abi::DOMID_SELF,
        size: 0,
        space,
        index,
        frame: (address / PAGE_SIZE) as u64,
    };
    // SAFETY: the structure is the one of this operation; the page is the caller's.
    unsafe { operate(abi::MEMORY_OP, abi::ADD_TO_PHYSMAP, &mut argument) }.map(drop)
}

/// Asks where console and store are and maps the shared page; at boot and after a restore.
pub(crate) fn connect() -> Result<(), Refused> {
    let shared_info = STATE.shared_info.load(Relaxed);
    // SAFETY: boot chose a page for this and nothing else.
    unsafe { place(abi::SPACE_SHARED_INFO, 0, shared_info) }?;
    events::mask();
    name_callback()?;
    let address = |pfn| pfn as usize * PAGE_SIZE;
    STATE
        .console
        .store(address(parameter(abi::PARAM_CONSOLE_PFN)?), Relaxed);
    STATE
        .console_port
        .store(parameter(abi::PARAM_CONSOLE_EVTCHN)? as u32, Relaxed);
    STATE
        .store
        .store(address(parameter(abi::PARAM_STORE_PFN)?), Relaxed);
    STATE
        .store_port
        .store(parameter(abi::PARAM_STORE_EVTCHN)? as u32, Relaxed);
    Ok(())
}

/// Names an interrupt for events; the guest polls events, so Xen never raises it. Xen then fills
/// in the wall clock of a new domain's shared page. The toolstack takes the name as the sign of a
/// guest that looks at the answer to a suspend (`xg_resume.c`).
fn name_callback() -> Result<(), Refused> {
    let mut argument = HvmParam {
        domid: abi::DOMID_SELF,
        pad: 0,
        index: abi::PARAM_CALLBACK_IRQ,
        value: abi::NO_LINE,
    };
    // SAFETY: the structure is the one of this operation; Xen never raises the line.
    unsafe { operate(abi::HVM_OP, abi::SET_PARAM, &mut argument) }.map(drop)
}

fn parameter(index: u32) -> Result<u64, Refused> {
    let mut argument = HvmParam {
        domid: abi::DOMID_SELF,
        pad: 0,
        index,
        value: 0,
    };
    // SAFETY: the structure is the one of this operation, which reads a parameter.
    unsafe { operate(abi::HVM_OP, abi::GET_PARAM, &mut argument) }?;
    Ok(argument.value)
}
