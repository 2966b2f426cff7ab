// SPDX-License-Identifier: Apache-2.0
//! What the names of this machine's network interfaces stand for in a configuration.
use std::collections::BTreeMap;
use std::fs;

use click_core::Named;
use click_core::value::Prefix;
use nix::ifaddrs::getifaddrs;

/// Where Linux lists routes; addresses are hexadecimal, in the order of this machine's bytes.
const ROUTES: &str = "/proc/net/route";

/// The first address of each kind of every interface, and its gateway.
pub fn all() -> Vec<(String, Named)> {
    let mut named: BTreeMap<String, Named> = BTreeMap::new();
    for interface in getifaddrs().into_iter().flatten() {
        let entry = named.entry(interface.interface_name).or_default();
        let address = interface.address.as_ref();
        if let Some(link) = address.and_then(|a| a.as_link_addr()) {
            entry.ether = entry.ether.or(link.addr());
        }
        let ip = address.and_then(|a| a.as_sockaddr_in());
        if let (Some(ip), None) = (ip, entry.ip) {
            let mask = interface.netmask.as_ref().and_then(|m| m.as_sockaddr_in());
            entry.ip = Some(ip.ip().octets());
            entry.network = mask.map(|mask| Prefix {
                address: ip.ip(),
                mask: mask.ip(),
            });
        }
    }
    for (interface, gateway) in gateways(&fs::read_to_string(ROUTES).unwrap_or_default()) {
        let entry = named.entry(interface).or_default();
        entry.gateway = entry.gateway.or(Some(gateway));
    }
    named.into_iter().collect()
}

/// The default routes in a list of routes: interface and gateway.
fn gateways(list: &str) -> impl Iterator<Item = (String, [u8; 4])> {
    list.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (interface, network, gateway) = (words.next()?, words.next()?, words.next()?);
        let gateway = u32::from_str_radix(gateway, 16).ok()?.to_ne_bytes();
        let is_default = network == "00000000" && gateway != [0; 4];
        is_default.then(|| (interface.to_string(), gateway))
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn default_routes_have_gateways() {
        let gateway = u32::from_ne_bytes([192, 0, 2, 1]);
        let list = format!(
            "Iface\tDestination\tGateway \tFlags\neth1\t00000000\t00000000\t0001\n\
             eth0\t000200C0\t{gateway:08X}\t0003\neth0\t00000000\t{gateway:08X}\t0003\nbroken\n"
        );
        let found: Vec<_> = gateways(&list).collect();
        assert_eq!(found, [("eth0".to_string(), [192, 0, 2, 1])]);
    }

    #[test]
    fn the_loopback_interface_has_its_address() {
        let all = all();
        let (_, loopback) = all.iter().find(|(name, _)| name == "lo").unwrap();
        let (address, mask) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(255, 0, 0, 0));
        assert_eq!(loopback.ip, Some(address.octets()));
        assert_eq!(loopback.network, Some(Prefix { address, mask }));
    }
}
