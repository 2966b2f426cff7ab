// SPDX-License-Identifier: Apache-2.0
//! The structures of `net/netmap.h` and `net/netmap_user.h`. The test `layout` compares them.
use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::timeval;

pub const NETMAP_API: u32 = 11;
pub const NIOCTXSYNC: u64 = 0x6994;
pub const NIOCRXSYNC: u64 = 0x6995;
pub const ERRBUF_SIZE: usize = 512;
pub const NAME_SIZE: usize = libc::IFNAMSIZ;

/// Flags of a slot.
pub const NS_BUF_CHANGED: u16 = 1;
pub const NS_REPORT: u16 = 2;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Slot {
    pub buf_idx: u32,
    pub len: u16,
    pub flags: u16,
    pub ptr: u64,
}

/// The head of a ring; the slots follow.
#[repr(C)]
pub struct RingHead {
    pub buf_ofs: i64,
    pub num_slots: u32,
    pub buf_size: u32,
    pub ringid: u16,
    pub dir: u16,
    pub head: u32,
    pub cur: u32,
    pub tail: u32,
    pub flags: u32,
    pub ts: timeval,
}

#[repr(C)]
pub struct Interface {
    pub name: [c_char; NAME_SIZE],
    pub version: u32,
    pub flags: u32,
    pub tx_rings: u32,
    pub rx_rings: u32,
    pub bufs_head: u32,
    pub spare: u32,
    pub ring_ofs: [i64; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Request {
    pub name: [c_char; NAME_SIZE],
    pub version: u32,
    pub offset: u32,
    pub memsize: u32,
    pub tx_slots: u32,
    pub rx_slots: u32,
    pub tx_rings: u16,
    pub rx_rings: u16,
    pub ringid: u16,
    pub cmd: u16,
    pub arg1: u16,
    pub arg2: u16,
    pub arg3: u32,
    pub flags: u32,
    pub spare2: [u32; 1],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Header {
    pub ts: timeval,
    pub caplen: u32,
    pub len: u32,
    pub flags: u64,
    pub desc: *mut Descriptor,
    pub slot: *mut c_void,
    pub buf: *mut u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Statistics {
    pub received: c_uint,
    pub dropped: c_uint,
    pub interface_dropped: c_uint,
}

/// The result of `nm_open`.
#[repr(C)]
pub struct Descriptor {
    pub own: *mut Descriptor,
    pub fd: c_int,
    pub mem: *mut c_void,
    pub memsize: u64,
    pub done_mmap: c_int,
    pub nifp: *mut c_void,
    /// First, last and current ring to send, then to receive.
    pub rings: [u16; 6],
    pub req: Request,
    pub hdr: Header,
    pub some_ring: *mut c_void,
    pub buf_start: *mut c_void,
    pub buf_end: *mut c_void,
    pub st: Statistics,
    pub msg: [c_char; ERRBUF_SIZE],
}

/// A callback of `nm_dispatch`.
pub type Callback = unsafe extern "C" fn(*mut u8, *const Header, *const u8);

/// Copies a name, cut to its field, with a 0 at the end.
pub fn name(text: &str) -> [c_char; NAME_SIZE] {
    let mut name = [0; NAME_SIZE];
    for (to, from) in name[..NAME_SIZE - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    name
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};
    use std::process::Command;

    use super::*;

    /// Pairs of a C expression and its value here.
    fn facts() -> Vec<(&'static str, u64)> {
        let facts = [
            ("sizeof(struct netmap_slot)", size_of::<Slot>()),
            ("offsetof(struct netmap_slot, len)", offset_of!(Slot, len)),
            ("offsetof(struct netmap_ring, slot)", size_of::<RingHead>()),
            (
                "offsetof(struct netmap_ring, ringid)",
                offset_of!(RingHead, ringid),
            ),
            (
                "offsetof(struct netmap_ring, tail)",
                offset_of!(RingHead, tail),
            ),
            ("offsetof(struct netmap_ring, ts)", offset_of!(RingHead, ts)),
            ("sizeof(struct netmap_if)", size_of::<Interface>()),
            (
                "offsetof(struct netmap_if, ring_ofs)",
                offset_of!(Interface, ring_ofs),
            ),
            ("sizeof(struct nmreq)", size_of::<Request>()),
            ("offsetof(struct nmreq, nr_arg3)", offset_of!(Request, arg3)),
            ("sizeof(struct nm_pkthdr)", size_of::<Header>()),
            ("offsetof(struct nm_pkthdr, buf)", offset_of!(Header, buf)),
            ("sizeof(struct nm_desc)", size_of::<Descriptor>()),
            (
                "offsetof(struct nm_desc, nifp)",
                offset_of!(Descriptor, nifp),
            ),
            ("offsetof(struct nm_desc, req)", offset_of!(Descriptor, req)),
            ("offsetof(struct nm_desc, hdr)", offset_of!(Descriptor, hdr)),
            (
                "offsetof(struct nm_desc, some_ring)",
                offset_of!(Descriptor, some_ring),
            ),
            ("offsetof(struct nm_desc, msg)", offset_of!(Descriptor, msg)),
            ("NIOCTXSYNC", NIOCTXSYNC as usize),
            ("NIOCRXSYNC", NIOCRXSYNC as usize),
            ("NETMAP_API", NETMAP_API as usize),
            ("NS_BUF_CHANGED", NS_BUF_CHANGED.into()),
            ("NS_REPORT", NS_REPORT.into()),
            ("NM_ERRBUF_SIZE", ERRBUF_SIZE),
        ];
        facts.map(|(text, value)| (text, value as u64)).to_vec()
    }

    #[test]
    fn the_headers_have_our_layout() {
        let asserts = facts()
            .iter()
            .map(|(text, value)| format!("_Static_assert({text} == {value}, \"not {value}\");\n"))
            .collect::<String>();
        let program = format!("#define NETMAP_WITH_LIBS\n#include <net/netmap_user.h>\n{asserts}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("layout.c");
        std::fs::write(&file, program).unwrap();
        let compiled = Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
            .arg(&file)
            .output()
            .expect("cc: install a C compiler, which Rust needs to link too");
        let text = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{text}");
    }
}
