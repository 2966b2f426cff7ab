// SPDX-License-Identifier: Apache-2.0
//! The names that this machine has for services and IP protocols: `/etc/services` and `/etc/protocols`.
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;

const SERVICES: &str = "/etc/services";
const PROTOCOLS: &str = "/etc/protocols";

/// The files' names, read when a name is first asked for. A file that cannot be read has no names.
#[derive(Default)]
pub struct SystemNames {
    services: OnceCell<Entries>,
    protocols: OnceCell<Entries>,
}

impl SystemNames {
    /// The port of a service of `tcp` or `udp`.
    pub fn service(&self, name: &str, protocol: &str) -> Option<u16> {
        let services = self.services.get_or_init(|| Entries::read(SERVICES));
        services.port(name, protocol)
    }

    /// The number of a protocol.
    pub fn protocol(&self, name: &str) -> Option<u8> {
        let protocols = self.protocols.get_or_init(|| Entries::read(PROTOCOLS));
        protocols.number(name)
    }
}

/// The second words of a file's lines, by the first word and by each word behind the second one: each word of a
/// thousand rules is looked up.
struct Entries(HashMap<String, Vec<String>>);

impl Entries {
    fn read(path: &str) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        Self::of(&String::from_utf8_lossy(&bytes))
    }

    fn of(text: &str) -> Self {
        let mut entries: HashMap<_, Vec<_>> = HashMap::new();
        for line in text.lines() {
            let mut words = line
                .split('#')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            let (Some(first), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            for name in [first].into_iter().chain(words) {
                let values = entries.entry(name.to_string()).or_default();
                values.push(value.to_string());
            }
        }
        Self(entries)
    }

    fn values(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn port(&self, name: &str, protocol: &str) -> Option<u16> {
        self.values(name).iter().find_map(|value| {
            let (port, of) = value.split_once('/')?;
            port.parse().ok().filter(|_| of == protocol)
        })
    }

    fn number(&self, name: &str) -> Option<u8> {
        self.values(name)
            .iter()
            .find_map(|value| value.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_count_and_comments_do_not() {
        let services = "# no name\nhttp\t80/tcp\twww # web\nsyslog 514/udp\nshell 514/tcp cmd syslog\nodd x/tcp\nodd";
        let services = Entries::of(services);
        let port = |name, protocol| services.port(name, protocol);
        assert_eq!([port("http", "tcp"), port("www", "tcp")], [Some(80); 2]);
        assert_eq!(
            [port("http", "udp"), port("web", "tcp"), port("odd", "tcp")],
            [None; 3]
        );
        assert_eq!([port("syslog", "udp"), port("cmd", "tcp")], [Some(514); 2]);
        let protocols = Entries::of("ip 0 IP\nospf 89 OSPFIGP # routes\nbig 300 BIG\n");
        let number = |name| protocols.number(name);
        assert_eq!([number("ospf"), number("OSPFIGP")], [Some(89); 2]);
        assert_eq!([number("big"), number("routes")], [None; 2]);
    }
}
