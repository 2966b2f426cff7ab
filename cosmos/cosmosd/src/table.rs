// SPDX-License-Identifier: Apache-2.0
//! All guests of this host, and who is let in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::MAX_DOMID;
use crate::error::{Code, Error, Result};
use crate::guest::{Guest, State, Status};
use crate::host::Domain;
use crate::spec::{Spec, Uuid};

/// What guests may use together.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    pub memory_mib: u32,
    pub guests: usize,
}

/// See the module.
pub struct Table {
    capacity: Capacity,
    inner: Mutex<Inner>,
}

struct Inner {
    guests: BTreeMap<Uuid, Arc<Guest>>,
    last_domid: u16,
}

impl Table {
    pub fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            inner: Mutex::new(Inner {
                guests: BTreeMap::new(),
                last_domid: 0,
            }),
        }
    }

    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Enters a new guest in state `Partial`, with a domain id of its own.
    ///
    /// # Errors
    /// `exists`, `too-many`, `no-memory`, with what is there and what is asked.
    pub fn admit(&self, spec: &Spec, created_s: u64) -> Result<Arc<Guest>> {
        let mut inner = self.lock();
        inner.check_new(spec)?;
        inner.check_capacity(spec, self.capacity)?;
        let domain = Domain {
            domid: inner.next_domid()?,
            uuid: spec.uuid.clone(),
            name: spec.name.clone(),
            memory_mib: spec.memory_mib,
            image_sha256: spec.image_sha256.clone(),
            vifs: spec.vifs.clone(),
            nics: spec.nics.clone(),
        };
        let status = Status {
            state: State::Partial,
            reason: String::new(),
            config_name: spec.config_name.clone(),
            instance: None,
        };
        let guest = Arc::new(Guest::new(domain, created_s, status));
        inner.guests.insert(spec.uuid.clone(), Arc::clone(&guest));
        Ok(guest)
    }

    /// Enters a guest of an earlier cosmosd; it is not refused for lack of room.
    pub fn restore(&self, guest: Arc<Guest>) {
        let mut inner = self.lock();
        inner.last_domid = inner.last_domid.max(guest.domain.domid);
        inner.guests.insert(guest.domain.uuid.clone(), guest);
    }

    /// # Errors
    /// `no-such-guest`; also while it is being created.
    pub fn get(&self, uuid: &Uuid) -> Result<Arc<Guest>> {
        self.find(uuid)
            .filter(|guest| guest.state() != State::Partial)
            .ok_or_else(|| Error::new(Code::NoSuchGuest, format!("no guest {uuid} on this host")))
    }

    /// The guest in any state.
    pub fn find(&self, uuid: &Uuid) -> Option<Arc<Guest>> {
        self.lock().guests.get(uuid).cloned()
    }

    pub fn by_domid(&self, domid: u16) -> Option<Arc<Guest>> {
        self.lock()
            .guests
            .values()
            .find(|g| g.domain.domid == domid)
            .cloned()
    }

    pub fn remove(&self, uuid: &Uuid) {
        self.lock().guests.remove(uuid);
    }

    pub fn all(&self) -> Vec<Arc<Guest>> {
        self.lock().guests.values().cloned().collect()
    }

    /// Memory in use, in MiB.
    pub fn memory_used_mib(&self) -> u64 {
        self.lock().memory_used_mib()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn check_new(&self, spec: &Spec) -> Result<()> {
        if let Some(guest) = self.guests.get(&spec.uuid) {
            let message = format!("guest {} is there already ({:?})", spec.uuid, guest.state());
            return Err(Error::new(Code::Exists, message.to_lowercase()));
        }
        for guest in self.guests.values() {
            let used = |vif: &&crate::spec::Vif| {
                guest
                    .domain
                    .vifs
                    .iter()
                    .any(|v| v.switch == vif.switch && v.port == vif.port)
            };
            if let Some(vif) = spec.vifs.iter().find(used) {
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

    fn check_capacity(&self, spec: &Spec, capacity: Capacity) -> Result<()> {
        let (guests, used) = (self.guests.len(), self.memory_used_mib());
        if guests >= capacity.guests {
            let message = format!("{guests} of {} guests are there already", capacity.guests);
            return Err(Error::new(Code::TooMany, message));
        }
        if used + u64::from(spec.memory_mib) > u64::from(capacity.memory_mib) {
            let message = format!(
                "{} MiB asked, {used} of {} MiB are in use",
                spec.memory_mib, capacity.memory_mib
            );
            return Err(Error::new(Code::NoMemory, message));
        }
        Ok(())
    }

    fn memory_used_mib(&self) -> u64 {
        let held = self.guests.values().filter(|g| g.state().holds_memory());
        held.map(|g| u64::from(g.domain.memory_mib)).sum()
    }

    /// The next number that is free, upwards, so that one is not used again soon.
    fn next_domid(&mut self) -> Result<u16> {
        for _ in 0..MAX_DOMID {
            self.last_domid = if self.last_domid >= MAX_DOMID {
                1
            } else {
                self.last_domid + 1
            };
            if self
                .guests
                .values()
                .all(|g| g.domain.domid != self.last_domid)
            {
                return Ok(self.last_domid);
            }
        }
        Err(Error::new(
            Code::TooMany,
            format!("all {MAX_DOMID} domain ids are in use"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::spec;

    fn table() -> Table {
        Table::new(Capacity {
            memory_mib: 20,
            guests: 3,
        })
    }

    fn refused(table: &Table, spec: &Spec) -> Error {
        table.admit(spec, 0).err().unwrap()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_numbers() {
        let table = table();
        table.admit(&spec(1), 0).unwrap();
        let crashed = table.admit(&spec(2), 0).unwrap();
        let error = refused(&table, &spec(3));
        assert_eq!(
            error,
            Error::new(Code::NoMemory, "8 MiB asked, 16 of 20 MiB are in use")
        );
        // A crashed guest holds no memory, but stays listed and counted.
        crashed.set_state(State::Crashed, "");
        table.admit(&spec(3), 0).unwrap();
        let error = refused(&table, &spec(4));
        assert_eq!(
            error,
            Error::new(Code::TooMany, "3 of 3 guests are there already")
        );
    }

    #[test]
    fn a_guest_and_its_ports_are_there_once() {
        let table = table();
        table.admit(&spec(1), 0).unwrap();
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
        assert_eq!(table.admit(&spec(1), 0).unwrap().domain.domid, 1);
        table.remove(&spec(1).uuid);
        assert_eq!(table.admit(&spec(1), 0).unwrap().domain.domid, 2);
        table.lock().last_domid = MAX_DOMID;
        assert_eq!(table.admit(&spec(2), 0).unwrap().domain.domid, 1);
        table.remove(&spec(2).uuid);
        table.lock().last_domid = 1;
        assert_eq!(table.admit(&spec(3), 0).unwrap().domain.domid, 3);
    }

    #[test]
    fn a_guest_being_created_is_not_found() {
        let table = table();
        let guest = table.admit(&spec(1), 0).unwrap();
        assert_eq!(
            table.get(&spec(1).uuid).err().unwrap().code,
            Code::NoSuchGuest
        );
        guest.set_state(State::Running, "");
        assert!(table.get(&spec(1).uuid).is_ok());
        assert!(table.by_domid(guest.domain.domid).is_some());
    }
}
