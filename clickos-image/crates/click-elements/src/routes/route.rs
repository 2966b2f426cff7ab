// SPDX-License-Identifier: Apache-2.0
//! One route: `10.0.0.0/8 10.0.0.1 2`.
use core::fmt;

use click_core::ArgContext;
use click_core::text::split_words;

use crate::prelude::*;

/// A network: its first address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    pub first: u32,
    pub length: u8,
}

impl Network {
    /// The network of this length that an address is in.
    pub fn of(address: u32, length: u8) -> Self {
        let mask = u32::from(click_core::value::mask_of(length));
        Self {
            first: address & mask,
            length,
        }
    }

    /// Its last address.
    pub fn last(self) -> u32 {
        self.first | !u32::from(click_core::value::mask_of(self.length))
    }
}

/// Where packets of a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The address that becomes their destination annotation.
    pub gateway: Option<Ipv4Addr>,
    pub port: usize,
    /// The number of the security association that packets are sent with.
    pub tunnel: Option<u32>,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub network: Network,
    pub hop: Hop,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Network { first, length } = self.network;
        write!(f, "{}/{length} ", Ipv4Addr::from(first))?;
        match self.hop.gateway {
            Some(gateway) => write!(f, "{gateway} {}", self.hop.port),
            None => write!(f, "- {}", self.hop.port),
        }
    }
}

impl Route {
    /// The route as a line of a table, in columns of eight.
    pub fn columns(&self) -> String {
        let text = self.to_string();
        let mut words = text.split(' ');
        let mut column = |width: usize| {
            let word = words.next().unwrap_or_default();
            let more = if word.len() + 1 < width { "\t" } else { "" };
            format!("{word}\t{more}")
        };
        format!("{}{}{}", column(17), column(9), self.hop.port)
    }
}

/// A network and, perhaps, where its packets go.
pub struct Partial {
    pub network: Network,
    /// The gateway, if the route names one; the inner value is `None` for `-`.
    pub gateway: Option<Option<Ipv4Addr>>,
    pub port: Option<usize>,
}

impl Partial {
    /// The route of a network, whatever its hop.
    pub fn of(network: Network) -> Self {
        Self {
            network,
            gateway: None,
            port: None,
        }
    }

    /// Parses `NETWORK/LENGTH [GATEWAY] [PORT]`.
    ///
    /// # Errors
    /// What is wrong; a port that is not one of `ports`.
    pub fn parse(text: &str, ports: usize, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let (network, rest) = match words.split_first() {
            Some((first, rest)) => (network(first, at)?, rest),
            None => return Err("expected NETWORK/LENGTH [GATEWAY] OUTPUT, got nothing".into()),
        };
        let is_gateway =
            |w: &&String| w.as_str() == "-" || w.contains('.') || usize::from_arg(w, at).is_err();
        let (gateway, rest) = match rest.split_first() {
            Some((word, rest)) if is_gateway(&word) => (Some(gateway(word, at)?), rest),
            _ => (None, rest),
        };
        let port = match rest {
            [] => None,
            [word] => Some(port(word, ports, at)?),
            [_, more, ..] => {
                return Err(format!(
                    "expected nothing behind OUTPUT, got \"{}\"",
                    more.shown()
                ));
            }
        };
        Ok(Self {
            network,
            gateway,
            port,
        })
    }

    /// The route this is, which `text` said, if it is complete.
    ///
    /// # Errors
    /// There is no output.
    pub fn complete(&self, text: &str) -> Result<Route, String> {
        let wrong = || expected("NETWORK/LENGTH [GATEWAY] OUTPUT", text);
        let port = self.port.ok_or_else(wrong)?;
        let gateway = self.gateway.flatten();
        Ok(Route {
            network: self.network,
            hop: Hop {
                gateway,
                port,
                tunnel: None,
            },
        })
    }

    /// True if this names `route`: without a port the network is enough.
    pub fn names(&self, route: &Route) -> bool {
        let hop = route.hop;
        let gateway = self.gateway.flatten();
        self.network == route.network
            && self
                .port
                .is_none_or(|port| port == hop.port && gateway == hop.gateway)
    }
}

fn network(word: &str, at: ArgContext<'_>) -> Result<Network, String> {
    let prefix = Prefix::from_arg(word, at)?;
    let mask = u32::from(prefix.mask);
    let length = mask.leading_ones();
    if mask.count_ones() != length {
        return Err(format!("{} is not a mask of leading ones", prefix.mask));
    }
    let length = u8::try_from(length).expect("at most 32");
    Ok(Network::of(prefix.address.into(), length))
}

/// `-` and 0.0.0.0 mean that there is none.
fn gateway(word: &str, at: ArgContext<'_>) -> Result<Option<Ipv4Addr>, String> {
    match word {
        "-" => Ok(None),
        _ => Ipv4Addr::from_arg(word, at).map(|a| Some(a).filter(|a| !a.is_unspecified())),
    }
}

fn port(word: &str, ports: usize, at: ArgContext<'_>) -> Result<usize, String> {
    match usize::from_arg(word, at) {
        Ok(port) if port < ports => Ok(port),
        Ok(port) => Err(format!("output {port} does not exist, there are {ports}")),
        Err(message) => Err(format!("OUTPUT: {message}")),
    }
}
