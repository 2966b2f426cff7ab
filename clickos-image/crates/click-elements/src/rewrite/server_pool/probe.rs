// SPDX-License-Identifier: Apache-2.0
//! Probes of servers and their answers: a ping, or the begin of a TCP connection, by either version of IP.
use core::net::{IpAddr, Ipv6Addr};

use click_wire::{checksum, icmp, ipv4, tcp};

use super::http::Http;
use super::servers::{Asked, Outcome, Probe};
use crate::ip_packet::{encapsulate, encapsulate_icmp, header};
use crate::ip6;
use crate::prelude::*;

const TTL: u8 = 64;
/// Echo request and reply of ICMP, then of ICMPv6.
const ECHO: [u8; 2] = [8, 0];
const ECHO6: [u8; 2] = [128, 129];
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
/// Where ephemeral ports begin (RFC 6335, section 6).
const FIRST_PORT: u16 = 0xc000;

/// The probing addresses, and the kind of the probes.
pub struct Prober {
    pub source: Ipv4Addr,
    /// `::` without one.
    pub source6: Ipv6Addr,
    /// The TCP port that is probed; 0 for pings.
    pub port: u16,
    /// What is asked over the connection.
    pub http: Http,
}

/// What a packet for the prober says.
#[derive(Debug)]
pub enum Said<'a> {
    /// The number of a ping.
    Echo(u32),
    /// A segment and its text.
    Segment(tcp::Repr, &'a [u8]),
}

/// What follows from an answer.
#[derive(Debug, Default)]
pub struct Reply {
    /// What became of the probe, if that is known.
    pub outcome: Option<Outcome>,
    /// The segment that the server gets, and its text.
    pub segment: Option<(tcp::Repr, String)>,
    /// The request that waits for its answer.
    pub asked: Option<Asked>,
}

/// A probe's own port.
fn port_of(number: u32) -> u16 {
    FIRST_PORT | (number as u16)
}

impl Prober {
    /// True if it has an address of the server's version.
    pub fn reaches(&self, server: IpAddr) -> bool {
        server.is_ipv4() || cfg!(services) && !self.source6.is_unspecified()
    }

    /// Makes the probe with this number.
    pub fn probe(&self, ctx: &mut Context<'_>, server: IpAddr, number: u32) -> Option<Packet> {
        if self.port > 0 {
            return self.segment(ctx, server, self.to_server(SYN, number, 0), "");
        }
        let [kind, _] = if server.is_ipv4() { ECHO } else { ECHO6 };
        let message = icmp::Repr {
            kind,
            code: 0,
            rest: number,
        };
        match server {
            IpAddr::V4(server) => {
                let mut packet = ctx.pool().packet_from(&[])?;
                let made = encapsulate_icmp(&mut packet, message)
                    && encapsulate(&mut packet, self.header(server, ipv4::ICMP));
                made.then_some(packet)
            }
            IpAddr::V6(_) if !cfg!(services) => None,
            IpAddr::V6(server) => {
                let mut packet = ctx.pool().alloc(ip6::HEADER + icmp::HEADER)?;
                message.emit(&mut packet.data_mut()[ip6::HEADER..]);
                Some(self.finish6(packet, server, ip6::ICMP6, 2))
            }
        }
    }

    /// A segment to a server.
    fn to_server(&self, flags: u8, number: u32, acknowledgement: u32) -> tcp::Repr {
        tcp::Repr {
            source: port_of(number),
            destination: self.port,
            sequence: match flags {
                SYN => number,
                _ => number.wrapping_add(1),
            },
            acknowledgement,
            flags,
            window: if flags == RST { 0 } else { u16::MAX },
        }
    }

    /// The segments that end the connection of a probe that got no answer over it: a server takes only one of them, for
    /// it knows the request or not (RFC 5961, section 3.2).
    pub fn give_up(&self, probe: &Probe) -> Option<[tcp::Repr; 2]> {
        let asked = probe.asked.filter(|_| cfg!(services))?;
        let before = self.to_server(RST, probe.number, 0);
        let behind = tcp::Repr {
            sequence: asked.end,
            ..before
        };
        Some([before, behind])
    }

