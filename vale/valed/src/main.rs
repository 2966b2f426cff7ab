// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
#![forbid(unsafe_code)]
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use control_socket::daemon::{Termination, load_config, log_to_stderr, raise_descriptor_limit};
use control_socket::{Roles, Server};
use log::{LevelFilter, error, info};
use ring::layout::MAX_VERSION;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Deserialize;
use valed::control::{Control, TOOLSTACK, keep};
use valed::device::capture::CaptureDir;
use valed::device::host_resources::HostResources;
use valed::device::region_registry::RegionRegistry;
use valed::far_ends;
use valed::forwarder::Forwarder;
use valed::kept::Kept;
use valed::metrics::{self, Loopback};
use valed::workers::{self, Handle, MAX_WORKERS};
use valed::xen::Xen;

/// The dom0 packet switch.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: valed --config /etc/clickos/valed.toml"
)]
struct Arguments {
    /// Configuration file (TOML): `socket`, uids per role in `[roles]`, and `xenstore` (its socket, in a driver domain /dev/xen/xenbus) on a Xen host.
    #[arg(long)]
    config: PathBuf,
    /// Checks the configuration and ends; starts and changes nothing.
    #[arg(long)]
    check_config: bool,
    /// off, error, warn, info, debug or trace.
    #[arg(long, default_value = "info")]
    log_level: LevelFilter,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    socket: PathBuf,
    /// xenstored's socket, for ports of Xen guests; in a driver domain `/dev/xen/xenbus`.
    xenstore: Option<PathBuf>,
    /// The highest version of rings. With 1 no guest uses its rings' buffers as its packets, and so none
    /// trusts valed for their bytes; a Xen guest has one queue.
    #[serde(default)]
    max_ring_version: RingVersion,
    /// As `max_ring_version = 1`: its name before 1.0, for one more release.
    #[serde(default)]
    copying_rings: bool,
    /// The directory for files of mirrors and ports; without it they are refused.
    capture_dir: Option<PathBuf>,
    /// MiB that its files may have together.
    #[serde(default = "capture_mib")]
    capture_mib: u32,
    /// The directory for an operator's requests, which are repeated at the start; systemd's by default.
    /// Without one they are not kept.
    state_dir: Option<PathBuf>,
    /// The loopback address for Prometheus; without it there is no endpoint.
    metrics: Option<Loopback>,
    /// Forwarding threads.
    #[serde(default)]
    workers: Workers,
    /// Busy ports move between workers by themselves.
    #[serde(default = "yes")]
    balance: bool,
    /// The processor of each worker; none for any processors.
    #[serde(default)]
    cpus: Vec<usize>,
    #[serde(default)]
    roles: Roles,
}

fn capture_mib() -> u32 {
    1024
}

fn yes() -> bool {
    true
}

/// A number of forwarding threads.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "usize")]
struct Workers(usize);

impl Default for Workers {
    fn default() -> Self {
        Self(1)
    }
}

impl TryFrom<usize> for Workers {
    type Error = String;

    fn try_from(count: usize) -> Result<Self, String> {
        match count {
            1..=MAX_WORKERS => Ok(Self(count)),
            _ => Err(format!("workers: {count} is outside 1..={MAX_WORKERS}")),
        }
    }
}

/// A version of rings.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u32")]
struct RingVersion(u32);

impl Default for RingVersion {
    fn default() -> Self {
        Self(MAX_VERSION)
    }
}

impl TryFrom<u32> for RingVersion {
    type Error = String;

    fn try_from(version: u32) -> Result<Self, String> {
        match version {
            1..=MAX_VERSION => Ok(Self(version)),
            _ => Err(format!(
                "max_ring_version: {version} is outside 1..={MAX_VERSION}"
            )),
        }
    }
}

