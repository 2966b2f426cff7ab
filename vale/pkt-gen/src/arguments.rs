// SPDX-License-Identifier: Apache-2.0
//! The command line.
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use vale_proto::{Allowed, DEFAULT_SOCKET, Kind, Mac, PortAdd, PortId, SOCKET_VARIABLE};

const EXAMPLES: &str = "\
Examples:
  pkt-gen -f tx -i vale0:gen --segment 101 -D 02:00:00:00:00:02 -l 64 -n 1000000
  pkt-gen -f rx -i vale0:sink --segment 101 --mac 02:00:00:00:00:02 --idle 2 -o json
  pkt-gen -f pcap-make --pcap mix.pcap -n 300 -s 10.0.1.5:4000 -d 10.0.2.9:80
  pkt-gen -f tx -i vale0:gen --segment 101 --pcap mix.pcap -r 1000
The port is attached by this program and detached when it ends.";

/// Sends, counts, echoes and replays packets at a port of a switch.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
pub struct Arguments {
    #[arg(short, value_enum)]
    pub function: Function,
    /// Port to attach.
    #[arg(short, value_name = "SWITCH:PORT", required_if_eq_any([("function", "tx"), ("function", "rx"), ("function", "ping"), ("function", "pong")]))]
    pub interface: Option<PortId>,
    /// Length of a frame without its frame check sequence, in bytes.
    #[arg(short, default_value_t = 60, value_parser = clap::value_parser!(u16).range(60..=1914))]
    pub length: u16,
    /// Frames to send or receive; 0 for no end, or for all of a pcap.
    #[arg(short = 'n', default_value_t = 0)]
    pub count: u64,
    /// Frames of one burst.
    #[arg(short, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub burst: u16,
    /// Frames per second; 0 for no limit.
    #[arg(short, default_value_t = 0)]
    pub rate: u64,
    /// Source address and UDP or TCP port.
    #[arg(short, default_value = "10.0.0.1:1234")]
    pub source: SocketAddrV4,
    /// Destination address and UDP or TCP port.
    #[arg(short, default_value = "10.1.0.1:1234")]
    pub destination: SocketAddrV4,
    /// Source MAC address, by default the port's.
    #[arg(short = 'S')]
    pub source_mac: Option<Mac>,
    /// Destination MAC address.
    #[arg(short = 'D')]
    pub destination_mac: Option<Mac>,
    /// File to replay (tx) or to make (pcap-make). -S and -D replace the addresses in it.
    #[arg(long, required_if_eq("function", "pcap-make"))]
    pub pcap: Option<PathBuf>,
    /// Segment of the port.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub segment: u32,
    /// MAC address of the port, for the switch's table.
    #[arg(long)]
    pub mac: Option<Mac>,
    /// Allowed source address, CIDR or MAC=CIDR; can be repeated. Turns port security on.
    #[arg(long)]
    pub allow: Vec<Allowed>,
    /// Slots of each ring.
    #[arg(long, default_value_t = 1024)]
    pub slots: u32,
    /// End after this many seconds.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// rx: end after this many seconds without a frame, counted from the first one. ping: seconds
    /// to wait for an answer.
    #[arg(long)]
    pub idle: Option<f64>,
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// Control socket of valed.
    #[arg(long, env = SOCKET_VARIABLE, default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Function {
    /// Sends.
    Tx,
    /// Receives and counts.
    Rx,
    /// Sends one frame after another and measures the round trip time.
    Ping,
    /// Sends each frame back with its addresses swapped.
    Pong,
    /// Writes a pcap with TCP, UDP and ICMP in turn, and attaches nothing.
    PcapMake,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

impl Arguments {
    pub fn source_mac(&self) -> Mac {
        self.source_mac
            .or(self.mac)
            .unwrap_or(Mac([2, 0, 0, 0, 0, 1]))
    }

    pub fn destination_mac(&self) -> Mac {
        self.destination_mac.unwrap_or(Mac([0xff; 6]))
    }

    /// Time without frames, or `default`.
    pub fn idle(&self, default: Option<Duration>) -> Option<Duration> {
        match self.idle {
            None => default,
            Some(seconds) => Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        }
    }

    pub fn port_add(&self, address: &PortId) -> PortAdd {
        PortAdd {
            mac: self.mac,
            allowed: self.allow.clone(),
            port_security: !self.allow.is_empty(),
            slots: self.slots,
            mtu: *vale_proto::MTU_RANGE.end(),
            ..PortAdd::open(address.clone(), Kind::Process, self.segment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent_and_the_examples_parse() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        let examples: Vec<_> = EXAMPLES
            .lines()
            .filter(|l| l.starts_with("  pkt-gen"))
            .collect();
        assert_eq!(examples.len(), 4);
        for example in examples {
            let arguments = Arguments::try_parse_from(example.split_whitespace())
                .map_err(|e| e.to_string())
                .unwrap();
            if let Some(address) = &arguments.interface {
                arguments.port_add(address).check().unwrap();
            }
        }
    }
}
