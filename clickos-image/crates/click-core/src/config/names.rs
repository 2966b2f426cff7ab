// SPDX-License-Identifier: Apache-2.0
//! Names for addresses, as AddressInfo defines them, `vif<N>` for the devices' hardware addresses, and the names of the
//! machine's network interfaces.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::config::args::ArgContext;
use crate::config::environment::Environment;
use crate::config::value::{EtherAddr, FromArg, Prefix};
use click_lang::sort;

/// The meanings of a name.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Its hardware address.
    pub ether: Option<[u8; 6]>,
    /// Its address.
    pub ip: Option<[u8; 4]>,
    /// Its network, host bits included.
    pub network: Option<Prefix>,
    /// The machine's way out by this interface.
    pub gateway: Option<[u8; 4]>,
    /// The offset of the annotation it names.
    pub annotation: Option<usize>,
    /// Other meanings by kind, such as a port of UDP.
    pub meanings: BTreeMap<&'static str, String>,
}

impl Named {
    /// The address that the name `text` means. The form `name:bcast` is the last address of its
    /// network. The form `name:gw` is the gateway's address, or the first of the network without a
    /// gateway.
    pub fn address(&self, text: &str) -> Option<Ipv4Addr> {
        let first = || Some(self.network?.first());
        match suffix(text) {
            "" | "ip" | "ip4" => self.ip.map(Ipv4Addr::from),
            "bcast" => Some(self.network?.last()),
            "gw" => self.gateway.map(Ipv4Addr::from).or_else(first),
            _ => None,
        }
    }

    /// The hardware address that `text`, a name, means.
    pub fn hardware_address(&self, text: &str) -> Option<[u8; 6]> {
        let is_hardware = matches!(suffix(text), "" | "eth" | "ether" | "ethernet");
        self.ether.filter(|_| is_hardware)
    }

    /// The network that `text`, a name, means.
    pub fn network(&self, text: &str) -> Option<Prefix> {
        let is_network = matches!(suffix(text), "" | "net" | "ipnet" | "ip4net");
        self.network.filter(|_| is_network)
    }

    /// Adds what `other`, which was defined later in the same place, says of the name.
    fn set(&mut self, other: Self) {
        self.ether = other.ether.or(self.ether);
        self.ip = other.ip.or(self.ip);
        self.network = other.network.or(self.network);
    }

    /// Adds a network; one with host bits says the address, too, and gives way to what the same line says.
    fn set_network(&mut self, network: Prefix) {
        if network.address == network.base() {
            self.network = Some(network);
        } else {
            self.network = self.network.or(Some(network));
            self.ip = self.ip.or(Some(network.address.octets()));
        }
    }
}

/// The part after the colon of a name.
fn suffix(text: &str) -> &str {
    text.split_once(':').map_or("", |(_, suffix)| suffix)
}

/// A meaning that an element gives to a name.
pub(crate) enum Definition {
    /// Addresses, prefixes or hardware addresses, as they are written.
    Addresses(Vec<String>),
    /// The annotation at this offset.
    Annotation(usize),
    /// Something of this kind, as it is written.
    Meaning(&'static str, String),
}

/// Names for addresses.
#[derive(Default)]
pub struct Names {
    table: BTreeMap<String, Named>,
}

impl Names {
    /// The names every router knows.
    pub fn new(environment: &Environment) -> Self {
        let interfaces = environment.host.iter().flat_map(|host| host.interfaces());
        let mut names = Self {
            table: sort::tree(interfaces),
        };
        for (devid, device) in &environment.devices {
            let ether = device.try_borrow().ok().map(|d| d.mac());
            names.table.insert(
                format!("vif{devid}"),
                Named {
                    ether,
                    ..Named::default()
                },
            );
        }
        names
    }

    /// Defines a name in the compound that `element` is in.
    pub(crate) fn define(
        &mut self,
        element: &str,
        name: &str,
        value: &Definition,
        environment: &Environment,
    ) -> Result<(), String> {
        match value {
            Definition::Addresses(values) => {
                let arg_context = ArgContext {
                    environment,
                    names: self,
                    element,
                };
                let mut named = Named::default();
                for value in values {
                    add_address(&mut named, value, arg_context)
                        .map_err(|e| format!("{name}: {e}"))?;
                }
                self.entry(element, name).set(named);
                Ok(())
            }
            Definition::Annotation(offset) => {
                self.entry(element, name).annotation = Some(*offset);
                Ok(())
            }
            Definition::Meaning(kind, text) => {
                let meanings = &mut self.entry(element, name).meanings;
                meanings.insert(kind, text.clone());
                Ok(())
            }
        }
    }

    /// The entry of `name` in the compound of `element`.
    fn entry(&mut self, element: &str, name: &str) -> &mut Named {
        let scope = element
            .rsplit_once('/')
            .map_or(String::new(), |(p, _)| format!("{p}/"));
        self.table.entry(scope + name).or_default()
    }

    /// Looks a name up from `element` outwards; what is after a colon (`name:ip`, `name:bcast`) does not count.
    pub fn find(&self, element: &str, name: &str) -> Option<&Named> {
        let name = name.split(':').next().unwrap_or(name);
        let mut around = element;
        while let Some((outer, _)) = around.rsplit_once('/') {
            if let Some(named) = self.table.get(&format!("{outer}/{name}")) {
                return Some(named);
            }
            around = outer;
        }
        self.table.get(name)
    }
}

/// Adds an address, or another name, to what a line says of a name; a lone address goes before that of a network.
fn add_address(named: &mut Named, value: &str, at: ArgContext<'_>) -> Result<(), String> {
    let ether = EtherAddr::from_arg(value, at).ok().map(|ether| ether.0);
    let ip = Ipv4Addr::from_arg(value, at).ok().map(|ip| ip.octets());
    match (ether, ip) {
        (Some(_), Some(_)) => {
            named.ether = named.ether.or(ether);
            named.ip = named.ip.or(ip);
        }
        (Some(_), None) => named.ether = ether,
        (None, Some(_)) => named.ip = ip,
        (None, None) => match Prefix::from_arg(value, at) {
            Ok(network) => named.set_network(network),
            Err(_) => return Err(format!("expected an address, got \"{value}\"")),
        },
    }
    Ok(())
}
