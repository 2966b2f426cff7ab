// SPDX-License-Identifier: Apache-2.0
//! The commands about chains.
use std::net::IpAddr;

use clap::{Args, Subcommand};
use vale_proto::{
    ChainCounters, ChainId, ChainInfo, ChainName, ChainSet, Classifier, Hop, HostState, IpNet,
    Keep, OnFailure, Pair, Path, PortRange, SwitchName, ValeClient,
};

use crate::kept;
use crate::show::{self, Format};

#[derive(Subcommand)]
pub enum ChainCommand {
    /// Shows the chains of one switch, or of all, with packets and drops of each hop.
    List { switch: Option<SwitchName> },
    /// Makes a chain, or replaces it as a whole without loss.
    Set(Box<SetArguments>),
    /// Removes a chain; one that does not exist is fine.
    Remove {
        #[arg(value_name = "SWITCH:CHAIN", value_parser = chain_id)]
        chain: ChainId,
    },
}

#[derive(Args)]
pub struct SetArguments {
    #[arg(value_name = "SWITCH:CHAIN", value_parser = chain_id)]
    pub chain: ChainId,
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub segment: u32,
    /// Packets of the chain: from=PORT, to=PORT, source=CIDR, destination=CIDR, protocol=N,
    /// source-ports=N-M, destination-ports=N-M, source-mac=MAC, destination-mac=MAC, with commas
    /// between them. A path also takes host=ADDRESS, sender=CIDR, receiver=CIDR. Can be repeated.
    #[arg(long = "match", value_parser = classifier, required = true)]
    pub classifiers: Vec<Classifier>,
    /// A hop: IN:OUT or IN:OUT*WEIGHT, with @HOST for a path, several with + between them, then
    /// `,transparent`, `,bypass` and `,copies=N` if wanted; can be repeated.
    #[arg(long = "hop", value_parser = hop, required = true)]
    pub hops: Vec<Hop>,
    /// Addresses that a hop translates sources to; can be repeated.
    #[arg(long)]
    pub nat: Vec<IpNet>,
    /// Answers bypass the hops.
    #[arg(long)]
    pub one_way: bool,
    /// The number of the chain's path between hosts, the same on all of them.
    #[arg(long, requires = "local", requires = "hosts")]
    pub path: Option<u32>,
    /// This host's address, one of --hosts.
    #[arg(long, requires = "path")]
    pub local: Option<IpAddr>,
    /// The addresses of all hosts of the path, with commas between them, in one order everywhere.
    #[arg(long, requires = "path", value_delimiter = ',')]
    pub hosts: Vec<IpAddr>,
    /// The chain was in force before valed started again: drop its packets until the other hosts of
    /// its path know it. Those of a new chain bypass it.
    #[arg(long, requires = "path")]
    pub restored: bool,
}

/// Runs a command and returns its output.
pub fn run(
    client: &mut ValeClient,
    command: &ChainCommand,
    format: Format,
) -> Result<String, String> {
    let request = match command {
        ChainCommand::List { switch } => {
            let chains = client.chain_list(switch.clone());
            return chains.map(|c| show(&c, format)).map_err(|e| e.to_string());
        }
        ChainCommand::Set(set) => Keep::ChainSet(Box::new(chain_set(set))),
        ChainCommand::Remove { chain } => Keep::ChainRemove(chain.clone()),
    };
    kept::keep(client, &request).map(|()| String::new())
}

fn chain_set(arguments: &SetArguments) -> ChainSet {
    ChainSet {
        switch: arguments.chain.switch.clone(),
        chain: arguments.chain.chain.clone(),
        segment: arguments.segment,
        classifiers: arguments.classifiers.clone(),
        hops: arguments.hops.clone(),
        nat: arguments.nat.clone(),
        symmetric: !arguments.one_way,
        path: path(arguments),
        restored: arguments.restored,
    }
}

