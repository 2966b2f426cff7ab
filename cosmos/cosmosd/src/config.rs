// SPDX-License-Identifier: Apache-2.0
//! The daemon's configuration file (docs/interfaces.md, "cosmosd").

use std::path::{Component, Path, PathBuf};

use control_socket::Roles;
use serde::Deserialize;

use crate::preconnected::{Preconnected, default_slots};
use crate::spec::{MAX_VIFS, Sha256Text};

/// The last domain id a toolstack may give: Xen reserves those from 0x7ff0 on
/// (DOMID_FIRST_RESERVED in xen/xen.h).
pub const MAX_DOMID: u16 = 0x7fef;
/// Roles besides `operator`.
pub const ROLES: &[&str] = &["nova", "agent"];

/// The file of `cosmosd --config FILE`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Path of the daemon's own socket.
    pub socket: PathBuf,
    /// State files and console logs; survives restarts.
    pub state_dir: PathBuf,
    /// valed's control socket.
    pub valed_socket: PathBuf,
    /// xenstored's run directory.
    pub xenstore_dir: PathBuf,
    pub host_kind: HostKind,
    /// MiB that guests may use together.
    pub memory_mib: u32,
    #[serde(default = "default_max_guests")]
    pub max_guests: usize,
    /// Settings of the host kind `process`.
    pub process: Option<ProcessConfig>,
    /// Settings of the host kind `xen`.
    pub xen: Option<XenConfig>,
    #[serde(default)]
    pub roles: Roles,
}

/// The kind of host that runs the guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostKind {
    Process,
    Xen,
}

/// Settings of the host kind `process`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessConfig {
    /// The installed engine binary, the only one a guest may run.
    pub engine: PathBuf,
    /// A guest's uid and gid are this plus its domain id.
    pub first_uid: u32,
    /// The control group that holds the guests' groups, below the hierarchies' roots; empty for
    /// guests without bounds.
    #[serde(default = "default_cgroup")]
    pub cgroup: PathBuf,
}

/// Settings of the host kind `xen`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    not(feature = "xen"),
    expect(dead_code, reason = "only the xen kind reads them")
)]
pub struct XenConfig {
    /// An image that guests may run besides those of the cache.
    pub image: Option<PathBuf>,
    /// How its domains are run.
    #[serde(default, rename = "type")]
    pub kind: XenType,
    /// Most images in the cache.
    #[serde(default = "default_max_images")]
    pub max_images: usize,
    #[serde(default = "default_max_image_mib")]
    pub max_image_mib: u64,
    /// The hotplug script of vifs of netback; the host's default if missing.
    pub vif_script: Option<PathBuf>,
    /// Guests to keep booted.
    #[serde(default)]
    pub pool: Vec<PoolEntry>,
    /// Guests are kept booted for the images and sizes that were created lately, too.
    #[serde(default = "yes")]
    pub pool_on_demand: bool,
    /// dom0's weight at Xen's scheduler; a guest has 256.
    #[serde(default = "default_dom0_weight")]
    pub dom0_weight: u16,
}

/// How Xen runs a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XenType {
    Pv,
    #[default]
    Pvh,
}

fn yes() -> bool {
    true
}

fn default_dom0_weight() -> u16 {
    2048
}

fn default_cgroup() -> PathBuf {
    "clickos".into()
}

fn default_max_guests() -> usize {
    1024
}

fn default_max_images() -> usize {
    16
}

fn default_max_image_mib() -> u64 {
    16
}

/// Part of the guests' memory that guests on demand may have.
const DEMAND_PART: u32 = 16;

/// Guests of one kind to keep: an entry of `[[xen.pool]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolEntry {
    /// SHA-256; the installed image if missing.
    pub image: Option<Sha256Text>,
    pub memory_mib: u32,
    pub guests: usize,
    /// Vifs at the switch that each has from the start, preconnected until a guest gets them.
    #[serde(default)]
    pub vifs: u32,
    /// Slots of their rings.
    #[serde(default = "default_slots")]
    pub slots: u32,
    /// Vifs of stock netback that each has from the start, with the devids after those.
    #[serde(default)]
    pub nics: u32,
}

