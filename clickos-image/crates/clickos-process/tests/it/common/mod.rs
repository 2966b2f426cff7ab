// SPDX-License-Identifier: Apache-2.0
//! A process host in small: the real xenstored behind the shim, and the toolstack's part.

pub mod guest;
pub mod hostile;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xenstore::page::MappedPage;
use xenstore::{Access, Client, Error, Notify, Perm, Request, RingClient, Tx};

/// How long anything may take that the tests wait for.
pub const PATIENCE: Duration = Duration::from_secs(50);

/// Waits for a condition.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A store of its own for a test.
pub struct Host {
    daemon: Child,
    pub dir: tempfile::TempDir,
    pub client: Client,
}

impl Host {
    pub fn new() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "these tests have to be run by root"
        );
        let prefix = std::env::var("NOXEN_PREFIX").expect(
            "NOXEN_PREFIX is not set: run cosmos/noxen/build.sh PREFIX and set it to PREFIX",
        );
        let dir = tempfile::tempdir().unwrap();
        let (daemon, client) = Start::run(&prefix, dir.path());
        Self {
            daemon,
            dir,
            client,
        }
    }

    /// Ends the store as a crash would, and starts an empty one.
    pub fn restart_store(&mut self) {
        self.kill_store();
        let prefix = std::env::var("NOXEN_PREFIX").unwrap();
        (self.daemon, self.client) = Start::run(&prefix, self.dir.path());
    }

    /// Makes a domain known to a store that lost it; gives the ends of its new link.
    pub fn relink(&mut self, domid: u16) -> [File; 3] {
        for what in ["ring", "event"] {
            std::fs::remove_file(self.path(&format!("dom{domid}.{what}"))).unwrap();
        }
        self.make_domain(domid);
        let link = self.link(domid);
        for fifo in &link[1..] {
            rustix::fs::fcntl_setfl(fifo, rustix::fs::OFlags::NONBLOCK).unwrap();
        }
        link
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a domain as a toolstack does, with libxl's permissions.
    pub fn make_domain(&mut self, domid: u16) {
        File::create_new(self.path(&format!("dom{domid}.ring")))
            .unwrap()
            .set_len(4096)
            .unwrap();
        let fifo = self.path(&format!("dom{domid}.event"));
        rustix::fs::mkfifoat(rustix::fs::CWD, fifo, rustix::fs::Mode::RWXU).unwrap();
        self.client.introduce(domid, 1, 1).unwrap();
        let home = format!("/local/domain/{domid}");
        let reads = [Perm::new(Access::None, 0), Perm::new(Access::Read, domid)];
        let make = |client: &mut Client| {
            client.transaction(|tx| {
                tx.write(&home, b"")?;
                tx.set_perms(&home, &reads)?;
                tx.write(&format!("{home}/name"), b"guest")?;
                tx.write(&format!("{home}/data"), b"")?;
                tx.set_perms(&format!("{home}/data"), &[Perm::new(Access::None, domid)])
            })
        };
        make(&mut self.client).unwrap();
    }

    /// Ends a domain as a toolstack does.
    pub fn destroy_domain(&mut self, domid: u16) {
        std::fs::remove_file(self.path(&format!("dom{domid}.ring"))).unwrap();
        self.client.release(domid).unwrap();
        std::fs::remove_file(self.path(&format!("dom{domid}.event"))).unwrap();
        self.client
            .rm(Tx::NONE, &format!("/local/domain/{domid}"))
            .unwrap();
    }

    /// The descriptors of a domain's link: ring, to the store, from the store.
    pub fn link(&self, domid: u16) -> [File; 3] {
        let mut options = File::options();
        let ring = options
            .read(true)
            .write(true)
            .open(self.path(&format!("dom{domid}.ring")));
        let to_store = File::options().write(true).open(self.path("to-store"));
        // The store holds the FIFO open already, so this does not wait for a writer.
        let from_store = File::open(self.path(&format!("dom{domid}.event")));
        [ring.unwrap(), to_store.unwrap(), from_store.unwrap()]
    }

    /// Reads text as dom0.
    pub fn text(&mut self, path: &str) -> Option<String> {
        let value = self.client.read_opt(Tx::NONE, path).unwrap()?;
        Some(String::from_utf8(value).unwrap())
    }

    /// Ends the store as a crash would.
    pub fn kill_store(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    /// Waits until `look` finds something; looks again after each change below /local/domain.
    pub fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&mut Client) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(found) = look(&mut self.client) {
                return found;
            }
            let event = self.client.wait_event(Duration::from_millis(200));
            assert!(matches!(event, Ok(_) | Err(Error::EventsLost)), "{event:?}");
        }
        panic!("{what}: nothing after {PATIENCE:?}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Kills the daemon when the connection cannot be made.
struct Start {
    daemon: Option<Child>,
}

impl Start {
    /// The store's process, and a client that watches all domains.
    fn run(prefix: &str, dir: &Path) -> (Child, Client) {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../cosmos/noxen/xenstored.sh");
        let daemon = Command::new(script)
            .args([Path::new(prefix), dir])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut start = Self {
            daemon: Some(daemon),
        };
        let mut client = start.connect(&dir.join("socket"));
        client.watch("/local/domain", "test").unwrap();
        (start.daemon.take().unwrap(), client)
    }

    fn connect(&mut self, socket: &Path) -> Client {
        let end = Instant::now() + PATIENCE;
        loop {
            let daemon = self.daemon.as_mut().unwrap();
            if let Some(status) = daemon.try_wait().unwrap() {
                panic!("xenstored.sh ended: {status}");
            }
            match Client::connect(socket) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// A domain played by the test itself, over its ring.
pub struct Domain {
    pub client: RingClient<MappedPage, Fifo>,
    pub ring: File,
}

pub struct Fifo(File);

impl Notify for Fifo {
    fn notify(&mut self) {
        use std::io::Write;
        self.0.write_all(&[1]).unwrap();
    }
}

impl Domain {
    pub fn new(host: &mut Host, domid: u16) -> Self {
        host.make_domain(domid);
        let [ring, to_store, _] = host.link(domid);
        let page = MappedPage::map(&ring).unwrap();
        Self {
            client: RingClient::new(page, Fifo(to_store)),
            ring,
        }
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, request: &Request) -> Result<Vec<u8>, Error> {
        self.client.submit(request)?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            self.client.pump();
            if let Some(reply) = self.client.poll_reply() {
                return reply;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        panic!("{}: the store does not answer", request.path());
    }

    pub fn read(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        self.call(&Request::read(Tx::NONE, path).unwrap())
    }

    pub fn write(&mut self, path: &str, value: &[u8]) -> Result<Vec<u8>, Error> {
        self.call(&Request::write(Tx::NONE, path, value).unwrap())
    }

    /// All watch events that are there after a round trip.
    pub fn events(&mut self) -> Vec<String> {
        self.read("name").unwrap();
        std::iter::from_fn(|| self.client.poll_event().unwrap().map(|e| e.path)).collect()
    }
}