    /// Makes a TCP segment.
    pub fn segment(
        &self,
        ctx: &mut Context<'_>,
        server: IpAddr,
        segment: tcp::Repr,
        words: &str,
    ) -> Option<Packet> {
        match server {
            IpAddr::V4(server) => {
                let mut packet = ctx.pool().alloc(tcp::HEADER + words.len())?;
                packet.data_mut()[tcp::HEADER..].copy_from_slice(words.as_bytes());
                segment.emit(packet.data_mut(), self.source, server);
                encapsulate(&mut packet, self.header(server, ipv4::TCP)).then_some(packet)
            }
            IpAddr::V6(_) if !cfg!(services) => None,
            IpAddr::V6(server) => {
                let begin = ip6::HEADER + tcp::HEADER;
                let mut packet = ctx.pool().alloc(begin + words.len())?;
                let bytes = packet.data_mut();
                bytes[begin..].copy_from_slice(words.as_bytes());
                let no = Ipv4Addr::UNSPECIFIED;
                segment.emit(&mut bytes[ip6::HEADER..], no, no);
                Some(self.finish6(packet, server, ipv4::TCP, 16))
            }
        }
    }

    /// Puts the header of IPv6 in front of a message, with a checksum at a place of the message.
    fn finish6(&self, mut packet: Packet, server: Ipv6Addr, protocol: u8, sum_at: usize) -> Packet {
        let (from, to) = (ip6::Address(self.source6), ip6::Address(server));
        ip6::emit(packet.data_mut(), protocol, from, to);
        ip6::fill_checksum(packet.data_mut(), sum_at);
        packet.set_network(0, ip6::HEADER);
        to.put(&mut packet);
        packet
    }

    fn header(&self, server: Ipv4Addr, protocol: u8) -> ipv4::Repr {
        ipv4::Repr {
            tos: 0,
            id: 0,
            fragment: 0,
            ttl: TTL,
            protocol,
            source: self.source,
            destination: server,
            payload_len: 0,
        }
    }

    /// Reads a packet: its sender, and what it says; `None` if it answers no probe.
    pub fn read<'a>(&self, packet: &'a Packet) -> Option<(IpAddr, Said<'a>)> {
        if cfg!(services) && packet.network()?.first()? >> 4 == 6 {
            return self.read6(packet.network()?);
        }
        let header = header(packet).filter(|h| h.destination() == self.source)?;
        let (server, body) = (header.source(), packet.transport()?);
        let length = u16::try_from(body.len()).ok()?;
        let pseudo = |protocol| checksum::pseudo(server, self.source, protocol, length);
        let said = match header.protocol() {
            ipv4::TCP if self.port > 0 => segment(body, pseudo(ipv4::TCP)),
            ipv4::ICMP if self.port == 0 => echo(body, 0, ECHO),
            _ => None,
        };
        Some((server.into(), said?))
    }

    fn read6<'a>(&self, bytes: &'a [u8]) -> Option<(IpAddr, Said<'a>)> {
        let header = ip6::View::of(bytes).filter(|h| h.destination().0 == self.source6)?;
        let body = bytes.get(ip6::HEADER..ip6::HEADER + header.payload_len())?;
        let rest = u64::from(header.next_header()) + body.len() as u64;
        let pseudo = checksum::add(rest, &bytes[8..ip6::HEADER]);
        let said = match header.next_header() {
            ipv4::TCP if self.port > 0 => segment(body, pseudo),
            ip6::ICMP6 if self.port == 0 => echo(body, pseudo, ECHO6),
            _ => None,
        };
        Some((header.source().0.into(), said?))
    }

    /// What follows from what a server says to a probe.
    pub fn hear(&self, server: IpAddr, probe: &Probe, said: &Said<'_>) -> Option<Reply> {
        let (segment, words) = match said {
            Said::Echo(number) => {
                return (*number == probe.number).then_some(Reply {
                    outcome: Some(Outcome::Answered),
                    ..Reply::default()
                });
            }
            Said::Segment(segment, words) => (segment, *words),
        };
        let (number, next) = (probe.number, probe.number.wrapping_add(1));
        if segment.source != self.port || segment.destination != port_of(number) {
            return None;
        }
        let begins = segment.acknowledgement == next;
        match segment.flags & (SYN | ACK | RST) {
            flags if flags == SYN | ACK && begins => Some(self.accepted(server, number, segment)),
            flags if flags & RST != 0 && flags & ACK != 0 && begins => Some(Reply {
                outcome: Some(Outcome::Refused),
                ..Reply::default()
            }),
            // an older connection of the port, which ends (RFC 9293, section 3.10.7.3)
            flags if flags & ACK != 0 && flags & RST == 0 && !begins && probe.asked.is_none() => {
                Some(Self::foreign(segment))
            }
            flags if cfg!(services) => self.answered(probe, flags, segment, words),
            _ => None,
        }
    }

    /// A server answers the request, or resets its connection.
    fn answered(
        &self,
        probe: &Probe,
        flags: u8,
        segment: &tcp::Repr,
        words: &[u8],
    ) -> Option<Reply> {
        let asked = probe.asked.filter(|a| a.first == segment.sequence)?;
        if flags & RST != 0 {
            return Some(Reply {
                outcome: Some(Outcome::Refused),
                ..Reply::default()
            });
        }
        if flags != ACK || segment.acknowledgement != asked.end {
            return None;
        }
        let outcome = self.http.judge(words)?;
        let [_, end] = self.give_up(probe)?;
        Some(Reply {
            outcome: Some(outcome),
            segment: Some((end, String::new())),
            asked: None,
        })
    }

    /// The reset of a segment that is not of the probe's connection.
    fn foreign(segment: &tcp::Repr) -> Reply {
        let reset = tcp::Repr {
            source: segment.destination,
            destination: segment.source,
            sequence: segment.acknowledgement,
            acknowledgement: 0,
            flags: RST,
            window: 0,
        };
        Reply {
            segment: Some((reset, String::new())),
            ..Reply::default()
        }
    }

    /// A server accepts the connection: it is asked, or the connection ends.
    fn accepted(&self, server: IpAddr, number: u32, segment: &tcp::Repr) -> Reply {
        if cfg!(services) && self.http.is_used() {
            let first = segment.sequence.wrapping_add(1);
            let request = self.http.request(server, self.port);
            let question = self.to_server(ACK | PSH, number, first);
            let end = question.sequence.wrapping_add(request.len() as u32);
            return Reply {
                outcome: None,
                segment: Some((question, request)),
                asked: Some(Asked { first, end }),
            };
        }
        Reply {
            outcome: Some(Outcome::Answered),
            segment: Some((self.to_server(RST, number, 0), String::new())),
            asked: None,
        }
    }
}

