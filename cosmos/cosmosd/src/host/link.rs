// SPDX-License-Identifier: Apache-2.0
//! A process guest's link to the Xen store. Files in xenstored's run directory stand for what a
//! hypervisor gives a domain (cosmos/noxen/README.md).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};
use xenstore::{Access, Perm};

use super::Domain;
use crate::base::error::{Error, Result};
use crate::base::files::remove_file;
use crate::store::{Change, Store};

/// Size of a store ring page, in bytes (xen/io/xs_wire.h).
const RING_BYTES: usize = 4096;

/// The guest's ends.
pub struct LinkFds {
    pub ring: OwnedFd,
    pub to_store: OwnedFd,
    pub from_store: OwnedFd,
}

/// The links of all guests.
pub struct Links {
    dir: PathBuf,
    store: Arc<dyn Store>,
}

impl Links {
    pub fn new(dir: PathBuf, store: Arc<dyn Store>) -> Self {
        Self { dir, store }
    }

    /// Makes the domain known to the store, with the keys every domain has.
    pub fn make(&self, domain: &Domain) -> Result<()> {
        let domid = domain.domid;
        self.remove(domain)?; // An earlier domain of this number may have died with its host.
        at(&self.ring(domid), make_ring)?;
        at(&self.event(domid), |path| {
            rustix::fs::mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).map_err(io::Error::from)
        })?;
        at(&self.ring(domid), |path| self.hand_over(path))?;
        at(&self.event(domid), |path| self.hand_over(path))?;
        self.store.introduce(domid)?;
        self.store.commit(&skeleton(domain))
    }

    /// Gives a file to the owner of the folder, as whom xenstored runs.
    fn hand_over(&self, path: &Path) -> io::Result<()> {
        let owner = std::fs::metadata(&self.dir)?;
        std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid()))
    }

    /// Opens the guest's ends.
    pub fn open(&self, domid: u16) -> Result<LinkFds> {
        let options = || OpenOptions::new().to_owned();
        // The folder is xenstored's: a link in it would name any file of cosmosd's.
        let nofollow = OFlags::NOFOLLOW.bits() as i32;
        let nonblock = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let ring = at(&self.ring(domid), |p| {
            options()
                .read(true)
                .write(true)
                .custom_flags(nofollow)
                .open(p)
        })?;
        let to_store = at(&self.dir.join("to-store"), |p| {
            options().write(true).custom_flags(nonblock).open(p)
        })?;
        let from_store = at(&self.event(domid), |p| {
            options().read(true).custom_flags(nonblock).open(p)
        })?;
        Ok(LinkFds {
            ring: ring.into(),
            to_store: to_store.into(),
            from_store: from_store.into(),
        })
    }

    /// Disconnects the domain and removes its keys and files, as far as they are there.
    pub fn remove(&self, domain: &Domain) -> Result<()> {
        // The store asks whether a domain exists by its ring: without it, releasing is final.
        at(&self.ring(domain.domid), remove_file)?;
        self.store.release(domain.domid)?;
        at(&self.event(domain.domid), remove_file)?;
        self.store.commit(&[
            Change::remove(format!("/local/domain/{}", domain.domid)),
            Change::remove(format!("/vm/{}", domain.uuid)),
        ])
    }

    fn ring(&self, domid: u16) -> PathBuf {
        self.dir.join(format!("dom{domid}.ring"))
    }

    fn event(&self, domid: u16) -> PathBuf {
        self.dir.join(format!("dom{domid}.event"))
    }
}

/// The keys libxl writes for a domain, with its permissions (libxl_create.c,
/// libxl__domain_make): the guest reads its directory, and owns `data` and what it reports in.
fn skeleton(domain: &Domain) -> Vec<Change> {
    let root = format!("/local/domain/{}", domain.domid);
    let vm = format!("/vm/{}", domain.uuid);
    let reads = [
        Perm::new(Access::None, 0),
        Perm::new(Access::Read, domain.domid),
    ];
    let owns = [Perm::new(Access::None, domain.domid)];
    let memory_kib = (u64::from(domain.memory_mib) * 1024).to_string();
    let node = |key: &str, value: &str| Change::write_as(format!("{root}/{key}"), value, &reads);
    vec![
        Change::remove(&root),
        Change::write_as(&root, "", &reads),
        Change::write_as(&vm, "", &reads),
        Change::write_as(format!("{vm}/uuid"), domain.uuid.as_str(), &reads),
        Change::write_as(format!("{vm}/name"), domain.name.as_str(), &reads),
        node("vm", &vm),
        node("name", &domain.name),
        node("domid", &domain.domid.to_string()),
        node("memory", ""),
        node("memory/static-max", &memory_kib),
        node("memory/target", &memory_kib),
        node("device", ""),
        node("control", ""),
        Change::write_as(format!("{root}/control/shutdown"), "", &owns),
        Change::write_as(format!("{root}/data"), "", &owns),
    ]
}

