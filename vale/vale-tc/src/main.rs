// SPDX-License-Identifier: Apache-2.0
//! Command line of the policies on vifs of netback.
#![forbid(unsafe_code)]

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use vale_proto::{Allowed, Limits, Mac};
use vale_tc::attach::Folders;
use vale_tc::policy::{Offload, Policy};
use vale_tc::program::Programs;
use vale_tc::show;

const EXAMPLES: &str = "\
Examples:
  vale-tc set vif3.0 --mac 02:00:00:00:00:01 --allow 10.0.1.5/32
  vale-tc set vif3.0 --policy /etc/vale/vifs/web-0.json
  vale-tc check --policy /etc/vale/vifs/web-0.json
  vale-tc show vif3.0
  vale-tc clear vif3.0
Exit codes: 0 done, 1 refused, 2 wrong arguments.";

/// Gives interfaces of the host the policies that valed has for ports.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    /// Folder for maps, in a mounted BPF file system.
    #[arg(long, global = true, default_value = "/sys/fs/bpf/vale-tc")]
    maps: PathBuf,
    /// Folder for the policies in force.
    #[arg(long, global = true, default_value = "/run/vale-tc")]
    state: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Gives an interface a policy, which replaces the one before.
    Set {
        interface: String,
        #[command(flatten)]
        policy: PolicyArguments,
    },
    /// Takes the policy from an interface, which may be gone.
    Clear { interface: String },
    /// Shows the counters of an interface as JSON.
    Show { interface: String },
    /// Compiles a policy, and shows the number of its instructions.
    Check {
        #[command(flatten)]
        policy: PolicyArguments,
    },
}

/// A document, or the addresses of a vif without filter and offloaded rules.
#[derive(Args)]
struct PolicyArguments {
    /// The document, a file or - for the standard input.
    #[arg(long, required_unless_present = "mac", conflicts_with_all = ["mac", "allow"])]
    policy: Option<PathBuf>,
    /// The MAC address of the guest.
    #[arg(long)]
    mac: Option<Mac>,
    /// An address that the guest may use, CIDR or MAC=CIDR; can be repeated.
    #[arg(long)]
    allow: Vec<Allowed>,
}

impl PolicyArguments {
    fn policy(&self) -> Result<Policy, String> {
        let Some(path) = &self.policy else {
            return Ok(self.addresses());
        };
        let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let mut text = String::new();
        match path.to_str() {
            Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
            _ => std::fs::read_to_string(path).map(|found| text = found),
        }
        .map_err(|e| named(&e))?;
        Policy::parse(&text).map_err(|e| named(&e))
    }

    fn addresses(&self) -> Policy {
        Policy {
            mac: self.mac,
            allowed: self.allow.clone(),
            port_security: true,
            vlan_tags: false,
            rules: None,
            offload: Offload::default(),
            limits: Limits::default(),
        }
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(output) => {
            print!("{output}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("vale-tc: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<String, String> {
    let folders = Folders {
        maps: arguments.maps,
        state: arguments.state,
    };
    match arguments.command {
        Command::Set { interface, policy } => folders
            .set(&interface, &policy.policy()?)
            .map(|()| String::new()),
        Command::Clear { interface } => folders.clear(&interface).map(|()| String::new()),
        Command::Show { interface } => {
            let counters = show::counters(&folders, &interface)?;
            Ok(format!("{counters:#}\n"))
        }
        Command::Check { policy } => {
            let programs = Programs::of(&policy.policy()?)?;
            let (from, to) = (programs.from_guest.code.len(), programs.to_guest.code.len());
            Ok(format!("from_guest {from}\nto_guest {to}\n"))
        }
    }
}
