// SPDX-License-Identifier: Apache-2.0
//! What unit tests share: example guests, and a toolstack on simulated surroundings.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use control_socket::EventHub;
use serde_json::json;
use tempfile::TempDir;

use crate::build_slots::BuildSlots;
use crate::config::Shelf;
use crate::faults::{ENGINE, Faults};
use crate::guest::{Capacity, Table};
use crate::health::Health;
use crate::host::sim::SimHost;
use crate::host::{Death, Domain, Host, Instance};
use crate::ledgers::Ledgers;
use crate::pool::Pool;
use crate::record::{Phase, Record, Records};
use crate::saved::Saved;
use crate::silent::Silent;
use crate::spec::{Nic, Spec, Uuid, Vif};
use crate::state_room::{PART, StateRoom};
use crate::store::sim::SimStore;
use crate::store::{Store, Watchers};
use crate::switch::sim::SimSwitch;
use crate::toolstack::Toolstack;

/// A value of a type with a check.
pub fn good<R, T: TryFrom<R, Error = String>>(raw: R) -> T {
    T::try_from(raw).unwrap()
}

pub fn uuid(n: u16) -> Uuid {
    Uuid::try_from(format!("00000000-0000-4000-8000-{n:012x}")).unwrap()
}

pub fn vif(guest: u16, devid: u32) -> Vif {
    serde_json::from_value(json!({
        "devid": devid, "mac": format!("02:00:00:00:{guest:02x}:{devid:02x}"),
        "switch": "vale0", "port": format!("g{guest}-{devid}"), "segment": 1,
        "allowed": [{"ip": "10.0.0.1/32"}], "port_security": true, "mtu": 1500, "slots": 64,
    }))
    .unwrap()
}

pub fn nic(devid: u32) -> Nic {
    let mac = format!("02:00:00:00:ff:{devid:02x}");
    serde_json::from_value(json!({"devid": devid, "mac": mac, "bridge": "br0", "mtu": 1500}))
        .unwrap()
}

pub fn spec(n: u16) -> Spec {
    Spec {
        uuid: uuid(n),
        name: good(format!("guest {n}")),
        image_sha256: ENGINE.into(),
        memory_mib: good(8),
        vifs: vec![vif(n, 0), vif(n, 1)],
        nics: Vec::new(),
        config: good("FromDevice(0) -> ToDevice(1);"),
        config_name: good("wire.click"),
        writes: vec![(good("fw.config"), "deny all".into())],
        number: 0,
        has_secrets: false,
        hold: false,
        replace: false,
        timeout_ms: good(60_000),
    }
}

pub fn domain(domid: u16) -> Domain {
    let spec = spec(domid);
    Domain {
        domid,
        handle: spec.uuid.clone(),
        uuid: spec.uuid,
        name: spec.name.into(),
        memory_mib: spec.memory_mib.get(),
        image_sha256: spec.image_sha256,
        vifs: spec.vifs,
        nics: spec.nics,
        silent: Silent::default(),
    }
}

pub fn record(domid: u16) -> Record {
    let domain = domain(domid);
    Record {
        uuid: domain.uuid,
        handle: Some(domain.handle),
        name: domain.name,
        domid,
        memory_mib: domain.memory_mib,
        created_s: 1,
        config_name: "wire.click".into(),
        image_sha256: domain.image_sha256,
        vifs: domain.vifs,
        rings: Default::default(),
        nics: domain.nics,
        silent: domain.silent,
        phase: Phase::Complete,
        reason: String::new(),
        instance: Some(Instance::Sim { domid }),
        halted: Vec::new(),
    }
}

/// An entry of the pool.
pub fn shelf(guests: usize, silent: Silent) -> Shelf {
    Shelf {
        image: None,
        memory_mib: 8,
        guests,
        vifs: silent.vifs,
        slots: silent.slots,
        nics: silent.nics,
    }
}

