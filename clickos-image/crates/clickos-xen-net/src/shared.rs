// SPDX-License-Identifier: Apache-2.0
//! Pages of this guest that the backend may reach.
use crate::platform::{Access, DomId, GrantRef, Platform};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use ring::Memory;

/// Memory and the grants on it. The pages go back to the guest when the last grant has ended;
/// if the backend never lets go of one, they are lost to the guest rather than used for
/// something else.
pub(crate) struct Shared<P: Platform> {
    platform: Rc<P>,
    backend: DomId,
    memory: Rc<P::Memory>,
    grants: Vec<Option<GrantRef>>,
}

impl<P: Platform> Shared<P> {
    /// Fresh pages, with room for `grants` grants on them.
    pub fn new(platform: &Rc<P>, backend: DomId, pages: usize, grants: usize) -> Option<Self> {
        Some(Self::of(
            platform,
            backend,
            platform.allocate(pages)?,
            grants,
        ))
    }

    /// These pages, with room for `grants` grants on them.
    pub fn of(platform: &Rc<P>, backend: DomId, memory: P::Memory, grants: usize) -> Self {
        Self {
            platform: Rc::clone(platform),
            backend,
            memory: Rc::new(memory),
            grants: vec![None; grants],
        }
    }

    /// Grants a page; the grant takes place `at`.
    pub fn grant(&mut self, at: usize, page: usize, access: Access) -> Option<GrantRef> {
        let gref = self
            .platform
            .grant(&self.memory, page, self.backend, access)?;
        self.grants[at] = Some(gref);
        Some(gref)
    }

    /// Grants page `n` at place `n`, for all places.
    pub fn grant_all(&mut self, access: Access) -> Option<()> {
        self.grant_each(|at| at, access)
    }

    /// Grants page `page(n)` at place `n`, for all places.
    pub fn grant_each(&mut self, page: fn(usize) -> usize, access: Access) -> Option<()> {
        (0..self.grants.len()).try_for_each(|at| self.grant(at, page(at), access).map(drop))
    }

    /// The references of all grants.
    pub fn references(&self) -> impl Iterator<Item = u32> {
        self.grants.iter().flatten().map(|gref| gref.0)
    }

    /// The grant at a place.
    pub fn gref(&self, at: usize) -> Option<GrantRef> {
        self.grants[at]
    }

    /// Ends the grant at a place; false if the backend does not let go of it.
    pub fn end(&mut self, at: usize) -> bool {
        let ended = self.grants[at].is_none_or(|gref| self.platform.end_grant(gref));
        if ended {
            self.grants[at] = None;
        }
        ended
    }

    /// Ends all grants; false if the backend does not let go of some: try again later.
    pub fn end_all(&mut self) -> bool {
        (0..self.grants.len()).filter(|at| !self.end(*at)).count() == 0
    }

    /// The grants ended without us, as they do when a guest is restored.
    pub fn forget_grants(&mut self) {
        self.grants.fill(None);
    }
}

impl<P: Platform> Drop for Shared<P> {
    fn drop(&mut self) {
        if !self.end_all() {
            core::mem::forget(Rc::clone(&self.memory));
        }
    }
}

impl<P: Platform> Memory for Shared<P> {
    fn size(&self) -> usize {
        self.memory.size()
    }
    fn load(&self, at: usize) -> u32 {
        self.memory.load(at)
    }
    fn store(&self, at: usize, value: u32) {
        self.memory.store(at, value);
    }
    fn load_descriptor(&self, at: usize) -> u64 {
        self.memory.load_descriptor(at)
    }
    fn store_descriptor(&self, at: usize, value: u64) {
        self.memory.store_descriptor(at, value);
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        self.memory.read(at, into);
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.memory.write(at, from);
    }
    fn fence(&self) {
        self.memory.fence();
    }
}