fn path(arguments: &SetArguments) -> Option<Path> {
    Some(Path {
        number: arguments.path?,
        local: arguments.local?,
        hosts: arguments.hosts.clone(),
    })
}

fn show(chains: &[ChainInfo], format: Format) -> String {
    if format == Format::Json {
        return show::json_text(&chains);
    }
    let head = [
        "CHAIN", "HOP", "PORTS", "LIVE", "PACKETS", "BYTES", "DROPS", "LOOPS",
    ];
    show::table(&head, chains.iter().flat_map(rows))
}

fn rows(chain: &ChainInfo) -> Vec<Vec<String>> {
    let name = format!("{}:{}", chain.set.switch, chain.set.chain);
    let row = |hop: String, ports: String, live: String, counters: &ChainCounters| {
        let ChainCounters {
            packets,
            bytes,
            dropped,
            looped,
        } = counters;
        let counts = [packets, bytes, dropped, looped].map(ToString::to_string);
        [name.clone(), hop, ports, live]
            .into_iter()
            .chain(counts)
            .collect()
    };
    let dash = || "-".to_owned();
    let mut found = vec![row("all".to_owned(), dash(), dash(), &chain.counters)];
    let counters = chain.hop_counters.iter().zip(&chain.live_pairs);
    for (n, (hop, (counters, live))) in chain.set.hops.iter().zip(counters).enumerate() {
        let live = format!("{live}/{}", hop.pairs.len());
        found.push(row(n.to_string(), ports(hop), live, counters));
    }
    found.extend(chain.hosts.iter().map(|host| host_row(&name, chain, host)));
    found
}

/// Another host of the path, without counters: it counts its own packets.
fn host_row(name: &str, chain: &ChainInfo, of: &HostState) -> Vec<String> {
    let state = match (of.is_ready, chain.is_changing) {
        (_, true) => "changing",
        (true, _) => "ready",
        (false, _) => "silent",
    };
    let mut row = vec![name.to_owned(), "host".to_owned(), of.host.to_string()];
    row.push(state.to_owned());
    row.extend(["-", "-", "-", "-"].map(str::to_owned));
    row
}

fn ports(hop: &Hop) -> String {
    let pairs = hop.pairs.iter().map(|p| match p.host {
        Some(host) => format!("{}:{}@{host}", p.ingress, p.egress),
        None => format!("{}:{}", p.ingress, p.egress),
    });
    pairs.collect::<Vec<_>>().join("+")
}

fn chain_id(text: &str) -> Result<ChainId, String> {
    let parts = text.split_once(':');
    let (switch, chain) =
        parts.ok_or_else(|| format!("chain: expected vale<N>:<name>, got {text:.60?}"))?;
    let (switch, chain): (SwitchName, ChainName) = (switch.parse()?, chain.parse()?);
    Ok(ChainId { switch, chain })
}

fn classifier(text: &str) -> Result<Classifier, String> {
    let mut found = Classifier::default();
    for word in text.split(',') {
        let parts = word.split_once('=');
        let (field, value) = parts.ok_or_else(|| format!("{word:.40?}: expected FIELD=VALUE"))?;
        let wrong = |e: String| format!("{field}: {value:.50?}: {e}");
        let network = || value.parse::<IpNet>().map_err(|e| wrong(e.to_string()));
        match field {
            "from" => found.source_port = Some(value.parse()?),
            "to" => found.destination_port = Some(value.parse()?),
            "source" => found.source = Some(network()?),
            "destination" => found.destination = Some(network()?),
            "protocol" => found.protocol = Some(protocol(value).map_err(wrong)?),
            "source-mac" => found.source_mac = Some(value.parse()?),
            "destination-mac" => found.destination_mac = Some(value.parse()?),
            "host" => found.host = Some(address(value).map_err(wrong)?),
            "sender" => found.senders.push(network()?),
            "receiver" => found.receivers.push(network()?),
            "source-ports" => found.source_ports = Some(range(value).map_err(wrong)?),
            "destination-ports" => found.destination_ports = Some(range(value).map_err(wrong)?),
            _ => return Err(format!("{field:.30?}: no such field")),
        }
    }
    Ok(found)
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| "expected an IP address".to_owned())
}

