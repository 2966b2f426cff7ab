// SPDX-License-Identifier: Apache-2.0
//! The descriptors the guest was started with, taken over as owned ones.
#![allow(unsafe_code)]

use crate::arguments::{Arguments, Vif};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::FdFlags;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The descriptor of the argument line.
const ARGUMENT: i32 = 3;

/// The descriptors after the argument line's numbers.
pub(crate) struct Resources {
    pub store: Store,
    pub vifs: Vec<VifResources>,
    pub root: OwnedFd,
    pub plug: Option<PlugEnds>,
}

/// The socket on which vifs come and go. The guest keeps both ends, so that the toolstack's may
/// restart: it takes its end out of the guest.
pub(crate) struct PlugEnds {
    pub guest: OwnedFd,
    pub _toolstack: OwnedFd,
}

/// The link to the store.
pub(crate) struct Store {
    pub ring: OwnedFd,
    pub to_store: OwnedFd,
    pub from_store: OwnedFd,
}

/// A vif's rings and events.
pub(crate) struct VifResources {
    pub memfd: OwnedFd,
    pub kick: OwnedFd,
    pub wake: OwnedFd,
    /// Write end of the same pipe, which keeps it open while no switch does.
    pub keep: OwnedFd,
}

/// The argument line's descriptor; to be called once.
pub(crate) fn argument_file() -> Result<File, String> {
    let missing = |_| "descriptor 3: no argument line; a guest is started by cosmosd".to_string();
    take_one(ARGUMENT).map(File::from).map_err(missing)
}

/// Takes over what the argument line names and closes whatever else was inherited; to be called
/// once, when nothing else of this program is open.
pub(crate) fn take(arguments: &Arguments) -> Result<Resources, String> {
    let numbers = arguments.descriptors();
    check(&numbers)?;
    close_others(&numbers)?;
    let take = |number, field: &str| take_one(number).map_err(|e| format!("{field}: {e}"));
    let vif = |vif: &Vif| {
        let wake = take(vif.wake, "wake")?;
        Ok(VifResources {
            memfd: take(vif.memfd, "memfd")?,
            kick: take(vif.kick, "kick")?,
            keep: other_end(&wake).map_err(|e| format!("wake: {e}"))?,
            wake,
        })
    };
    let resources = Resources {
        store: Store {
            ring: take(arguments.store.ring, "store.ring")?,
            to_store: take(arguments.store.to_store, "store.to_store")?,
            from_store: take(arguments.store.from_store, "store.from_store")?,
        },
        vifs: arguments
            .vifs
            .iter()
            .map(vif)
            .collect::<Result<_, String>>()?,
        root: take(arguments.root, "root")?,
        plug: match arguments.plug {
            None => None,
            Some(plug) => Some(PlugEnds {
                guest: take(plug.guest, "plug.guest")?,
                _toolstack: take(plug.toolstack, "plug.toolstack")?,
            }),
        },
    };
    let root = fstat(&resources.root).map_err(|e| format!("root: {e}"))?;
    if FileType::from_raw_mode(root.st_mode) != FileType::Directory {
        return Err("root: not a directory".into());
    }
    Ok(resources)
}

fn check(numbers: &[i32]) -> Result<(), String> {
    for (at, number) in numbers.iter().enumerate() {
        if *number <= ARGUMENT || numbers[..at].contains(number) {
            return Err(format!(
                "argument line: descriptor {number} is reserved or named twice"
            ));
        }
    }
    Ok(())
}

fn take_one(number: i32) -> rustix::io::Result<OwnedFd> {
    // SAFETY: the number is not negative, and the borrow ends with this statement.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: the descriptor is open (fcntl succeeded). Nothing else owns it: it was inherited,
    // `check` refuses numbers named twice and the standard ones, and callers take each once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Opens the write end of a pipe.
fn other_end(pipe: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let name = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(name, flags, Mode::empty())
}

fn close_others(keep: &[i32]) -> Result<(), String> {
    let list = std::fs::read_dir("/proc/self/fd").map_err(|e| format!("/proc/self/fd: {e}"))?;
    let numbers: Vec<i32> = list
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers
        .into_iter()
        .filter(|n| *n >= ARGUMENT && !keep.contains(n))
    {
        // The listing's own descriptor is closed by now: an error says just that.
        drop(take_one(number));
    }
    Ok(())
}
