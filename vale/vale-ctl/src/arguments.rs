// SPDX-License-Identifier: Apache-2.0
//! The command line.
use std::net::IpAddr;
use std::path::PathBuf;

use crate::chain::ChainCommand;
use crate::mirror::MirrorCommand;
use crate::offload::OffloadCommand;
use crate::policy::{FilterArguments, LimitArguments, SegmentArguments};
use crate::show::Format;
use crate::top::TopArguments;
use crate::trace::TraceArguments;
use clap::{Args, Parser, Subcommand, ValueEnum};
use vale_proto::{
    Allowed, DEFAULT_SOCKET, FileName, Mac, PipeName, PortId, SOCKET_VARIABLE, SwitchName,
};

const EXAMPLES: &str = "\
Examples:
  vale-ctl ports vale0
  vale-ctl attach vale0:client --kind veth --ifname veth0 --segment 101 \\
      --mac 02:00:00:00:00:01 --allow 10.0.1.5/32
  vale-ctl attach vale0:fw --kind xen --domid 3 --devid 0 --segment 101 \\
      --mac 02:00:00:00:00:02 --allow 10.0.1.6/32
  vale-ctl attach vale0:lb --kind xen --backend 2 --domid 4 --segment 101 \\
      --mac 02:00:00:00:00:03 --allow 10.0.1.7/32
  vale-ctl detach --backend 2 --domid 4
  vale-ctl --xenstore /dev/xen/xenbus driver-domain
  vale-ctl attach vale0:up101 --kind vxlan --segment 7 --vni 101 --local 192.0.2.1 --peer 192.0.2.2
  vale-ctl attach vale0:to-vale1 --kind pipe --pipe p1 --segment 101
  vale-ctl attach vale1:to-vale0 --kind pipe --pipe p1 --segment 7
  vale-ctl attach vale0:tape --kind pcap --segment 101 --read in --rate 1000 --write out
  vale-ctl set vale0:client --link down
  vale-ctl stats vale0:client -o json
  vale-ctl detach vale0:client
  vale-ctl chain set vale0:web --segment 101 --match from=client,protocol=tcp \
      --hop fw-in:fw-out --hop ids1-in:ids1-out+ids2-in:ids2-out*2,transparent,bypass
  vale-ctl chain list vale0
  vale-ctl mirror set vale0:tap --port client --side rx --to-port monitor
  vale-ctl limit vale0:client --rx-packets 100000 --tx-bits 1000000000 --group 100
  vale-ctl limit-segment vale0 101 --group 1000 --unknown 1000
  vale-ctl filter vale0:client --rule egress --rule ingress,tcp,80-90,10.0.0.0/8
  vale-ctl offload register vale0:fw --rule \"drop src 10.0.0.0/8 proto 17 dport 53\"
  vale-ctl offload register vale0:lb --rule \"redirect 02:00:00:00:00:05 src 10.0.1.9\"
  vale-ctl offload add vale0:fw \"drop proto 6 dport 23\" --at 0
  vale-ctl offload remove vale0:fw \"drop proto 6 dport 23\"
  vale-ctl offload show vale0
  vale-ctl top vale0 --count 1
  vale-ctl kept
  vale-ctl workers
  vale-ctl preconnected
  vale-ctl move vale0:client 1
  vale-ctl trace vale0:client --src-mac 02:00:00:00:00:01 --dst-mac 02:00:00:00:00:02 \
      --src 10.0.1.5 --dst 10.0.1.6 --proto tcp --dport 22
Exit codes: 0 done, 1 valed refused or cannot be reached, 2 wrong arguments.";

