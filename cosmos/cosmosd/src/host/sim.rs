// SPDX-License-Identifier: Apache-2.0
//! A host in memory, for unit tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use super::{Death, Domain, Found, Host, Instance, Rings, Stranger};
use crate::base::error::{Code, Error, Result};
use crate::base::faults::{ENGINE, FaultInjector};
use crate::base::steps::Steps;
use crate::images::{Images, Limits};
use crate::spec::Vif;
use crate::store::sim::SimStore;
use crate::store::{Change, Store};
use crate::switch::PortFds;

pub struct SimHost {
    faults: Arc<FaultInjector>,
    store: Arc<SimStore>,
    deaths: Mutex<Option<Sender<Death>>>,
    prepared: Mutex<BTreeSet<u16>>,
    domains: Mutex<BTreeMap<u16, Found>>,
    strangers: Mutex<Vec<Stranger>>,
    images: Images,
}

impl SimHost {
    pub fn new(faults: Arc<FaultInjector>, store: Arc<SimStore>, dir: &Path) -> Self {
        let limits = Limits {
            images: 2,
            image_bytes: 4096,
        };
        Self {
            images: Images::open(dir, limits).unwrap(),
            faults,
            store,
            deaths: Mutex::default(),
            prepared: Mutex::default(),
            domains: Mutex::default(),
            strangers: Mutex::default(),
        }
    }

    pub fn report_to(&self, deaths: Sender<Death>) {
        *self.deaths.lock().unwrap() = Some(deaths);
    }

    /// The domain dies; with `tell` the daemon learns this.
    pub fn kill(&self, domid: u16, tell: bool) {
        self.domains.lock().unwrap().insert(domid, Found::Gone);
        if tell {
            let death = Death {
                domid,
                reason: "killed by signal 9 (SIGKILL)".into(),
            };
            self.deaths
                .lock()
                .unwrap()
                .as_ref()
                .unwrap()
                .send(death)
                .unwrap();
        }
    }

    /// Somebody pauses a domain, or lets it go on.
    pub fn set_paused(&self, domid: u16, is_paused: bool) {
        let found = match is_paused {
            true => Found::Paused,
            false => Found::Running,
        };
        self.domains.lock().unwrap().insert(domid, found);
    }

    /// Somebody makes a domain.
    pub fn put_stranger(&self, domid: u16, uuid: &str, name: &str) {
        let (uuid, name) = (uuid.to_owned(), name.to_owned());
        let stranger = Stranger { domid, uuid, name };
        self.strangers.lock().unwrap().push(stranger);
    }

    /// Takes the keys of a domain away.
    pub fn halve(&self, domid: u16) {
        self.domains.lock().unwrap().insert(domid, Found::Half);
    }

    pub fn found(&self, domid: u16) -> Option<Found> {
        self.domains.lock().unwrap().get(&domid).copied()
    }

    pub fn remains(&self) -> Vec<String> {
        let prepared = self.prepared.lock().unwrap();
        let domains = self.domains.lock().unwrap();
        let prepared = prepared.iter().map(|d| format!("prepared {d}"));
        prepared
            .chain(domains.keys().map(|d| format!("domain {d}")))
            .collect()
    }
}