impl PoolEntry {
    pub fn preconnected(&self) -> Preconnected {
        Preconnected {
            vifs: self.vifs,
            slots: self.slots,
            nics: self.nics,
        }
    }
}

impl Config {
    /// Checks what the types do not; errors name the key.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=usize::from(MAX_DOMID)).contains(&self.max_guests) {
            return Err(format!(
                "max_guests: expected 1 to {MAX_DOMID}, got {}",
                self.max_guests
            ));
        }
        if self.memory_mib == 0 {
            return Err("memory_mib: expected at least 1, got 0".into());
        }
        absolute("socket", &self.socket)?;
        absolute("state_dir", &self.state_dir)?;
        absolute("valed_socket", &self.valed_socket)?;
        absolute("xenstore_dir", &self.xenstore_dir)?;
        self.roles.check(ROLES)?;
        self.check_host()
    }

    /// Looks for the files that the daemon needs before its first guest; errors name the key.
    pub fn check_files(&self) -> Result<(), String> {
        match (&self.process, &self.xen) {
            (Some(process), _) if self.host_kind == HostKind::Process => {
                file("process.engine", &process.engine)
            }
            (_, Some(xen)) => [
                ("xen.image", &xen.image),
                ("xen.vif_script", &xen.vif_script),
            ]
            .iter()
            .filter_map(|(key, path)| Some((key, path.as_ref()?)))
            .try_for_each(|(key, path)| file(key, path)),
            _ => Ok(()),
        }
    }

    /// The guests to keep booted.
    pub fn pool_entries(&self) -> Vec<PoolEntry> {
        self.chosen_xen()
            .map(|xen| xen.pool.clone())
            .unwrap_or_default()
    }

    /// Most memory of the guests that are kept booted on demand, in MiB.
    pub fn pool_demand_mib(&self) -> u32 {
        match self.chosen_xen() {
            Some(xen) if xen.pool_on_demand => self.memory_mib / DEMAND_PART,
            _ => 0,
        }
    }

    /// The settings of a Xen host, on one.
    fn chosen_xen(&self) -> Option<&XenConfig> {
        let xen = self.xen.as_ref();
        xen.filter(|_| self.host_kind == HostKind::Xen)
    }

    fn check_host(&self) -> Result<(), String> {
        match (self.host_kind, &self.process, &self.xen) {
            (HostKind::Process, Some(process), _) => {
                process.check()?;
                self.check_uids(process)
            }
            (HostKind::Xen, _, Some(xen)) => xen.check(),
            (HostKind::Process, None, _) => Err("process: missing, and host_kind is it".into()),
            (HostKind::Xen, _, None) => Err("xen: missing, and host_kind is it".into()),
        }
    }

    /// A guest with the uid of a role would have that role.
    fn check_uids(&self, process: &ProcessConfig) -> Result<(), String> {
        let first = process.first_uid;
        let last = first + u32::from(MAX_DOMID);
        match self.roles.any_in(first..=last) {
            None => Ok(()),
            Some((role, uid)) => Err(format!(
                "roles: uid {uid} of {role} is among those of guests, {first} to {last}; \
                 set process.first_uid above or below"
            )),
        }
    }
}

impl XenConfig {
    fn check(&self) -> Result<(), String> {
        if !cfg!(feature = "xen") {
            return Err("host_kind: this cosmosd was built without xen (feature \"xen\")".into());
        }
        range("xen.max_images", self.max_images as u64, 1..=1024)?;
        range("xen.max_image_mib", self.max_image_mib, 1..=1024)?;
        range("xen.dom0_weight", self.dom0_weight.into(), 1..=65535)?;
        for entry in &self.pool {
            range("xen.pool.memory_mib", entry.memory_mib.into(), 4..=65536)?;
            range("xen.pool.guests", entry.guests as u64, 0..=MAX_DOMID.into())?;
            range("xen.pool.vifs", entry.vifs.into(), 0..=MAX_VIFS as u64)?;
            let left = (MAX_VIFS as u64).saturating_sub(entry.vifs.into());
            range("xen.pool.nics", entry.nics.into(), 0..=left)?;
            check_slots(entry.slots)?;
        }
        for (key, path) in [
            ("xen.image", &self.image),
            ("xen.vif_script", &self.vif_script),
        ] {
            path.iter().try_for_each(|path| absolute(key, path))?;
        }
        Ok(())
    }
}

