// SPDX-License-Identifier: Apache-2.0
//! What unit tests share: example guests, and a daemon on simulated surroundings.

mod golden;

use std::ops::Deref;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use control_socket::EventHub;
use cosmos_proto::{OfGuest, Read, answer};
use serde_json::json;
use tempfile::TempDir;

use crate::base::error::Result;
use crate::base::faults::{ENGINE, FaultInjector};
use crate::config::PoolEntry;
use crate::disk::Disk;
use crate::guest::record::{Phase, Record};
use crate::guest::{Capacity, Table};
use crate::health::Health;
use crate::host::sim::SimHost;
use crate::host::{Death, Domain, Host, Instance};
use crate::lifecycle::{Maker, destroy, recover};
use crate::pool::Pool;
use crate::preconnected::Preconnected;
use crate::report;
use crate::routers;
use crate::service::Daemon;
use crate::site::Site;
use crate::spec::{Kernel, Nic, Spec, Uuid, Vif};
use crate::store::sim::SimStore;
use crate::store::{Store, Watchers};
use crate::switch::sim::SimSwitch;

/// A value of a type with a check.
pub fn good<R, T: TryFrom<R, Error = String>>(raw: R) -> T {
    T::try_from(raw).unwrap()
}

pub fn uuid(n: u16) -> Uuid {
    Uuid::try_from(format!("00000000-0000-4000-8000-{n:012x}")).unwrap()
}