impl Config {
    /// The highest version of rings, by either name of the option.
    fn max_ring_version(&self) -> u32 {
        match self.copying_rings {
            true => 1,
            false => self.max_ring_version.0,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.log_level);
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            error!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let config: Config = load_config(&arguments.config)?;
    let named = |e: String| format!("{}: {e}", arguments.config.display());
    config.roles.check(&[TOOLSTACK]).map_err(named)?;
    let cpus = cpus(&config).map_err(named)?;
    if arguments.check_config {
        println!("{}: ok", arguments.config.display());
        return Ok(());
    }
    let text = |e: std::io::Error| e.to_string();
    let termination = Termination::catch().map_err(text)?;
    raise_descriptor_limit();
    log_ring_pages();
    let regions = Arc::new(RegionRegistry::new(config.max_ring_version()));
    let (workers, handle) =
        workers::make(config.workers.0, workers::Waits::default()).map_err(text)?;
    let server = Server::bind(&config.socket, config.roles).map_err(text)?;
    let stopper = server.stopper();
    let store = config.xenstore.as_deref();
    let kept = Arc::new(Kept::open(config.state_dir.or_else(state_of_systemd)));
    let xen = store.map(|socket| Xen::start(socket, handle.clone(), Arc::clone(&regions)));
    let capture_bytes = u64::from(config.capture_mib) << 20;
    let capture_dir = config.capture_dir;
    let capture_dir = capture_dir.map(|path| CaptureDir::new(path, capture_bytes));
    let control = Arc::new(Control {
        forwarder: handle.clone(),
        xen: xen.transpose().map_err(text)?,
        resources: HostResources {
            capture_dir,
            regions,
            ..HostResources::default()
        },
        kept: Arc::clone(&kept),
        far_ends: far_ends::start(handle.clone()).map_err(text)?,
    });
    keep::start(Arc::clone(&control)).map_err(text)?;
    if let Some(address) = config.metrics {
        metrics::serve(address, handle.clone(), kept).map_err(|e| format!("metrics: {e}"))?;
    }
    if config.balance && config.workers.0 > 1 {
        workers::balance::start(handle.clone()).map_err(text)?;
    }
    let (stopping, stop) = (handle.clone(), handle.clone());
    info!("listening on {}", config.socket.display());
    let serving = std::thread::spawn(move || {
        if let Err(e) = server.serve(control) {
            error!("control socket: {e}");
        }
        handle.stop();
    });
    std::thread::spawn(move || {
        termination.wait();
        stopping.stop();
    });
    let result = forward(workers, &cpus, &stop);
    stopper.stop();
    let _ = serving.join();
    info!("stopped");
    result
}

/// The state directory of the unit, also for a configuration of an older valed.
fn state_of_systemd() -> Option<PathBuf> {
    first_path(&std::env::var_os("STATE_DIRECTORY")?)
}

/// The first of the directories that systemd.exec(5) joins with colons.
fn first_path(list: &OsStr) -> Option<PathBuf> {
    let first = std::env::split_paths(list).next()?;
    (!first.as_os_str().is_empty()).then_some(first)
}

/// The kernel's choice of pages for shared memory; brackets mark it.
const SHARED_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Logs which pages the rings of process guests get. Each mapping asks for large ones.
fn log_ring_pages() {
    let text = std::fs::read_to_string(SHARED_PAGES).unwrap_or_default();
    let mode = text.split(['[', ']']).nth(1).unwrap_or("missing");
    let pages = match mode {
        "never" | "deny" | "missing" => "small",
        _ => "large",
    };
    info!("rings of process guests get {pages} pages: {SHARED_PAGES} is {mode}");
}

/// The processors of the workers, if the configuration names some.
fn cpus(config: &Config) -> Result<Vec<CpuSet>, String> {
    let (Workers(workers), cpus) = (config.workers, &config.cpus);
    if !cpus.is_empty() && cpus.len() != workers {
        let given = cpus.len();
        return Err(format!("cpus: {given} given for {workers} workers"));
    }
    let set = |cpu: &usize| {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(format!("cpus: {cpu} is above {}", CpuSet::MAX_CPU - 1));
        }
        let mut set = CpuSet::new();
        set.set(*cpu);
        Ok(set)
    };
    cpus.iter().map(set).collect()
}

/// Ends all workers with the first one, also with one that panics.
struct StopAll(Handle);

impl Drop for StopAll {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs all workers until valed stops or one of them fails, which ends the others.
fn forward(workers: Vec<Forwarder>, cpus: &[CpuSet], stop: &Handle) -> Result<(), String> {
    let start = |(n, mut worker): (usize, Forwarder)| {
        let (cpu, stop) = (cpus.get(n).copied(), stop.clone());
        let run = move || {
            let _all_end = StopAll(stop);
            let pinned = cpu.map_or(Ok(()), |cpu| sched_setaffinity(None, &cpu));
            let failed = |e| format!("worker {n}: cpus: {e}");
            let result = pinned
                .map_err(failed)
                .and_then(|()| worker.run().map_err(|e| format!("worker {n}: {e}")));
            // Control threads may wait for an answer that no longer comes.
            drop(worker);
            result
        };
        let thread = std::thread::Builder::new().name(format!("worker-{n}"));
        thread.spawn(run).map_err(|e| e.to_string())
    };
    let threads: Result<Vec<_>, _> = workers.into_iter().enumerate().map(start).collect();
    let ended = threads?.into_iter().map(|thread| {
        let result = thread.join();
        result.unwrap_or_else(|_| Err("a worker has panicked".to_owned()))
    });
    ended.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_highest_ring_version_has_an_earlier_name() {
        for (key, value, version) in [
            ("max_ring_version", json!(1), Some(1)),
            ("max_ring_version", json!(2), Some(2)),
            ("max_ring_version", json!(0), None),
            ("max_ring_version", json!(3), None),
            ("copying_rings", json!(true), Some(1)),
            ("copying_rings", json!(false), Some(2)),
        ] {
            let config = serde_json::from_value::<Config>(json!({"socket": "s", key: value}));
            let found = config.ok().map(|config| config.max_ring_version());
            assert_eq!(found, version, "{key} = {value}");
        }
    }

    #[test]
    fn the_first_of_a_units_state_directories_is_kept_in() {
        let of = |list: &str| first_path(OsStr::new(list));
        assert_eq!(of("/a/b:/a/b/captures"), Some("/a/b".into()));
        assert_eq!(of("/a/b"), Some("/a/b".into()));
        assert_eq!(of(""), None);
    }
}
