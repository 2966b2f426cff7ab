// SPDX-License-Identifier: Apache-2.0
//! The dom0 packet switch.
#![forbid(unsafe_code)]
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use control_socket::daemon::{Termination, load_config, log_to_stderr, raise_descriptor_limit};
use control_socket::{Roles, Server};
use log::{LevelFilter, error, info};
use serde::Deserialize;
use valed::control::{Control, TOOLSTACK};
use valed::forwarder::Forwarder;
use valed::guests::Guests;
use valed::links::Links;
use valed::metrics::{self, Loopback};
use valed::xen::Xen;

/// The dom0 packet switch.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: valed --config /etc/clickos/valed.toml"
)]
struct Arguments {
    /// Configuration file (TOML): `socket`, uids per role in `[roles]`, and `xenstore` (its socket) on a Xen host.
    #[arg(long)]
    config: PathBuf,
    /// off, error, warn, info, debug or trace.
    #[arg(long, default_value = "info")]
    log_level: LevelFilter,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    socket: PathBuf,
    /// xenstored's socket, for ports of Xen guests.
    xenstore: Option<PathBuf>,
    /// No guest uses its rings' buffers as its packets, and so none trusts valed for their bytes.
    #[serde(default)]
    copying_rings: bool,
    /// The directory for files of mirrors; without it there are none.
    capture_dir: Option<PathBuf>,
    /// The loopback address for Prometheus; without it there is no endpoint.
    metrics: Option<Loopback>,
    #[serde(default)]
    roles: Roles,
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
    let text = |e: std::io::Error| e.to_string();
    let termination = Termination::catch().map_err(text)?;
    raise_descriptor_limit();
    let (mut forwarder, handle) = Forwarder::new().map_err(text)?;
    let server = Server::bind(&config.socket, config.roles).map_err(text)?;
    let stopper = server.stopper();
    let store = config.xenstore.as_deref();
    let guests = Arc::new(Guests::new(config.copying_rings));
    let xen = store.map(|socket| Xen::start(socket, handle.clone(), Arc::clone(&guests)));
    let control = Arc::new(Control {
        forwarder: handle.clone(),
        xen: xen.transpose().map_err(text)?,
        links: Links {
            capture_dir: config.capture_dir,
            guests,
            ..Links::default()
        },
    });
    if let Some(address) = config.metrics {
        metrics::serve(address, handle.clone()).map_err(|e| format!("metrics: {e}"))?;
    }
    let stopping = handle.clone();
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
    let result = forwarder.run().map_err(text);
    // Control threads may wait for an answer that no longer comes.
    drop(forwarder);
    stopper.stop();
    let _ = serving.join();
    info!("stopped");
    result
}
