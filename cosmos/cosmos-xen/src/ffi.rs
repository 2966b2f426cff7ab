// SPDX-License-Identifier: Apache-2.0
//! `cosmos/include/cosmos.h` as Rust sees it; the sizes are asserted here and in lib/layout.c.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub const API_VERSION: c_uint = 4;
pub const BUILDERS: usize = 2;
pub const PEEK_DOMAINS: usize = 32;
pub const MESSAGE_BYTES: usize = 512;
pub const NAME_BYTES: usize = 256;

#[repr(C)]
pub struct Error {
    pub code: c_int,
    pub message: [c_char; MESSAGE_BYTES],
}

#[repr(C)]
pub struct Context {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Events {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Files {
    pub kernel: c_int,
    pub ramdisk: c_int,
}

#[repr(C)]
pub struct Spec {
    pub domid: u32,
    pub kind: c_int,
    pub name: *const c_char,
    pub uuid: [u8; 16],
    pub image: *const c_void,
    pub image_bytes: usize,
    pub cmdline: *const c_char,
    pub memory_kib: u32,
    pub files: *const Files,
}

#[repr(C)]
pub struct Info {
    pub domid: u32,
    pub uuid: [u8; 16],
    pub state: c_int,
    pub reason: c_int,
    pub memory_kib: u64,
    pub memory_max_kib: u64,
    pub cpu_time_ns: u64,
    pub name: [c_char; NAME_BYTES],
}

#[repr(C)]
pub struct HostInfo {
    pub cpus: u32,
    pub memory_kib: u64,
    pub free_kib: u64,
}

#[repr(C)]
pub struct Nic {
    pub devid: u32,
    pub mac: [u8; 6],
    pub mtu: u16,
    pub bridge: *const c_char,
    pub script: *const c_char,
}

#[repr(C)]
pub struct Vale {
    pub devid: u32,
    pub mac: [u8; 6],
    pub mtu: u16,
    pub slots: u32,
}

const _: () = {
    assert!(size_of::<Error>() == 516);
    assert!(size_of::<Files>() == 8);
    assert!(size_of::<Spec>() == 72);
    assert!(size_of::<Info>() == 312);
    assert!(size_of::<HostInfo>() == 24);
    assert!(size_of::<Nic>() == 32);
    assert!(size_of::<Vale>() == 16);
};

unsafe extern "C" {
    pub fn cosmos_open(
        out: *mut *mut Context,
        api_version: c_uint,
        held: c_int,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_close(ctx: *mut Context);
    pub fn cosmos_host_info(ctx: *mut Context, info: *mut HostInfo, err: *mut Error) -> c_int;

    pub fn cosmos_domain_create(
        ctx: *mut Context,
        spec: *const Spec,
        domid: *mut u32,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_domain_restore(
        ctx: *mut Context,
        spec: *const Spec,
        fd: c_int,
        domid: *mut u32,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_domain_save(ctx: *mut Context, domid: u32, fd: c_int, err: *mut Error) -> c_int;
    pub fn cosmos_domain_resume(ctx: *mut Context, domid: u32, err: *mut Error) -> c_int;
    pub fn cosmos_domain_pin(ctx: *mut Context, domid: u32, cpu: c_int, err: *mut Error) -> c_int;
    pub fn cosmos_domain_share(
        ctx: *mut Context,
        domid: u32,
        weight: c_uint,
        cap_percent: c_uint,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_domain_unpause(ctx: *mut Context, domid: u32, err: *mut Error) -> c_int;
    pub fn cosmos_domain_pause(ctx: *mut Context, domid: u32, err: *mut Error) -> c_int;
    pub fn cosmos_domain_destroy(ctx: *mut Context, domid: u32, err: *mut Error) -> c_int;
    pub fn cosmos_domain_peek(
        ctx: *mut Context,
        domid: u32,
        info: *mut Info,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_domain_info(
        ctx: *mut Context,
        domid: u32,
        info: *mut Info,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_domain_peek_from(
        ctx: *mut Context,
        first: u32,
        infos: *mut Info,
        count: *mut usize,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_domain_peek_all(
        ctx: *mut Context,
        list: *mut *mut Info,
        count: *mut usize,
        err: *mut Error,
    ) -> c_int;

    pub fn cosmos_nic_add(ctx: *mut Context, domid: u32, nic: *const Nic, err: *mut Error)
    -> c_int;
    pub fn cosmos_vale_add(
        ctx: *mut Context,
        domid: u32,
        vale: *const Vale,
        err: *mut Error,
    ) -> c_int;
    pub fn cosmos_vale_remove(ctx: *mut Context, domid: u32, devid: u32, err: *mut Error) -> c_int;
    pub fn cosmos_console_open(
        ctx: *mut Context,
        domid: u32,
        fd: *mut c_int,
        err: *mut Error,
    ) -> c_int;

    pub fn cosmos_events_open(out: *mut *mut Events, err: *mut Error) -> c_int;
    pub fn cosmos_events_close(events: *mut Events);
    pub fn cosmos_events_next(events: *mut Events, timeout_ms: c_uint, err: *mut Error) -> c_int;

    /// The C library's function that frees a list.
    pub fn free(pointer: *mut c_void);
}
