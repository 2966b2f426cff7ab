// SPDX-License-Identifier: Apache-2.0
//! The names that this machine has for services and IP protocols: `/etc/services` and `/etc/protocols`.
use std::cell::OnceCell;
use std::fs;

const SERVICES: &str = "/etc/services";
const PROTOCOLS: &str = "/etc/protocols";

/// The files' texts, read when a name is first asked for. A file that cannot be read has no names.
#[derive(Default)]
pub struct SystemNames {
    services: OnceCell<String>,
    protocols: OnceCell<String>,
}

fn text(path: &str) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl SystemNames {
    /// The port of a service of `tcp` or `udp`.
    pub fn service(&self, name: &str, protocol: &str) -> Option<u16> {
        service(self.services.get_or_init(|| text(SERVICES)), name, protocol)
    }

    /// The number of a protocol.
    pub fn protocol(&self, name: &str) -> Option<u8> {
        protocol(self.protocols.get_or_init(|| text(PROTOCOLS)), name)
    }
}

/// The second words of the lines whose first word, or a word behind the second one, is `name`.
fn entries<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| {
        let line = line.split('#').next()?;
        let mut words = line.split_whitespace();
        let (first, value) = (words.next()?, words.next()?);
        (first == name || words.any(|alias| alias == name)).then_some(value)
    })
}

fn service(text: &str, name: &str, protocol: &str) -> Option<u16> {
    entries(text, name).find_map(|value| {
        let (port, of) = value.split_once('/')?;
        port.parse().ok().filter(|_| of == protocol)
    })
}

fn protocol(text: &str, name: &str) -> Option<u8> {
    entries(text, name).find_map(|value| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_count_and_comments_do_not() {
        let services = "# no name\nhttp\t80/tcp\twww # web\nsyslog 514/udp\nshell 514/tcp cmd syslog\nodd x/tcp\nodd";
        let port = |name, protocol| service(services, name, protocol);
        assert_eq!([port("http", "tcp"), port("www", "tcp")], [Some(80); 2]);
        assert_eq!(
            [port("http", "udp"), port("web", "tcp"), port("odd", "tcp")],
            [None; 3]
        );
        assert_eq!([port("syslog", "udp"), port("cmd", "tcp")], [Some(514); 2]);
        let protocols = "ip 0 IP\nospf 89 OSPFIGP # routes\nbig 300 BIG\n";
        assert_eq!(protocol(protocols, "ospf"), Some(89));
        assert_eq!(protocol(protocols, "OSPFIGP"), Some(89));
        assert_eq!(
            [protocol(protocols, "big"), protocol(protocols, "routes")],
            [None; 2]
        );
    }
}
