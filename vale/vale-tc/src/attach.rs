// SPDX-License-Identifier: Apache-2.0
//! Puts the programs of a policy at an interface, and takes them away.
//!
//! The kernel keeps the programs; they end with the interface. A folder of the BPF file system keeps the
//! maps by the number of the interface, since names there have no dots. A file has policy and number.
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use aya::programs::tc::{self, NlOptions, SchedClassifierLink, TcAttachOptions};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType, TcError};
use aya::{Ebpf, EbpfLoader};
use serde::{Deserialize, Serialize};

use crate::object::{self, CONNECTIONS, COUNTERS, FROM_GUEST, TO_GUEST};
use crate::policy::Policy;

/// The place of the programs among the filters of an interface: they come first.
const PRIORITY: u16 = 1;
const HANDLE: u32 = 1;
/// A frame from the guest comes into the host.
const DIRECTIONS: [(&str, TcAttachType); 2] = [
    (TO_GUEST, TcAttachType::Egress),
    (FROM_GUEST, TcAttachType::Ingress),
];

/// Where maps and policies of interfaces are.
pub struct Folders {
    /// In a mounted BPF file system.
    pub maps: PathBuf,
    pub state: PathBuf,
}

/// The policy in force, and the interface that has it. Names of interfaces come again.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    pub index: u32,
    pub policy: Policy,
}

/// The number of an interface.
///
/// # Errors
/// There is none of this name.
pub fn index(interface: &str) -> Result<u32, String> {
    check_name(interface)?;
    let path = Path::new("/sys/class/net").join(interface).join("ifindex");
    let text = fs::read_to_string(path).ok();
    let index = text.and_then(|text| text.trim().parse().ok());
    index.ok_or_else(|| format!("{interface}: no such interface"))
}

/// A name becomes a part of paths.
fn check_name(interface: &str) -> Result<(), String> {
    let is_name = !interface.is_empty() && !interface.contains('/') && !interface.starts_with('.');
    match is_name {
        true => Ok(()),
        false => Err(format!("{interface}: this is not the name of an interface")),
    }
}

impl Folders {
    /// The folder with the maps of an interface.
    pub fn maps_of(&self, index: u32) -> PathBuf {
        self.maps.join(format!("if{index}"))
    }

    fn state_of(&self, interface: &str) -> PathBuf {
        self.state.join(format!("{interface}.json"))
    }

    /// The policy that the interface has.
    ///
    /// # Errors
    /// It has none, or its file cannot be read.
    pub fn in_force(&self, interface: &str) -> Result<InForce, String> {
        let index = index(interface)?;
        let found = self.read(interface)?.filter(|found| found.index == index);
        found.ok_or_else(|| format!("{interface}: it has no policy"))
    }

