// SPDX-License-Identifier: Apache-2.0
//! The toolstack daemon: makes guests, watches them, and talks with them over the Xen store.
//! Its interface is docs/interfaces.md, "cosmosd".
#![forbid(unsafe_code)]

mod build_slots;
mod changes;
mod clock;
mod config;
mod control;
mod devices;
mod error;
#[cfg(test)]
mod faults;
mod files;
mod guest;
mod health;
mod host;
mod images;
mod ledger;
mod ledgers;
mod lifecycle;
mod loops;
mod migration;
mod offload;
mod pool;
mod record;
mod saved;
mod service;
mod silent;
mod spec;
mod state_files;
mod state_room;
mod steps;
mod store;
mod switch;
#[cfg(test)]
mod testing;
mod text;
mod toolstack;
mod uplinks;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use clap::Parser;
use control_socket::daemon::{Termination, load_config, log_to_stderr, raise_descriptor_limit};
use control_socket::{EventHub, Limits, Server};
use log::{LevelFilter, error, info};
use vale_proto::Kind;

use crate::build_slots::BuildSlots;
use crate::config::{Config, HostKind};
use crate::files::make_private_dir;
use crate::guest::{Capacity, Table};
use crate::health::Health;
use crate::host::{Death, Host, Links, ProcessHost};
use crate::ledgers::Ledgers;
use crate::loops::Loops;
use crate::pool::Pool;
use crate::record::Records;
use crate::saved::Saved;
use crate::state_room::StateRoom;
use crate::store::{Store, Watchers, XenStore};
use crate::switch::Valed;
use crate::toolstack::{Toolstack, announce_states};

/// The toolstack daemon of ClickOS.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Configuration file (TOML)
    #[arg(long)]
    config: PathBuf,
    /// Check the configuration and the files that it names, and end; start and change nothing
    #[arg(long)]
    check_config: bool,
    /// Least level of log lines: error, warn, info, debug or trace
    #[arg(long, default_value = "info")]
    log_level: LevelFilter,
}

fn main() -> ExitCode {
    let options = Options::parse();
    log_to_stderr(options.log_level);
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            error!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let config: Config = load_config(&options.config)?;
    let named = |e| format!("{}: {e}", options.config.display());
    config.check().map_err(named)?;
    if options.check_config {
        config.check_files().map_err(named)?;
        println!("{}: ok", options.config.display());
        return Ok(());
    }
    let termination = Termination::catch().map_err(|e| format!("signals: {e}"))?;
    raise_descriptor_limit();
    // Bound first: a second daemon on the same state stops here.
    let limits = Limits {
        connections: 512,
        connections_per_uid: 384,
        ..Limits::default()
    };
    let server = Server::bind(&config.socket, config.roles.clone())
        .map_err(|e| e.to_string())?
        .with_limits(limits);
    let (toolstack, deaths) = build(&config).map_err(|e| e.to_string())?;
    toolstack.recover().map_err(|e| e.to_string())?;
    start_threads(&toolstack, deaths, &config);
    let stopper = server.stopper();
    spawn("signals", move || {
        termination.wait();
        info!("terminated; the guests go on");
        stopper.stop();
    });
    info!("listening on {}", config.socket.display());
    server.serve(toolstack).map_err(|e| e.to_string())
}

fn build(config: &Config) -> error::Result<(Arc<Toolstack>, Receiver<Death>)> {
    make_private_dir(&config.state_dir)?;
    let (death_sender, deaths) = channel();
    let xenstored = Arc::new(XenStore::new(config.xenstore_dir.join("socket")));
    let store: Arc<dyn Store> = xenstored.clone();
    let capacity = Capacity {
        memory_mib: config.memory_mib,
        guests: config.max_guests,
    };
    let host = host(config, &store, death_sender)?;
    let (first_domid, is_used) = host.domids();
    let table = Arc::new(Table::new(capacity, first_domid, is_used));
    let events = Arc::new(EventHub::default());
    let announce = {
        let (table, store, events) = (Arc::clone(&table), Arc::clone(&store), Arc::clone(&events));
        move |domid, routers| announce_states(&table, &*store, &events, domid, routers)
    };
    let room = Arc::new(StateRoom::open(folders(config))?);
    let turns = BuildSlots::new(host.builds_at_once());
    let toolstack = Arc::new(Toolstack {
        host,
        turns,
        store,
        switch: Box::new(Valed::new(config.valed_socket.clone(), port_kind(config))),
        records: Records::open(&config.state_dir, &room)?,
        ledgers: Ledgers::open(&config.state_dir, &room)?,
        table,
        watchers: Arc::new(Watchers::new(Box::new(announce))),
        health: Health::new(Arc::clone(&events)),
        events,
        pool: Pool::new(config.shelves()),
        saved: Saved::open(&config.state_dir)?,
        room,
        started: Instant::now(),
    });
    let told = Arc::downgrade(&toolstack);
    xenstored.on_new(move || {
        if let Some(toolstack) = told.upgrade() {
            toolstack.note_new_store();
        }
    });
    Ok((toolstack, deaths))
}

