// SPDX-License-Identifier: Apache-2.0
//! What runs guests: the host kinds behind one trait.
//!
//! The toolstack makes a domain in three stages and writes its record to disk in between. After
//! `prepare` it exists for the store, after `spawn` it exists and is held, after `start` it runs.

mod cgroup;
mod console;
mod image;
#[cfg(any(feature = "xen", test))]
mod kernels;
mod link;
pub mod nics;
mod pidfd;
mod plug;
mod process;
mod procfs;
#[cfg(any(feature = "xen", test))]
mod room;
#[cfg(test)]
pub mod sim;
#[cfg(any(feature = "xen", test))]
mod unknown;
#[cfg(feature = "xen")]
mod xen;

use std::collections::HashMap;
use std::fs::File;

use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error, Result};
use crate::base::steps::Steps;
use crate::images::Images;
use crate::preconnected::Preconnected;
use crate::spec::{Cpu, Kernel, Nic, Uuid, Vif};
use crate::store::Change;
use crate::switch::PortFds;

pub use link::Links;
pub use process::ProcessHost;
#[cfg(feature = "xen")]
pub use xen::XenHost;

/// A domain as its host sees it.
#[derive(Debug, Clone)]
pub struct Domain {
    pub domid: u16,
    pub uuid: Uuid,
    /// The UUID that the host knows it by: that of its time in the pool, if it had one.
    pub handle: Uuid,
    pub name: String,
    pub memory_mib: u32,
    pub vcpus: u8,
    /// SHA-256 of what it runs.
    pub image_sha256: String,
    pub vifs: Vec<Vif>,
    pub nics: Vec<Nic>,
    /// Of a guest whose kernel is not Click's.
    pub kernel: Option<Kernel>,
    /// Those of its vifs that were preconnected in the pool.
    pub preconnected: Preconnected,
}

/// A running domain, found again after a restart of cosmosd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Instance {
    /// A process: its pid could be another's by now, so also when it was started.
    Process {
        pid: i32,
        start_ticks: u64,
        boot_id: String,
    },
    /// A domain of the hypervisor: it carries the guest's UUID.
    Xen,
    /// A domain of the simulator.
    #[cfg(test)]
    Sim { domid: u16 },
}

/// The answer of [`Host::adopt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Running,
    Paused,
    /// The domain is there and its keys in the store are not.
    #[cfg_attr(not(any(feature = "xen", test)), expect(dead_code))]
    Half,
    Gone,
}

/// The descriptors of a vif's rings, kick and wake in a process.
pub type Rings = [i32; VIF_FDS];

/// A vif's descriptors in a process, in this order.
const VIF_FDS: usize = 3;
/// The first descriptor of a process guest's first vif.
const FIRST_VIF_FD: i32 = 7;

/// The descriptors of a vif that a process was made with, by its index.
pub fn usual_rings(index: usize) -> Rings {
    let first = FIRST_VIF_FD + (VIF_FDS * index) as i32;
    [first, first + 1, first + 2]
}

/// A domain that somebody else made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    pub domid: u16,
    /// In the form of a guest's.
    pub uuid: String,
    pub name: String,
}

/// A domain that ended without having been destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    pub domid: u16,
    pub reason: String,
}

/// True if a domain id is in use by a domain that is no guest of this table.
pub type IsUsed = Box<dyn Fn(u16) -> bool + Send + Sync>;

/// A host kind. Deaths are reported through the channel it was made with; `stop`, `forget`
/// and `remove_console` may be called for what is not there.
pub trait Host: Send + Sync {
    /// Its name in the configuration and in `hello`.
    fn kind(&self) -> &'static str;

    /// SHA-256 of the installed engine or image, in lower-case hexadecimal.
    fn engine_sha256(&self) -> Result<Option<String>>;

    /// The domain id to begin with, and whether another's domain has one.
    fn domids(&self) -> (u16, IsUsed) {
        (1, Box::new(|_| false))
    }

    /// VCPUs that a guest may have at most.
    fn max_vcpus(&self) -> u8 {
        1
    }

    /// Domains that `spawn` builds at a time; more would make each slower.
    fn builds_at_once(&self) -> usize {
        64
    }

    /// Refuses, before anything is built, what this host cannot run: an image, a device, more
    /// memory than is free.
    fn check(&self, domain: &Domain) -> Result<()>;

    /// As `check`, for a domain that takes the place of a running one.
    fn check_instead(&self, domain: &Domain, _old: &Domain) -> Result<()> {
        self.check(domain)
    }

