// SPDX-License-Identifier: Apache-2.0
//! A host of its own for one test: the real xenstored, valed, cosmosd and guests, in a temporary
//! directory. Everything is stopped and removed when the [`Testbed`] is dropped.
//!
//! The testbed needs root, `NOXEN_PREFIX` (made by `cosmos/noxen/build.sh`) and the built binaries
//! of valed, cosmosd and clickos-process. If one is missing, the test fails and names the cure.
#![forbid(unsafe_code)]

pub mod cgroup;
mod daemon;
mod guest;
mod port;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use control_socket::{Client, ClientError};
use serde_json::{Value, json};
use tempfile::TempDir;
use vale_proto::ValeClient;

pub use daemon::Daemon;
pub use guest::{GuestSpec, VifSpec, uuid};
pub use port::TestPort;

/// The longest wait for anything in a test.
pub const PATIENCE: Duration = Duration::from_secs(50);
/// The uid with role nova, and the one with role agent.
pub const NOVA_UID: u32 = 64001;
pub const AGENT_UID: u32 = 64002;

/// Uids of one testbed: one for each domain id.
const UIDS: u32 = 0x8000;

/// See the crate.
pub struct Testbed {
    pub dir: TempDir,
    pub cosmosd: Daemon,
    pub valed: Daemon,
    xenstored: Daemon,
    engine: PathBuf,
    first_uid: u32,
}

impl Testbed {
    /// Brings everything up.
    pub fn start() -> Self {
        Self::with(None)
    }

    /// The same with a disk of its own for cosmosd's state, as tmpfs in a mount namespace of
    /// cosmosd: [`Self::state`] leads there. A restarted cosmosd has a new one.
    ///
    /// * `options`: of the mount, say `size=1m,nr_inodes=100`
    pub fn on_disk(options: &str) -> Self {
        Self::with(Some(options))
    }

    fn with(disk: Option<&str>) -> Self {
        assert!(rustix::process::geteuid().is_root(), "this test needs root");
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let readable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path(), readable).expect("the directory is ours");
        let engine = binary("clickos-process");
        let first_uid = own_uids();
        write_configs(dir.path(), &engine, first_uid);
        let xenstored = start_xenstored(dir.path());
        let valed = start(dir.path(), "valed");
        let cosmosd = match disk {
            None => start(dir.path(), "cosmosd"),
            Some(options) => start_on_disk(dir.path(), options),
        };
        Self {
            dir,
            cosmosd,
            valed,
            xenstored,
            engine,
            first_uid,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// cosmosd's folder of state, as cosmosd sees it.
    pub fn state(&self) -> PathBuf {
        let root = format!(
            "/proc/{}/root{}",
            self.cosmosd.pid(),
            self.path("state").display()
        );
        root.into()
    }

    /// cosmosd's socket.
    pub fn socket(&self) -> PathBuf {
        self.path("cosmosd.sock")
    }

    pub fn client(&self) -> Client {
        Client::connect(self.socket()).expect("cosmosd listens")
    }

    /// Calls a verb of cosmosd on a connection of its own.
    pub fn call(&self, verb: &str, args: Value) -> Result<Value, ClientError> {
        self.client().call(verb, args)
    }

    /// The error of a call that must fail, as `code: message`.
    pub fn refused(&self, verb: &str, args: Value) -> String {
        match self.call(verb, args) {
            Err(ClientError::Api(e)) => format!("{}: {}", e.code, e.message),
            other => panic!("{verb}: expected an error, got {other:?}"),
        }
    }

    /// SHA-256 of the engine, as cosmosd computes it.
    pub fn engine_sha256(&self) -> String {
        let host = self.call("host", json!({})).expect("host answers");
        host["engine_sha256"].as_str().expect("a string").to_owned()
    }

    pub fn engine(&self) -> &Path {
        &self.engine
    }

    /// Starts cosmosd again; one that still runs is killed first.
    pub fn restart_cosmosd(&mut self) {
        self.cosmosd.kill();
        self.cosmosd = start(self.dir.path(), "cosmosd");
    }

    /// Ends the store at once; it keeps everything in memory.
    pub fn kill_store(&mut self) {
        self.xenstored.kill();
    }

    /// Starts an empty store; one that still runs is killed first.
    pub fn restart_store(&mut self) {
        self.xenstored.kill();
        self.xenstored = start_xenstored(self.dir.path());
    }

    /// Starts the switch again; one that still runs is killed first.
    pub fn restart_vale(&mut self) {
        self.valed.kill();
        self.valed = start(self.dir.path(), "valed");
    }

    pub fn vale(&self) -> ValeClient {
        ValeClient::connect(self.path("valed.sock")).expect("valed listens")
    }

    /// dom0's view of the store.
    pub fn store(&self) -> xenstore::Client {
        xenstore::Client::connect(&self.path("xenstore/socket")).expect("xenstored listens")
    }

    /// Everything that is left of any guest, anywhere.
    pub fn remains(&self) -> Vec<String> {
        let mut left: Vec<String> = self
            .guest_processes()
            .iter()
            .map(|p| format!("process {p}"))
            .collect();
        let ports = self.vale().port_list(None).expect("valed answers");
        left.extend(
            ports
                .iter()
                .map(|p| format!("port {}:{}", p.switch, p.port)),
        );
        for folder in ["xenstore", "state/guests", "state/console"] {
            let entries = std::fs::read_dir(self.path(folder)).expect("the folder is there");
            let names = entries.map(|e| {
                e.expect("readable")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            });
            let of_guest = |name: &String| folder != "xenstore" || name.starts_with("dom");
            left.extend(
                names
                    .filter(of_guest)
                    .map(|name| format!("{folder}/{name}")),
            );
        }
        let groups = cgroup::groups(&cgroup_parent(self.first_uid));
        left.extend(
            groups
                .iter()
                .map(|group| format!("group {}", group.display())),
        );
        let mut store = self.store();
        for folder in ["/local/domain", "/vm"] {
            let names = store
                .directory_opt(xenstore::Tx::NONE, folder)
                .expect("the store answers");
            let of_guest = |name: &&String| *name != "0";
            left.extend(
                names
                    .iter()
                    .filter(of_guest)
                    .map(|name| format!("key {folder}/{name}")),
            );
        }
        left
    }

    /// The processes of this testbed's guests.
    pub fn guest_processes(&self) -> Vec<i32> {
        let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let range = self.first_uid..self.first_uid + UIDS;
        pids.filter(|pid| uid_of(*pid).is_some_and(|uid| range.contains(&uid)))
            .collect()
    }

    /// The uid's process, if a guest of this domain id runs.
    pub fn guest_pid(&self, domid: u64) -> Option<i32> {
        let uid = self.first_uid + u32::try_from(domid).expect("a domain id");
        self.guest_processes()
            .into_iter()
            .find(|pid| uid_of(*pid) == Some(uid))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["cosmosd", "valed", "xenstored"] {
                let log = std::fs::read_to_string(self.path(&format!("{name}.log")));
                eprintln!("--- {name}\n{}", log.unwrap_or_default());
            }
        }
        // Guests outlive cosmosd: they are killed by the uid range of this test's daemon.
        self.cosmosd.stop();
        for pid in self.guest_processes() {
            kill(pid, rustix::process::Signal::KILL);
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.guest_processes().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        cgroup::remove(&cgroup_parent(self.first_uid));
        self.valed.stop();
        self.xenstored.kill(); // It does not listen to SIGTERM, and keeps nothing.
    }
}

/// Polls until `done` gives something.
pub fn eventually<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A built binary next to the running test.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its path");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("target/<profile>/deps/<test>");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: run cargo build -p {name} first",
        path.display()
    );
    path
}

