// SPDX-License-Identifier: Apache-2.0
//! The toolstack daemon: makes guests, watches them, and talks with them over the Xen store.
//! Its interface is docs/interfaces.md, "cosmosd".
#![forbid(unsafe_code)]

mod base;
mod changes;
mod config;
mod control;
mod disk;
mod guest;
mod health;
mod host;
mod images;
mod lifecycle;
mod offload;
mod pool;
mod preconnected;
mod report;
mod routers;
mod service;
mod site;
mod spec;
mod state;
mod store;
mod switch;
#[cfg(test)]
mod testing;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Instant;

use clap::Parser;
use control_socket::daemon::{Termination, load_config, log_to_stderr, raise_descriptor_limit};
use control_socket::{EventHub, Limits, Server};
use log::{LevelFilter, error, info};
use vale_proto::Kind;

use crate::base::files::make_private_dir;
use crate::config::{Config, HostKind};
use crate::disk::Disk;
use crate::guest::{Capacity, Table};
use crate::health::Health;
use crate::host::{Death, Host, Links, ProcessHost};
use crate::lifecycle::{Maker, beside, destroy, migration, recover, rejoin, relink, retry};
use crate::pool::Pool;
use crate::service::Daemon;
use crate::site::Site;
use crate::store::{Store, Watchers, XenStore};
use crate::switch::Valed;
use crate::switch::loops::Loops;

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
    let (daemon, deaths) = build(&config).map_err(|e| e.to_string())?;
    recover::recover(&daemon.site).map_err(|e| e.to_string())?;
    start_threads(&daemon, deaths, &config);
    let stopper = server.stopper();
    spawn("signals", move || {
        termination.wait();
        info!("terminated; guests continue");
        stopper.stop();
    });
    info!("listening on {}", config.socket.display());
    server.serve(daemon).map_err(|e| e.to_string())
}

fn build(config: &Config) -> base::error::Result<(Arc<Daemon>, Receiver<Death>)> {
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
    let events = Arc::new(EventHub::default());
    let disk = Disk::open(&config.state_dir, other_folders(config))?;
    let site = Arc::new_cyclic(|site: &Weak<Site>| Site {
        host,
        store,
        switch: Box::new(Valed::new(config.valed_socket.clone(), port_kind(config))),
        disk,
        table: Table::new(capacity, first_domid, is_used),
        watchers: Arc::new(Watchers::new(Box::new(announcer(site)))),
        health: Health::new(Arc::clone(&events)),
        events,
    });
    let told = Arc::downgrade(&site);
    xenstored.on_new(move || {
        if let Some(site) = told.upgrade() {
            relink::note_new_store(&site);
        }
    });
    let maker = Maker::new(
        Arc::clone(&site),
        Pool::new(config.pool_entries(), config.pool_demand_mib()),
    );
    let daemon = Daemon {
        site,
        maker,
        started: Instant::now(),
    };
    Ok((Arc::new(daemon), deaths))
}

fn announcer(site: &Weak<Site>) -> impl Fn(u16, u64) + use<> {
    let site = site.clone();
    move |domid, routers| {
        if let Some(site) = site.upgrade() {
            site.announce(domid, routers);
        }
    }
}

/// The folders besides our own where a guest has files, with their names for people.
fn other_folders(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let (name, folder) = match config.host_kind {
        HostKind::Process => ("xenstore_dir", config.xenstore_dir.clone()),
        HostKind::Xen => ("libxl", PathBuf::from(LIBXL_DIR)),
    };
    Vec::from_iter(folder.is_dir().then_some((name, folder)))
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
) -> base::error::Result<Box<dyn Host>> {
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

fn start_threads(daemon: &Arc<Daemon>, deaths: Receiver<Death>, config: &Config) {
    let site = &daemon.site;
    let socket = config.xenstore_dir.join("socket");
    on_site(site, "store", move |site| {
        let report = |fault: Option<String>| {
            if let Some(reason) = &fault {
                relink::lose_store(site, &format!("{}: {reason}", socket.display()));
            }
            site.health.report("xenstored", fault);
        };
        store::watch(&socket, &site.watchers, report)
    });
    let valed = Valed::new(config.valed_socket.clone(), port_kind(config));
    on_site(site, "switch", move |site| {
        let loops = Loops::new(Arc::clone(&site.events));
        let report = |fault: Option<String>| {
            if fault.is_none() {
                rejoin::rejoin(site);
            }
            site.health.report("valed", fault);
        };
        valed.watch(report, loops)
    });
    if daemon.maker.has_pool() {
        let daemon = Arc::clone(daemon);
        spawn("pool", move || daemon.maker.pool_loop());
    }
    on_site(site, "moves", |site| {
        migration::forget_client(site, guest::FORMER)
    });
    on_site(site, "offloads", |site| offload::offload_loop(site));
    on_site(site, "links", relink::links_loop);
    on_site(site, "looks", beside::looks_loop);
    on_site(site, "state", |site| {
        let report = |fault| site.health.report(state::room::PART, fault);
        site.disk.room.follow(report)
    });
    on_site(site, "retry", retry::retry_loop);
    let site = Arc::clone(site);
    spawn("deaths", move || destroy::watch_deaths(&site, deaths));
}

fn on_site(site: &Arc<Site>, name: &str, body: impl FnOnce(&Site) + Send + 'static) {
    let site = Arc::clone(site);
    spawn(name, move || body(&site));
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into());
    thread
        .spawn(body)
        .expect("a daemon that cannot start its first threads has no use");
}