pub fn of(n: u16) -> OfGuest {
    OfGuest { uuid: uuid(n) }
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
        vcpus: Default::default(),
        vifs: vec![vif(n, 0), vif(n, 1)],
        nics: Vec::new(),
        kernel: None,
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

/// A guest whose kernel is not Click's.
pub fn linux(n: u16) -> Spec {
    Spec {
        kernel: Some(Kernel {
            ramdisk_sha256: None,
            command_line: good("console=hvc0"),
        }),
        config: good(""),
        writes: Vec::new(),
        ..spec(n)
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
        vcpus: spec.vcpus.get(),
        image_sha256: spec.image_sha256,
        vifs: spec.vifs,
        nics: spec.nics,
        kernel: spec.kernel,
        preconnected: Preconnected::default(),
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
        vcpus: domain.vcpus,
        created_s: 1,
        config_name: "wire.click".into(),
        image_sha256: domain.image_sha256,
        vifs: domain.vifs,
        rings: Default::default(),
        nics: domain.nics,
        kernel: domain.kernel,
        preconnected: domain.preconnected,
        phase: Phase::Complete,
        reason: String::new(),
        instance: Some(Instance::Sim { domid }),
        halted: Vec::new(),
    }
}

/// An entry of the pool.
pub fn pool_entry(guests: usize, preconnected: Preconnected) -> PoolEntry {
    PoolEntry {
        image: None,
        memory_mib: 8,
        guests,
        vifs: preconnected.vifs,
        slots: preconnected.slots,
        nics: preconnected.nics,
    }
}

/// A daemon on simulated surroundings, which outlive it.
pub struct World {
    pub dir: TempDir,
    pub faults: Arc<FaultInjector>,
    pub host: Arc<SimHost>,
    pub store: Arc<SimStore>,
    pub switch: Arc<SimSwitch>,
    pub daemon: Arc<Daemon>,
    deaths: Mutex<Option<Receiver<Death>>>,
    entries: Vec<PoolEntry>,
    demand_mib: u32,
}

impl World {
    pub fn new() -> Self {
        Self::with_pool(vec![pool_entry(2, Preconnected::default())])
    }

    pub fn with_pool(entries: Vec<PoolEntry>) -> Self {
        Self::with_demand(entries, 0)
    }

    /// A world whose cosmosd also keeps guests on demand, of so much memory.
    pub fn with_demand(entries: Vec<PoolEntry>, demand_mib: u32) -> Self {
        let faults = Arc::new(FaultInjector::default());
        let store = Arc::new(SimStore::with(faults.clone()));
        let dir = tempfile::tempdir().unwrap();
        let host = Arc::new(SimHost::new(faults.clone(), store.clone(), dir.path()));
        let switch = Arc::new(SimSwitch::new(faults.clone()));
        let (daemon, deaths) = daemon(&dir, &host, &store, &switch, (&entries, demand_mib));
        Self {
            dir,
            faults,
            host,
            store,
            switch,
            daemon,
            deaths: Mutex::new(Some(deaths)),
            entries,
            demand_mib,
        }
    }

    /// A world with the guest that most tests name.
    pub fn running() -> Self {
        let world = Self::new();
        world.create(&spec(1)).unwrap();
        world
    }

    /// A new daemon in the same surroundings.
    pub fn restart(mut self) -> Self {
        drop(self.daemon);
        let (daemon, deaths) = daemon(
            &self.dir,
            &self.host,
            &self.store,
            &self.switch,
            (&self.entries, self.demand_mib),
        );
        (self.daemon, self.deaths) = (daemon, Mutex::new(Some(deaths)));
        recover::recover(&self.site).unwrap();
        self
    }

    /// Lets deaths be handled as in the daemon.
    pub fn watch_deaths(&self) {
        let deaths = self.deaths.lock().unwrap().take().unwrap();
        let site = self.site.clone();
        std::thread::spawn(move || destroy::watch_deaths(&site, deaths));
    }

    pub fn create(&self, spec: &Spec) -> Result<answer::Created> {
        self.maker.create(spec)
    }

    pub fn destroy(&self, uuid: &Uuid) -> Result<()> {
        destroy::destroy(&self.site, &OfGuest { uuid: uuid.clone() })
    }

    /// The value of a handler of a guest's first router.
    pub fn read(&self, uuid: &Uuid) -> Result<String> {
        let args = Read {
            uuid: uuid.clone(),
            rid: good(0),
            name: good("fw.config"),
            param: good(""),
            timeout_ms: good(60_000),
        };
        routers::read(&self.site, &args).map(|read| read.value)
    }

    pub fn info(&self, uuid: &Uuid) -> Result<answer::Guest> {
        report::info(&self.site, &OfGuest { uuid: uuid.clone() })
    }

    /// The remains of guests anywhere; none after a guest is gone.
    pub fn remains(&self) -> Vec<String> {
        let mut remains = self.host.remains();
        remains.extend(self.switch.ports());
        let preconnected = self.switch.preconnected_vifs().into_iter();
        remains.extend(preconnected.map(|(domid, devid)| format!("preconnected {domid}/{devid}")));
        remains.extend(self.store.keys());
        remains.extend(self.site.disk.ledgers.files());
        let records = self.site.disk.records.load_all().unwrap();
        remains.extend(records.into_iter().map(|r| format!("record {}", r.uuid)));
        remains.extend(
            self.site
                .table
                .all()
                .iter()
                .map(|g| format!("entry {}", g.domain.uuid)),
        );
        remains
    }
}

impl Deref for World {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

/// Opens the state of a daemon that has ended. A process that another test makes at this moment
/// has a copy of the former lock until it runs its program.
fn open(dir: &Path) -> Disk {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match Disk::open(dir, Vec::new()) {
            Err(_) if Instant::now() < end => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

fn daemon(
    dir: &TempDir,
    host: &Arc<SimHost>,
    store: &Arc<SimStore>,
    switch: &Arc<SimSwitch>,
    (entries, demand_mib): (&[PoolEntry], u32),
) -> (Arc<Daemon>, Receiver<Death>) {
    let (sender, deaths) = channel();
    host.report_to(sender);
    let watchers = Arc::new(Watchers::new(Box::new(|_, _| {})));
    store.report_to(&watchers);
    let capacity = Capacity {
        memory_mib: 64,
        guests: 4,
    };
    let site = Arc::new(Site {
        host: Box::new(host.clone()),
        store: store.clone() as Arc<dyn Store>,
        switch: Box::new(switch.clone()),
        disk: open(dir.path()),
        table: Table::new(capacity, 1, host.domids().1),
        watchers,
        health: Health::new(Arc::default()),
        events: Arc::new(EventHub::default()),
    });
    let maker = Maker::new(site.clone(), Pool::new(entries.to_vec(), demand_mib));
    let daemon = Daemon {
        site,
        maker,
        started: Instant::now(),
    };
    (Arc::new(daemon), deaths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_restart_next_to_processes_of_other_tests() {
        std::thread::scope(|scope| {
            let forks = scope.spawn(|| (0..20).for_each(|_| drop(Command::new("true").status())));
            let mut world = World::new();
            while !forks.is_finished() {
                world = world.restart();
            }
        });
    }
}
