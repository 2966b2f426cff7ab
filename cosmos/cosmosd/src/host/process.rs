// SPDX-License-Identifier: Apache-2.0
//! The host kind `process`: every guest is a confined process of the installed engine.
//!
//! A spawned guest waits for its argument line on descriptor 3. If this daemon dies before it
//! sent the line, the guest reads the end of the pipe and exits: nothing unknown stays behind.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use command_fds::{CommandFdExt, FdMapping};
use log::warn;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;

use super::cgroup::{Bounds, Cgroups};
use super::console::{Consoles, MAX_LOG};
use super::image::Engine;
use super::link::{LinkFds, Links, empty_root};
use super::pidfd::Watched;
use super::plug::{self, Ends};
use super::{Death, Domain, Found, Host, Instance, Rings, procfs};
use crate::base::error::{Code, Error, Result};
use crate::base::steps::Steps;
use crate::base::text::hex;
use crate::config::ProcessConfig;
use crate::spec::{Cpu, Vif};
use crate::switch::PortFds;

/// The guest's descriptor for the argument line.
const ARGUMENT_FD: i32 = 3;
/// Both ends of the guest's socket for vifs that come and go: above all others.
const PLUG_FDS: [i32; 2] = [64, 65];
/// Memory of a guest beyond its flavor: the program, its stack and the kernel's tables.
const OVERHEAD_BYTES: u64 = 8 << 20;
/// A guest uses at least this much, as clickos-process has it.
const HEAP_MIN_MIB: u32 = 4;
/// A ring region (docs/rings.md): by slot two descriptors, a short buffer and two long ones with their
/// part of a private page, and its header.
const SLOT_BYTES: u64 = 2 * (8 + 2736) + 256;
const REGION_BYTES: u64 = (3 + 8) * 4096;

/// See the module.
pub struct ProcessHost {
    engine: Engine,
    first_uid: u32,
    consoles: Consoles,
    links: Links,
    /// Missing where the configuration wants none.
    cgroups: Option<Cgroups>,
    root: File,
    boot_id: String,
    deaths: Sender<Death>,
    guests: Mutex<HashMap<u16, Guest>>,
}

struct Guest {
    process: Watched,
    start_ticks: u64,
    /// The pipe to descriptor 3 and the line to send, until `start`.
    held: Option<(File, String)>,
}

impl ProcessHost {
    pub fn new(
        config: &ProcessConfig,
        state_dir: &Path,
        links: Links,
        deaths: Sender<Death>,
    ) -> Result<Self> {
        let host = Self {
            engine: Engine::new(config.engine.clone()),
            first_uid: config.first_uid,
            consoles: Consoles::open(state_dir)?,
            links,
            cgroups: open_cgroups(&config.cgroup)?,
            root: empty_root(state_dir)?,
            boot_id: procfs::boot_id().map_err(|e| Error::internal("boot_id", e))?,
            deaths,
            guests: Mutex::default(),
        };
        host.engine.sha256().map(|_| host)
    }

    /// Moves a new guest into a group of its own before it runs.
    fn bound(&self, domain: &Domain, child: &Child) -> Result<()> {
        let Some(cgroups) = &self.cgroups else {
            return Ok(());
        };
        let bounds = Bounds {
            memory_bytes: memory_bytes(domain.memory_mib, &domain.vifs),
            cpu: Cpu::default(),
        };
        cgroups.make(domain.handle.as_str(), &bounds)?;
        cgroups.add(domain.handle.as_str(), child.id())
    }