/// Shows and changes the switches of valed.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
pub struct Arguments {
    /// Control socket of valed.
    #[arg(long, env = SOCKET_VARIABLE, global = true, default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
    /// Socket of xenstored, for Xen guests; in a driver domain /dev/xen/xenbus.
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
    /// Shows the requests that valed repeats when it starts, and why some are not in force.
    Kept,
    /// Detaches a port; one that does not exist is fine.
    Detach(Detach),
    /// In a driver domain: adds and removes the ports that domain 0 describes, until it is ended.
    // Its name before 1.0.
    #[command(alias = "follow")]
    DriverDomain,
    /// Replaces all rates of a port; one that is not given is unlimited.
    Limit(LimitArguments),
    /// Replaces all rates of a segment, which its ports share; one that is not given is unlimited.
    LimitSegment(SegmentArguments),
    /// Shows the segments with limits of one switch, or of all.
    Segments { switch: Option<SwitchName> },
    /// Replaces the rules of a port, which also permit the answers.
    Filter(FilterArguments),
    /// Applies rules on behalf of a port's guest.
    Offload {
        #[command(subcommand)]
        command: OffloadCommand,
    },
    /// Steers packets through the ports of hops.
    Chain {
        #[command(subcommand)]
        command: ChainCommand,
    },
    /// Shows the way of one packet through all stages, without sending it.
    Trace(TraceArguments),
    /// Copies frames to a monitor or a file.
    Mirror {
        #[command(subcommand)]
        command: MirrorCommand,
    },
    /// Shows the forwarding threads and their ports.
    Workers,
    /// Shows what ports and workers do in each second: frames, bursts, empty polls, notifications, sleeps.
    Top(TopArguments),
    /// Shows the vifs of Xen guests that are connected before they have a port.
    // Its name before 1.0.
    #[command(alias = "silent")]
    Preconnected,
    /// Moves a port to another worker, without a lost frame.
    Move {
        #[arg(value_name = "SWITCH:PORT")]
        port: PortId,
        /// The number of the worker, from 0 on.
        worker: usize,
    },
    /// Writes the script that completes commands in a shell.
    Completion { shell: clap_complete::Shell },
    /// Writes the man page.
    Man,
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
    /// What is behind the port.
    #[arg(long, value_enum)]
    pub kind: KindChoice,
    /// Interface, for tap and veth.
    #[arg(long, required_unless_present_any = ["domid", "vni", "pipe", "read", "write"])]
    pub ifname: Option<String>,
    /// The guest's domain number, for xen.
    #[arg(long, requires = "mac", conflicts_with = "ifname")]
    pub domid: Option<u16>,
    /// The guest's device number, which its configuration names.
    #[arg(long, default_value_t = 0)]
    pub devid: u32,
    /// The domain whose switch gets the port: a driver domain in which `vale-ctl driver-domain` runs. No valed is
    /// needed here.
    #[arg(long, default_value_t = 0, requires = "domid",
          conflicts_with_all = ["netback", "vlan_tags", "backpressure"])]
    pub backend: u16,
    /// The device is a vif of a patched netback, which has its nodes.
    #[arg(long, requires = "domid")]
    pub netback: bool,
    /// Slots of each ring, for xen.
    #[arg(long, default_value_t = 256)]
    pub slots: u32,
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub segment: u32,
    /// MAC address behind the port; without it the port gets flooded frames only.
    #[arg(long)]
    pub mac: Option<Mac>,
    /// Allowed source address, CIDR or MAC=CIDR; can be repeated.
    #[arg(long)]
    pub allow: Vec<Allowed>,
    /// VLAN of the interface that the segment gets, without its tags, for veth.
    #[arg(long)]
    pub vlan: Option<u16>,
    /// Takes frames by an AF_XDP socket, or by a packet socket if the kernel refuses that, for veth.
    #[arg(long)]
    pub xdp: bool,
    /// VXLAN network of the segment, for vxlan.
    #[arg(long, requires = "local", conflicts_with_all = ["ifname", "domid"])]
    pub vni: Option<u32>,
    /// This host's address, for vxlan.
    #[arg(long, requires = "vni")]
    pub local: Option<IpAddr>,
    /// Another host of the VXLAN network; can be repeated.
    #[arg(long = "peer", requires = "vni")]
    pub peers: Vec<IpAddr>,
    /// Pipe whose other end another port has, for pipe.
    #[arg(long, conflicts_with = "ifname")]
    pub pipe: Option<PipeName>,
    /// File, without .pcap, in valed's capture_dir that the port plays, for pcap.
    #[arg(long, value_name = "FILE", conflicts_with = "ifname")]
    pub read: Option<FileName>,
    /// Frames per second of the played file; its own times without it.
    #[arg(long, value_name = "FRAMES", requires = "read")]
    pub rate: Option<u64>,
    /// Plays the file again and again.
    #[arg(long, requires = "read")]
    pub repeat: bool,
    /// New file, without .pcap, in valed's capture_dir for the frames that the port gets, for pcap.
    #[arg(long, value_name = "FILE", conflicts_with = "ifname")]
    pub write: Option<FileName>,
    /// With --allow: frames with VLAN tags may enter.
    #[arg(long)]
    pub vlan_tags: bool,
    /// Frames from the port wait for a full receiver; after 100 ms without room they may be lost.
    #[arg(long, alias = "hold")]
    pub backpressure: bool,
    /// Largest packet, 68 to 9,000 bytes.
    #[arg(long, default_value_t = 1500)]
    pub mtu: u16,
    /// Number of the owner: all its ports share one turn at the switch.
    #[arg(long)]
    pub owner: Option<u64>,
}

#[derive(Args)]
pub struct Detach {
    #[arg(value_name = "SWITCH:PORT", required_unless_present = "backend")]
    pub port: Option<PortId>,
    /// The driver domain of the port.
    #[arg(long, requires = "domid", conflicts_with = "port")]
    pub backend: Option<u16>,
    /// The guest's domain number, with --backend.
    #[arg(long, requires = "backend")]
    pub domid: Option<u16>,
    /// The guest's device number, with --backend.
    #[arg(long, requires = "backend", default_value_t = 0)]
    pub devid: u32,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum KindChoice {
    /// An interface that valed makes or opens.
    Tap,
    /// Any existing interface.
    Veth,
    /// A Xen guest.
    Xen,
    /// A network between hosts.
    Vxlan,
    /// One of two joined ports.
    Pipe,
    /// Files of packets.
    Pcap,
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

    /// The words of a shell's line; quotes enclose a word with blanks.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        words.map(str::to_owned).collect()
    }

    #[test]
    fn the_arguments_are_consistent_and_the_examples_parse() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        let joined = EXAMPLES.replace("\\\n", " ");
        let examples: Vec<_> = joined
            .lines()
            .filter(|l| l.starts_with("  vale-ctl"))
            .collect();
        assert_eq!(examples.len(), 30);
        for example in examples {
            Arguments::try_parse_from(words(example)).map(drop).unwrap();
        }
    }

    #[test]
    fn the_earlier_names_of_commands_are_read() {
        let command = |name: &str| {
            Arguments::try_parse_from(["vale-ctl", name])
                .unwrap()
                .command
        };
        for name in ["driver-domain", "follow"] {
            assert!(matches!(command(name), Command::DriverDomain), "{name}");
        }
        for name in ["preconnected", "silent"] {
            assert!(matches!(command(name), Command::Preconnected), "{name}");
        }
    }

    #[test]
    fn the_earlier_name_of_backpressure_is_read() {
        for option in ["--backpressure", "--hold"] {
            let line = "vale-ctl attach vale0:p --kind pipe --pipe p1 --segment 7";
            let parsed = Arguments::try_parse_from(words(&format!("{line} {option}"))).unwrap();
            let Command::Attach(attach) = parsed.command else {
                panic!("{option}")
            };
            assert!(attach.backpressure, "{option}");
        }
    }
}
