// SPDX-License-Identifier: Apache-2.0
//! The control groups of process guests: each guest has one, below a common parent.
//!
//! The kernel serves the controllers `cpu` and `memory` by two versions of its interface. Version 2
//! has one hierarchy, as in Debian 12; version 1 has a hierarchy for each controller.
//! Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ in Linux.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use log::warn;

use crate::base::error::{Error, Result};
use crate::spec::Cpu;

/// The weight of Xen's schedulers that equals the kernel's default.
const XEN_WEIGHT: u64 = 256;
/// The kernel's default weights, in version 2 and version 1.
const WEIGHT_V2: u64 = 100;
const SHARES_V1: u64 = 1024;
/// The period over which a cap holds, in microseconds: the shortest wait of a capped guest that
/// still costs little.
const PERIOD_US: u64 = 10_000;

/// The bounds of a guest.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub memory_bytes: u64,
    pub cpu: Cpu,
}

/// The groups of all guests.
pub struct Cgroups {
    cpu: Controller,
    memory: Controller,
}

/// One controller: the directory of the common parent, and the version of its files.
#[derive(Debug, PartialEq, Eq)]
struct Controller {
    parent: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Cgroups {
    /// Makes the common parent `name`, a path below the hierarchies' roots.
    pub fn open(name: &Path) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|e| Error::internal("/proc/self/mountinfo", e))?;
        let mounts = parse_mounts(&mounts);
        let controller = |controller: &str| {
            find(&mounts, controller, has_controller)
                .ok_or_else(|| missing(controller))
                .and_then(|(root, version)| Controller::make(root, version, name))
        };
        Ok(Self {
            cpu: controller("cpu")?,
            memory: controller("memory")?,
        })
    }

    /// Makes the group of a guest, or takes the one that is there.
    pub fn make(&self, guest: &str, bounds: &Bounds) -> Result<()> {
        for controller in [&self.cpu, &self.memory] {
            create(&controller.parent.join(guest))?;
        }
        self.memory.limit_memory(guest, bounds.memory_bytes)?;
        self.share(guest, &bounds.cpu)
    }

    /// Changes the most memory that a guest may use.
    pub fn limit_memory(&self, guest: &str, bytes: u64) -> Result<()> {
        self.memory.limit_memory(guest, bytes)
    }

    /// Moves a process into the group of a guest.
    pub fn add(&self, guest: &str, pid: u32) -> Result<()> {
        [&self.cpu, &self.memory]
            .iter()
            .try_for_each(|controller| controller.write(guest, "cgroup.procs", &pid.to_string()))
    }

    /// Sets a guest's share of processor time; `pin` is not a matter of groups.
    pub fn share(&self, guest: &str, cpu: &Cpu) -> Result<()> {
        self.cpu.share(guest, cpu)
    }

    /// Removes the group of a guest whose processes have ended; it may be gone already.
    pub fn remove(&self, guest: &str) -> Result<()> {
        [&self.cpu, &self.memory]
            .iter()
            .try_for_each(|controller| remove(&controller.parent.join(guest)))
    }

    /// Removes the groups that an earlier cosmosd left, unless a process is in them.
    pub fn sweep(&self) {
        for controller in [&self.cpu, &self.memory] {
            for entry in fs::read_dir(&controller.parent).into_iter().flatten() {
                let Ok(entry) = entry else { continue };
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    // A guest that runs keeps its group: the kernel answers EBUSY.
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }
}

impl Controller {
    fn make(root: PathBuf, version: Version, name: &Path) -> Result<Self> {
        let mut parent = root;
        for part in name.components() {
            enable(&parent, version)?;
            parent.push(part);
            create(&parent)?;
        }
        enable(&parent, version)?;
        Ok(Self { parent, version })
    }

    fn limit_memory(&self, guest: &str, bytes: u64) -> Result<()> {
        let (limit, swap) = match self.version {
            Version::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            Version::V2 => ("memory.max", "memory.swap.max"),
        };
        let swap_bytes = match self.version {
            Version::V1 => bytes, // Memory and swap together.
            Version::V2 => 0,
        };
        // The file is missing on a kernel without accounting of swap.
        let has_swap = self.parent.join(guest).join(swap).exists();
        let set = || self.write(guest, limit, &bytes.to_string());
        let set_swap = || match has_swap {
            true => self.write(guest, swap, &swap_bytes.to_string()),
            false => Ok(()),
        };
        // Memory is never above the sum: a limit that falls comes first, one that rises last.
        match set() {
            Ok(()) => set_swap(),
            Err(_) => set_swap().and_then(|()| set()),
        }
    }

    fn share(&self, guest: &str, cpu: &Cpu) -> Result<()> {
        let quota_us = u64::from(cpu.cap_percent) * PERIOD_US / 100;
        let weight = u64::from(cpu.weight);
        match self.version {
            Version::V1 => {
                let quota = if quota_us == 0 {
                    "-1".into()
                } else {
                    quota_us.to_string()
                };
                let shares = (weight * SHARES_V1 / XEN_WEIGHT).clamp(2, 262_144);
                self.write(guest, "cpu.shares", &shares.to_string())?;
                self.write(guest, "cpu.cfs_period_us", &PERIOD_US.to_string())?;
                self.write(guest, "cpu.cfs_quota_us", &quota)
            }
            Version::V2 => {
                let quota = if quota_us == 0 {
                    "max".into()
                } else {
                    quota_us.to_string()
                };
                let weight = (weight * WEIGHT_V2 / XEN_WEIGHT).clamp(1, 10_000);
                self.write(guest, "cpu.weight", &weight.to_string())?;
                self.write(guest, "cpu.max", &format!("{quota} {PERIOD_US}"))
            }
        }
    }

    fn write(&self, guest: &str, file: &str, text: &str) -> Result<()> {
        let path = self.parent.join(guest).join(file);
        fs::write(&path, text)
            .map_err(|e| Error::internal(format!("{}: {text}", path.display()), e))
    }
}

/// Lets children of a group have controllers of their own; version 1 needs nothing.
fn enable(group: &Path, version: Version) -> Result<()> {
    if version == Version::V1 {
        return Ok(());
    }
    let path = group.join("cgroup.subtree_control");
    fs::write(&path, "+cpu +memory").map_err(|e| {
        Error::internal(
            path.display(),
            format!("{e}; choose another process.cgroup, or \"\" for guests without bounds"),
        )
    })
}

fn create(group: &Path) -> Result<()> {
    match fs::create_dir(group) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::internal(group.display(), e))
        }
        _ => Ok(()),
    }
}

