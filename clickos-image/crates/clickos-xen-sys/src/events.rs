// SPDX-License-Identifier: Apache-2.0
//! Event channels (two-level interface): polled, never delivered as interrupts.
use crate::abi::{self, AllocUnbound, Poll, shared_info as at};
use crate::hypercall::{Refused, call, operate};
use crate::state::{STATE, shared_info};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ports that one wait can watch (`do_poll` of `xen/common/sched/core.c`).
pub const WAIT_MAX: usize = 128;

/// Counted by the stub of `entry.s`.
#[unsafe(export_name = "xen_nmi_count")]
static NMIS: AtomicU64 = AtomicU64::new(0);

/// Non-maskable interrupts since the start; a PV guest gets none.
pub fn nmis() -> u64 {
    NMIS.load(Relaxed)
}

/// Opens a channel that domain `remote` may bind to; gives its number.
///
/// # Errors
/// Xen's, such as no free channel.
pub fn open(remote: u16) -> Result<u32, Refused> {
    let mut argument = AllocUnbound {
        domid: abi::DOMID_SELF,
        remote,
        port: 0,
    };
    // SAFETY: the structure is the one of this operation; a new channel is not in use yet.
    unsafe { operate(abi::EVENT_CHANNEL_OP, abi::ALLOC_UNBOUND, &mut argument) }?;
    Ok(argument.port)
}

/// Closes a channel. One that is closed already stays so.
pub fn close(port: u32) {
    let mut argument = port;
    // SAFETY: the operation takes a port number. An error says that the channel is closed.
    let _ = unsafe { operate(abi::EVENT_CHANNEL_OP, abi::CLOSE, &mut argument) };
    take(port);
}

/// Notifies the peer; an unbound channel accepts this too.
pub fn notify(port: u32) {
    let mut port = port;
    // SAFETY: the operation takes a port number and changes nothing on this side.
    let _ = unsafe { operate(abi::EVENT_CHANNEL_OP, abi::SEND, &mut port) };
}

/// Takes a pending event: true if there was one since the last call.
pub fn take(port: u32) -> bool {
    if port >= abi::EVENT_CHANNELS {
        return false;
    }
    let word = at::EVENT_PENDING + 8 * (port as usize / 64);
    let bit = 1 << (port % 64);
    shared_info().clear_bits(word, bit) & bit != 0
}

/// Sleeps until one of the channels is pending or until `until_ns` of [`crate::clock::system_ns`].
/// The console's and the store's events count too.
pub fn wait(channels: &[u32], until_ns: Option<u64>) {
    let mut ports = [0; WAIT_MAX];
    let own = [&STATE.store_port, &STATE.console_port].map(|port| port.load(Relaxed));
    let all = own.iter().chain(channels);
    let count = ports
        .iter_mut()
        .zip(all)
        .map(|(to, from)| *to = *from)
        .count();
    let argument = Poll {
        ports: ports.as_ptr(),
        count: count as u32,
        timeout: until_ns.map_or(0, |until| until.max(1)),
    };
    let pointer: *const Poll = &argument;
    // SAFETY: the structure and the ports it points to outlive the call, which only reads them.
    // An error (a port that was closed by the other domain's end) is a wait that ended at once.
    let _ = unsafe { call(abi::SCHED_OP, [abi::POLL, pointer as usize, 0, 0]) };
    own.iter().for_each(|port| _ = take(*port));
}

/// Keeps Xen from calling into the guest: events are polled.
pub(crate) fn mask() {
    let page = shared_info();
    page.write(at::EVENT_UPCALL_MASK, 1_u8);
    page.write(at::EVENT_UPCALL_PENDING, 0_u8);
}
