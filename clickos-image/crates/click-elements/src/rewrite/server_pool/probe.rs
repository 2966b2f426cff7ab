// SPDX-License-Identifier: Apache-2.0
//! Probes of servers and their answers: a ping, or the begin of a TCP connection.
use click_wire::{icmp, ipv4, tcp};

use crate::ip_packet::{encapsulate, encapsulate_icmp, header};
use crate::prelude::*;

const TTL: u8 = 64;
const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
/// Where ephemeral ports begin (RFC 6335, section 6).
const FIRST_PORT: u16 = 0xc000;

/// The probing address, and the kind of its probes.
#[derive(Clone, Copy)]
pub struct Prober {
    pub source: Ipv4Addr,
    /// The TCP port that is probed; 0 for pings.
    pub port: u16,
}

/// An answer to a probe.
pub struct Answer {
    pub server: Ipv4Addr,
    /// The number of the probe.
    pub number: u32,
    /// The segment that ends the connection.
    pub reset: Option<tcp::Repr>,
}

/// A probe's own port.
fn port_of(number: u32) -> u16 {
    FIRST_PORT | (number as u16)
}

impl Prober {
    /// Makes the probe with this number.
    pub fn probe(&self, ctx: &mut Context<'_>, server: Ipv4Addr, number: u32) -> Option<Packet> {
        if self.port > 0 {
            return self.segment(
                ctx,
                server,
                tcp::Repr {
                    source: port_of(number),
                    destination: self.port,
                    sequence: number,
                    acknowledgement: 0,
                    flags: SYN,
                    window: u16::MAX,
                },
            );
        }
        let mut packet = ctx.pool().packet_from(&[])?;
        let message = icmp::Repr {
            kind: ECHO,
            code: 0,
            rest: number,
        };
        let made = encapsulate_icmp(&mut packet, message)
            && encapsulate(&mut packet, self.header(server, ipv4::ICMP));
        made.then_some(packet)
    }

    /// Makes a TCP segment without text.
    pub fn segment(
        &self,
        ctx: &mut Context<'_>,
        server: Ipv4Addr,
        segment: tcp::Repr,
    ) -> Option<Packet> {
        let mut packet = ctx.pool().packet_from(&[0; tcp::HEADER])?;
        segment.emit(packet.data_mut(), self.source, server);
        encapsulate(&mut packet, self.header(server, ipv4::TCP)).then_some(packet)
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

    /// Reads a packet; `None` if it answers no probe.
    pub fn answer(&self, packet: &Packet) -> Option<Answer> {
        let header = header(packet).filter(|h| h.destination() == self.source)?;
        let (server, body) = (header.source(), packet.transport()?);
        match header.protocol() {
            ipv4::TCP if self.port > 0 => self.accepted(server, body),
            ipv4::ICMP if self.port == 0 => echoed(server, body),
            _ => None,
        }
    }

    /// A server accepts the connection; it is reset then.
    fn accepted(&self, server: Ipv4Addr, body: &[u8]) -> Option<Answer> {
        let segment = tcp::Repr::parse(body, server, self.source).ok()?;
        let number = segment.acknowledgement.wrapping_sub(1);
        let ours = segment.source == self.port && segment.destination == port_of(number);
        if !ours || segment.flags & (SYN | ACK | RST) != SYN | ACK {
            return None;
        }
        let reset = tcp::Repr {
            source: segment.destination,
            destination: segment.source,
            sequence: segment.acknowledgement,
            acknowledgement: 0,
            flags: RST,
            window: 0,
        };
        Some(Answer {
            server,
            number,
            reset: Some(reset),
        })
    }
}

fn echoed(server: Ipv4Addr, body: &[u8]) -> Option<Answer> {
    let message = icmp::Repr::parse(body).ok()?;
    (message.kind == ECHO_REPLY).then_some(Answer {
        server,
        number: message.rest,
        reset: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);
    const NUMBER: u32 = u32::MAX;
    const ACCEPTED: tcp::Repr = tcp::Repr {
        source: 80,
        destination: u16::MAX,
        sequence: 5,
        acknowledgement: 0,
        flags: SYN | ACK,
        window: 1,
    };

    fn reset_for(segment: tcp::Repr) -> Option<tcp::Repr> {
        let mut bytes = [0; tcp::HEADER];
        segment.emit(&mut bytes, SERVER, US);
        let prober = Prober {
            source: US,
            port: 80,
        };
        let answer = prober.accepted(SERVER, &bytes)?;
        assert_eq!((answer.server, answer.number), (SERVER, NUMBER));
        answer.reset
    }

    #[test]
    fn an_accepted_connection_is_reset() {
        let reset = reset_for(ACCEPTED).unwrap();
        assert_eq!((reset.source, reset.destination), (u16::MAX, 80));
        assert_eq!((reset.sequence, reset.flags), (0, RST));
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
            tcp::Repr {
                flags: RST | ACK,
                ..ACCEPTED
            },
        ] {
            assert_eq!(reset_for(wrong), None, "{wrong:?}");
        }
    }
}
