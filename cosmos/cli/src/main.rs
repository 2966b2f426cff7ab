// SPDX-License-Identifier: Apache-2.0
//! `cosmos`: creates guests and talks to them, through cosmosd's socket.
#![forbid(unsafe_code)]

mod commands;
mod create;
mod doctor;
mod guestfile;
mod image;
mod output;
mod routers;
mod vif;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::{Failure, Session};

const EXAMPLES: &str = "\
Examples:
  cosmos create fw.cfg
  cosmos create --name wire --config wire.click \\
      --vif bridge=vale0,port=a,segment=1 --vif bridge=vale0,port=b,segment=2
  cosmos read fw counter.count
  cosmos write fw fw.config 'allow icmp, deny all'
  cosmos install fw firewall.click
  cosmos load fw other.click --rid 1 && cosmos start fw --rid 1
  cosmos save fw && cosmos restore fw
  cosmos doctor
  cosmos -o json list

A guest is named by its UUID or by its name.
Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no such guest.";

/// Creates ClickOS guests and talks to their elements.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Options {
    /// cosmosd's socket
    #[arg(
        long,
        env = "COSMOSD_SOCKET",
        default_value = "/run/cosmosd.sock",
        global = true
    )]
    socket: PathBuf,
    /// How results are printed
    #[arg(short, long, value_enum, default_value = "table", global = true)]
    output: Format,
    #[command(subcommand)]
    command: Command,
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Create a guest and wait until it forwards
    #[command(after_help = guestfile::HELP)]
    Create(Create),
    /// Destroy a guest; one that does not exist is no error
    Destroy { guest: String },
    /// List the guests of this host
    List,
    /// Show a guest
    Info { guest: String },
    /// Install a router without running it; `start` lets it run
    Load(Install),
    /// Let a halted router run
    Start(OfRouter),
    /// Halt a router; its handlers go on working
    Stop(OfRouter),
    /// Remove a router
    Remove(OfRouter),
    /// Write a guest's memory to a file of the host and end its domain
    Save { guest: String },
    /// Let a saved guest go on
    Restore { guest: String },
    /// Set a guest's share of processor time
    Cpu(Cpu),
    /// Tell what this host lacks to run guests
    Doctor {
        /// The switch's socket
        #[arg(long, env = "VALED_SOCKET", default_value = "/run/valed.sock")]
        valed: PathBuf,
    },
    /// Replace a guest's router; the old one keeps running if the new one does not start
    Install(Install),
    /// Read a handler
    Read {
        guest: String,
        /// For example counter.count
        handler: String,
        #[command(flatten)]
        router: Router,
    },
    /// Write handlers: all of them, or none
    Write(Write),
    /// List a guest's handlers
    Handlers {
        guest: String,
        #[command(flatten)]
        router: Router,
    },
    /// Print the end of a guest's console log
    Console {
        guest: String,
        /// At most so many bytes of the log
        #[arg(long, default_value_t = 65536)]
        max_bytes: u64,
    },
    /// Stop a guest's processor time
    Pause { guest: String },
    /// Let a paused guest go on
    Unpause { guest: String },
    /// Give the host an image (a Xen host: any kernel that Xen can start)
    ImageAdd { file: PathBuf },
    /// List the images of the host, the one used last first
    ImageList,
    /// Remove an image; guests made of it run on
    ImageRemove { sha256: String },
    /// Print what happens to guests until interrupted
    Events,
    /// Show the host
    Host,
}

/// Which router of a guest.
#[derive(Args)]
pub struct Router {
    /// Router id
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    rid: u8,
}

/// How long the guest may take.
#[derive(Args)]
pub struct Timeout {
    /// Seconds the guest may take to answer
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

#[derive(Args)]
pub struct Create {
    /// A guest file; flags override what it says
    file: Option<PathBuf>,
    #[arg(long)]
    name: Option<String>,
    /// Chosen at random if missing
    #[arg(long)]
    uuid: Option<String>,
    /// Memory in MiB
    #[arg(long)]
    memory: Option<u32>,
    /// File with the Click configuration
    #[arg(long)]
    config: Option<PathBuf>,
    /// An interface: KEY=VALUE,... (see below); once for each
    #[arg(long = "vif")]
    vifs: Vec<String>,
    /// HANDLER=VALUE to write before the ports are up; once for each
    #[arg(long = "write")]
    writes: Vec<String>,
    /// File with the image, which is given to the host if it has it not
    #[arg(long, conflicts_with = "image_sha256")]
    image: Option<PathBuf>,
    /// SHA-256 of the image; the installed one's if missing
    #[arg(long)]
    image_sha256: Option<String>,
    #[command(flatten)]
    timeout: Timeout,
}

#[derive(Args)]
pub struct Install {
    guest: String,
    /// File with the Click configuration, - for standard input; an empty one removes the router
    config: PathBuf,
    #[command(flatten)]
    router: Router,
    #[command(flatten)]
    timeout: Timeout,
}

/// One router of a guest.
#[derive(Args)]
pub struct OfRouter {
    guest: String,
    #[command(flatten)]
    router: Router,
    #[command(flatten)]
    timeout: Timeout,
}

#[derive(Args)]
pub struct Cpu {
    guest: String,
    /// The only processor it runs on; any if missing
    #[arg(long)]
    pin: Option<u16>,
    /// Its share when processors are short; 256 is usual
    #[arg(long, default_value_t = 256)]
    weight: u16,
    /// At most so many percent of one processor; 0 is no limit
    #[arg(long, default_value_t = 0)]
    cap: u16,
}

#[derive(Args)]
pub struct Write {
    guest: String,
    /// HANDLER VALUE, once or more
    #[arg(required = true, num_args = 2.., value_names = ["HANDLER", "VALUE"])]
    writes: Vec<String>,
    #[command(flatten)]
    router: Router,
    #[command(flatten)]
    timeout: Timeout,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cosmos: {}", output::printable(&failure.message));
            ExitCode::from(failure.status)
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let session = Session::new(&options.socket, options.output);
    match &options.command {
        Command::Create(args) => session.create(args),
        Command::Destroy { guest } => session.destroy(guest),
        Command::List => session.list(),
        Command::Info { guest } => session.info(guest),
        Command::Install(args) => session.install(args),
        Command::Load(args) => session.load(args),
        Command::Start(args) => session.run_router(args, true),
        Command::Stop(args) => session.run_router(args, false),
        Command::Remove(args) => session.remove_router(args),
        Command::Save { guest } => session.long("save", guest),
        Command::Restore { guest } => session.long("restore", guest),
        Command::Cpu(args) => session.cpu(args),
        Command::Doctor { valed } => session.doctor(valed),
        Command::Read {
            guest,
            handler,
            router,
        } => session.read(guest, router.rid, handler),
        Command::Write(args) => session.write(args),
        Command::Handlers { guest, router } => session.handlers(guest, router.rid),
        Command::Console { guest, max_bytes } => session.console(guest, *max_bytes),
        Command::Pause { guest } => session.simple("pause", guest),
        Command::Unpause { guest } => session.simple("unpause", guest),
        Command::ImageAdd { file } => session.add_image(file),
        Command::ImageList => session.images(),
        Command::ImageRemove { sha256 } => session.remove_image(sha256),
        Command::Events => session.events(),
        Command::Host => session.host(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