    fn guests(&self) -> MutexGuard<'_, HashMap<u16, Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, domid: u16, body: impl FnOnce(&mut Guest) -> Result<T>) -> Result<T> {
        match self.guests().get_mut(&domid) {
            Some(guest) => body(guest),
            None => Err(Error::new(
                Code::DeadGuest,
                format!("domain {domid} does not run"),
            )),
        }
    }

    /// Starts the engine with its descriptors; it blocks reading the first of them.
    fn run(&self, domain: &Domain, inherited: Inherited) -> Result<Child> {
        let log = self.consoles.create(&domain.uuid)?;
        let spawn = || -> io::Result<Child> {
            let mut command = Command::new(self.engine.path());
            command.env_clear().current_dir("/").stdin(Stdio::null());
            command.stdout(log.try_clone()?).stderr(log);
            command
                .fd_mappings(inherited.mappings())
                .map_err(io::Error::other)?;
            command.spawn()
        };
        let place = || format!("engine {}", self.engine.path().display());
        spawn().map_err(|e| Error::internal(place(), e))
    }

    /// The argument line, the descriptors it names, and the writing end of its pipe.
    fn inheritance(
        &self,
        domain: &Domain,
        ports: Vec<PortFds>,
    ) -> Result<(Inherited, File, String)> {
        let link = self.links.open(domain.domid)?;
        let make = || -> io::Result<_> {
            let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            let seed = hex(&seed()?);
            let root = self.root.try_clone()?.into();
            let fds = Inherited(vec![reader], plug::ends()?);
            let (inherited, line) = inherit(domain, self.first_uid, &seed, fds, link, ports, root);
            Ok((inherited, File::from(writer), line))
        };
        make().map_err(|e| Error::internal(format!("domain {}", domain.domid), e))
    }

    fn hold(&self, domid: u16, child: &Child, pipe: File, line: String) -> Result<Instance> {
        let pid = child.id() as i32;
        let watch = || -> io::Result<Guest> {
            let id = Pid::from_child(child);
            limit(id)?;
            let start_ticks = procfs::stat(pid)?.start_ticks;
            let process = Watched::new(id, self.reporter(domid))?;
            Ok(Guest {
                process,
                start_ticks,
                held: Some((pipe, line)),
            })
        };
        let guest = watch().map_err(|e| Error::internal(format!("process {pid}"), e))?;
        let start_ticks = guest.start_ticks;
        self.guests().insert(domid, guest);
        Ok(Instance::Process {
            pid,
            start_ticks,
            boot_id: self.boot_id.clone(),
        })
    }

    fn reporter(&self, domid: u16) -> impl FnOnce(String) + Send + 'static {
        let deaths = self.deaths.clone();
        // The receiver is gone only when this daemon ends.
        move |reason| drop(deaths.send(Death { domid, reason }))
    }

    fn plug_socket(&self, domain: &Domain) -> Result<OwnedFd> {
        let early = |e| {
            let message = format!(
                "domain {}: it has no socket for interfaces ({e}): an earlier cosmosd started it; \
                 start it again",
                domain.domid
            );
            Error::new(Code::Unsupported, message)
        };
        self.with(domain.domid, |guest| {
            guest.process.descriptor(PLUG_FDS[1]).map_err(early)
        })
    }

    /// Lets a guest have the rings of these vifs.
    fn make_room(&self, domain: &Domain, vifs: &[Vif]) -> Result<()> {
        let Some(cgroups) = &self.cgroups else {
            return Ok(());
        };
        let bytes = memory_bytes(domain.memory_mib, vifs);
        cgroups.limit_memory(domain.handle.as_str(), bytes)
    }

    fn signal(&self, domid: u16, signal: Signal) -> Result<()> {
        self.with(domid, |guest| {
            guest
                .process
                .signal(signal)
                .map_err(|e| Error::internal(format!("domain {domid}"), e))
        })
    }
}

fn open_cgroups(name: &Path) -> Result<Option<Cgroups>> {
    if name.as_os_str().is_empty() {
        warn!("process.cgroup is \"\": guests use processors and memory without bounds");
        return Ok(None);
    }
    let cgroups = Cgroups::open(name)?;
    cgroups.sweep();
    Ok(Some(cgroups))
}

