// SPDX-License-Identifier: Apache-2.0
//! All guests of this host, and who is let in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::domids::Domids;
use super::{Guest, Shape, State, Status};
use crate::base::error::{Code, Error, Result};
use crate::config::MAX_DOMID;
use crate::host::{Domain, Instance, IsUsed};
use crate::preconnected::Preconnected;
use crate::spec::{Spec, Uuid, random_bytes};

/// The resources that all guests may use together.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    pub memory_mib: u32,
    pub guests: usize,
}

/// See the module.
pub struct Table {
    capacity: Capacity,
    is_used: IsUsed,
    inner: Mutex<Inner>,
}

struct Inner {
    guests: BTreeMap<Uuid, Arc<Guest>>,
    domids: Domids,
}

impl Table {
    /// Domain ids begin with `first_domid` as long as those of an earlier daemon may rest.
    pub fn new(capacity: Capacity, first_domid: u16, is_used: IsUsed) -> Self {
        Self {
            capacity,
            is_used,
            inner: Mutex::new(Inner {
                guests: BTreeMap::new(),
                domids: Domids::new(first_domid, Instant::now()),
            }),
        }
    }

    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Enters a new guest in state `Partial`, with a domain id of its own. It takes the place of
    /// `old`, if there is one.
    ///
    /// # Errors `exists`, `too-many`, `no-memory`; each message has the amount in use and the
    /// amount requested.
    pub fn admit(&self, spec: &Spec, created_s: u64, old: Option<&Guest>) -> Result<Arc<Guest>> {
        let mut inner = self.lock();
        inner.check_new(spec, old)?;
        inner.check_room(spec.memory_mib.get(), uuid_of(old), self.capacity)?;
        let domain = domain_of(spec, inner.next_domid(&self.is_used)?, spec.uuid.clone());
        Ok(inner.enter(domain, &spec.config_name, created_s, None))
    }

    /// The guest that would take the place of another one, which is as it was. Its memory is the
    /// other one's too, so that no third guest takes it meanwhile.
    ///
    /// # Errors
    /// As of `admit`.
    pub fn preview(&self, spec: &Spec, old: &Guest) -> Result<Guest> {
        let inner = self.lock();
        inner.check_new(spec, Some(old))?;
        inner.check_room(spec.memory_mib.get(), uuid_of(Some(old)), self.capacity)?;
        old.hold_memory(spec.memory_mib.get());
        let domain = domain_of(spec, old.domain.domid, spec.uuid.clone());
        let status = status_of(&spec.config_name, None);
        Ok(Guest::new(domain, old.created_s, status))
    }

    /// Enters a guest for the pool in state `Partial`.
    pub fn admit_to_pool(&self, shape: &Shape, created_s: u64) -> Result<Arc<Guest>> {
        let mut inner = self.lock();
        inner.check_room(shape.memory_mib, None, self.capacity)?;
        let uuid = Uuid::of_random(u128::from_ne_bytes(random_bytes()?));
        let domain = Domain {
            domid: inner.next_domid(&self.is_used)?,
            handle: uuid.clone(),
            name: format!("pool {uuid}"),
            uuid,
            memory_mib: shape.memory_mib,
            vcpus: 1,
            image_sha256: shape.image_sha256.clone(),
            vifs: Vec::new(),
            nics: Vec::new(),
            kernel: None,
            preconnected: shape.preconnected,
        };
        Ok(inner.enter(domain, "", created_s, None))
    }

    /// BuildSlots a guest of the pool that is as asked for into a new guest in state `Partial`; the
    /// other one is forgotten.
    pub fn take(
        &self,
        spec: &Spec,
        created_s: u64,
        old: Option<&Guest>,
    ) -> Result<Option<(Arc<Guest>, Arc<Guest>)>> {
        let mut inner = self.lock();
        inner.check_new(spec, old)?;
        let Some(pooled) = inner.pooled_like(spec) else {
            return Ok(None);
        };
        inner.guests.remove(&pooled.domain.uuid);
        pooled.set_state(State::Partial, "");
        let of = &pooled.domain;
        let domain = Domain {
            preconnected: of.preconnected,
            ..domain_of(spec, of.domid, of.handle.clone())
        };
        let guest = inner.enter(
            domain,
            &spec.config_name,
            created_s,
            pooled.status().instance,
        );
        Ok(Some((guest, pooled)))
    }

    /// Puts a guest in state `Partial` in a saved guest's place, with a new domain id, because
    /// libxl refuses recent ids.
    pub fn readmit(&self, saved: &Guest, created_s: u64) -> Result<Arc<Guest>> {
        let mut inner = self.lock();
        inner.check_memory(saved.domain.memory_mib, None, self.capacity)?;
        let domain = Domain {
            domid: inner.next_domid(&self.is_used)?,
            vifs: saved.vifs(),
            preconnected: Preconnected::default(),
            ..saved.domain.clone()
        };
        let config_name = saved.status().config_name;
        Ok(inner.enter(domain, &config_name, created_s, None))
    }

