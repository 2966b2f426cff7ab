// SPDX-License-Identifier: Apache-2.0
//! Messages of DHCPv6 as a relay agent sees them (RFC 8415, sections 9 and 19), with a remote ID (RFC 4649).
use core::net::Ipv6Addr;

use crate::dhcp::AgentText;
use crate::ip6::{Address, Prefix6};
use crate::prelude::*;

/// Ports of clients, and of servers and relays.
pub const CLIENT_PORT: u16 = 546;
pub const SERVER_PORT: u16 = 547;

/// Kinds of messages.
const RECONFIGURE: u8 = 10;
const RELAY_FORWARD: u8 = 12;
const RELAY_REPLY: u8 = 13;
/// Those of clients and of servers; others are relayed in both directions (RFC 7283).
const OF_CLIENTS: [u8; 8] = [1, 3, 4, 5, 6, 8, 9, 11];
const OF_SERVERS: [u8; 3] = [2, 7, RECONFIGURE];
/// Kind and transaction.
const HEADER: usize = 4;
/// Kind, hop count, link address and peer address.
const RELAY_HEADER: usize = 34;
const HOPS: usize = 1;
const LINK: usize = 2;
const PEER: usize = 18;
/// Options.
const RELAY_MESSAGE: u16 = 9;
const INTERFACE_ID: u16 = 18;
const REMOTE_ID: u16 = 37;
const OPTION_HEADER: usize = 4;
/// Relays that a message may have passed (RFC 8415, section 7.6).
const MAX_HOPS: u8 = 8;

/// Why a message is not relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not a message of DHCPv6.
    Malformed,
    /// It has passed too many relays.
    Deep,
    /// Another agent has relayed it, and this one relays for none.
    Relayed,
    /// Its kind comes from the other side.
    Kind,
    /// Its sender is not of the clients' network or not a server, or it belongs to another agent.
    Stranger,
    /// It does not fit into a packet.
    Long,
    /// No client has asked for it.
    Unasked,
}

/// All faults, in the order of their counts.
pub const FAULTS: [&str; 7] = [
    "malformed",
    "too deep",
    "relayed",
    "wrong kind",
    "stranger",
    "too long",
    "unasked",
];

/// What a question and its answers have in common: the transaction, and the address that gets the answers.
pub type Question = ([u8; 3], Address);

/// An answer on its way to a client or to a relay in front of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    pub question: Question,
    pub port: u16,
    pub message: &'a [u8],
    /// A server may send it at any time.
    pub is_reconfigure: bool,
}

/// What a relay adds to messages, and accepts.
pub struct Agent {
    /// Its address in the clients' network, and the network.
    pub link: Address,
    pub network: Prefix6,
    /// The name of its interface there.
    pub interface: AgentText,
    pub enterprise: u32,
    /// True if there may be relays between it and the clients.
    pub serves_relays: bool,
}

/// Calls a function for each option.
fn each_option<'a>(mut options: &'a [u8], mut see: impl FnMut(u16, &'a [u8])) -> Result<(), Fault> {
    while !options.is_empty() {
        let header = options.first_chunk::<OPTION_HEADER>();
        let [a, b, c, d] = *header.ok_or(Fault::Malformed)?;
        let rest = &options[OPTION_HEADER..];
        let length = usize::from(u16::from_be_bytes([c, d]));
        let value = rest.get(..length).ok_or(Fault::Malformed)?;
        see(u16::from_be_bytes([a, b]), value);
        options = &rest[length..];
    }
    Ok(())
}

fn is_relays(message: &[u8]) -> bool {
    matches!(message.first(), Some(&RELAY_FORWARD | &RELAY_REPLY))
}

/// What a relay's message carries, and the name of the interface.
fn opened(message: &[u8]) -> Result<(&[u8], Option<&[u8]>), Fault> {
    let options = message.get(RELAY_HEADER..).ok_or(Fault::Malformed)?;
    let (mut inner, mut interface, mut twice) = (None, None, false);
    each_option(options, |code, value| match code {
        RELAY_MESSAGE => twice |= inner.replace(value).is_some(),
        INTERFACE_ID => twice |= interface.replace(value).is_some(),
        _ => {}
    })?;
    let inner = inner.filter(|_| !twice).ok_or(Fault::Malformed)?;
    Ok((inner, interface))
}