/// The most that a guest may use: its flavor, its rings and the overhead.
fn memory_bytes(memory_mib: u32, vifs: &[Vif]) -> u64 {
    let heap = u64::from(memory_mib.max(HEAP_MIN_MIB)) << 20;
    heap + vifs.iter().map(region).sum::<u64>() + OVERHEAD_BYTES
}

/// The bytes of a vif's rings.
fn region(vif: &Vif) -> u64 {
    u64::from(vif.slots) * SLOT_BYTES + REGION_BYTES
}

/// Lets a guest run on one processor only, or on any.
fn pin(pid: i32, processor: Option<u16>) -> Result<()> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    if processor.is_some_and(|one| usize::from(one) >= count) {
        let last = count - 1;
        return Err(Error::bad_request(format!(
            "cpu: pin: expected 0 to {last}"
        )));
    }
    let mut set = CpuSet::new();
    match processor {
        Some(one) => set.set(one.into()),
        None => (0..count.min(CpuSet::MAX_CPU)).for_each(|one| set.set(one)),
    }
    let place = |e: io::Error| Error::internal(format!("process {pid}"), e);
    for thread in procfs::threads(pid).map_err(place)? {
        sched_setaffinity(Pid::from_raw(thread), &set).map_err(|e| place(e.into()))?;
    }
    Ok(())
}

/// Bounds what a guest can do before it confines itself.
fn limit(pid: Pid) -> io::Result<()> {
    let to = |bytes| Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    rustix::process::prlimit(Some(pid), Resource::Fsize, to(MAX_LOG))?;
    rustix::process::prlimit(Some(pid), Resource::Core, to(0))?;
    Ok(())
}

fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
    Ok(seed)
}

/// Descriptors for a guest, the first of them its descriptor 3, and those of the socket for vifs.
struct Inherited(Vec<OwnedFd>, Ends);

impl Inherited {
    /// Adds a descriptor and returns its number in the guest.
    fn add(&mut self, fd: OwnedFd) -> i32 {
        self.0.push(fd);
        ARGUMENT_FD + self.0.len() as i32 - 1
    }

    fn mappings(self) -> Vec<FdMapping> {
        let (guest, toolstack) = self.1;
        let numbered = (ARGUMENT_FD..).zip(self.0);
        let numbered = numbered.chain(PLUG_FDS.into_iter().zip([guest, toolstack]));
        numbered
            .map(|(child_fd, parent_fd)| FdMapping {
                parent_fd,
                child_fd,
            })
            .collect()
    }
}

/// The argument line of docs/interfaces.md, "Guest start", and the descriptors it names.
fn inherit(
    domain: &Domain,
    first_uid: u32,
    seed: &str,
    mut fds: Inherited,
    link: LinkFds,
    ports: Vec<PortFds>,
    root: OwnedFd,
) -> (Inherited, String) {
    let store = json!({
        "ring": fds.add(link.ring),
        "to_store": fds.add(link.to_store),
        "from_store": fds.add(link.from_store),
    });
    let mut vifs = Vec::new();
    for (vif, port) in domain.vifs.iter().zip(ports) {
        vifs.push(json!({
            "devid": vif.devid, "mac": vif.mac, "mtu": vif.mtu,
            "memfd": fds.add(port.memfd), "kick": fds.add(port.kick), "wake": fds.add(port.wake),
        }));
    }
    let line = json!({
        "domid": domain.domid, "uid": first_uid + u32::from(domain.domid),
        "memory_mib": domain.memory_mib, "vcpus": domain.vcpus, "seed": seed, "store": store, "vifs": vifs,
        "root": fds.add(root), "plug": {"guest": PLUG_FDS[0], "toolstack": PLUG_FDS[1]},
    });
    (fds, format!("{line}\n"))
}

