// SPDX-License-Identifier: Apache-2.0
//! The program that leads an interface's frames to an AF_XDP socket, loaded by bpf(2).
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::interface_index;

/// linux/bpf.h; not in libc.
const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// linux/if_link.h.
const DRIVER_MODE: u32 = 1 << 2;
const GENERIC_MODE: u32 = 1 << 1;

/// A program at an interface; it ends with the value.
pub(crate) struct Attachment {
    _link: OwnedFd,
    /// The driver runs the program, before the kernel makes a buffer for the frame.
    pub is_native: bool,
}

fn bpf<T>(command: i32, attributes: &T) -> io::Result<OwnedFd> {
    let (at, size) = (std::ptr::from_ref(attributes), size_of_val(attributes));
    // SAFETY: `at` points to `size` bytes of the command's attributes. They and what they point to
    // live through the call.
    let raw = unsafe { libc::syscall(libc::SYS_bpf, command, at, size) };
    match RawFd::try_from(raw) {
        // SAFETY: the call has just made the descriptor, and no other code owns it.
        Ok(raw) if raw >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(raw) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `struct bpf_insn`: opcode, registers (source above destination), offset, value.
const fn step(code: u8, registers: u8, offset: i16, value: i32) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), value.to_ne_bytes());
    [code, registers, a, b, c, d, e, f]
}

/// `return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS)`: frames of a queue without a
/// socket go to the kernel, and with `vlan` those of other VLANs too.
fn program(map: RawFd, vlan: Option<u16>) -> Vec<[u8; 8]> {
    let mut steps = vlan.map_or(Vec::new(), of_vlan);
    steps.extend([
        step(0x61, 0x12, 16, 0),  // r2 = context->rx_queue_index
        step(0x18, 0x11, 0, map), // r1 = map, in two steps
        step(0, 0, 0, 0),
        step(0xb7, 0x03, 0, 2), // r3 = XDP_PASS
        step(0x85, 0, 0, 51),   // call bpf_redirect_map
        step(0x95, 0, 0, 0),    // exit
    ]);
    steps
}

/// Ends with XDP_PASS unless the frame has the tag of a VLAN.
fn of_vlan(vlan: u16) -> Vec<[u8; 8]> {
    let in_frame = |value: u16| i32::from(value.to_be());
    vec![
        step(0x61, 0x12, 0, 0),                // r2 = context->data
        step(0x61, 0x13, 4, 0),                // r3 = context->data_end
        step(0xbf, 0x24, 0, 0),                // r4 = r2
        step(0x07, 0x04, 0, 18),               // r4 += 18
        step(0x2d, 0x34, 5, 0),                // if r4 > r3 goto pass
        step(0x69, 0x24, 12, 0),               // r4 = *(u16 *)(r2 + 12)
        step(0x55, 0x04, 3, in_frame(0x8100)), // if r4 != 802.1Q goto pass
        step(0x69, 0x24, 14, 0),               // r4 = *(u16 *)(r2 + 14)
        step(0x57, 0x04, 0, in_frame(0x0fff)), // r4 &= the bits of the VLAN
        step(0x15, 0x04, 2, in_frame(vlan)),   // if r4 == vlan goto behind pass
        step(0xb7, 0x00, 0, 2),                // pass: r0 = XDP_PASS
        step(0x95, 0, 0, 0),                   // exit
    ]
}

/// Leads the frames of an interface's queue 0, or one VLAN of them, to a bound AF_XDP socket.
pub(crate) fn attach(
    interface: &str,
    vlan: Option<u16>,
    socket: &OwnedFd,
) -> io::Result<Attachment> {
    let map = bpf(
        MAP_CREATE,
        &MapCreate {
            map_type: MAP_TYPE_XSKMAP,
            key_size: size_of::<u32>() as u32,
            value_size: size_of::<u32>() as u32,
            max_entries: 1,
            map_flags: 0,
        },
    )?;
    let (key, value) = (0u32, socket.as_raw_fd());
    update(&map, &key, &value)?;
    let program = load(&program(map.as_raw_fd(), vlan))?;
    let index = interface_index(interface)? as u32;
    let link = |flags| {
        bpf(
            LINK_CREATE,
            &LinkCreate {
                prog_fd: program.as_raw_fd() as u32,
                target_ifindex: index,
                attach_type: ATTACH_XDP,
                flags,
            },
        )
    };
    let native = link(DRIVER_MODE);
    let is_native = native.is_ok();
    let link = native.or_else(|_| link(GENERIC_MODE))?;
    Ok(Attachment {
        _link: link,
        is_native,
    })
}

/// Makes an entry of a map. The call returns 0, which is no descriptor.
fn update(map: &OwnedFd, key: &u32, value: &RawFd) -> io::Result<()> {
    let attributes = MapUpdate {
        map_fd: map.as_raw_fd() as u32,
        padding: 0,
        key: std::ptr::from_ref(key) as u64,
        value: std::ptr::from_ref(value) as u64,
        flags: 0,
    };
    let (at, size) = (&raw const attributes, size_of::<MapUpdate>());
    // SAFETY: `at` points to the command's attributes. They, the key and the value live through the
    // call.
    match unsafe { libc::syscall(libc::SYS_bpf, MAP_UPDATE, at, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn load(steps: &[[u8; 8]]) -> io::Result<OwnedFd> {
    bpf(
        PROG_LOAD,
        &ProgLoad {
            prog_type: PROG_TYPE_XDP,
            insn_cnt: steps.len() as u32,
            insns: steps.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            ..ProgLoad::default()
        },
    )
}
