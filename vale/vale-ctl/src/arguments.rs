// SPDX-License-Identifier: Apache-2.0
//! The command line.
use std::path::PathBuf;

use crate::chain::ChainCommand;
use crate::policy::{FilterArguments, LimitArguments};
use crate::show::Format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use vale_proto::{Allowed, DEFAULT_SOCKET, Mac, PortId, SOCKET_VARIABLE, SwitchName};

const EXAMPLES: &str = "\
Examples:
  vale-ctl ports vale0
  vale-ctl attach vale0:client --kind veth --ifname veth0 --segment 101 \\
      --mac 02:00:00:00:00:01 --allow 10.0.1.5/32
  vale-ctl attach vale0:fw --kind xen --domid 3 --devid 0 --segment 101 \\
      --mac 02:00:00:00:00:02 --allow 10.0.1.6/32
  vale-ctl set vale0:client --link down
  vale-ctl stats vale0:client -o json
  vale-ctl detach vale0:client
  vale-ctl chain set vale0:web --segment 101 --match from=client,protocol=tcp \
      --hop fw-in:fw-out --hop ids1-in:ids1-out+ids2-in:ids2-out*2,transparent,bypass
  vale-ctl chain list vale0
  vale-ctl limit vale0:client --rx-packets 100000 --tx-bits 1000000000 --group 100
  vale-ctl filter vale0:client --rule egress --rule ingress,tcp,80-90,10.0.0.0/8
Exit codes: 0 done, 1 valed refused or cannot be reached, 2 wrong arguments.";

/// Shows and changes the switches of valed.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
pub struct Arguments {
    /// Control socket of valed.
    #[arg(long, env = SOCKET_VARIABLE, global = true, default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
    /// Socket of xenstored, for Xen guests.
    #[arg(long, global = true, default_value = "/run/xenstored/socket")]
    pub xenstore: PathBuf,
    #[arg(short, long, value_enum, global = true, default_value_t = Format::Table)]
    pub output: Format,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Shows the switches.
    List,
    /// Shows the ports of one switch, or of all.
    Ports { switch: Option<SwitchName> },
    /// Shows the counters of one port, or of all.
    Stats {
        #[arg(value_name = "SWITCH:PORT")]
        of: Option<PortId>,
    },
    /// Attaches an interface, or a Xen guest, whose device it makes in the store. --allow turns
    /// port security on.
    Attach(Attach),
    /// Detaches a port; one that does not exist is fine.
    Detach {
        #[arg(value_name = "SWITCH:PORT")]
        port: PortId,
    },
    /// Replaces all rates of a port; one that is not given is unlimited.
    Limit(LimitArguments),
    /// Replaces the rules of a port, which also permit the answers.
    Filter(FilterArguments),
    /// Steers packets through the ports of hops.
    Chain {
        #[command(subcommand)]
        command: ChainCommand,
    },
    /// Changes a port.
    Set {
        #[arg(value_name = "SWITCH:PORT")]
        port: PortId,
        #[arg(long, value_enum)]
        link: Link,
    },
}

#[derive(Args)]
pub struct Attach {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// tap: an interface that valed makes or opens; veth: any existing interface; xen: a guest.
    #[arg(long, value_enum)]
    pub kind: KindChoice,
    /// Interface, for tap and veth.
    #[arg(long, required_unless_present = "domid")]
    pub ifname: Option<String>,
    /// The guest's domain number, for xen.
    #[arg(long, requires = "mac", conflicts_with = "ifname")]
    pub domid: Option<u16>,
    /// The guest's device number, which its configuration names.
    #[arg(long, default_value_t = 0)]
    pub devid: u32,
    /// Slots of each ring, for xen.
    #[arg(long, default_value_t = 256)]
    pub slots: u32,
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=vale_proto::MAX_SEGMENT as i64))]
    pub segment: u16,
    /// MAC address behind the port; without it the port gets flooded frames only.
    #[arg(long)]
    pub mac: Option<Mac>,
    /// Allowed source address, CIDR or MAC=CIDR; can be repeated.
    #[arg(long)]
    pub allow: Vec<Allowed>,
    /// VLAN of the interface that the segment gets, without its tags, for veth.
    #[arg(long)]
    pub vlan: Option<u16>,
    /// With --allow: frames with VLAN tags may enter.
    #[arg(long)]
    pub vlan_tags: bool,
    #[arg(long, default_value_t = 1500)]
    pub mtu: u16,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum KindChoice {
    Tap,
    Veth,
    Xen,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Link {
    Up,
    Down,
}

impl Link {
    pub fn is_up(self) -> bool {
        matches!(self, Self::Up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent_and_the_examples_parse() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        let joined = EXAMPLES.replace("\\\n", " ");
        let examples: Vec<_> = joined
            .lines()
            .filter(|l| l.starts_with("  vale-ctl"))
            .collect();
        assert_eq!(examples.len(), 10);
        for example in examples {
            Arguments::try_parse_from(example.split_whitespace())
                .map(drop)
                .unwrap();
        }
    }
}