impl Host for Arc<SimHost> {
    fn kind(&self) -> &'static str {
        "sim"
    }

    fn engine_sha256(&self) -> Result<Option<String>> {
        Ok(Some(ENGINE.into()))
    }

    fn builds_at_once(&self) -> usize {
        2
    }

    fn check(&self, domain: &Domain) -> Result<()> {
        self.faults.call("host.check")?;
        if domain.image_sha256 == ENGINE {
            return Ok(());
        }
        let message = format!("{} is not the engine", domain.image_sha256);
        Err(Error::new(Code::BadImage, message))
    }

    fn images(&self) -> Option<&Images> {
        Some(&self.images)
    }

    fn prepare(&self, domain: &Domain) -> Result<()> {
        let root = format!("/local/domain/{}", domain.domid);
        self.store.commit(&[Change::write_as(root, "", &[])])?;
        self.prepared.lock().unwrap().insert(domain.domid);
        self.faults.call("host.prepare")
    }

    fn spawn(&self, domain: &Domain, ports: Vec<PortFds>, _steps: &mut Steps) -> Result<Instance> {
        assert_eq!(ports.len(), domain.vifs.len());
        self.domains
            .lock()
            .unwrap()
            .insert(domain.domid, Found::Running);
        self.faults.call("host.spawn")?; // Half of the domain exists.
        Ok(Instance::Sim {
            domid: domain.domid,
        })
    }

    fn claim(&self, domain: &Domain) -> Result<()> {
        assert_ne!(domain.handle, domain.uuid);
        self.faults.call("host.claim")
    }

    fn names(&self, domain: &Domain, name: &str) -> Vec<Change> {
        let path = format!("/local/domain/{}/name", domain.domid);
        vec![Change::write(path, name)]
    }

    fn vif_script(&self) -> &'static str {
        "/bin/true"
    }

    fn start(&self, domid: u16) -> Result<()> {
        self.faults.call("host.start")?;
        self.store.announce(domid);
        self.domains.lock().unwrap().insert(domid, Found::Running);
        Ok(())
    }

    fn pause(&self, domid: u16) -> Result<()> {
        self.faults.call("host.pause")?;
        self.domains.lock().unwrap().insert(domid, Found::Paused);
        Ok(())
    }

    fn unpause(&self, domid: u16) -> Result<()> {
        self.domains.lock().unwrap().insert(domid, Found::Running);
        Ok(())
    }

    fn save(&self, domain: &Domain, mut to: &File) -> Result<()> {
        self.faults.call("host.save")?;
        // Suspended: it does not run until that is taken back.
        self.domains
            .lock()
            .unwrap()
            .insert(domain.domid, Found::Gone);
        writeln!(to, "memory of {}", domain.uuid).map_err(|e| Error::internal("memory", e))
    }

    fn cancel_save(&self, domain: &Domain) -> Result<()> {
        self.faults.call("host.cancel_save")?;
        self.unpause(domain.domid)
    }

    fn restore(&self, domain: &Domain, mut from: &File) -> Result<Instance> {
        let mut memory = String::new();
        from.read_to_string(&mut memory).unwrap();
        assert_eq!(memory.trim(), format!("memory of {}", domain.uuid));
        let domid = domain.domid;
        self.domains.lock().unwrap().insert(domid, Found::Paused);
        self.faults.call("host.restore")?;
        Ok(Instance::Sim { domid })
    }

    fn stop(&self, domain: &Domain) -> Result<()> {
        self.faults.call("host.stop")?;
        self.domains.lock().unwrap().remove(&domain.domid);
        Ok(())
    }

    fn forget(&self, domain: &Domain) -> Result<()> {
        self.faults.call("host.forget")?;
        let root = format!("/local/domain/{}", domain.domid);
        self.store.commit(&[Change::remove(root)])?;
        self.prepared.lock().unwrap().remove(&domain.domid);
        Ok(())
    }

    fn relink(&self, domain: &Domain) -> Result<()> {
        self.faults.call("host.relink")?;
        self.prepare(domain)?;
        self.store.introduce(domain.domid)?;
        self.faults.call("host.announce").map_or(Ok(()), |()| {
            self.store.announce(domain.domid);
            Ok(())
        })
    }

    fn paused(&self) -> Result<HashMap<u16, bool>> {
        self.faults.call("host.paused")?;
        let domains = self.domains.lock().unwrap();
        let paused = domains.iter().filter_map(|(domid, found)| match found {
            Found::Running => Some((*domid, false)),
            Found::Paused => Some((*domid, true)),
            Found::Half | Found::Gone => None,
        });
        Ok(paused.collect())
    }

    fn strangers(&self) -> Result<Vec<Stranger>> {
        Ok(self.strangers.lock().unwrap().clone())
    }

    fn plug(&self, domain: &Domain, _: &[Vif], _: Option<PortFds>) -> Result<Option<Rings>> {
        self.faults.call(&format!("host.plug {}", domain.domid))?;
        Ok(Some([40, 41, 42]))
    }

    fn unplug(&self, domain: &Domain, _vifs: &[Vif], gone: &Vif) -> Result<()> {
        self.faults
            .call(&format!("host.unplug {} {}", domain.domid, gone.devid))
    }

    fn rings(&self, domain: &Domain, _rings: Rings) -> Result<Option<PortFds>> {
        self.faults.call(&format!("host.rings {}", domain.domid))?;
        Ok(None)
    }

    fn adopt(&self, domain: &Domain, _instance: &Instance) -> Result<Found> {
        self.faults.call("host.adopt")?;
        Ok(self.found(domain.domid).unwrap_or(Found::Gone))
    }

    fn attend(&self, _domain: &Domain) -> Result<()> {
        self.faults.call("host.attend")
    }

    fn cpu_time_ns(&self, domid: u16) -> Option<u64> {
        self.found(domid).map(|_| 7)
    }

    fn console(&self, _domain: &Domain, max_bytes: usize) -> Result<Vec<u8>> {
        let log = b"booting\n\x1b[31mdone\n";
        Ok(log[log.len().saturating_sub(max_bytes)..].to_vec())
    }

    fn remove_console(&self, _domain: &Domain) -> Result<()> {
        self.faults.call("host.remove_console")
    }
}