/// A segment whose checksum with a pseudo header is right.
fn segment(body: &[u8], pseudo: u64) -> Option<Said<'_>> {
    if checksum::finish(checksum::add(pseudo, body)) != 0 {
        return None;
    }
    let segment = tcp::Repr::read(body).ok()?;
    let words = body.get(usize::from(body[12] >> 4) * 4..)?;
    Some(Said::Segment(segment, words))
}

/// The answer to a ping.
fn echo(body: &[u8], pseudo: u64, [_, reply]: [u8; 2]) -> Option<Said<'_>> {
    if body.len() < icmp::HEADER || checksum::finish(checksum::add(pseudo, body)) != 0 {
        return None;
    }
    let number = body[4..].first_chunk().map(|b| u32::from_be_bytes(*b))?;
    (body[0] == reply).then_some(Said::Echo(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 8));
    const PROBE: Probe = Probe {
        number: u32::MAX,
        sent_ns: 0,
        asked: None,
        failed: None,
    };
    const ACCEPTED: tcp::Repr = tcp::Repr {
        source: 80,
        destination: u16::MAX,
        sequence: 5,
        acknowledgement: 0,
        flags: SYN | ACK,
        window: 1,
    };

    fn prober(path: &str) -> Prober {
        Prober {
            source: Ipv4Addr::LOCALHOST,
            source6: Ipv6Addr::UNSPECIFIED,
            port: 80,
            http: Http::new(path),
        }
    }

    fn heard(prober: &Prober, probe: Probe, segment: tcp::Repr, words: &str) -> Option<Reply> {
        prober.hear(SERVER, &probe, &Said::Segment(segment, words.as_bytes()))
    }

    #[test]
    fn an_accepted_connection_is_reset() {
        let reply = heard(&prober(""), PROBE, ACCEPTED, "").unwrap();
        assert!(reply.outcome == Some(Outcome::Answered));
        let (reset, words) = reply.segment.unwrap();
        assert_eq!((reset.source, reset.destination), (u16::MAX, 80));
        assert_eq!((reset.sequence, reset.flags, words.len()), (0, RST, 0));
    }

    #[test]
    fn other_segments_are_no_answers() {
        for wrong in [
            tcp::Repr {
                source: 81,
                ..ACCEPTED
            },
            tcp::Repr {
                destination: 0xc000,
                ..ACCEPTED
            },
            tcp::Repr {
                flags: ACK,
                ..ACCEPTED
            },
        ] {
            assert!(heard(&prober(""), PROBE, wrong, "").is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_reset_says_that_the_port_is_closed() {
        let reset = tcp::Repr {
            flags: RST | ACK,
            ..ACCEPTED
        };
        let reply = heard(&prober(""), PROBE, reset, "").unwrap();
        assert!(reply.outcome == Some(Outcome::Refused) && reply.segment.is_none());
    }

    #[test]
    fn a_server_is_asked_over_the_connection() {
        let prober = prober("/health");
        let reply = heard(&prober, PROBE, ACCEPTED, "").unwrap();
        let (request, words) = reply.segment.unwrap();
        let end = words.len() as u32;
        assert!(reply.outcome.is_none() && reply.asked == Some(Asked { first: 6, end }));
        assert!(words.starts_with("GET /health HTTP/1.1\r\nHost: 10.0.0.8\r\n"));
        assert_eq!((request.flags, request.acknowledgement), (ACK | PSH, 6));
        let asked = Probe {
            asked: reply.asked,
            ..PROBE
        };
        let answer = tcp::Repr {
            flags: ACK | PSH,
            sequence: 6,
            acknowledgement: end,
            ..ACCEPTED
        };
        for (status, outcome) in [
            ("204 No Content", Outcome::Answered),
            ("503 Busy", Outcome::Status(503)),
        ] {
            let reply = heard(&prober, asked, answer, &format!("HTTP/1.1 {status}\r\n")).unwrap();
            assert!(reply.outcome == Some(outcome), "{status}");
            let (reset, _) = reply.segment.unwrap();
            assert_eq!((reset.flags, reset.sequence), (RST, end));
        }
        let later = tcp::Repr {
            sequence: 7,
            ..answer
        };
        assert!(heard(&prober, asked, later, "HTTP/1.1 200 OK").is_none());
        assert!(
            heard(&prober, asked, answer, "HTTP/1.1").is_none(),
            "more comes"
        );
        let early = heard(&prober, PROBE, answer, "HTTP/1.1 200 OK");
        let early = early.and_then(|reply| reply.outcome);
        assert!(early.is_none(), "it was not asked");
        assert!(prober.give_up(&PROBE).is_none());
    }

    fn asked() -> (Prober, Probe, u32) {
        let prober = prober("/health");
        let reply = heard(&prober, PROBE, ACCEPTED, "").unwrap();
        let length = reply.segment.unwrap().1.len() as u32;
        let asked = Probe {
            asked: reply.asked,
            ..PROBE
        };
        (prober, asked, length)
    }

    #[test]
    fn a_server_that_resets_what_asks_it_refuses() {
        let (prober, asked, length) = asked();
        for flags in [RST, RST | ACK] {
            let reset = tcp::Repr {
                flags,
                sequence: 6,
                acknowledgement: length,
                ..ACCEPTED
            };
            let reply = heard(&prober, asked, reset, "");
            let outcome = reply.and_then(|reply| reply.outcome);
            assert!(outcome == Some(Outcome::Refused), "{flags} {outcome:?}");
        }
    }

    #[test]
    fn an_answer_confirms_the_request() {
        let (prober, asked, length) = asked();
        for acknowledgement in [0, 12_345, length + 1] {
            let answer = tcp::Repr {
                flags: ACK,
                sequence: 6,
                acknowledgement,
                ..ACCEPTED
            };
            let reply = heard(&prober, asked, answer, "HTTP/1.1 200 OK\r\n");
            assert!(reply.is_none(), "{acknowledgement} of {length}");
        }
    }

    #[test]
    fn an_older_connection_of_the_port_ends() {
        // RFC 9293, section 3.10.7.3: a SYN that meets an older connection gets an ACK, which gets a reset
        let old = tcp::Repr {
            flags: ACK,
            acknowledgement: 77_777,
            ..ACCEPTED
        };
        let half_open = tcp::Repr {
            flags: SYN | ACK,
            ..old
        };
        for old in [old, half_open] {
            let reply = heard(&prober(""), PROBE, old, "").expect("a reset");
            let (reset, _) = reply.segment.expect("a reset");
            assert_eq!((reset.flags, reset.sequence), (RST, 77_777));
            assert_eq!((reset.source, reset.destination), (u16::MAX, 80));
            assert!(reply.outcome.is_none() && reply.asked.is_none());
        }
    }

    #[test]
    fn a_connection_whose_request_was_lost_ends() {
        let (prober, asked, length) = asked();
        // the server expects the first byte of the request; RFC 5961 makes it ignore a reset beyond
        let resets = prober.give_up(&asked).unwrap();
        let got = resets.map(|reset| (reset.flags, reset.sequence));
        assert_eq!(got, [(RST, asked.number.wrapping_add(1)), (RST, length)]);
    }
}
