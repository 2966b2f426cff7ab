// SPDX-License-Identifier: Apache-2.0
//! The control groups of a testbed's guests, as the kernel shows them.
use std::fs;
use std::path::{Path, PathBuf};

/// Where hierarchies are mounted, on every system since 2013.
const ROOT: &str = "/sys/fs/cgroup";
/// The parent of the groups of all testbeds.
pub const PARENT: &str = "clickos-test";

/// The group a process is in, for a controller of version 1 or in version 2.
///
/// # Panics
/// If it is in none.
pub fn group_of(pid: i32, controller: &str) -> PathBuf {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("the process runs");
    let line = text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        let folder = names.split(',').any(|name| name == controller);
        folder.then(|| (names.to_owned(), path.to_owned()))
    });
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    match line {
        Some((names, path)) => Path::new(ROOT).join(names).join(&path[1..]),
        None => Path::new(ROOT).join(&unified.expect("a hierarchy")[1..]),
    }
}

/// The first of these files that a group has.
pub fn read(group: &Path, files: &[&str]) -> String {
    let path = files
        .iter()
        .map(|file| group.join(file))
        .find(|p| p.exists());
    let path = path.expect("the controller is there");
    fs::read_to_string(path)
        .expect("it can be read")
        .trim()
        .to_owned()
}

/// The groups below a parent, in all hierarchies.
pub fn groups(parent: &str) -> Vec<PathBuf> {
    let children = |dir: PathBuf| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    };
    parents(parent)
        .into_iter()
        .flat_map(children)
        .map(|entry| entry.path())
        .collect()
}

/// Removes a parent and its groups; the processes in them have ended.
pub fn remove(parent: &str) {
    for group in groups(parent).into_iter().chain(parents(parent)) {
        let _ = fs::remove_dir(group);
    }
}

fn parents(parent: &str) -> Vec<PathBuf> {
    let hierarchies = fs::read_dir(ROOT).into_iter().flatten().flatten();
    std::iter::once(PathBuf::from(ROOT))
        .chain(hierarchies.map(|entry| entry.path()))
        .map(|root| root.join(parent))
        .filter(|path| path.is_dir())
        .collect()
}

/// Moves a process into a group with the greatest weight, as a host does with valed.
pub fn prefer(pid: i32) {
    let own = group_of(pid, "cpu");
    let root = own
        .ancestors()
        .find(|path| path.parent() == Some(Path::new(ROOT)));
    let root = root.filter(|path| path.join("cpu.shares").exists() || is_v1(path));
    let root = root.map_or(PathBuf::from(ROOT), Path::to_path_buf);
    let group = root.join(format!("{PARENT}-preferred"));
    let _ = fs::create_dir(&group);
    for (file, weight) in [("cpu.weight", "10000"), ("cpu.shares", "262144")] {
        if group.join(file).exists() {
            fs::write(group.join(file), weight).expect("the weight can be set");
        }
    }
    fs::write(group.join("cgroup.procs"), pid.to_string()).expect("the process can be moved");
}

fn is_v1(path: &Path) -> bool {
    path.join("cgroup.sane_behavior").exists()
}
