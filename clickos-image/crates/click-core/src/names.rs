// SPDX-License-Identifier: Apache-2.0
//! Names for addresses, as AddressInfo defines them, `vif<N>` for the devices' hardware addresses, and the names of the
//! machine's network interfaces.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::net::Ipv4Addr;

use crate::args::Surroundings;
use crate::environment::Environment;
use crate::value::{EtherAddr, FromArg, Prefix};

/// What a name stands for.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Its hardware address.
    pub ether: Option<[u8; 6]>,
    /// Its address.
    pub ip: Option<[u8; 4]>,
    /// The prefix length of its network.
    pub prefix: Option<u8>,
    /// The machine's way out by this interface.
    pub gateway: Option<[u8; 4]>,
    /// The offset of the annotation it names.
    pub annotation: Option<usize>,
    /// What else it stands for, by kind, such as a port of UDP.
    pub meanings: BTreeMap<&'static str, String>,
}

impl Named {
    /// The address that `text`, a name, means: its own, with `name:bcast` the last of its network, with `name:gw` that of
    /// the gateway.
    pub fn address(&self, text: &str) -> Option<Ipv4Addr> {
        if text.ends_with(":gw") {
            return self.gateway.map(Ipv4Addr::from);
        }
        let ip = u32::from_be_bytes(self.ip?);
        let hosts = u32::MAX.checked_shr(self.prefix.unwrap_or(32).into());
        let broadcast = text.ends_with(":bcast");
        Some(Ipv4Addr::from(if broadcast {
            ip | hosts.unwrap_or(0)
        } else {
            ip
        }))
    }
}

/// What an element defines a name to be.
pub(crate) enum Definition {
    /// An address, a prefix or a hardware address, as it is written.
    Address(String),
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
            table: interfaces.collect(),
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
            Definition::Address(value) => self.define_address(element, name, value, environment),
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

    /// What `name` stands for in the compound that `element` is in.
    fn entry(&mut self, element: &str, name: &str) -> &mut Named {
        let scope = element
            .rsplit_once('/')
            .map_or(String::new(), |(p, _)| format!("{p}/"));
        self.table.entry(scope + name).or_default()
    }

    fn define_address(
        &mut self,
        element: &str,
        name: &str,
        value: &str,
        environment: &Environment,
    ) -> Result<(), String> {
        let surroundings = Surroundings {
            environment,
            names: self,
            element,
        };
        let ether = EtherAddr::from_arg(value, surroundings);
        let prefix = Prefix::from_arg(value, surroundings);
        let named = self.entry(element, name);
        match (ether, prefix) {
            (Ok(ether), _) => named.ether = Some(ether.0),
            (_, Ok(prefix)) => {
                named.ip = Some(prefix.address.octets());
                if value.contains('/') {
                    named.prefix = u8::try_from(u32::from(prefix.mask).leading_ones()).ok();
                }
            }
            _ => return Err(format!("{name}: expected an address, got \"{value}\"")),
        }
        Ok(())
    }

    /// Looks a name up from `element` outwards; what is behind a colon (`name:ip`, `name:bcast`) does not count.
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
