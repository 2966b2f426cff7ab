// SPDX-License-Identifier: Apache-2.0
//! `cosmos`: creates guests and talks to them, through cosmosd's socket.
#![forbid(unsafe_code)]

mod commands;
mod create;
mod doctor;
mod element_state;
mod examples;
mod guestfile;
mod image;
mod migrate;
mod on_demand;
mod output;
mod progress;
mod routers;
mod vif;
mod xl_syntax;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use cosmos_proto::verb;
use ipnet::Ipv4Net;

use crate::commands::{Failure, Session};

/// Creates ClickOS guests and talks to their elements.
#[derive(Parser)]
#[command(version, after_help = examples::ALL)]
struct Options {
    /// cosmosd's socket
    #[arg(
        long,
        env = "COSMOSD_SOCKET",
        default_value = control_socket::COSMOSD_SOCKET,
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

/// A link as an operator wants it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LinkState {
    Up,
    Down,
}

#[derive(Subcommand)]
enum Command {
    /// Create a guest and wait until it forwards
    #[command(after_help = guestfile::HELP)]
    Create(Create),
    /// Make a guest when a frame asks for its address, until interrupted
    #[command(alias = "react", after_help = examples::ON_DEMAND)]
    OnDemand(OnDemand),
    /// Destroy a guest; one that does not exist is no error
    #[command(after_help = examples::DESTROY)]
    Destroy { guest: String },
    /// List the guests of this host
    #[command(after_help = examples::LIST)]
    List,
    /// Show a guest
    #[command(after_help = examples::INFO)]
    Info { guest: String },
    /// The name of `install --halted` before 1.0
    #[command(hide = true)]
    Load(Install),
    /// Let a halted router run
    #[command(after_help = examples::START)]
    Start(OfRouter),
    /// Halt a router; its handlers still work
    #[command(after_help = examples::STOP)]
    Stop(OfRouter),
    /// Remove a router
    #[command(after_help = examples::REMOVE)]
    Remove(OfRouter),
    /// Write a guest's memory to a file of the host and end its domain
    #[command(after_help = examples::SAVE)]
    Save { guest: String },
    /// Resume a saved guest
    #[command(after_help = examples::RESTORE)]
    Restore { guest: String },
    /// Move a running guest to another host
    #[command(alias = "move", after_help = examples::MIGRATE)]
    Migrate(Migrate),
    /// Remove an interface's port from the switch; the guest continues
    #[command(after_help = examples::VIF_REMOVE)]
    VifRemove {
        guest: String,
        /// The interface's number, as `info` shows it
        devid: u32,
    },
    /// Set the link of an interface
    #[command(after_help = examples::VIF_SET)]
    VifSet {
        guest: String,
        /// The interface's number, as `info` shows it
        devid: u32,
        link: LinkState,
    },
    /// List a guest's routers
    #[command(after_help = examples::ROUTERS)]
    Routers { guest: String },
    /// Set a guest's share of processor time
    #[command(after_help = examples::CPU)]
    Cpu(Cpu),
    /// Tell what this host lacks to run guests
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// The switch's socket
        #[arg(long, env = "VALED_SOCKET", default_value = control_socket::VALED_SOCKET)]
        valed: PathBuf,
    },
    /// Replace a guest's router; the old one keeps running if the new one does not start
    #[command(after_help = examples::INSTALL)]
    Install(Install),
    /// Read a handler
    #[command(after_help = examples::READ)]
    Read {
        guest: String,
        /// For example counter.count
        handler: String,
        /// Print the value as it is, without a newline at its end
        #[arg(long)]
        raw: bool,
        #[command(flatten)]
        router: Router,
    },
    /// Write handlers: all of them, or none
    #[command(after_help = examples::WRITE)]
    Write(Write),
    /// List a guest's handlers
    #[command(after_help = examples::HANDLERS)]
    Handlers {
        guest: String,
        #[command(flatten)]
        router: Router,
    },
    /// Print the end of a guest's console log
    #[command(after_help = examples::CONSOLE)]
    Console {
        guest: String,
        /// Most bytes of the log
        #[arg(long, default_value_t = 65536)]
        max_bytes: u64,
    },
    /// Pause a guest, which keeps its memory
    #[command(after_help = examples::PAUSE)]
    Pause { guest: String },
    /// Resume a paused guest
    #[command(after_help = examples::UNPAUSE)]
    Unpause { guest: String },
    /// Give the host an image (a Xen host: any kernel that Xen can start)
    #[command(after_help = examples::IMAGE_ADD)]
    ImageAdd { file: PathBuf },
    /// List the images of the host, the one used last first
    #[command(after_help = examples::IMAGE_LIST)]
    ImageList,
    /// Remove an image; guests made from the image continue
    #[command(after_help = examples::IMAGE_REMOVE)]
    ImageRemove { sha256: String },
    /// Print the completion of commands and flags for a shell
    #[command(after_help = examples::COMPLETION)]
    Completion { shell: Shell },
    /// Print what happens to guests until interrupted
    #[command(after_help = examples::EVENTS)]
    Events,
    /// Show the host
    #[command(after_help = examples::HOST)]
    Host,
}