fn remove(group: &Path) -> Result<()> {
    match fs::remove_dir(group) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            warn!("{}: {e}", group.display());
            Err(Error::internal(group.display(), e))
        }
        _ => Ok(()),
    }
}

fn missing(controller: &str) -> Error {
    Error::internal(
        "/proc/self/mountinfo",
        format!(
            "no hierarchy of control groups has the controller {controller}; mount one, or set \
             process.cgroup to \"\" for guests without bounds"
        ),
    )
}

/// A mounted hierarchy and, in version 1, the options it was mounted with.
type Mount = (PathBuf, Version, String);

/// The hierarchies in the text of proc_pid_mountinfo(5).
fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let root = PathBuf::from(mount.split(' ').nth(4)?);
            let mut kind = kind.split(' ');
            let version = match kind.next()? {
                "cgroup" => Version::V1,
                "cgroup2" => Version::V2,
                _ => return None,
            };
            Some((root, version, kind.nth(1)?.to_owned()))
        })
        .collect()
}

/// The hierarchy that serves a controller; `offers` looks it up in version 2.
fn find(
    mounts: &[Mount],
    controller: &str,
    offers: impl Fn(&Path, &str) -> bool,
) -> Option<(PathBuf, Version)> {
    let serves = |(root, version, options): &&Mount| match version {
        Version::V1 => options.split(',').any(|option| option == controller),
        Version::V2 => offers(root, controller),
    };
    let (root, version, _) = mounts.iter().find(serves)?;
    Some((root.clone(), *version))
}

fn has_controller(root: &Path, controller: &str) -> bool {
    fs::read_to_string(root.join("cgroup.controllers"))
        .is_ok_and(|list| list.split_whitespace().any(|one| one == controller))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
28 25 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn bounds(cap_percent: u16) -> Bounds {
        Bounds {
            memory_bytes: 16 << 20,
            cpu: Cpu {
                pin: None,
                weight: 512,
                cap_percent,
            },
        }
    }

    /// A controller in a directory: the kernel's files become ordinary ones.
    fn groups(dir: &Path, version: Version) -> Cgroups {
        let controller = |name: &str| {
            let root = dir.join(name);
            fs::create_dir_all(root.join("clickos")).unwrap();
            Controller::make(root, version, Path::new("clickos")).unwrap()
        };
        Cgroups {
            cpu: controller("cpu"),
            memory: controller("memory"),
        }
    }

    fn read(path: PathBuf) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn hierarchies_are_found_by_controller() {
        let mounts = parse_mounts(HYBRID);
        let at = |name, offers: bool| find(&mounts, name, |_, _| offers);
        let v1 = |path: &str| Some((PathBuf::from(path), Version::V1));
        assert_eq!(at("cpu", false), v1("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(at("memory", false), v1("/sys/fs/cgroup/memory"));
        assert_eq!(at("io", false), None);
        let unified = (PathBuf::from("/sys/fs/cgroup/unified"), Version::V2);
        assert_eq!(at("io", true), Some(unified));
    }

    #[test]
    fn bounds_are_written_in_each_version() {
        for (version, files) in [
            (
                Version::V1,
                [
                    ("cpu", "cpu.shares", "2048"),
                    ("cpu", "cpu.cfs_quota_us", "2500"),
                    ("memory", "memory.limit_in_bytes", "16777216"),
                ],
            ),
            (
                Version::V2,
                [
                    ("cpu", "cpu.weight", "200"),
                    ("cpu", "cpu.max", "2500 10000"),
                    ("memory", "memory.max", "16777216"),
                ],
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let groups = groups(dir.path(), version);
            groups.make("g1", &bounds(25)).unwrap();
            groups.add("g1", 77).unwrap();
            for (controller, file, text) in files {
                let path = dir.path().join(controller).join("clickos/g1").join(file);
                assert_eq!(read(path), text, "{file}");
            }
            assert_eq!(
                read(dir.path().join("memory/clickos/g1/cgroup.procs")),
                "77"
            );
        }
    }

    #[test]
    fn no_cap_is_none_in_each_version() {
        for (version, file, text) in [
            (Version::V1, "cpu.cfs_quota_us", "-1"),
            (Version::V2, "cpu.max", "max 10000"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            groups(dir.path(), version).make("g1", &bounds(0)).unwrap();
            assert_eq!(read(dir.path().join("cpu/clickos/g1").join(file)), text);
        }
    }

    #[test]
    fn version_2_enables_controllers_down_to_the_parent() {
        let dir = tempfile::tempdir().unwrap();
        groups(dir.path(), Version::V2);
        for group in ["cpu", "cpu/clickos"] {
            let path = dir.path().join(group).join("cgroup.subtree_control");
            assert_eq!(read(path), "+cpu +memory");
        }
    }
}