/// The message of a client or a server inside at most `MAX_HOPS` messages of relays, all of one direction.
fn innermost(mut message: &[u8]) -> Result<&[u8], Fault> {
    let outer = message.first().copied();
    for _ in 0..=MAX_HOPS {
        if !is_relays(message) {
            let options = message.get(HEADER..).ok_or(Fault::Malformed)?;
            each_option(options, |_, _| {})?;
            return Ok(message);
        }
        if message.first().copied() != outer {
            return Err(Fault::Malformed);
        }
        message = opened(message)?.0;
    }
    Err(Fault::Deep)
}

fn transaction(message: &[u8]) -> Result<[u8; 3], Fault> {
    let id = message
        .get(1..HEADER)
        .and_then(|bytes| bytes.try_into().ok());
    id.ok_or(Fault::Malformed)
}

fn put_option(made: &mut Vec<u8>, code: u16, parts: [&[u8]; 2]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    made.extend(code.to_be_bytes());
    let length = u16::try_from(length).expect("a datagram has at most 65,535 bytes");
    made.extend(length.to_be_bytes());
    parts.iter().for_each(|part| made.extend(*part));
}

impl Agent {
    /// True for an address that a client or a relay of the clients' network may have.
    fn is_near(&self, address: Address) -> bool {
        let is_here = address.0.is_unicast_link_local() || self.network.contains(address);
        is_here
            && !address.0.is_multicast()
            && address != self.link
            && !self.link.0.is_unspecified()
    }

    /// A message of a client, or of a relay in front of it, as servers get it, of at most `most` bytes.
    pub fn forward(
        &self,
        message: &[u8],
        peer: Address,
        remote: &AgentText,
        most: usize,
    ) -> Result<(Vec<u8>, Question), Fault> {
        let kind = *message.first().ok_or(Fault::Malformed)?;
        if kind == RELAY_REPLY || OF_SERVERS.contains(&kind) {
            return Err(Fault::Kind);
        }
        let hops = match kind {
            RELAY_FORWARD if !self.serves_relays => return Err(Fault::Relayed),
            RELAY_FORWARD => *message.get(HOPS).ok_or(Fault::Malformed)?,
            _ => 0,
        };
        if hops >= MAX_HOPS {
            return Err(Fault::Deep);
        }
        let inner = innermost(message)?;
        if OF_SERVERS.contains(&inner[0]) {
            return Err(Fault::Kind);
        }
        if !self.is_near(peer) {
            return Err(Fault::Stranger);
        }
        let made = self.wrapped(message, peer, hops, remote);
        match made.len() <= most {
            true => Ok((made, (transaction(inner)?, peer))),
            false => Err(Fault::Long),
        }
    }

    /// The link that a message names for a client or a relay: a relay with a global address has named the clients' one
    /// (RFC 8415, section 19.1.2).
    fn link_of(&self, is_relays: bool, peer: Address) -> Address {
        match is_relays && !peer.0.is_unicast_link_local() {
            true => Address(Ipv6Addr::UNSPECIFIED),
            false => self.link,
        }
    }

    fn wrapped(&self, message: &[u8], peer: Address, hops: u8, remote: &AgentText) -> Vec<u8> {
        let is_relays = message[0] == RELAY_FORWARD;
        let mut made = vec![RELAY_FORWARD, hops + u8::from(is_relays)];
        made.extend(self.link_of(is_relays, peer).0.octets());
        made.extend(peer.0.octets());
        if !self.interface.0.is_empty() {
            put_option(&mut made, INTERFACE_ID, [self.interface.0.as_bytes(), &[]]);
        }
        if !remote.0.is_empty() {
            let enterprise = self.enterprise.to_be_bytes();
            put_option(&mut made, REMOTE_ID, [&enterprise, remote.0.as_bytes()]);
        }
        put_option(&mut made, RELAY_MESSAGE, [message, &[]]);
        made
    }

