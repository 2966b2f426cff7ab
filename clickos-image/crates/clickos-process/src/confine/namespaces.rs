// SPDX-License-Identifier: Apache-2.0
//! Own namespaces, and a root in which there is nothing.
#![allow(unsafe_code)]

use super::at;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::os::fd::{AsRawFd, OwnedFd};

/// Moves the process into empty network, mount, IPC, UTS and cgroup namespaces of its own.
pub(super) fn leave_all() -> Result<(), String> {
    let all = UnshareFlags::NEWNET
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    // SAFETY: `FILES` is not among the flags, so no thread loses descriptors of another.
    at("unshare (root is needed)", unsafe { unshare_unsafe(all) })?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    at("private mounts", mount_change("/", private))
}

/// Makes an empty, read-only file system the root, and lets go of the old root.
pub(super) fn change_root(root: OwnedFd) -> Result<(), String> {
    let path = format!("/proc/self/fd/{}", root.as_raw_fd());
    let path = at("root directory", std::fs::read_link(path))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = mount(
        "none",
        &path,
        "tmpfs",
        flags,
        Some(c"size=4k,nr_inodes=1,mode=0555"),
    );
    at("empty root", mounted)?;
    drop(root);
    at("empty root", chdir(&path))?;
    // With both arguments the same, the old root comes to lie on top of the new one (pivot_root(2)).
    at("pivot_root", pivot_root(".", "."))?;
    at("old root", unmount(".", UnmountFlags::DETACH))?;
    at(
        "empty root",
        mount_remount("/", flags | MountFlags::RDONLY, c""),
    )?;
    at("empty root", chdir("/"))
}