/// The router of a guest.
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
    /// Threads that forward; more than 1 on hosts of the kind process only
    #[arg(long)]
    vcpus: Option<u32>,
    /// File with the Click configuration
    #[arg(long)]
    config: Option<PathBuf>,
    /// An interface: KEY=VALUE,... (see below); once for each
    #[arg(long = "vif")]
    vifs: Vec<String>,
    /// HANDLER=VALUE to write before the ports are up; once for each
    #[arg(long = "write")]
    writes: Vec<String>,
    /// File with the image, which is copied to the host if it is missing there
    #[arg(long, conflicts_with = "image_sha256")]
    image: Option<PathBuf>,
    /// SHA-256 of the image; the installed one's if missing
    #[arg(long)]
    image_sha256: Option<String>,
    #[command(flatten)]
    timeout: Timeout,
}

#[derive(Args)]
pub struct OnDemand {
    /// The guest file of all guests; its first interface says in which segment they are
    file: PathBuf,
    /// The addresses that get guests; once for each network
    #[arg(long = "network", required = true)]
    networks: Vec<Ipv4Net>,
    /// Most guests at a time
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1024))]
    most: u16,
    /// Seconds without a frame from a guest, after which it is destroyed
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    idle: u64,
    /// Leave the guests at the end; the next run takes them over
    #[arg(long)]
    keep: bool,
    /// The switch's socket
    #[arg(long, env = "VALED_SOCKET", default_value = control_socket::VALED_SOCKET)]
    valed: PathBuf,
    #[command(flatten)]
    timeout: Timeout,
}

impl Create {
    /// Without flags: a guest file says everything.
    fn of_file(seconds: u64) -> Self {
        Self {
            file: None,
            name: None,
            uuid: None,
            memory: None,
            vcpus: None,
            config: None,
            vifs: Vec::new(),
            writes: Vec::new(),
            image: None,
            image_sha256: None,
            timeout: Timeout { timeout: seconds },
        }
    }
}

#[derive(Args)]
pub struct Install {
    guest: String,
    /// File with the Click configuration, - for standard input; an empty one removes the router
    config: PathBuf,
    /// Do not run it; `start` lets it run
    #[arg(long)]
    halted: bool,
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
pub struct Migrate {
    guest: String,
    /// The other host's cosmosd: its socket, brought here by SSH for example
    #[arg(long)]
    to: PathBuf,
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
    /// Most percent of one processor; 0 is no limit
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
        Command::OnDemand(args) => session.on_demand(args),
        Command::Destroy { guest } => session.destroy(guest),
        Command::List => session.list(),
        Command::Info { guest } => session.info(guest),
        Command::Install(args) => session.install(args, args.halted),
        Command::Load(args) => session.install(args, true),
        Command::Start(args) => session.run_router(args, true),
        Command::Stop(args) => session.run_router(args, false),
        Command::Remove(args) => session.remove_router(args),
        Command::Save { guest } => session.save(guest),
        Command::Restore { guest } => session.restore(guest),
        Command::Migrate(args) => session.migrate(args),
        Command::VifRemove { guest, devid } => session.remove_vif(guest, *devid),
        Command::VifSet { guest, devid, link } => {
            session.set_vif(guest, *devid, *link == LinkState::Up)
        }
        Command::Routers { guest } => session.routers(guest),
        Command::Cpu(args) => session.cpu(args),
        Command::Doctor { valed } => session.doctor(valed),
        Command::Read {
            guest,
            handler,
            raw,
            router,
        } => session.read(guest, router.rid, handler, *raw),
        Command::Write(args) => session.write(args),
        Command::Handlers { guest, router } => session.handlers(guest, router.rid),
        Command::Console { guest, max_bytes } => session.console(guest, *max_bytes),
        Command::Pause { guest } => session.simple::<verb::Pause>(guest),
        Command::Unpause { guest } => session.simple::<verb::Unpause>(guest),
        Command::ImageAdd { file } => session.add_image(file),
        Command::ImageList => session.images(),
        Command::ImageRemove { sha256 } => session.remove_image(sha256),
        Command::Completion { shell } => completion(*shell),
        Command::Events => session.events(),
        Command::Host => session.host(),
    }
}

fn completion(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = Options::command();
    clap_complete::generate(shell, &mut command, "cosmos", &mut script);
    commands::emit(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn names_of_before_1_0_are_commands() {
        for (line, name) in [
            ("move fw --to /run/b.sock", "migrate"),
            ("react a.cfg --network 10.0.0.0/24", "on-demand"),
        ] {
            let words = ["cosmos"].into_iter().chain(line.split(' '));
            let found = Options::command().get_matches_from(words);
            assert_eq!(found.subcommand_name(), Some(name), "{line}");
        }
    }

    #[test]
    fn every_command_has_an_example() {
        let all = Options::command();
        for command in all.get_subcommands().filter(|each| !each.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string);
            let call = format!("\n  cosmos {} ", command.get_name());
            let help = help.unwrap_or_default().replace('\n', " \n");
            assert!(format!("{help} ").contains(&call), "{}", command.get_name());
        }
    }
}