    /// What a server's message has for a client, or for a relay in front of it.
    pub fn reply<'a>(&self, message: &'a [u8]) -> Result<Answer<'a>, Fault> {
        match message.first() {
            Some(&RELAY_REPLY) => {}
            Some(kind) if *kind == RELAY_FORWARD || OF_CLIENTS.contains(kind) => {
                return Err(Fault::Kind);
            }
            _ => return Err(Fault::Malformed),
        }
        let last = innermost(message)?;
        let (inner, interface) = opened(message)?;
        if OF_CLIENTS.contains(&last[0]) {
            return Err(Fault::Kind);
        }
        let [link, peer] = [LINK, PEER].map(|at| Address::at(&message[at..]));
        let (link, peer) = link.zip(peer).ok_or(Fault::Malformed)?;
        let is_relays = inner[0] == RELAY_REPLY;
        let is_ours = match interface {
            Some(interface) => interface == self.interface.0.as_bytes(),
            None => link == self.link_of(is_relays, peer),
        };
        if !is_ours || !self.is_near(peer) || is_relays && !self.serves_relays {
            return Err(Fault::Stranger);
        }
        Ok(Answer {
            question: (transaction(last)?, peer),
            port: if is_relays { SERVER_PORT } else { CLIENT_PORT },
            message: inner,
            is_reconfigure: last[0] == RECONFIGURE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> Address {
        Address(text.parse().unwrap())
    }

    fn agent(serves_relays: bool) -> Agent {
        let link = address("2001:db8:1::1");
        Agent {
            link,
            network: Prefix6 {
                network: u128::from(link.0) >> 64 << 64,
                length: 64,
            },
            interface: AgentText("left".into()),
            enterprise: 9,
            serves_relays,
        }
    }

    fn forwarded(serves_relays: bool, message: &[u8], peer: &str) -> Result<Vec<u8>, Fault> {
        let remote = AgentText("r7".into());
        let made = agent(serves_relays).forward(message, address(peer), &remote, 1452);
        made.map(|(made, _)| made)
    }

    const SOLICIT: [u8; 8] = [1, 7, 8, 9, 0, 8, 0, 0];
    const REPLY: [u8; 8] = [7, 7, 8, 9, 0, 14, 0, 0];
    const CLIENT: &str = "fe80::9";

    /// A relay's message of a kind.
    fn relayed(kind: u8, hops: u8, link: &str, peer: &str, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut made = vec![kind, hops];
        made.extend(address(link).0.octets());
        made.extend(address(peer).0.octets());
        for (code, value) in options {
            put_option(&mut made, *code, [value, &[]]);
        }
        made
    }

    #[test]
    fn a_message_of_a_client_names_link_interface_and_remote() {
        let made = forwarded(false, &SOLICIT, CLIENT).unwrap();
        let remote = [&[0, 0, 0, 9][..], b"r7"].concat();
        let wanted = [
            (INTERFACE_ID, &b"left"[..]),
            (REMOTE_ID, &remote),
            (RELAY_MESSAGE, &SOLICIT),
        ];
        let link = "2001:db8:1::1";
        assert_eq!(made, relayed(RELAY_FORWARD, 0, link, CLIENT, &wanted));
        let bare = Agent {
            interface: AgentText::default(),
            ..agent(false)
        };
        let (made, question) = bare
            .forward(&SOLICIT, address(CLIENT), &AgentText::default(), 46)
            .unwrap();
        assert_eq!(
            made,
            relayed(RELAY_FORWARD, 0, link, CLIENT, &[(RELAY_MESSAGE, &SOLICIT)])
        );
        assert_eq!(question, ([7, 8, 9], address(CLIENT)));
        let long = bare.forward(&SOLICIT, address(CLIENT), &AgentText::default(), 45);
        assert_eq!(long, Err(Fault::Long));
    }

    #[test]
    fn relays_count_and_link_local_ones_get_a_link() {
        let first = |hops| {
            let options = [(RELAY_MESSAGE, &SOLICIT[..])];
            relayed(RELAY_FORWARD, hops, "2001:db8:7::1", CLIENT, &options)
        };
        assert_eq!(
            forwarded(false, &first(0), CLIENT),
            Err(Fault::Relayed),
            "no relays are served"
        );
        for (peer, link) in [("fe80::7", "2001:db8:1::1"), ("2001:db8:1::7", "::")] {
            let made = forwarded(true, &first(6), peer).unwrap();
            assert_eq!(made[HOPS], 7);
            assert_eq!(made[LINK..PEER], address(link).0.octets());
        }
        assert!(forwarded(true, &first(7), CLIENT).is_ok());
        assert_eq!(forwarded(true, &first(8), CLIENT), Err(Fault::Deep));
    }

    #[test]
    fn hop_counts_that_lie_do_not_hide_depth() {
        let nested = |depth| {
            (0..depth).fold(SOLICIT.to_vec(), |inner, _| {
                relayed(RELAY_FORWARD, 0, "::", CLIENT, &[(RELAY_MESSAGE, &inner)])
            })
        };
        assert!(forwarded(true, &nested(8), CLIENT).is_ok());
        assert_eq!(forwarded(true, &nested(9), CLIENT), Err(Fault::Deep));
        assert_eq!(forwarded(true, &nested(30), CLIENT), Err(Fault::Deep));
    }

    #[test]
    fn senders_and_kinds_of_the_other_side_are_refused() {
        for peer in ["::", "ff02::1", "2001:db8:2::7", "2001:db8:1::1", "::1"] {
            assert_eq!(forwarded(true, &SOLICIT, peer), Err(Fault::Stranger));
        }
        for kind in [2, 7, 10, RELAY_REPLY] {
            let message = [kind, 0, 0, 0];
            assert_eq!(forwarded(true, &message, CLIENT), Err(Fault::Kind));
            let inside = relayed(RELAY_FORWARD, 0, "::", CLIENT, &[(RELAY_MESSAGE, &message)]);
            assert!(forwarded(true, &inside, CLIENT).is_err());
        }
        // a kind that is not known is for servers (RFC 7283)
        assert!(forwarded(false, &[200, 0, 0, 0], CLIENT).is_ok());
        for bad in [
            &[][..],
            &[1],
            &[1, 0, 0],
            &[1, 0, 0, 0, 0, 1, 0, 1],
            &[&[12, 0][..], &[0; 31]].concat(),
        ] {
            assert_eq!(forwarded(true, bad, CLIENT), Err(Fault::Malformed));
        }
        let twice = [(RELAY_MESSAGE, &SOLICIT[..]); 2];
        let twice = relayed(RELAY_FORWARD, 0, "::", CLIENT, &twice);
        assert_eq!(forwarded(true, &twice, CLIENT), Err(Fault::Malformed));
        let nobody = Agent {
            link: address("::"),
            ..agent(false)
        };
        let none = nobody.forward(&SOLICIT, address(CLIENT), &AgentText::default(), 1452);
        assert_eq!(none, Err(Fault::Stranger), "no address, no relay");
    }

    #[test]
    fn an_answer_is_for_the_peer_that_asked() {
        let options = [(INTERFACE_ID, &b"left"[..]), (RELAY_MESSAGE, &REPLY)];
        let made = relayed(RELAY_REPLY, 0, "::", CLIENT, &options);
        let answer = agent(false).reply(&made).unwrap();
        assert_eq!(answer.question, ([7, 8, 9], address(CLIENT)));
        assert_eq!((answer.port, answer.message), (CLIENT_PORT, &REPLY[..]));
        let by_link = [(RELAY_MESSAGE, &REPLY[..])];
        let made = relayed(RELAY_REPLY, 0, "2001:db8:1::1", CLIENT, &by_link);
        assert!(agent(false).reply(&made).is_ok());
        let two = relayed(
            RELAY_REPLY,
            0,
            "2001:db8:1::1",
            "fe80::7",
            &[(RELAY_MESSAGE, &made)],
        );
        assert_eq!(agent(true).reply(&two).unwrap().port, SERVER_PORT);
        assert_eq!(agent(false).reply(&two), Err(Fault::Stranger));
    }

    #[test]
    fn answers_of_others_are_refused() {
        let inner = [(RELAY_MESSAGE, &REPLY[..])];
        let right = [(INTERFACE_ID, &b"right"[..]), (RELAY_MESSAGE, &REPLY)];
        let asked = [(RELAY_MESSAGE, &SOLICIT[..])];
        let link = "2001:db8:1::1";
        for (bad, fault) in [
            (
                relayed(RELAY_REPLY, 0, "::", CLIENT, &inner),
                Fault::Stranger,
            ),
            (
                relayed(RELAY_REPLY, 0, link, CLIENT, &right),
                Fault::Stranger,
            ),
            (
                relayed(RELAY_REPLY, 0, link, "2001:db8:2::1", &inner),
                Fault::Stranger,
            ),
            (
                relayed(RELAY_REPLY, 0, link, "ff02::1", &inner),
                Fault::Stranger,
            ),
            (relayed(RELAY_REPLY, 0, link, CLIENT, &asked), Fault::Kind),
            (relayed(RELAY_REPLY, 0, link, CLIENT, &[]), Fault::Malformed),
            (relayed(RELAY_FORWARD, 0, link, CLIENT, &inner), Fault::Kind),
            (SOLICIT.to_vec(), Fault::Kind),
            (REPLY.to_vec(), Fault::Malformed),
        ] {
            assert_eq!(agent(true).reply(&bad), Err(fault));
        }
    }

    proptest! {
        #[test]
        fn whatever_arrives(
            kind in 0u8..16, bytes in prop::collection::vec(any::<u8>(), 0..120), most in 0usize..300,
        ) {
            let message = [&[kind][..], &bytes].concat();
            let remote = AgentText("r".into());
            if let Ok((made, _)) = agent(true).forward(&message, address(CLIENT), &remote, most) {
                prop_assert!(made.len() <= most);
                prop_assert_eq!(opened(&made).unwrap().0, &message[..]);
            }
            let _ = agent(true).reply(&message);
        }

        /// What servers answer to what was forwarded comes back to the peer, through any number of relays.
        #[test]
        fn answers_go_back(depth in 0usize..8, id in any::<[u8; 3]>()) {
            let (asked, answered) = ([1, id[0], id[1], id[2]], [7, id[0], id[1], id[2]]);
            let wrap = |kind: u8, inner: Vec<u8>, hops: usize| {
                relayed(kind, hops as u8, "::", CLIENT, &[(RELAY_MESSAGE, &inner)])
            };
            let asked = (0..depth).fold(asked.to_vec(), |inner, n| wrap(RELAY_FORWARD, inner, n));
            let answered = (0..depth).fold(answered.to_vec(), |inner, n| wrap(RELAY_REPLY, inner, n));
            let (_, question) = agent(true)
                .forward(&asked, address(CLIENT), &AgentText::default(), 1452)
                .unwrap();
            let options = [(INTERFACE_ID, &b"left"[..]), (RELAY_MESSAGE, &answered)];
            let made = relayed(RELAY_REPLY, depth as u8, "::", CLIENT, &options);
            prop_assert_eq!(agent(true).reply(&made).unwrap().question, question);
        }
    }

    #[test]
    fn answers_find_relays_of_an_agent_without_an_interface() {
        let agent = Agent {
            interface: AgentText::default(),
            ..agent(true)
        };
        let far = [(RELAY_MESSAGE, &SOLICIT[..])];
        let asked = relayed(RELAY_FORWARD, 0, "2001:db8:7::1", CLIENT, &far);
        for (peer, link) in [("2001:db8:1::5", "::"), ("fe80::5", "2001:db8:1::1")] {
            let none = AgentText::default();
            let forwarded = agent.forward(&asked, address(peer), &none, 1452);
            let (made, question) = forwarded.unwrap();
            assert_eq!(made[LINK..PEER], address(link).0.octets());
            let answer = [(RELAY_MESSAGE, &REPLY[..])];
            let inner = relayed(RELAY_REPLY, 0, "2001:db8:7::1", CLIENT, &answer);
            let message = [(RELAY_MESSAGE, &inner[..])];
            let answered = relayed(RELAY_REPLY, 1, link, peer, &message);
            let found = agent.reply(&answered);
            assert_eq!(found.map(|found| found.question), Ok(question));
            let other = relayed(RELAY_REPLY, 1, "2001:db8:2::1", peer, &message);
            assert!(agent.reply(&other).is_err(), "of another link");
        }
    }
}
