// SPDX-License-Identifier: Apache-2.0
//! An operator's requests, which valed repeats when it starts (docs/interfaces.md, "Kept requests").
//!
//! The toolstack and the agent repeat their own requests, so none of theirs is here.
mod change;
mod file;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use log::{error, info, warn};
use vale_proto::{Keep, KeptInfo, KeptList, MAX_KEPT, PortId};

use crate::texts;
pub use change::Change;
use file::{NextFile, StateFile};
pub use place::Place;
use place::What;

/// Why a request of the file is not in force before valed has tried it.
const STARTING: &str = "valed starts";

/// The kept requests and their file.
pub struct Kept {
    /// None without a state folder in the configuration.
    file: Option<StateFile>,
    state: Mutex<State>,
    /// Wakes the thread that looks after the requests.
    changed: Condvar,
}

#[derive(Default)]
pub struct State {
    records: BTreeMap<Place, Record>,
    /// Why the file must not be replaced.
    locked: Option<String>,
}

struct Record {
    request: Keep,
    /// Why the request is not in force.
    waits: Option<String>,
}

impl Record {
    fn waiting(request: Keep, why: &str) -> Self {
        Self {
            request,
            waits: Some(why.to_owned()),
        }
    }

    fn in_force(request: Keep) -> Self {
        Self {
            request,
            waits: None,
        }
    }
}

/// Why no file was written for a request.
pub enum KeepError {
    TooMany,
    File(String),
}