    /// Takes a guest out of the pool to be destroyed; false if it is not in it any more.
    pub fn withdraw(&self, guest: &Guest) -> bool {
        let _inner = self.lock();
        let is_pooled = guest.state() == State::Pooled;
        if is_pooled {
            guest.set_state(State::Partial, "");
        }
        is_pooled
    }

    /// The free guests of the pool.
    pub fn pooled(&self) -> Vec<Arc<Guest>> {
        let mut all = self.all();
        all.retain(|guest| guest.state() == State::Pooled);
        all
    }

    /// A guest of the pool that is beyond what is wanted.
    pub fn surplus(&self, wanted: &[(Shape, usize)]) -> Option<Arc<Guest>> {
        let pooled = self.pooled();
        let is_surplus = |guest: &&Arc<Guest>| {
            let shape = Shape::of_domain(&guest.domain);
            count(&pooled, &shape) > wanted_of(wanted, &shape)
        };
        pooled.iter().find(is_surplus).cloned()
    }

    /// A shape of which the pool has too few guests.
    pub fn missing(&self, wanted: &[(Shape, usize)]) -> Option<Shape> {
        let pooled = self.pooled();
        let mut shapes = wanted.iter().map(|(shape, _)| shape);
        let is_missing = |shape: &&Shape| count(&pooled, shape) < wanted_of(wanted, shape);
        shapes.find(is_missing).cloned()
    }

    /// Enters a guest of an earlier cosmosd; it is not refused for lack of room.
    pub fn restore(&self, guest: Arc<Guest>) {
        let mut inner = self.lock();
        inner.guests.insert(guest.domain.uuid.clone(), guest);
    }

    /// # Errors
    /// `no-such-guest`; also while it is being created.
    pub fn get(&self, uuid: &Uuid) -> Result<Arc<Guest>> {
        self.find(uuid)
            .filter(|guest| !matches!(guest.state(), State::Partial | State::Pooled))
            .ok_or_else(|| Error::new(Code::NoSuchGuest, format!("no guest {uuid} on this host")))
    }

    /// The guest in any state.
    pub fn find(&self, uuid: &Uuid) -> Option<Arc<Guest>> {
        self.lock().guests.get(uuid).cloned()
    }

    /// True if this is the guest of its UUID: its last owner may have removed it, or put another in
    /// its place.
    pub fn is_current(&self, guest: &Guest) -> bool {
        let now = self.find(&guest.domain.uuid);
        now.is_some_and(|now| std::ptr::eq(&*now, guest))
    }

    /// The UUIDs of the listed guests of this name.
    pub fn named(&self, name: &str) -> Vec<Uuid> {
        let inner = self.lock();
        let guests = inner.guests.values().filter(|g| g.domain.name == name);
        let listed = guests.filter(|g| g.state().is_listed());
        listed.map(|g| g.domain.uuid.clone()).collect()
    }

    pub fn by_domid(&self, domid: u16) -> Option<Arc<Guest>> {
        self.lock()
            .guests
            .values()
            .find(|g| g.domain.domid == domid)
            .cloned()
    }

    pub fn remove(&self, uuid: &Uuid) {
        let mut inner = self.lock();
        if let Some(guest) = inner.guests.remove(uuid) {
            inner.domids.put_back(guest.domain.domid, Instant::now());
        }
    }

    pub fn all(&self) -> Vec<Arc<Guest>> {
        self.lock().guests.values().cloned().collect()
    }

    /// Memory in use, in MiB; the pool's is not, because it makes room.
    pub fn memory_used_mib(&self) -> u64 {
        let pooled = self.pooled();
        let pool: u64 = pooled.iter().map(|g| u64::from(g.domain.memory_mib)).sum();
        self.lock().memory_used_mib().saturating_sub(pool)
    }

