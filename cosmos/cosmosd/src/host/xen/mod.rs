// SPDX-License-Identifier: Apache-2.0
//! The host kind `xen`: every guest is a domain of the hypervisor, made by libcosmos.
//!
//! A domain carries its guest's UUID, so cosmosd never mistakes a number for another guest's. After
//! a crash the daemon finds half-made domains by their UUID and destroys them.

mod convert;
mod domain_death;
mod helpers;
mod pump;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cosmos_xen as xen;
use log::warn;

use super::console::Consoles;
use super::image::Engine;
use super::kernels::{KernelFiles, Kernels};
use super::nics;
use super::room::{Room, channels, check_devices, check_room, first_domid};
use super::unknown::unknown;
use super::{Death, Domain, Found, Host, Instance, Rings, Stranger};
use crate::base::clock::now_s;
use crate::base::error::{Code, Error, Result};
use crate::base::steps::Steps;
use crate::config::XenConfig;
use crate::host::IsUsed;
use crate::images::Images;
use crate::spec::{Cpu, MAX_VIFS, Uuid, Vif};
use crate::store::Change;
use crate::switch::PortFds;
use convert::{
    bytes, failed, kind, limits, path_text, place, preconnected, preconnected_nic, text, vale,
};
use helpers::lock_helpers;
use pump::Pump;

/// How long a destroyed domain may take to be gone: others have to let go of its pages.
const GONE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);
/// How long a guest that has read that it is to suspend itself may take to do so.
const SUSPEND: Duration = Duration::from_secs(1);

/// See the module.
pub struct XenHost {
    host: Arc<xen::Host>,
    /// The lock that the helper processes hold with this one.
    _helpers: File,
    kernels: Kernels,
    vif_script: String,
    kind: xen::Type,
    consoles: Consoles,
    /// Running domains by number, each with the count of its event channels. The watching thread
    /// updates them.
    domains: Arc<Mutex<BTreeMap<u16, u64>>>,
    pumps: Mutex<HashMap<u16, Pump>>,
}

impl XenHost {
    pub fn new(config: &XenConfig, state_dir: &Path, deaths: Sender<Death>) -> Result<Self> {
        let helpers = lock_helpers(state_dir)?;
        let this = Self {
            host: Arc::new(xen::Host::open(helpers.as_fd()).map_err(failed("xen"))?),
            _helpers: helpers,
            kernels: Kernels::new(
                config.image.clone().map(Engine::new),
                Images::open(state_dir, limits(config))?,
            ),
            vif_script: path_text(config.vif_script.as_deref()),
            kind: kind(config.kind),
            consoles: Consoles::open(state_dir)?,
            domains: Arc::default(),
            pumps: Mutex::default(),
        };
        this.engine_sha256()?;
        this.prefer_dom0(config.dom0_weight);
        domain_death::watch(&this.host, &this.domains, deaths)?;
        Ok(this)
    }

    /// Gives dom0 a greater share than a guest: the switch and this daemon run there.
    fn prefer_dom0(&self, weight: u16) {
        if let Err(e) = self.host.share(0, weight, 0) {
            warn!("xen.dom0_weight: dom0 keeps the share it has: {e}");
        }
    }

    /// The domain of this number, if it is this guest's.
    fn find(&self, domid: u16, uuid: &Uuid) -> Result<Option<xen::Info>> {
        match self.host.peek(domid.into()) {
            Ok(info) => Ok(Some(info).filter(|info| info.uuid == bytes(uuid))),
            Err(e) if e.code == xen::Code::NotFound => Ok(None),
            Err(e) => Err(failed(&place(domid))(e)),
        }
    }

    /// Removes the device nodes of a domain that ended by itself, unless its number is
    /// another's by now.
    fn sweep(&self, domain: &Domain) -> Result<()> {
        let domid = domain.domid.into();
        match self.host.info(domid) {
            Err(e) if e.code == xen::Code::NotFound => {}
            _ => return Ok(()),
        }
        // Some may have come while it ran.
        let mut devids = 0..MAX_VIFS as u32;
        devids
            .try_for_each(|devid| self.host.remove_vale(domid, devid))
            .map_err(failed(&place(domain.domid)))
    }