/// Sends a signal to one process.
pub fn kill(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    let _ = rustix::process::kill_process(pid, signal);
}

fn cgroup_parent(first_uid: u32) -> String {
    format!("{}/{first_uid}", cgroup::PARENT)
}

fn write_configs(dir: &Path, engine: &Path, first_uid: u32) {
    let place = dir.display();
    let valed =
        format!("socket = \"{place}/valed.sock\"\nxenstore = \"{place}/xenstore/socket\"\n");
    let cosmosd = format!(
        "socket = \"{place}/cosmosd.sock\"\nstate_dir = \"{place}/state\"\n\
         valed_socket = \"{place}/valed.sock\"\nxenstore_dir = \"{place}/xenstore\"\n\
         host_kind = \"process\"\nmemory_mib = 256\nmax_guests = 16\n\
         process = {{ engine = \"{}\", first_uid = {first_uid}, cgroup = \"{}\" }}\n\
         [roles]\nnova = [{NOVA_UID}]\nagent = [{AGENT_UID}]\n",
        engine.display(),
        cgroup_parent(first_uid)
    );
    std::fs::write(dir.join("valed.toml"), valed).expect("the directory is ours");
    std::fs::write(dir.join("cosmosd.toml"), cosmosd).expect("the directory is ours");
}

fn start(dir: &Path, name: &str) -> Daemon {
    let config = dir.join(format!("{name}.toml"));
    let mut command = std::process::Command::new(binary(name));
    command.arg("--config").arg(config);
    Daemon::start(command, name, dir, &dir.join(format!("{name}.sock")))
}

fn start_on_disk(dir: &Path, options: &str) -> Daemon {
    const SCRIPT: &str =
        r#"mkdir -p "$0" && mount -t tmpfs -o "$1" state "$0" && shift && exec "$@""#;
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT]);
    command.arg(dir.join("state")).arg(options);
    command.arg(binary("cosmosd")).arg("--config");
    command.arg(dir.join("cosmosd.toml"));
    Daemon::start(command, "cosmosd", dir, &dir.join("cosmosd.sock"))
}

fn start_xenstored(dir: &Path) -> Daemon {
    let prefix = std::env::var("NOXEN_PREFIX")
        .expect("NOXEN_PREFIX is not set: run cosmos/noxen/build.sh PREFIX and set it to PREFIX");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../noxen/xenstored.sh");
    let run = dir.join("xenstore");
    let mut command = std::process::Command::new(script);
    command.arg(prefix).arg(&run);
    Daemon::start(command, "xenstored", dir, &run.join("socket"))
}

/// The first of a range of uids that no other testbed of this machine has. The testbed finds and
/// kills its guests by their uids.
fn own_uids() -> u32 {
    static TESTBEDS: AtomicU32 = AtomicU32::new(0);
    let n = std::process::id().wrapping_mul(16) + TESTBEDS.fetch_add(1, Ordering::Relaxed);
    1_000_000 + (n & 0xffff) * UIDS
}

/// The uid of a process, unless it has ended and only waits to be reaped by its parent.
fn uid_of(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| status.lines().find(|line| line.starts_with(name));
    if field("State:").is_some_and(|line| line.contains("Z (zombie)")) {
        return None;
    }
    field("Uid:")?.split_whitespace().nth(1)?.parse().ok()
}