    /// The cache of images, on a host that runs any it is given.
    fn images(&self) -> Option<&Images> {
        None
    }

    /// Makes the domain known to the store: ring, events, the toolstack's keys.
    fn prepare(&self, domain: &Domain) -> Result<()>;

    /// Makes the domain with these ports, one for each vif. It does not run yet. If this daemon
    /// ends before `start` it ends by itself, or `stop` finds it by its guest's UUID.
    fn spawn(&self, domain: &Domain, ports: Vec<PortFds>, steps: &mut Steps) -> Result<Instance>;

    /// Gives a paused domain of the pool this guest's devices.
    fn claim(&self, _domain: &Domain) -> Result<()> {
        Err(unsupported("a pool of guests"))
    }

    /// The changes to the store by which a domain gets a name in the lists of its host.
    fn names(&self, _domain: &Domain, _name: &str) -> Vec<Change> {
        Vec::new()
    }

    /// The hotplug script of vifs of stock netback.
    fn vif_script(&self) -> &str {
        nics::DEFAULT_SCRIPT
    }

    /// Lets a spawned domain run.
    fn start(&self, domid: u16) -> Result<()>;

    /// Stops a domain's processor time.
    fn pause(&self, domid: u16) -> Result<()>;

    /// Lets a paused domain go on.
    fn unpause(&self, domid: u16) -> Result<()>;

    /// Sets a domain's share of processor time.
    fn set_cpu(&self, _domain: &Domain, _cpu: &Cpu) -> Result<()> {
        Err(unsupported("shares of processor time"))
    }

    /// Suspends the domain and writes its memory to a file. The caller then stops it, or lets it go
    /// on by `cancel_save`, also after an error.
    fn save(&self, _domain: &Domain, _to: &File) -> Result<()> {
        Err(unsupported("saving a guest"))
    }

    /// Lets a domain go on whose `save` did not complete, in this cosmosd or an earlier one. A host
    /// that cannot save has suspended none.
    fn cancel_save(&self, _domain: &Domain) -> Result<()> {
        Ok(())
    }

    /// Makes the domain again, held, from what `save` wrote.
    fn restore(&self, _domain: &Domain, _from: &File) -> Result<Instance> {
        Err(unsupported("restoring a guest"))
    }

    /// Ends the domain and waits until it is gone.
    fn stop(&self, domain: &Domain) -> Result<()>;

    /// Undoes `prepare`.
    fn forget(&self, domain: &Domain) -> Result<()>;

    /// Finds a domain that an earlier cosmosd started; `stop` ends it from here on.
    fn adopt(&self, domain: &Domain, instance: &Instance) -> Result<Found>;

    /// The rings of a running domain's vif. None on a host whose guests make new ones.
    fn rings(&self, _domain: &Domain, _rings: Rings) -> Result<Option<PortFds>> {
        Ok(None)
    }

    /// Makes the domain known to a store that began again, and gives it a link there. Does not wait
    /// for the guest, which then announces itself.
    fn relink(&self, _domain: &Domain) -> Result<()> {
        let message = "guests of this host kind end with their Xen store; restart the host";
        Err(Error::new(Code::Unsupported, message))
    }

    /// The domains of guests that run, each with whether it is paused.
    fn paused(&self) -> Result<HashMap<u16, bool>>;

    /// The domains of this host that this daemon did not make.
    fn strangers(&self) -> Result<Vec<Stranger>> {
        Ok(Vec::new())
    }

    /// Gives a running domain one more vif, the last of `vifs`, or replaces the one of its devid. Gives the
    /// rings, unless the guest makes them.
    fn plug(&self, domain: &Domain, vifs: &[Vif], port: Option<PortFds>) -> Result<Option<Rings>>;

    /// Takes a vif from a running domain, which keeps `vifs`.
    fn unplug(&self, domain: &Domain, vifs: &[Vif], gone: &Vif) -> Result<()>;

    /// Keeps the console of a domain that was adopted, and reports its end.
    fn attend(&self, _domain: &Domain) -> Result<()> {
        Ok(())
    }

    /// Processor time used so far; `None` when the domain does not run.
    fn cpu_time_ns(&self, domid: u16) -> Option<u64>;

    /// At most `max_bytes` of the end of a guest's console log, unescaped.
    fn console(&self, domain: &Domain, max_bytes: usize) -> Result<Vec<u8>>;

    /// Removes a guest's console log.
    fn remove_console(&self, domain: &Domain) -> Result<()>;
}

fn unsupported(what: &str) -> Error {
    let message = format!("{what}: guests of this host kind have it not");
    Error::new(Code::Unsupported, message)
}