    /// Polls: the store tells when a domain begins to die, not when it is gone.
    fn wait_gone(&self, domid: u16, uuid: &Uuid) -> Result<()> {
        let deadline = Instant::now() + GONE;
        while self.find(domid, uuid)?.is_some() {
            if Instant::now() > deadline {
                let message = format!("not gone in {GONE:?}: something holds its pages");
                return Err(Error::internal(place(domid), message));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns true if a domain is suspended, or is about to be.
    fn wait_suspended(&self, domain: &Domain) -> Result<bool> {
        let deadline = Instant::now() + SUSPEND;
        while let Some(info) = self.find(domain.domid, &domain.handle)? {
            match (info.state, info.reason) {
                (xen::State::ShutDown, xen::Reason::Suspend) => return Ok(true),
                (xen::State::Running, _) if Instant::now() < deadline => std::thread::sleep(LOOK),
                _ => break,
            }
        }
        Ok(false)
    }

    fn spec<'a>(
        &self,
        domain: &'a Domain,
        image: &'a [u8],
        files: Option<&'a KernelFiles>,
    ) -> xen::Spec<'a> {
        let kernel = domain.kernel.as_ref();
        xen::Spec {
            domid: Some(domain.domid.into()),
            name: domain.uuid.as_str(),
            uuid: bytes(&domain.handle),
            kind: self.kind,
            image,
            files: files.map(|files| xen::Files {
                kernel: files.kernel.as_fd(),
                ramdisk: files.ramdisk.as_ref().map(AsFd::as_fd),
            }),
            cmdline: kernel.map_or("", |kernel| &*kernel.command_line),
            memory_kib: domain.memory_mib * 1024,
        }
    }

    fn add_devices(&self, domain: &Domain) -> xen::Result<()> {
        let domid = domain.domid.into();
        let vifs = domain.vifs.iter();
        for vif in vifs.filter(|vif| !domain.preconnected.has_vif(vif.devid)) {
            self.host.add_vale(domid, &vale(vif))?;
        }
        let nics = domain.nics.iter();
        for nic in nics.filter(|nic| !domain.preconnected.has_nic(nic.devid)) {
            let nic = xen::Nic {
                devid: nic.devid,
                mac: nic.mac.0,
                mtu: nic.mtu,
                bridge: &nic.bridge,
                script: &self.vif_script,
            };
            self.host.add_nic(domid, &nic)?;
        }
        Ok(())
    }

    fn add_preconnected(&self, domain: &Domain) -> xen::Result<()> {
        let domid = domain.domid.into();
        let of = domain.preconnected;
        let (mut vifs, mut nics) = (0..of.vifs, of.nics());
        vifs.try_for_each(|devid| self.host.add_vale(domid, &preconnected(devid, of.slots)))?;
        nics.try_for_each(|devid| self.host.add_nic(domid, &preconnected_nic(devid)))
    }

    /// Refuses a domain that this host can never start.
    fn check_image(&self, domain: &Domain) -> Result<()> {
        let entries = self.kernels.entries(&domain.image_sha256)?;
        if let Some(files) = self.kernels.files(domain)? {
            files.check_fit(domain, entries)?;
        }
        let (starts, kind) = match self.kind {
            xen::Type::Pv => (entries.pv, "pv"),
            xen::Type::Pvh => (entries.pvh, "pvh"),
        };
        if !starts {
            let message = format!(
                "image {:.12}: it cannot be started as {kind}, which guests of this host are",
                domain.image_sha256
            );
            return Err(Error::new(Code::BadImage, message));
        }
        check_devices(domain)
    }

    fn room(&self) -> Result<Room> {
        let host = self.host.host_info().map_err(failed("host"))?;
        Ok(Room {
            free_kib: host.free_kib,
            channels: lock(&self.domains).values().sum(),
        })
    }
}

/// The two places where a domain's name stands; libxl's own way to rename compares the name with
/// those of all domains, one by one.
fn names(domain: &Domain, name: &str) -> [Change; 2] {
    let (domid, vm) = (domain.domid, &domain.handle);
    [
        format!("/local/domain/{domid}/name"),
        format!("/vm/{vm}/name"),
    ]
    .map(|path| Change::write(path, name))
}

/// The number of a domain that this daemon attends to.
fn known_id(known: &BTreeMap<u16, u64>, info: &xen::Info) -> Option<u16> {
    let domid = u16::try_from(info.domid).ok()?;
    known.contains_key(&domid).then_some(domid)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host for XenHost {
    fn kind(&self) -> &'static str {
        "xen"
    }

    fn engine_sha256(&self) -> Result<Option<String>> {
        self.kernels
            .installed
            .as_ref()
            .map(Engine::sha256)
            .transpose()
    }

    fn domids(&self) -> (u16, IsUsed) {
        let host = Arc::clone(&self.host);
        let is_used = move |domid: u16| host.peek(domid.into()).is_ok();
        (first_domid(now_s()), Box::new(is_used))
    }

    fn builds_at_once(&self) -> usize {
        xen::BUILDERS
    }

    fn check(&self, domain: &Domain) -> Result<()> {
        self.check_image(domain)?;
        check_room(domain, self.room()?)
    }

    fn check_instead(&self, domain: &Domain, old: &Domain) -> Result<()> {
        self.check_image(domain)?;
        let room = self.room()?;
        let room = match self.find(old.domid, &old.handle)? {
            Some(_) => room.without(old),
            None => room,
        };
        check_room(domain, room)
    }

    fn images(&self) -> Option<&Images> {
        Some(&self.kernels.images)
    }

    fn prepare(&self, domain: &Domain) -> Result<()> {
        self.consoles.create(&domain.handle).map(drop)
    }

    fn spawn(&self, domain: &Domain, _ports: Vec<PortFds>, steps: &mut Steps) -> Result<Instance> {
        let files = self.kernels.files(domain)?;
        let image = match &files {
            Some(_) => Arc::default(),
            None => self.kernels.load(&domain.image_sha256)?,
        };
        steps.end("image");
        self.host
            .create(&self.spec(domain, &image, files.as_ref()))
            .map_err(failed(&place(domain.domid)))?;
        steps.end("domain");
        self.add_preconnected(domain)
            .and_then(|()| self.add_devices(domain))
            .map_err(failed(&place(domain.domid)))?;
        steps.end("devices");
        self.attend(domain)?;
        steps.end("console");
        Ok(Instance::Xen)
    }

    fn claim(&self, domain: &Domain) -> Result<()> {
        check_devices(domain)?;
        let domid = domain.domid;
        self.add_devices(domain).map_err(failed(&place(domid)))?;
        lock(&self.domains)
            .entry(domid)
            .and_modify(|known| *known = channels(domain));
        Ok(())
    }

    fn names(&self, domain: &Domain, name: &str) -> Vec<Change> {
        names(domain, name).into()
    }

    fn vif_script(&self) -> &str {
        match self.vif_script.as_str() {
            "" => nics::DEFAULT_SCRIPT,
            script => script,
        }
    }

    fn start(&self, domid: u16) -> Result<()> {
        self.host
            .unpause(domid.into())
            .map_err(failed(&place(domid)))
    }

    fn pause(&self, domid: u16) -> Result<()> {
        self.host.pause(domid.into()).map_err(failed(&place(domid)))
    }

    fn unpause(&self, domid: u16) -> Result<()> {
        self.start(domid)
    }

    fn set_cpu(&self, domain: &Domain, cpu: &Cpu) -> Result<()> {
        let domid = domain.domid;
        let cpus = self.host.host_info().map_err(failed("host"))?.cpus;
        if cpu.pin.is_some_and(|pin| u32::from(pin) >= cpus) {
            let last = cpus.saturating_sub(1);
            return Err(Error::bad_request(format!(
                "cpu: pin: expected 0 to {last}"
            )));
        }
        let set = self.host.pin(domid.into(), cpu.pin);
        set.and_then(|()| self.host.share(domid.into(), cpu.weight, cpu.cap_percent))
            .map_err(failed(&place(domid)))
    }

    fn save(&self, domain: &Domain, to: &File) -> Result<()> {
        let domid = domain.domid;
        if self.kind == xen::Type::Pv {
            let message = "saving a guest: only guests of type pvh can be saved";
            return Err(Error::new(Code::Unsupported, message));
        }
        // Its shutdown is no death.
        lock(&self.domains).remove(&domid);
        let saved = self.host.save(domid.into(), to.as_fd());
        saved.map_err(failed(&place(domid)))
    }

    fn cancel_save(&self, domain: &Domain) -> Result<()> {
        let domid = domain.domid;
        if self.wait_suspended(domain)? {
            let resumed = self.host.resume(domid.into());
            resumed.map_err(failed(&place(domid)))?;
        }
        // Its next shutdown is its death.
        lock(&self.domains).insert(domid, channels(domain));
        Ok(())
    }

    fn restore(&self, domain: &Domain, from: &File) -> Result<Instance> {
        let spec = self.spec(domain, &[], None);
        let made = self.host.restore(&spec, from.as_fd()).map(drop);
        made.and_then(|()| self.add_devices(domain))
            .map_err(failed(&place(domain.domid)))?;
        self.attend(domain)?;
        Ok(Instance::Xen)
    }

    fn stop(&self, domain: &Domain) -> Result<()> {
        let domid = domain.domid;
        lock(&self.domains).remove(&domid);
        match self.find(domid, &domain.handle)? {
            None => self.sweep(domain)?,
            Some(_) => match self.host.destroy(domid.into()) {
                Err(e) if e.code != xen::Code::NotFound => return Err(failed(&place(domid))(e)),
                _ => self.wait_gone(domid, &domain.handle)?,
            },
        }
        lock(&self.pumps).remove(&domid);
        Ok(())
    }

    fn forget(&self, _domain: &Domain) -> Result<()> {
        Ok(()) // A destroyed domain has no keys.
    }

    fn adopt(&self, domain: &Domain, _instance: &Instance) -> Result<Found> {
        let (domid, uuid) = (domain.domid, &domain.handle);
        let Some(info) = self.find(domid, uuid)? else {
            return Ok(Found::Gone);
        };
        let found = match info.state {
            xen::State::Running => Found::Running,
            xen::State::Paused => Found::Paused,
            // xl saves it: it continues, or it will be gone.
            xen::State::ShutDown if info.reason == xen::Reason::Suspend => Found::Running,
            xen::State::ShutDown | xen::State::Dying => return Ok(Found::Gone),
        };
        let info = self
            .host
            .info(domid.into())
            .map_err(failed(&place(domid)))?;
        if info.name.is_empty() {
            return Ok(Found::Half);
        }
        Ok(found)
    }

    fn attend(&self, domain: &Domain) -> Result<()> {
        let domid = domain.domid;
        let console = self.host.console(domid.into());
        let log = self.consoles.append(&domain.handle)?;
        let pump = console
            .map_err(failed(&place(domid)))
            .and_then(|fd| Pump::start(domid, fd, log))?;
        lock(&self.pumps).insert(domid, pump);
        lock(&self.domains).insert(domid, channels(domain));
        Ok(())
    }

    /// The guest finds the nodes and makes rings, which valed awaits already.
    fn plug(&self, domain: &Domain, vifs: &[Vif], _: Option<PortFds>) -> Result<Option<Rings>> {
        let vif = vifs.last().expect("the caller adds a vif");
        let grown = Domain {
            vifs: vifs.to_vec(),
            ..domain.clone()
        };
        check_devices(&grown)?;
        let domid = domain.domid;
        self.host
            .add_vale(domid.into(), &vale(vif))
            .map_err(failed(&place(domid)))?;
        lock(&self.domains)
            .entry(domid)
            .and_modify(|known| *known = channels(&grown));
        Ok(None)
    }

    fn unplug(&self, domain: &Domain, vifs: &[Vif], gone: &Vif) -> Result<()> {
        let domid = domain.domid;
        let shrunk = Domain {
            vifs: vifs.to_vec(),
            ..domain.clone()
        };
        lock(&self.domains)
            .entry(domid)
            .and_modify(|known| *known = channels(&shrunk));
        self.host
            .remove_vale(domid.into(), gone.devid)
            .map_err(failed(&place(domid)))
    }

    fn paused(&self) -> Result<HashMap<u16, bool>> {
        let infos = self.host.peek_all().map_err(failed("domains"))?;
        let known = lock(&self.domains);
        let known = infos.iter().filter_map(|info| {
            let domid = known_id(&known, info)?;
            match info.state {
                xen::State::Running => Some((domid, false)),
                xen::State::Paused => Some((domid, true)),
                xen::State::ShutDown | xen::State::Dying => None,
            }
        });
        Ok(known.collect())
    }

    /// Those that are about to be gone do not count.
    fn strangers(&self) -> Result<Vec<Stranger>> {
        let list = |first| self.host.peek_from(first).map_err(failed("domains"));
        let mut others = unknown(
            &lock(&self.domains),
            xen::PEEK_DOMAINS,
            |info| info.domid,
            list,
        )?;
        others.retain(|info| info.state != xen::State::Dying);
        let named = others.into_iter().filter_map(|info| {
            let name = self.host.info(info.domid).ok()?.name; // Or it is gone by now.
            Some(Stranger {
                domid: u16::try_from(info.domid).ok()?,
                uuid: text(info.uuid),
                name,
            })
        });
        Ok(named.collect())
    }

    fn cpu_time_ns(&self, domid: u16) -> Option<u64> {
        let known = lock(&self.domains).contains_key(&domid);
        let info = known.then(|| self.host.peek(domid.into()).ok())??;
        Some(info.cpu_time_ns)
    }

    fn console(&self, domain: &Domain, max_bytes: usize) -> Result<Vec<u8>> {
        self.consoles.tail(&domain.handle, max_bytes)
    }

    fn remove_console(&self, domain: &Domain) -> Result<()> {
        self.consoles.remove(&domain.handle)
    }
}
