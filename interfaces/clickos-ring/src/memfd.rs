// SPDX-License-Identifier: Apache-2.0
//! Regions in a memfd, for guests that are processes.
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;

use crate::layout::Layout;
use crate::mapping::Blocks;
use crate::{GuestPort, InPlacePort, Mapping, Regions, RingError, SwitchPort};

impl From<Errno> for RingError {
    fn from(error: Errno) -> Self {
        Self::Os(error.raw_os_error())
    }
}

impl SwitchPort {
    /// Makes a prepared region in a new memfd that can neither shrink nor grow. Shrinking would
    /// kill the processes that map it, and growing would cost the switch memory.
    pub fn create(slots: u32) -> Result<(Self, OwnedFd), RingError> {
        Self::create_as(Layout::new(slots)?, 0)
    }

    /// As [`Self::create`] in version 2, for a guest with other regions.
    pub fn create_in(regions: &Arc<Regions>, slots: u32) -> Result<(Self, OwnedFd), RingError> {
        let (mut port, memfd) = Self::create_as(Layout::of(2, slots)?, regions.number())?;
        port.join(regions);
        Ok((port, memfd))
    }

    fn create_as(layout: Layout, region: u16) -> Result<(Self, OwnedFd), RingError> {
        let file = memfd_create("vale-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, layout.size() as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Mapping::of_file(file.as_fd(), layout.size())?;
        Ok((Self::format_as(mapping, layout, region)?, file))
    }

    /// Maps the memfd of [`Self::create`] in place of the program that made it and has ended.
    pub fn remap(memfd: impl AsFd, slots: u32) -> Result<Self, RingError> {
        if !fcntl_get_seals(&memfd)?.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return Err(RingError::NotSealed);
        }
        let have = usize::try_from(fstat(&memfd)?.st_size).unwrap_or(0);
        let needs = [Layout::of(1, slots)?.size(), Layout::of(2, slots)?.size()];
        if !needs.contains(&have) {
            let need = needs[0];
            return Err(RingError::Size { have, need });
        }
        Self::resume(Mapping::of_file(memfd.as_fd(), have)?, slots)
    }
}

impl GuestPort {
    /// Maps the memfd that came from the switch.
    pub fn map(memfd: impl AsFd) -> Result<Self, RingError> {
        Self::attach(whole(memfd)?)
    }
}

impl InPlacePort {
    /// Maps the memfd that came from the switch, and its buffers.
    pub fn map(memfd: impl AsFd) -> Result<(Self, Blocks), RingError> {
        let memory = whole(&memfd)?;
        let have = crate::Memory::size(&memory);
        let port = Self::attach(memory)?;
        let need = port.layout().size();
        if have < need {
            return Err(RingError::Size { have, need });
        }
        let blocks = Blocks::of_file(memfd.as_fd(), port.layout())?;
        Ok((port, blocks))
    }
}

/// Maps what a guest gets of the switch.
fn whole(memfd: impl AsFd) -> Result<Mapping, RingError> {
    if !fcntl_get_seals(&memfd)?.contains(SealFlags::SHRINK) {
        return Err(RingError::NotSealed);
    }
    let have = usize::try_from(fstat(&memfd)?.st_size).unwrap_or(0);
    let need = Layout::new(*crate::SLOTS_RANGE.start())?.size();
    if have < need {
        return Err(RingError::Size { have, need });
    }
    let most = Layout::of(2, *crate::SLOTS_RANGE.end())?.size();
    Ok(Mapping::of_file(memfd.as_fd(), have.min(most))?)
}
