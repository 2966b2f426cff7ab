// SPDX-License-Identifier: Apache-2.0
//! The part of domain 0's store that the switch uses, at a socket of its own.
#![forbid(unsafe_code)]
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use control_socket::daemon::log_to_stderr;
use log::{LevelFilter, error, info};
use vale_store::door;

/// The part of domain 0's store that the switch uses, at a socket of its own.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: vale-store --store /run/xenstored/socket --socket /run/clickos/store/socket"
)]
struct Arguments {
    /// xenstored's socket.
    #[arg(long, default_value = "/run/xenstored/socket")]
    store: PathBuf,
    /// The socket for valed; its group is that of the process.
    #[arg(long)]
    socket: PathBuf,
    /// off, error, warn, info, debug or trace.
    #[arg(long, default_value = "info")]
    log_level: LevelFilter,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.log_level);
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            error!("{}: {e}", arguments.socket.display());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> std::io::Result<()> {
    // That of a process that was killed.
    if arguments.socket.exists() {
        std::fs::remove_file(&arguments.socket)?;
    }
    let listener = UnixListener::bind(&arguments.socket)?;
    // For the group of the process; its folder keeps others out.
    std::fs::set_permissions(&arguments.socket, Permissions::from_mode(0o660))?;
    info!("listening on {}", arguments.socket.display());
    door::serve(&listener, &arguments.store)
}