/// A toolstack on simulated surroundings, which outlive it.
pub struct World {
    pub dir: TempDir,
    pub faults: Arc<Faults>,
    pub host: Arc<SimHost>,
    pub store: Arc<SimStore>,
    pub switch: Arc<SimSwitch>,
    pub toolstack: Arc<Toolstack>,
    pub deaths: Option<Receiver<Death>>,
    shelves: Vec<Shelf>,
}

impl World {
    pub fn new() -> Self {
        Self::with_pool(vec![shelf(2, Silent::default())])
    }

    pub fn with_pool(shelves: Vec<Shelf>) -> Self {
        let faults = Arc::new(Faults::default());
        let store = Arc::new(SimStore::with(faults.clone()));
        let dir = tempfile::tempdir().unwrap();
        let host = Arc::new(SimHost::new(faults.clone(), store.clone(), dir.path()));
        let switch = Arc::new(SimSwitch::new(faults.clone()));
        let (toolstack, deaths) = toolstack(&dir, &host, &store, &switch, &shelves);
        Self {
            dir,
            faults,
            host,
            store,
            switch,
            toolstack,
            deaths: Some(deaths),
            shelves,
        }
    }

    /// A new daemon in the same surroundings.
    pub fn restart(mut self) -> Self {
        drop(self.toolstack);
        (self.toolstack, self.deaths) = {
            let (toolstack, deaths) = toolstack(
                &self.dir,
                &self.host,
                &self.store,
                &self.switch,
                &self.shelves,
            );
            (toolstack, Some(deaths))
        };
        self.toolstack.recover().unwrap();
        self
    }

    /// Lets deaths be handled as in the daemon.
    pub fn watch_deaths(&mut self) {
        let (toolstack, deaths) = (self.toolstack.clone(), self.deaths.take().unwrap());
        std::thread::spawn(move || toolstack.watch_deaths(deaths));
    }

    /// The remains of guests anywhere; none after a guest is gone.
    pub fn remains(&self) -> Vec<String> {
        let mut remains = self.host.remains();
        remains.extend(self.switch.ports());
        let silent = self.switch.silent_vifs().into_iter();
        remains.extend(silent.map(|(domid, devid)| format!("silent {domid}/{devid}")));
        remains.extend(self.store.keys());
        remains.extend(self.toolstack.ledgers.files());
        let records = self.toolstack.records.load_all().unwrap();
        remains.extend(records.into_iter().map(|r| format!("record {}", r.uuid)));
        remains.extend(
            self.toolstack
                .table
                .all()
                .iter()
                .map(|g| format!("entry {}", g.domain.uuid)),
        );
        remains
    }
}

fn toolstack(
    dir: &TempDir,
    host: &Arc<SimHost>,
    store: &Arc<SimStore>,
    switch: &Arc<SimSwitch>,
    shelves: &[Shelf],
) -> (Arc<Toolstack>, Receiver<Death>) {
    let (sender, deaths) = channel();
    host.report_to(sender);
    let watchers = Arc::new(Watchers::new(Box::new(|_, _| {})));
    store.report_to(&watchers);
    let room = Arc::new(StateRoom::open(vec![(PART, dir.path().to_owned())]).unwrap());
    let toolstack = Toolstack {
        host: Box::new(host.clone()),
        turns: BuildSlots::new(2),
        store: store.clone() as Arc<dyn Store>,
        switch: Box::new(switch.clone()),
        records: Records::open(dir.path(), &room).unwrap(),
        ledgers: Ledgers::open(dir.path(), &room).unwrap(),
        table: Arc::new(Table::new(
            Capacity {
                memory_mib: 64,
                guests: 4,
            },
            1,
            host.domids().1,
        )),
        watchers,
        health: Health::new(Arc::default()),
        events: Arc::new(EventHub::default()),
        pool: Pool::new(shelves.to_vec()),
        saved: Saved::open(dir.path()).unwrap(),
        room,
        started: Instant::now(),
    };
    (Arc::new(toolstack), deaths)
}