    fn read(&self, interface: &str) -> Result<Option<InForce>, String> {
        let path = self.state_of(interface);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    /// Writes the state next to its file, where a full disk shows before anything has changed.
    fn prepare(&self, interface: &str, now: &InForce) -> Result<PathBuf, String> {
        let new = self.state_of(interface).with_extension("new");
        let text = serde_json::json!(now).to_string();
        fs::write(&new, text).map_err(|e| {
            let removed = remove(&new).err().map(|left| format!("; {left}"));
            format!("{}: {e}{}", new.display(), removed.unwrap_or_default())
        })?;
        Ok(new)
    }

    /// Gives an interface a policy. Each direction changes from one packet to the next. Connections
    /// stay if the rules do.
    ///
    /// # Errors
    /// The policy has no program, or the kernel refuses it. The policy before stays in force.
    pub fn set(&self, interface: &str, policy: &Policy) -> Result<(), String> {
        let index = index(interface)?;
        let file = object::compile(policy)?;
        let maps = self.maps_of(index);
        for folder in [&maps, &self.state] {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let now = InForce {
            index,
            policy: policy.clone(),
        };
        let new = self.prepare(interface, &now)?;
        self.change(interface, &now, &file, &maps)
            .inspect_err(|_| drop(remove(&new)))?;
        let path = self.state_of(interface);
        fs::rename(&new, &path).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn change(
        &self,
        interface: &str,
        now: &InForce,
        file: &[u8],
        maps: &Path,
    ) -> Result<(), String> {
        self.keep_maps(interface, now.index, &now.policy)?;
        let mut programs = load(file, maps).map_err(|e| format!("{interface}: {e}"))?;
        attach(interface, &mut programs).map_err(|e| format!("{interface}: {e}"))
    }

    /// Removes the maps of before that the policy cannot use.
    fn keep_maps(&self, interface: &str, index: u32, policy: &Policy) -> Result<(), String> {
        let before = self.read(interface)?;
        if let Some(gone) = before.as_ref().filter(|before| before.index != index) {
            self.remove_maps(gone.index)?;
        }
        let before = before.filter(|before| before.index == index);
        let before = before.map(|before| before.policy);
        let maps = self.maps_of(index);
        if before
            .as_ref()
            .is_none_or(|before| before.rules != policy.rules)
        {
            remove(&maps.join(CONNECTIONS))?;
        }
        match before.as_ref() == Some(policy) {
            true => Ok(()),
            false => remove(&maps.join(COUNTERS)),
        }
    }

    fn remove_maps(&self, index: u32) -> Result<(), String> {
        let maps = self.maps_of(index);
        remove(&maps.join(CONNECTIONS))?;
        remove(&maps.join(COUNTERS))?;
        match fs::remove_dir(&maps) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(format!("{}: {e}", maps.display())),
            _ => Ok(()),
        }
    }

    /// Takes the policy from an interface, which may be gone, or have none.
    ///
    /// # Errors
    /// The kernel refuses it, or a file cannot be removed.
    pub fn clear(&self, interface: &str) -> Result<(), String> {
        check_name(interface)?;
        if index(interface).is_ok() {
            detach(interface)?;
        }
        if let Some(before) = self.read(interface)? {
            self.remove_maps(before.index)?;
        }
        remove(&self.state_of(interface))
    }
}

fn detach(interface: &str) -> Result<(), String> {
    for (name, direction) in DIRECTIONS {
        match tc::qdisc_detach_program(interface, direction, name) {
            Err(e) if e.kind() != ErrorKind::NotFound && !has_no_qdisc(&e) => {
                return Err(format!("{interface}: {e}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(format!("{}: {e}", path.display())),
        _ => Ok(()),
    }
}

/// The kernel's words for an interface without `clsact`.
fn has_no_qdisc(error: &io::Error) -> bool {
    const EINVAL: i32 = 22;
    error.raw_os_error() == Some(EINVAL)
}

fn load(file: &[u8], maps: &Path) -> Result<Ebpf, String> {
    let mut programs = EbpfLoader::new()
        .btf(None)
        .map_pin_path(maps)
        .load(file)
        .map_err(chain)?;
    for (name, _) in DIRECTIONS {
        classifier(&mut programs, name)?.load().map_err(chain)?;
    }
    Ok(programs)
}

fn classifier<'a>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, String> {
    let program = programs
        .program_mut(name)
        .ok_or("the object file lacks a program")?;
    program.try_into().map_err(chain)
}

fn attach(interface: &str, programs: &mut Ebpf) -> Result<(), String> {
    match tc::qdisc_add_clsact(interface) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(format!("clsact: {e}")),
        _ => {}
    }
    for (name, direction) in DIRECTIONS {
        let program = classifier(programs, name)?;
        attach_one(interface, program, direction).map_err(chain)?;
    }
    Ok(())
}

/// Makes a filter, or replaces the program of the one that is there.
fn attach_one(
    interface: &str,
    program: &mut SchedClassifier,
    direction: TcAttachType,
) -> Result<(), ProgramError> {
    let options = TcAttachOptions::Netlink(NlOptions {
        priority: PRIORITY,
        handle: HANDLE,
    });
    let id = match program.attach_with_options(interface, direction, options) {
        Err(ProgramError::TcError(TcError::NetlinkError { io_error }))
            if io_error.kind() == ErrorKind::AlreadyExists =>
        {
            let link = SchedClassifierLink::attached(interface, direction, PRIORITY, HANDLE);
            program.attach_to_link(link.map_err(|io_error| TcError::NetlinkError { io_error })?)?
        }
        made => made?,
    };
    // The filter outlives this process.
    std::mem::forget(program.take_link(id)?);
    Ok(())
}

/// An error with its causes.
fn chain(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_path_removes_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs::create_dir(&state).unwrap();
        let other = dir.path().join("other.json");
        fs::write(&other, "{}").unwrap();
        let folders = Folders {
            maps: dir.path().join("maps"),
            state,
        };
        let error = folders.clear("../other").unwrap_err();
        assert_eq!(error, "../other: this is not the name of an interface");
        assert!(other.exists());
    }

    #[test]
    fn a_state_that_cannot_be_written_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Folders {
            maps: dir.path().join("maps"),
            state: dir.path().to_owned(),
        };
        let now = InForce {
            index: 1,
            policy: serde_json::from_str("{}").unwrap(),
        };
        let new = folders.prepare("eth0", &now).unwrap();
        fs::rename(&new, folders.state_of("eth0")).unwrap();
        // As a full disk, but at the first byte.
        std::os::unix::fs::symlink("/dev/full", &new).unwrap();
        let error = folders.prepare("eth0", &now).unwrap_err();
        assert!(
            error.ends_with("No space left on device (os error 28)"),
            "{error}"
        );
        assert!(new.symlink_metadata().is_err());
        assert_eq!(folders.read("eth0").unwrap().unwrap(), now);
    }
}