impl Kept {
    /// Reads the file of the folder. One that cannot be used is put aside, so that valed starts.
    pub fn open(folder: Option<PathBuf>) -> Self {
        let file = folder.map(StateFile::new);
        let mut state = State::default();
        match file.as_ref().map(StateFile::read) {
            Some(Ok(requests)) => state.fill(requests),
            Some(Err(text)) => {
                error!("{text}");
                let aside = file.as_ref().map_or(Ok(()), StateFile::set_aside);
                state.locked = aside.is_err().then_some(text);
            }
            None => (),
        }
        Self {
            file,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request is not in force.
    pub fn wait(&self) -> MutexGuard<'_, State> {
        let has_no_work = |state: &mut State| state.waiting() == 0;
        let state = self.changed.wait_while(self.lock(), has_no_work);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the thread that looks after the requests of a change.
    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// True without a folder for the file.
    pub fn is_off(&self) -> bool {
        self.file.is_none()
    }

    /// Writes the file that a change needs. None if the file stays as it is.
    pub fn prepare(&self, state: &State, change: &Change) -> Result<Option<NextFile>, KeepError> {
        let Some(file) = self.file.as_ref().filter(|_| state.differs(change)) else {
            return Ok(None);
        };
        if let Some(text) = &state.locked {
            return Err(KeepError::File(text.clone()));
        }
        let requests = state.after(change);
        if requests.len() > MAX_KEPT {
            return Err(KeepError::TooMany);
        }
        file.prepare(requests).map(Some).map_err(KeepError::File)
    }

    /// The number of requests that are not in force.
    pub fn waiting(&self) -> usize {
        self.lock().waiting()
    }

    pub fn list(&self) -> KeptList {
        let state = self.lock();
        let info = |record: &Record| KeptInfo {
            request: record.request.clone(),
            waits: record.waits.clone(),
        };
        let aside = || self.file.as_ref().and_then(StateFile::fault);
        KeptList {
            kept: state.records.values().map(info).collect(),
            fault: state.locked.clone().or_else(aside),
        }
    }
}

impl State {
    fn fill(&mut self, requests: Vec<Keep>) {
        for request in requests {
            // A request that removes something has no place; valed writes none.
            if let Some(place) = Place::of(&request) {
                self.records
                    .insert(place, Record::waiting(request, STARTING));
            }
        }
    }

    /// The number of requests that are not in force.
    pub fn waiting(&self) -> usize {
        self.records.values().filter(|r| r.waits.is_some()).count()
    }

    /// True if the file has to change.
    fn differs(&self, change: &Change) -> bool {
        change.set.is_some() || change.forget.iter().any(|p| self.records.contains_key(p))
    }

    /// True for a change that only ends kept requests.
    pub fn forgets(&self, change: &Change) -> bool {
        change.set.is_none() && change.not_kept.is_none() && self.differs(change)
    }

    /// The requests after a change.
    fn after(&self, change: &Change) -> Vec<Keep> {
        let new = change.set.as_ref();
        let stays = |place: &Place| {
            !change.forget.contains(place) && new.is_none_or(|(set, _)| set != place)
        };
        let old = self.records.iter().filter(|(place, _)| stays(place));
        let old = old.map(|(_, record)| record.request.clone());
        old.chain(new.map(|(_, request)| request.clone())).collect()
    }

    /// Takes a change whose file is in its place.
    pub fn take(&mut self, change: Change) {
        for place in change.forget {
            self.records.remove(&place);
        }
        if let Some((place, request)) = change.set {
            self.records.insert(place, Record::in_force(request));
        }
    }

    fn has(&self, place: &Place) -> bool {
        self.records.contains_key(place)
    }

    fn places(&self, is_wanted: impl Fn(&Place) -> bool) -> Vec<Place> {
        let places = self.records.keys();
        places.filter(|place| is_wanted(place)).cloned().collect()
    }

    fn places_in_force(&self, is_wanted: impl Fn(&Place) -> bool) -> BTreeSet<Place> {
        let in_force = self.records.iter().filter(|(_, r)| r.waits.is_none());
        let places = in_force.map(|(place, _)| place);
        places.filter(|place| is_wanted(place)).cloned().collect()
    }

    /// A request as it is carried out. A port comes before what is kept with it: until it has a kept filter
    /// it permits nothing, and its link begins down if it was set down.
    pub fn as_carried_out(&self, request: &Keep) -> Keep {
        let mut request = request.clone();
        if let Keep::PortAdd(add) = &mut request {
            let kept = |what| {
                let place = Place::at(what, &add.switch, &add.port);
                self.records.get(&place).map(|record| &record.request)
            };
            let is_filtered = kept(What::Filter).is_some();
            let is_down = matches!(kept(What::Link), Some(Keep::PortSet(set)) if !set.link_up);
            add.filtered |= is_filtered;
            add.link_up &= !is_down;
        }
        request
    }

    /// Notes that another peer has removed a port, and its switch with the last one. Returns what to
    /// forget: the port's name has another owner, to whose port nothing of this one may come.
    pub fn note_removed(&mut self, id: &PortId, is_switch_gone: bool) -> Option<Change> {
        self.suspend(id, is_switch_gone);
        let own = Place::port(id);
        let is_of_own = |place: &Place| *place == own || place.kept_port().as_ref() == Some(&own);
        self.has(&own)
            .then(|| Change::forget(self.places(is_of_own)))
    }

    /// Notes that a port is gone, and its switch with the last one.
    pub fn suspend(&mut self, id: &PortId, is_switch_gone: bool) {
        let (port, switch) = (
            texts::no_port(&id.switch, &id.port),
            texts::no_switch(&id.switch),
        );
        for (place, record) in &mut self.records {
            if place.is_of_port(id) {
                record.waits = Some(port.clone());
            } else if is_switch_gone && place.is_for_switch() && place.is_of_switch(&id.switch) {
                record.waits = Some(switch.clone());
            }
        }
    }

    /// Tries the requests that are not in force, ports first. One that is kept with a port waits for
    /// that port: others may have one of its name.
    pub fn retry(
        &mut self,
        is_due: impl Fn(&Place) -> bool,
        apply: impl Fn(&Keep) -> Result<(), String>,
    ) {
        let mut ports = self.places_in_force(Place::is_port);
        let is_tried = |place: &Place, record: &Record| record.waits.is_some() && is_due(place);
        let tried = self.records.iter().filter(|(p, r)| is_tried(p, r));
        let requests: Vec<Keep> = tried
            .map(|(_, r)| self.as_carried_out(&r.request))
            .collect();
        let records = self.records.iter_mut().filter(|(p, r)| is_tried(p, r));
        for ((place, record), request) in records.zip(requests) {
            let is_free = place.kept_port().is_none_or(|port| ports.contains(&port));
            let waits = match is_free {
                true => apply(&request).err(),
                false => Some(place.without_port()),
            };
            if waits.is_none() && place.is_port() {
                ports.insert(place.clone());
            }
            match &waits {
                None => info!("{place}: in force again"),
                Some(text) if record.waits.as_ref() != Some(text) => {
                    warn!("{place}: kept, but not in force: {text}");
                }
                Some(_) => (),
            }
            record.waits = waits;
        }
    }
}

#[cfg(test)]
mod tests;