fn make_ring(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // Written: a page without a block would end xenstored by SIGBUS on a full disk.
    file.write_all(&[0; RING_BYTES])
}

fn at<T>(path: &Path, body: impl FnOnce(&Path) -> io::Result<T>) -> Result<T> {
    body(path).map_err(|e| match e.raw_os_error() {
        Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => Error::internal(
            path.display(),
            "no process listens at this FIFO; does xenstored run?",
        ),
        _ => Error::internal(path.display(), e),
    })
}

/// Opens the guests' root: an empty directory without write permission.
pub fn empty_root(state_dir: &Path) -> Result<File> {
    let dir = state_dir.join("root");
    let open = || -> io::Result<File> {
        std::fs::create_dir_all(&dir)?;
        std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o555))?;
        if std::fs::read_dir(&dir)?.next().is_some() {
            return Err(io::Error::other(
                "it must be empty: it is the root of every guest",
            ));
        }
        File::open(&dir)
    };
    open().map_err(|e| Error::internal(dir.display(), e))
}

#[cfg(test)]
mod as_root {
    use super::*;
    use crate::store::sim::SimStore;
    use crate::testing::domain;

    #[test]
    fn a_link_is_made_twice_and_removed_twice() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SimStore::default());
        let links = Links::new(dir.path().to_owned(), store.clone());
        let domain = domain(5);
        links.make(&domain).unwrap();
        links.make(&domain).unwrap();
        assert_eq!(
            std::fs::metadata(dir.path().join("dom5.ring"))
                .unwrap()
                .len(),
            4096
        );
        assert_eq!(store.introduced(), [5]);
        assert_eq!(store.perms("/local/domain/5/data"), "n5");
        assert_eq!(store.perms("/local/domain/5/memory/target"), "n0 r5");
        links.remove(&domain).unwrap();
        links.remove(&domain).unwrap();
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
        assert!(store.introduced().is_empty());
        assert!(store.keys().is_empty(), "{:?}", store.keys());
    }

    #[test]
    fn files_belong_to_xenstored_and_its_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(70_001), Some(70_002)).unwrap();
        let links = Links::new(dir.path().to_owned(), Arc::new(SimStore::default()));
        links.make(&domain(5)).unwrap();
        for name in ["dom5.ring", "dom5.event"] {
            let file = std::fs::metadata(dir.path().join(name)).unwrap();
            assert_eq!((file.uid(), file.gid()), (70_001, 70_002), "{name}");
        }
        let secret = tempfile::NamedTempFile::new().unwrap();
        let ring = dir.path().join("dom5.ring");
        std::fs::remove_file(&ring).unwrap();
        std::os::unix::fs::symlink(secret.path(), &ring).unwrap();
        let error = links.open(5).err().unwrap();
        assert!(error.message.contains("dom5.ring"), "{error}");
    }

    #[test]
    fn no_store_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let links = Links::new(dir.path().to_owned(), Arc::new(SimStore::default()));
        links.make(&domain(5)).unwrap();
        let error = links.open(5).err().unwrap();
        assert!(error.message.contains("to-store"), "{error}");
        rustix::fs::mkfifoat(CWD, dir.path().join("to-store"), Mode::RUSR).unwrap();
        let error = links.open(5).err().unwrap();
        assert!(error.message.contains("does xenstored run?"), "{error}");
    }

    #[test]
    fn the_root_must_be_empty() {
        let dir = tempfile::tempdir().unwrap();
        empty_root(dir.path()).unwrap();
        std::fs::write(dir.path().join("root/x"), "").unwrap();
        assert!(
            empty_root(dir.path())
                .unwrap_err()
                .message
                .contains("must be empty")
        );
    }
}