/// The folders where a guest has files, with their names for people.
fn folders(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let (name, other) = match config.host_kind {
        HostKind::Process => ("xenstore_dir", config.xenstore_dir.clone()),
        HostKind::Xen => ("libxl", PathBuf::from(LIBXL_DIR)),
    };
    let mut folders = vec![(state_room::PART, config.state_dir.clone())];
    folders.extend(other.is_dir().then_some((name, other)));
    folders
}

/// The kind of the guests' ports at the switch.
fn port_kind(config: &Config) -> Kind {
    match config.host_kind {
        HostKind::Process => Kind::Process,
        HostKind::Xen => Kind::Xen,
    }
}

/// The folder where libxl keeps the configuration of each domain.
const LIBXL_DIR: &str = "/var/lib/xen";
const CHECKED: &str = "the configuration was checked";

fn host(
    config: &Config,
    store: &Arc<dyn Store>,
    deaths: Sender<Death>,
) -> error::Result<Box<dyn Host>> {
    match config.host_kind {
        HostKind::Process => {
            let links = Links::new(config.xenstore_dir.clone(), Arc::clone(store));
            let process = config.process.as_ref().expect(CHECKED);
            let host = ProcessHost::new(process, &config.state_dir, links, deaths)?;
            Ok(Box::new(host))
        }
        #[cfg(feature = "xen")]
        HostKind::Xen => {
            let xen = config.xen.as_ref().expect(CHECKED);
            let host = host::XenHost::new(xen, &config.state_dir, deaths)?;
            Ok(Box::new(host))
        }
        #[cfg(not(feature = "xen"))]
        HostKind::Xen => unreachable!("{CHECKED}"),
    }
}

fn start_threads(toolstack: &Arc<Toolstack>, deaths: Receiver<Death>, config: &Config) {
    let watching = Arc::clone(toolstack);
    let socket = config.xenstore_dir.join("socket");
    spawn("store", move || {
        let report = |fault: Option<String>| {
            if let Some(reason) = &fault {
                watching.lose_store(&format!("{}: {reason}", socket.display()));
            }
            watching.health.report("xenstored", fault);
        };
        store::watch(&socket, &watching.watchers, report)
    });
    let (watching, kind) = (Arc::clone(toolstack), port_kind(config));
    let valed = Valed::new(config.valed_socket.clone(), kind);
    spawn("switch", move || {
        let loops = Loops::new(Arc::clone(&watching.events));
        let report = |fault: Option<String>| {
            if fault.is_none() {
                watching.rejoin();
            }
            watching.health.report("valed", fault);
        };
        valed.follow(report, loops)
    });
    if toolstack.pool.is_wanted() || !toolstack.table.pooled().is_empty() {
        let toolstack = Arc::clone(toolstack);
        spawn("pool", move || toolstack.keep_pool());
    }
    let moving = Arc::clone(toolstack);
    spawn("moves", move || moving.forget_client(guest::FORMER));
    let offloading = Arc::clone(toolstack);
    spawn("offloads", move || offloading.keep_offloads());
    let linking = Arc::clone(toolstack);
    spawn("links", move || linking.keep_links());
    let looking = Arc::clone(toolstack);
    spawn("looks", move || looking.keep_looking());
    let watching = Arc::clone(toolstack);
    spawn("state", move || {
        let report = |fault| watching.health.report(state_room::PART, fault);
        watching.room.follow(report)
    });
    let retrying = Arc::clone(toolstack);
    spawn("retry", move || retrying.keep_retrying());
    let toolstack = Arc::clone(toolstack);
    spawn("deaths", move || toolstack.watch_deaths(deaths));
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into());
    thread
        .spawn(body)
        .expect("a daemon that cannot start its first threads has no use");
}