impl Host for ProcessHost {
    fn kind(&self) -> &'static str {
        "process"
    }

    fn engine_sha256(&self) -> Result<Option<String>> {
        self.engine.sha256().map(Some)
    }

    fn max_vcpus(&self) -> u8 {
        cosmos_proto::MAX_VCPUS
    }

    /// A process guest never runs bytes from Glance: the image only names the installed engine.
    fn check(&self, domain: &Domain) -> Result<()> {
        if domain.kernel.is_some() {
            let message = "kernel: a guest of this host kind is a process and starts no kernel";
            return Err(Error::new(Code::Unsupported, message));
        }
        let (asked, installed) = (&domain.image_sha256, self.engine.sha256()?);
        if *asked != installed {
            let message = format!(
                "image_sha256: {asked:.80?} is not the engine installed on this host, {installed}"
            );
            return Err(Error::new(Code::BadImage, message));
        }
        match domain.nics.first() {
            None => Ok(()),
            Some(nic) => Err(Error::new(
                Code::Unsupported,
                format!(
                    "nics: devid {}: guests of this host kind have vifs on the switch only",
                    nic.devid
                ),
            )),
        }
    }

    fn prepare(&self, domain: &Domain) -> Result<()> {
        self.links.make(domain)
    }

    fn spawn(&self, domain: &Domain, ports: Vec<PortFds>, steps: &mut Steps) -> Result<Instance> {
        let (inherited, pipe, line) = self.inheritance(domain, ports)?;
        let mut child = self.run(domain, inherited)?;
        self.bound(domain, &child)
            .and_then(|()| self.hold(domain.domid, &child, pipe, line))
            .inspect(|_| steps.end("domain"))
            .inspect_err(|_| {
                // Not yet watched, so it is reaped here; both fail only if it is gone already.
                let _ = child.kill();
                let _ = child.wait();
            })
    }

    fn start(&self, domid: u16) -> Result<()> {
        self.with(domid, |guest| match guest.held.take() {
            Some((mut pipe, line)) => pipe.write_all(line.as_bytes()).map_err(|e| {
                Error::new(
                    Code::DeadGuest,
                    format!("domain {domid}: it ended at its start: {e}"),
                )
            }),
            None => Err(Error::internal(
                format!("domain {domid}"),
                "it was started before",
            )),
        })
    }

    fn pause(&self, domid: u16) -> Result<()> {
        self.signal(domid, Signal::STOP)
    }

    fn unpause(&self, domid: u16) -> Result<()> {
        self.signal(domid, Signal::CONT)
    }

    fn set_cpu(&self, domain: &Domain, cpu: &Cpu) -> Result<()> {
        let Some(cgroups) = &self.cgroups else {
            return Err(Error::new(
                Code::Unsupported,
                "cpu: process.cgroup is \"\", so guests have no share of their own",
            ));
        };
        self.with(domain.domid, |guest| pin(guest.process.pid(), cpu.pin))?;
        cgroups.share(domain.handle.as_str(), cpu)
    }

    fn stop(&self, domain: &Domain) -> Result<()> {
        let domid = domain.domid;
        let Some(guest) = self.guests().remove(&domid) else {
            return Ok(());
        };
        let start_ticks = guest.start_ticks;
        guest.process.kill().map_err(|(process, e)| {
            // Still there: kept, so that it can be tried again.
            self.guests().insert(
                domid,
                Guest {
                    process,
                    start_ticks,
                    held: None,
                },
            );
            Error::internal(format!("domain {domid}"), e)
        })
    }

    fn forget(&self, domain: &Domain) -> Result<()> {
        self.links.remove(domain)?;
        match &self.cgroups {
            Some(cgroups) => cgroups.remove(domain.handle.as_str()),
            None => Ok(()),
        }
    }

    fn adopt(&self, domain: &Domain, instance: &Instance) -> Result<Found> {
        let domid = domain.domid;
        let (pid, started) = match instance {
            Instance::Process {
                pid,
                start_ticks,
                boot_id,
            } if *boot_id == self.boot_id => (*pid, *start_ticks),
            _ => return Ok(Found::Gone),
        };
        let Some(id) = Pid::from_raw(pid) else {
            return Ok(Found::Gone);
        };
        let place = |e: io::Error| Error::internal(format!("process {pid}"), e);
        let Some(process) = Watched::existing(id).map_err(place)? else {
            return Ok(Found::Gone);
        };
        // The descriptor is open: from here on the pid is this process or none at all.
        match procfs::stat(pid) {
            Ok(stat) if stat.start_ticks == started && !matches!(stat.state, 'Z' | 'X') => {
                let process = process.report(self.reporter(domid)).map_err(place)?;
                self.guests().insert(
                    domid,
                    Guest {
                        process,
                        start_ticks: started,
                        held: None,
                    },
                );
                Ok(if stat.state == 'T' {
                    Found::Paused
                } else {
                    Found::Running
                })
            }
            _ => Ok(Found::Gone),
        }
    }

    /// The guest may have changed what is behind the numbers; valed checks the descriptors.
    fn rings(&self, domain: &Domain, rings: Rings) -> Result<Option<PortFds>> {
        self.with(domain.domid, |guest| {
            let take = |number| guest.process.descriptor(number);
            let [memfd, kick, wake] = rings;
            let taken = || -> io::Result<PortFds> {
                let (memfd, kick, wake) = (take(memfd)?, take(kick)?, take(wake)?);
                Ok(PortFds { memfd, kick, wake })
            };
            let place = || format!("domain {}: descriptors {rings:?}", domain.domid);
            let is_gone = |e: &io::Error| Errno::from_io_error(e) == Some(Errno::SRCH);
            taken().map(Some).map_err(|e| match is_gone(&e) {
                true => Error::new(Code::DeadGuest, format!("{}: {e}", place())),
                false => Error::internal(place(), e),
            })
        })
    }

    fn plug(&self, domain: &Domain, vifs: &[Vif], port: Option<PortFds>) -> Result<Option<Rings>> {
        let vif = vifs.last().expect("the caller adds a vif");
        let no_rings = || Error::new(Code::Unsupported, "the switch gave no rings");
        let port = port.ok_or_else(no_rings)?;
        let socket = self.plug_socket(domain)?;
        self.make_room(domain, vifs)?;
        let rings = plug::plug(&socket, vif, port).inspect_err(|_| {
            let without = &vifs[..vifs.len() - 1];
            self.make_room(domain, without)
                .unwrap_or_else(|e| warn!("domain {}: {e}", domain.domid));
        });
        rings.map(Some)
    }

    fn unplug(&self, domain: &Domain, vifs: &[Vif], gone: &Vif) -> Result<()> {
        plug::unplug(&self.plug_socket(domain)?, gone.devid)?;
        self.make_room(domain, vifs)
    }

    fn relink(&self, domain: &Domain) -> Result<()> {
        let socket = self.plug_socket(domain)?;
        self.links.make(domain)?;
        plug::relink(&socket, &self.links.open(domain.domid)?)
    }

    /// A process that is stopped.
    fn paused(&self) -> Result<HashMap<u16, bool>> {
        let guests = self.guests();
        let started = guests.iter().filter(|(_, guest)| guest.held.is_none());
        let looks = started.filter_map(|(domid, guest)| {
            let stat = procfs::stat(guest.process.pid()).ok()?;
            let is_own = stat.start_ticks == guest.start_ticks;
            is_own.then_some((*domid, stat.state == 'T'))
        });
        Ok(looks.collect())
    }

    fn cpu_time_ns(&self, domid: u16) -> Option<u64> {
        let guests = self.guests();
        let guest = guests.get(&domid)?;
        let stat = procfs::stat(guest.process.pid()).ok()?;
        (stat.start_ticks == guest.start_ticks).then(|| procfs::ticks_to_ns(stat.cpu_ticks))
    }

    fn console(&self, domain: &Domain, max_bytes: usize) -> Result<Vec<u8>> {
        self.consoles.tail(&domain.handle, max_bytes)
    }

    fn remove_console(&self, domain: &Domain) -> Result<()> {
        self.consoles.remove(&domain.handle)
    }
}
