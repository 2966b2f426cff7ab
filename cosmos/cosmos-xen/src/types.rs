// SPDX-License-Identifier: Apache-2.0
//! What the calls take and give.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use crate::error::text;
use crate::ffi;

/// How Xen runs a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Pv,
    Pvh,
}

/// A domain to create.
#[derive(Debug, Clone)]
pub struct Spec<'a> {
    /// `None`: any that is free.
    pub domid: Option<u32>,
    /// Unique on the host.
    pub name: &'a str,
    pub uuid: [u8; 16],
    pub kind: Type,
    /// An ELF kernel; not used with `files`.
    pub image: &'a [u8],
    pub files: Option<Files<'a>>,
    /// Empty: none.
    pub cmdline: &'a str,
    pub memory_kib: u32,
}

/// A kernel that is not to be copied, and its initial RAM disk: readable files.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    pub kernel: BorrowedFd<'a>,
    pub ramdisk: Option<BorrowedFd<'a>>,
}

/// How a domain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Paused,
    ShutDown,
    /// Destroyed, and something still holds its pages.
    Dying,
}

/// How a domain shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Poweroff,
    Reboot,
    Suspend,
    Crash,
    Watchdog,
    SoftReset,
    Unknown,
}

/// A domain that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    pub domid: u32,
    pub uuid: [u8; 16],
    pub state: State,
    /// Only of a domain that has shut down.
    pub reason: Reason,
    pub memory_kib: u64,
    pub memory_max_kib: u64,
    pub cpu_time_ns: u64,
    pub name: String,
}

/// The host's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostInfo {
    pub cpus: u32,
    pub memory_kib: u64,
    pub free_kib: u64,
}

/// A vif of stock xen-netback.
#[derive(Debug, Clone)]
pub struct Nic<'a> {
    pub devid: u32,
    pub mac: [u8; 6],
    pub mtu: u16,
    pub bridge: &'a str,
    /// The hotplug script's path.
    pub script: &'a str,
}

/// A vif on rings of the VALE switch.
#[derive(Debug, Clone, Copy)]
pub struct Vale {
    pub devid: u32,
    pub mac: [u8; 6],
    pub mtu: u16,
    pub slots: u32,
}

impl From<&ffi::Info> for Info {
    fn from(info: &ffi::Info) -> Self {
        Self {
            domid: info.domid,
            uuid: info.uuid,
            state: state(info.state),
            reason: reason(info.reason),
            memory_kib: info.memory_kib,
            memory_max_kib: info.memory_max_kib,
            cpu_time_ns: info.cpu_time_ns,
            name: text(&info.name),
        }
    }
}

fn state(number: c_int) -> State {
    match number {
        0 => State::Running,
        1 => State::Paused,
        2 => State::ShutDown,
        _ => State::Dying,
    }
}

fn reason(number: c_int) -> Reason {
    match number {
        0 => Reason::Poweroff,
        1 => Reason::Reboot,
        2 => Reason::Suspend,
        3 => Reason::Crash,
        4 => Reason::Watchdog,
        5 => Reason::SoftReset,
        _ => Reason::Unknown,
    }
}
