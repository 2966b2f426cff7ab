// SPDX-License-Identifier: Apache-2.0
//! The command line.
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use vale_proto::{
    Allowed, DEFAULT_SOCKET, Kind, MTU_RANGE, Mac, PortAdd, PortId, SHORT_MTU, SOCKET_VARIABLE,
};

/// Bytes of the Ethernet header.
const ETHERNET: u16 = 14;
/// UDP or TCP port of an address without one.
const PORT: u16 = 1234;

/// Reads a number of frames per second.
fn rate(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    let rate = number.and_then(|number| number.checked_mul(factor));
    rate.ok_or_else(|| format!("expected a number with K, M or G, got {text:.40?}"))
}

/// Reads an address with or without a port.
fn socket_address(text: &str) -> Result<SocketAddrV4, String> {
    let alone = |address: Ipv4Addr| SocketAddrV4::new(address, PORT);
    let found = text.parse().or_else(|_| text.parse().map(alone));
    found.map_err(|_| format!("expected ADDRESS or ADDRESS:PORT, got {text:.40?}"))
}

const EXAMPLES: &str = "\
Examples:
  pkt-gen -f tx -i vale0:gen --segment 101 -D 02:00:00:00:00:02 -l 64 -n 1000000
  pkt-gen -f rx -i vale0:sink --segment 101 --mac 02:00:00:00:00:02 --idle 2 -o json
  pkt-gen -f pcap-make --pcap mix.pcap -n 300 -s 10.0.1.5:4000 -d 10.0.2.9:80
  pkt-gen -f tx -i vale0:gen --segment 101 --pcap mix.pcap -R 10K -w 2 -c 1 -p 1
The port is attached by this program and detached when it ends.";

/// Sends, counts, echoes and replays packets at a port of a switch.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
pub struct Arguments {
    #[arg(short, value_enum, default_value_t = Function::Rx)]
    pub function: Function,
    /// Port to attach.
    #[arg(short, value_name = "SWITCH:PORT", required_unless_present = "pcap")]
    pub interface: Option<PortId>,
    /// Length of a frame without its frame check sequence, in bytes.
    #[arg(short, default_value_t = 60, value_parser = clap::value_parser!(u16).range(60..=9014))]
    pub length: u16,
    /// Longest packet of the port, by default 1,900 bytes, or 9,000 for longer frames.
    #[arg(long)]
    pub mtu: Option<u16>,
    /// Frames to send or receive; 0 for no end, or for all of a pcap.
    #[arg(short = 'n', default_value_t = 0)]
    pub count: u64,
    /// Frames of one burst.
    #[arg(short, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub burst: u16,
    /// Frames per second, with K, M or G for thousands, millions and billions; 0 for no limit.
    #[arg(short = 'R', visible_short_alias = 'r', default_value = "0", value_parser = rate)]
    pub rate: u64,
    /// Seconds between the attachment of the port and the first frame.
    #[arg(short, default_value_t = 0)]
    pub wait: u64,
    /// Processors that the program may use.
    #[arg(short, value_parser = clap::value_parser!(u16).range(1..))]
    pub cores: Option<u16>,
    /// Threads; a port has one ring in each direction, so there is one.
    #[arg(short = 'p', default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1))]
    pub threads: u16,
    /// Source address and UDP or TCP port.
    #[arg(short, default_value = "10.0.0.1:1234", value_parser = socket_address)]
    pub source: SocketAddrV4,
    /// Destination address and UDP or TCP port.
    #[arg(short, default_value = "10.1.0.1:1234", value_parser = socket_address)]
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
    /// Let frames wait for a full receiver instead of dropping them.
    #[arg(long)]
    pub backpressure: bool,
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
            backpressure: self.backpressure,
            mtu: self
                .mtu
                .unwrap_or(match self.length - ETHERNET > SHORT_MTU {
                    true => *MTU_RANGE.end(),
                    false => SHORT_MTU,
                }),
            ..PortAdd::open(address.clone(), Kind::Process, self.segment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_netmap_are_taken() {
        let parse = |line: &str| Arguments::try_parse_from(line.split_whitespace());
        let of = parse("pkt-gen -i vale0:Eth0.5 -R 2M -w 1 -c 2 -p 1 -d 10.0.0.9").unwrap();
        assert_eq!(of.function, Function::Rx);
        assert_eq!((of.rate, of.wait, of.cores), (2_000_000, 1, Some(2)));
        assert_eq!(of.destination, "10.0.0.9:1234".parse().unwrap());
        assert_eq!(parse("pkt-gen -i vale0:a -r 7").unwrap().rate, 7);
        for wrong in [
            "-p 2",
            "-c 0",
            "-R 1X",
            "-R 99999999999G",
            "-d 10.0.0.0/8",
            "-l 9015",
        ] {
            assert!(
                parse(&format!("pkt-gen -i vale0:a {wrong}")).is_err(),
                "{wrong}"
            );
        }
        assert!(parse("pkt-gen").is_err(), "a port is needed");
    }

    #[test]
    fn long_frames_have_a_port_that_takes_them() {
        let mtu = |line: &str| {
            let of = Arguments::try_parse_from(line.split_whitespace()).unwrap();
            let add = of.port_add(of.interface.as_ref().unwrap());
            add.check().unwrap();
            add.mtu
        };
        assert_eq!(mtu("pkt-gen -i vale0:a"), 1900);
        assert_eq!(mtu("pkt-gen -i vale0:a -l 9014"), 9000);
        assert_eq!(mtu("pkt-gen -i vale0:a --mtu 9000"), 9000);
    }

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
