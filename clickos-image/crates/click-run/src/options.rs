// SPDX-License-Identifier: Apache-2.0
//! The command line; options have the names of Click's user-level driver.
use std::fmt::Write;
use std::path::PathBuf;

use clap::{ArgAction, Parser};
use click_core::text;

use crate::clock::Clock;

/// Runs Click configurations.
///
/// Exit status: 0 if the configuration ran (with --check: is right), 1 if not, 2 for a wrong
/// command line. With --exit-handler the handler's value is the status.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "click",
    version,
    disable_help_flag = true,
    infer_long_args = true,
    disable_version_flag = true
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct Options {
    /// The configuration's text
    #[arg(short, long, value_name = "EXPR", conflicts_with = "file")]
    pub expression: Option<String>,

    /// Read the configuration from FILE ("-" is standard input)
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Print the value of a read handler at the end; may be repeated
    #[arg(short = 'h', long = "handler", value_name = "ELEMENT.HANDLER")]
    pub handlers: Vec<String>,

    /// Use a read handler's value as exit status: true or 0 is success
    #[arg(short = 'x', long, value_name = "ELEMENT.HANDLER")]
    pub exit_handler: Option<String>,

    /// Do not run the configuration: build it, print handlers, end
    #[arg(short, long, overrides_with = "quit")]
    pub quit: bool,

    /// Print the time the run took on standard error: of the processor in the program and in the system, and by the clock
    #[arg(short, long, overrides_with = "time")]
    pub time: bool,

    /// Do not print warnings and other messages about the configuration
    #[arg(short = 'w', long, overrides_with = "no_warnings")]
    pub no_warnings: bool,

    /// Print them (the default)
    #[arg(long, overrides_with = "no_warnings")]
    warnings: bool,

    /// Write the flat configuration to FILE ("-" is standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Answer the ControlSocket protocol on a port of the loopback address; PORT+ takes the next free one
    #[arg(short = 'p', long = "port", value_name = "PORT[+]", value_parser = port)]
    pub ports: Vec<String>,

    /// Answer the ControlSocket protocol on a UNIX socket
    #[arg(short = 'u', long = "unix-socket", value_name = "FILE")]
    pub unix_sockets: Vec<String>,

    /// Answer the ControlSocket protocol on a connected socket the program was started with
    #[arg(long = "socket", value_name = "FD")]
    pub sockets: Vec<u16>,

    /// Allow the configuration to be replaced through the handler hotconfig
    #[arg(short = 'R', long, overrides_with = "allow_reconfigure")]
    pub allow_reconfigure: bool,

    /// Do not (the default)
    #[arg(long, overrides_with = "allow_reconfigure")]
    no_allow_reconfigure: bool,

    /// Search these folders for required libraries instead of those of CLICKPATH
    #[arg(short = 'C', long, overrides_with = "clickpath", value_name = "PATH")]
    pub clickpath: Option<PathBuf>,

    /// Use up to N threads: StaticThreadSched says which elements run on which, the others run on thread 0
    #[arg(short = 'j', long, overrides_with = "threads", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: Option<u8>,

    /// Run on processor N (default 0) only, further threads on those after it
    #[arg(short = 'a', long, visible_alias = "cpu", overrides_with = "affinity", num_args = 0..=1, require_equals = true, value_name = "N")]
    pub affinity: Option<Option<u16>>,

    /// Run on any processor (the default)
    #[arg(long, visible_alias = "no-cpu", overrides_with = "affinity")]
    no_affinity: bool,

    /// Only check that the configuration is right
    #[arg(long)]
    pub check: bool,

    /// Only print the groups of the elements, each with a class of it
    #[arg(long)]
    pub groups: bool,

    /// Know the element classes of a guest only
    #[arg(long)]
    pub guest: bool,

    /// With --check: how many devices (vifs) there are
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub vifs: u32,

    /// Run in simulated time, beginning at this second: waiting takes none
    #[arg(long, visible_alias = "simulation-time", num_args = 0..=1, require_equals = true, value_name = "SECONDS")]
    pub simtime: Option<Option<f64>>,

    /// Seed of random numbers; without one they cannot be foreseen
    #[arg(long, value_name = "NUMBER")]
    pub random_seed: Option<u64>,

    /// Print this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: Option<bool>,

    /// The configuration's file, and variables it may use
    #[arg(value_name = "FILE | NAME=VALUE")]
    pub rest: Vec<String>,
}

/// A port as ControlSocket takes it.
fn port(text: &str) -> Result<String, String> {
    let digits = text.strip_suffix('+').unwrap_or(text);
    match digits.parse::<u16>() {
        Ok(_) => Ok(text.to_string()),
        Err(_) => Err("expected a port or PORT+".to_string()),
    }
}

impl Options {
    /// The threads that the command line asks for. A guest's configuration has one.
    pub fn router_threads(&self) -> usize {
        match self.threads {
            Some(threads) if !self.guest => usize::from(threads),
            _ => 1,
        }
    }

    /// The elements that the command line adds to a configuration: a control socket each.
    pub fn own_elements(&self) -> String {
        let tcp = self.ports.iter().map(|port| format!("TCP, {port}"));
        let unix = self.unix_sockets.iter();
        let unix = unix.map(|path| format!("UNIX, {}", text::quote(path)));
        let given = self.sockets.iter().map(|fd| format!("SOCKET, {fd}"));
        let mut own = String::new();
        for (number, config) in tcp.chain(unix).chain(given).enumerate() {
            let suffix = if number > 0 {
                format!("@{number}")
            } else {
                String::new()
            };
            let _ = writeln!(
                own,
                "click_driver@@ControlSocket{suffix} :: ControlSocket({config});"
            );
        }
        own
    }

    /// Where simulated time begins, if it is wanted.
    ///
    /// # Errors
    /// That is not a time.
    pub fn simulated_from(&self) -> Result<Option<f64>, String> {
        match self
            .simtime
            .map(|start| start.unwrap_or_else(Clock::usual_start_s))
        {
            Some(start) if !(0.0..1e10).contains(&start) => {
                Err(format!("--simtime: expected seconds, got {start}"))
            }
            start => Ok(start),
        }
    }

    /// The variables among the remaining arguments.
    pub fn variables(&self) -> Vec<(String, String)> {
        let split = self.rest.iter().filter_map(|arg| arg.split_once('='));
        split
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    /// The file to read, if no expression is given.
    ///
    /// # Errors
    /// More than one.
    pub fn source(&self) -> Result<Option<PathBuf>, String> {
        let named = self
            .rest
            .iter()
            .filter(|arg| !arg.contains('='))
            .map(PathBuf::from);
        let mut files: Vec<PathBuf> = self.file.clone().into_iter().chain(named).collect();
        let most = usize::from(self.expression.is_none());
        if files.len() > most {
            return Err("click: more than one configuration is given".to_string());
        }
        Ok(files.pop())
    }
}