fn protocol(text: &str) -> Result<u8, String> {
    match text {
        "icmp" => Ok(1),
        "tcp" => Ok(6),
        "udp" => Ok(17),
        "icmpv6" => Ok(58),
        number => number
            .parse()
            .map_err(|_| "expected icmp, tcp, udp, icmpv6 or 0 to 255".to_owned()),
    }
}

fn range(text: &str) -> Result<PortRange, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |t: &str| t.parse().map_err(|_| "expected N or N-M".to_owned());
    let (first, last) = (number(first)?, number(last)?);
    Ok(PortRange { first, last })
}

fn hop(text: &str) -> Result<Hop, String> {
    let mut words = text.split(',');
    let pairs = words.next().unwrap_or_default().split('+').map(pair);
    let mut found = Hop {
        pairs: pairs.collect::<Result<_, _>>()?,
        transparent: false,
        on_failure: OnFailure::Block,
        copies: 1,
    };
    for word in words {
        let copies = word.strip_prefix("copies=");
        match (word, copies.map(str::parse)) {
            (_, Some(Ok(copies))) => found.copies = copies,
            ("transparent", _) => found.transparent = true,
            ("bypass", _) => found.on_failure = OnFailure::Bypass,
            _ => {
                return Err(format!(
                    "{word:.30?}: expected transparent, bypass or copies=N"
                ));
            }
        }
    }
    Ok(found)
}

fn pair(text: &str) -> Result<Pair, String> {
    let (text, host) = match text.split_once('@') {
        Some((text, host)) => (
            text,
            Some(address(host).map_err(|e| format!("{host:.50?}: {e}"))?),
        ),
        None => (text, None),
    };
    let (ports, weight) = text.split_once('*').unwrap_or((text, "1"));
    let (ingress, egress) = ports.split_once(':').unwrap_or((ports, ports));
    let weight = weight.parse();
    Ok(Pair {
        ingress: ingress.parse()?,
        egress: egress.parse()?,
        weight: weight.map_err(|_| format!("{text:.50?}: expected IN:OUT*WEIGHT"))?,
        host,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_classifier_has_fields_with_commas() {
        let found =
            classifier("from=a,source=10.0.0.0/8,protocol=udp,destination-ports=53").unwrap();
        let expected = Classifier {
            source_port: Some("a".parse().unwrap()),
            source: Some("10.0.0.0/8".parse().unwrap()),
            protocol: Some(17),
            destination_ports: Some(PortRange {
                first: 53,
                last: 53,
            }),
            ..Classifier::default()
        };
        assert_eq!(found, expected);
        for wrong in [
            "",
            "from",
            "form=a",
            "source=10",
            "protocol=256",
            "source-ports=a-b",
            "source-mac=1",
            "host=a",
            "sender=10",
        ] {
            assert!(classifier(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_hop_has_pairs_and_flags() {
        let found = hop("a:b*2+c:d,transparent,bypass,copies=3").unwrap();
        assert_eq!(ports(&found), "a:b+c:d");
        assert_eq!(found.pairs[0].weight, 2);
        assert!(found.transparent && found.on_failure == OnFailure::Bypass);
        assert_eq!(found.copies, 3);
        assert_eq!(ports(&hop("a").unwrap()), "a:a");
        let far = hop("a:b*2@192.0.2.1+c:d@::1").unwrap();
        assert_eq!(ports(&far), "a:b@192.0.2.1+c:d@::1");
        assert_eq!(far.pairs[0].weight, 2);
        for wrong in [
            "",
            "a!:b",
            "a:b*x",
            "a:b,fast",
            "a:b,copies=x",
            "a:b@c",
            "a:b@1.2.3.4*2",
        ] {
            assert!(hop(wrong).is_err(), "{wrong}");
        }
    }
}