    /// VCPUs of all guests but the pool's.
    pub fn vcpus_used(&self) -> u64 {
        let all = self.all();
        let listed = all.iter().filter(|guest| guest.state().is_listed());
        listed.map(|guest| u64::from(guest.domain.vcpus)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn domain_of(spec: &Spec, domid: u16, handle: Uuid) -> Domain {
    Domain {
        domid,
        uuid: spec.uuid.clone(),
        handle,
        name: spec.name.to_string(),
        memory_mib: spec.memory_mib.get(),
        vcpus: spec.vcpus.get(),
        image_sha256: spec.image_sha256.clone(),
        vifs: spec.vifs.clone(),
        nics: spec.nics.clone(),
        kernel: spec.kernel.clone(),
        preconnected: Preconnected::default(),
    }
}

fn uuid_of(old: Option<&Guest>) -> Option<&Uuid> {
    old.map(|old| &old.domain.uuid)
}

/// The status of a guest that is being made.
fn status_of(config_name: &str, instance: Option<Instance>) -> Status {
    Status {
        state: State::Partial,
        reason: String::new(),
        config_name: config_name.to_owned(),
        instance,
        links: BTreeMap::new(),
        added: Vec::new(),
        detached: BTreeSet::new(),
        unreachable: None,
        rings: BTreeMap::new(),
    }
}

fn memory_mib_of<'a>(guests: impl Iterator<Item = &'a Arc<Guest>>) -> u64 {
    guests.map(|guest| u64::from(guest.memory_mib())).sum()
}

fn count(guests: &[Arc<Guest>], shape: &Shape) -> usize {
    let shapes = guests.iter().map(|guest| Shape::of_domain(&guest.domain));
    shapes.filter(|of| of == shape).count()
}

/// The sum over all entries of this shape.
fn wanted_of(wanted: &[(Shape, usize)], shape: &Shape) -> usize {
    let same = wanted.iter().filter(|(of, _)| of == shape);
    same.map(|(_, guests)| guests).sum()
}

impl Inner {
    fn check_new(&self, spec: &Spec, old: Option<&Guest>) -> Result<()> {
        let is_old = |guest: &Guest| old.is_some_and(|old| std::ptr::eq(old, guest));
        let own = self.guests.get(&spec.uuid);
        if let Some(guest) = own.filter(|guest| !is_old(guest)) {
            let message = format!("guest {} is there already ({:?})", spec.uuid, guest.state());
            return Err(Error::new(Code::Exists, message.to_lowercase()));
        }
        for guest in self.others(uuid_of(old)) {
            let used = |vif: &&crate::spec::Vif| {
                let mut vifs = guest.vifs().into_iter();
                vifs.any(|v| v.is_plugged() && v.switch == vif.switch && v.port == vif.port)
            };
            let mut vifs = spec.vifs.iter().filter(|vif| vif.is_plugged());
            if let Some(vif) = vifs.find(used) {
                let message = format!(
                    "port {} belongs to guest {}",
                    vif.place(),
                    guest.domain.uuid
                );
                return Err(Error::new(Code::Exists, message));
            }
        }
        Ok(())
    }

    /// Enters a new guest.
    fn enter(
        &mut self,
        domain: Domain,
        config_name: &str,
        created_s: u64,
        instance: Option<Instance>,
    ) -> Arc<Guest> {
        let status = status_of(config_name, instance);
        let uuid = domain.uuid.clone();
        let guest = Arc::new(Guest::new(domain, created_s, status));
        // One that was saved or replaced had another number.
        if let Some(before) = self.guests.insert(uuid, Arc::clone(&guest)) {
            self.domids.put_back(before.domain.domid, Instant::now());
        }
        guest
    }

    /// The guest of the pool that needs least to become the requested one.
    fn pooled_like(&self, spec: &Spec) -> Option<Arc<Guest>> {
        let pooled = self.guests.values();
        let pooled = pooled.filter(|guest| guest.state() == State::Pooled);
        let near = pooled.filter_map(|guest| {
            let distance = Shape::of_domain(&guest.domain).distance(spec)?;
            Some((distance, guest))
        });
        near.min_by_key(|(distance, _)| *distance)
            .map(|(_, guest)| Arc::clone(guest))
    }

    /// All guests but one that another takes the place of.
    fn others(&self, replaced: Option<&Uuid>) -> impl Iterator<Item = &Arc<Guest>> {
        let all = self.guests.iter();
        let others = all.filter(move |(uuid, _)| Some(*uuid) != replaced);
        others.map(|(_, guest)| guest)
    }

    fn check_room(
        &self,
        memory_mib: u32,
        replaced: Option<&Uuid>,
        capacity: Capacity,
    ) -> Result<()> {
        let guests = self.others(replaced).count();
        if guests >= capacity.guests {
            let message = format!("{guests} of {} guests are there already", capacity.guests);
            return Err(Error::new(Code::TooMany, message));
        }
        self.check_memory(memory_mib, replaced, capacity)
    }

    fn check_memory(
        &self,
        memory_mib: u32,
        replaced: Option<&Uuid>,
        capacity: Capacity,
    ) -> Result<()> {
        let used = memory_mib_of(self.others(replaced));
        if used + u64::from(memory_mib) > u64::from(capacity.memory_mib) {
            let message = format!(
                "{memory_mib} MiB asked, {used} of {} MiB are in use",
                capacity.memory_mib
            );
            return Err(Error::new(Code::NoMemory, message));
        }
        Ok(())
    }

    fn memory_used_mib(&self) -> u64 {
        memory_mib_of(self.guests.values())
    }

    fn next_domid(&mut self, is_used: &IsUsed) -> Result<u16> {
        let busy = self.guests.values().map(|guest| guest.domain.domid);
        let next = self.domids.next(Instant::now(), busy.collect(), is_used);
        let message = || format!("all {MAX_DOMID} domain ids are in use");
        next.ok_or_else(|| Error::new(Code::TooMany, message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{good, spec};

    fn table() -> Table {
        let capacity = Capacity {
            memory_mib: 20,
            guests: 3,
        };
        Table::new(capacity, 1, Box::new(|domid| domid == 3))
    }

    fn refused(table: &Table, spec: &Spec) -> Error {
        table.admit(spec, 0, None).err().unwrap()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_numbers() {
        let table = table();
        table.admit(&spec(1), 0, None).unwrap();
        let crashed = table.admit(&spec(2), 0, None).unwrap();
        let error = refused(&table, &spec(3));
        assert_eq!(
            error,
            Error::new(Code::NoMemory, "8 MiB asked, 16 of 20 MiB are in use")
        );
        // A crashed guest holds no memory, but stays listed and counted.
        crashed.set_state(State::Crashed, "");
        table.admit(&spec(3), 0, None).unwrap();
        let error = refused(&table, &spec(4));
        assert_eq!(
            error,
            Error::new(Code::TooMany, "3 of 3 guests are there already")
        );
    }

    #[test]
    fn a_guest_and_its_ports_are_there_once() {
        let table = table();
        table.admit(&spec(1), 0, None).unwrap();
        assert_eq!(refused(&table, &spec(1)).code, Code::Exists);
        let mut other = spec(2);
        other.vifs = spec(1).vifs;
        let error = refused(&table, &other);
        assert!(
            error
                .message
                .starts_with("port vale0:g1-0 belongs to guest"),
            "{error}"
        );
    }

    #[test]
    fn domain_ids_are_not_used_again_soon() {
        let table = table();
        assert_eq!(table.admit(&spec(1), 0, None).unwrap().domain.domid, 1);
        table.remove(&spec(1).uuid);
        assert_eq!(table.admit(&spec(1), 0, None).unwrap().domain.domid, 2);
        // The third is somebody else's.
        let saved = table.admit(&spec(2), 0, None).unwrap();
        assert_eq!(saved.domain.domid, 4);
        saved.set_state(State::Saved, "");
        assert_eq!(table.readmit(&saved, 0).unwrap().domain.domid, 5);
        table.remove(&spec(2).uuid);
        assert_eq!(table.admit(&spec(2), 0, None).unwrap().domain.domid, 6);
    }

    #[test]
    fn a_guest_being_created_is_not_found() {
        let table = table();
        let guest = table.admit(&spec(1), 0, None).unwrap();
        assert_eq!(
            table.get(&spec(1).uuid).err().unwrap().code,
            Code::NoSuchGuest
        );
        guest.set_state(State::Running, "");
        assert!(table.get(&spec(1).uuid).is_ok());
        assert!(table.by_domid(guest.domain.domid).is_some());
    }

    #[test]
    fn a_guest_takes_the_place_of_the_one_that_its_maker_knows() {
        let table = table();
        let again = Spec {
            replace: true,
            ..spec(1)
        };
        // Two requests found no guest: the later one may not take the place of the earlier one's.
        let first = table.admit(&again, 0, None).unwrap();
        let error = table.admit(&again, 0, None).err().unwrap();
        assert_eq!(error.code, Code::Exists);
        let second = table.admit(&again, 0, Some(&first)).unwrap();
        let error = table.admit(&again, 0, Some(&first)).err().unwrap();
        assert_eq!(error.code, Code::Exists);
        assert!(Arc::ptr_eq(&table.find(&again.uuid).unwrap(), &second));
    }

    #[test]
    fn no_other_guest_takes_the_memory_of_one_that_grows_with_its_restart() {
        let table = table();
        let old = table.admit(&spec(1), 0, None).unwrap();
        let mut larger = spec(1);
        larger.memory_mib = good(16);
        table.preview(&larger, &old).unwrap();
        assert_eq!(refused(&table, &spec(2)).code, Code::NoMemory);
        table.admit(&larger, 0, Some(&old)).unwrap();
        let error = refused(&table, &spec(2));
        assert_eq!(error.message, "8 MiB asked, 16 of 20 MiB are in use");
    }
}