impl ProcessConfig {
    fn check(&self) -> Result<(), String> {
        absolute("process.engine", &self.engine)?;
        check_cgroup(&self.cgroup)?;
        // Below it are the system's users; the last uid, -1, means "no change" to the kernel.
        let last = u32::MAX - 1 - u32::from(MAX_DOMID);
        if (1000..=last).contains(&self.first_uid) {
            return Ok(());
        }
        Err(format!(
            "process.first_uid: expected 1000 to {last}, got {}",
            self.first_uid
        ))
    }
}

/// Each part is a name, so that no group lies outside the hierarchies.
fn check_cgroup(path: &Path) -> Result<(), String> {
    let is_name = |part| matches!(part, Component::Normal(_));
    if path.components().all(is_name) {
        return Ok(());
    }
    Err(format!(
        "process.cgroup: expected names separated by /, got {path:?}"
    ))
}

fn range(key: &str, got: u64, range: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    if range.contains(&got) {
        return Ok(());
    }
    let (low, high) = (range.start(), range.end());
    Err(format!("{key}: expected {low} to {high}, got {got}"))
}

fn check_slots(slots: u32) -> Result<(), String> {
    range("xen.pool.slots", slots.into(), 64..=2048)?;
    match slots.is_power_of_two() {
        true => Ok(()),
        false => Err(format!(
            "xen.pool.slots: expected a power of two, got {slots}"
        )),
    }
}

fn file(key: &str, path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(format!("{key}: expected a file, got {path:?}")),
        Err(e) => Err(format!("{key}: {}: {e}", path.display())),
    }
}

fn absolute(key: &str, path: &Path) -> Result<(), String> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(format!("{key}: expected an absolute path, got {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
socket = "/run/clickos/cosmosd.sock"
state_dir = "/var/lib/cosmosd"
valed_socket = "/run/clickos/valed.sock"
xenstore_dir = "/run/xenstored"
host_kind = "process"
memory_mib = 2048
process = { engine = "/usr/bin/clickos-process", first_uid = 200000 }
[roles]
nova = [64001]
"#;

    fn parse(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn good_file() {
        assert_eq!(parse(GOOD).unwrap().max_guests, 1024);
    }

    #[test]
    fn errors_name_the_key() {
        for (from, to, words) in [
            ("2048", "0", "memory_mib: expected at least 1"),
            ("\"process\"", "\"kvm\"", "host_kind"),
            (
                "first_uid = 200000",
                "first_uid = 0",
                "process.first_uid: expected 1000",
            ),
            (
                "\"/run/clickos/valed.sock\"",
                "\"valed.sock\"",
                "valed_socket: expected an absolute path",
            ),
            ("memory_mib", "memory_gib", "memory_gib"),
            (
                "first_uid = 200000",
                "first_uid = 200000, cgroup = \"../x\"",
                "process.cgroup: expected names",
            ),
            ("nova", "cinder", "cinder"),
            (
                "[64001]",
                "[200007]",
                "roles: uid 200007 of nova is among those of guests",
            ),
            ("process = {", "xen = {", "xen"),
            (
                "\"process\"",
                "\"xen\"",
                "xen: missing, and host_kind is it",
            ),
            (
                "[roles]",
                "max_guests = 0\n[roles]",
                "max_guests: expected 1",
            ),
        ] {
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(words), "{to}: {error}");
        }
    }
}
