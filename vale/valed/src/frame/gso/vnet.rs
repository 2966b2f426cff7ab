// SPDX-License-Identifier: Apache-2.0
//! The `virtio_net_hdr` (linux/virtio_net.h), 10 bytes in native byte order.
use vale_netdev::VNET_HEADER;

use super::transport::{CWR, TCP, Transport};

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// A checksum to be filled in. The sum of all bytes from `start` on goes to `start + offset`, which
/// holds the pseudo header's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    pub start: u16,
    pub offset: u16,
}

impl Checksum {
    /// The offset of the checksum in the frame.
    pub fn field(self) -> usize {
        usize::from(self.start) + usize::from(self.offset)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    TcpV4,
    TcpV6,
    Udp,
}

/// A frame to be cut into segments of `size` bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    pub kind: GsoKind,
    pub size: u16,
    /// The TCP sender uses ECN.
    ecn: bool,
    header_len: u16,
}

/// The work that the sender has left to its network card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxOffload {
    pub checksum: Option<Checksum>,
    pub gso: Option<Gso>,
}

impl TxOffload {
    /// None for an offload that valed has not asked the kernel for, or that does not fit the frame.
    pub fn parse(header: &[u8; VNET_HEADER], frame_len: usize) -> Option<Self> {
        let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let checksum = (header[0] & NEEDS_CSUM != 0).then(|| Checksum {
            start: field(6),
            offset: field(8),
        });
        if let Some(c) = checksum {
            if c.field() + 2 > frame_len {
                return None;
            }
        }
        let kind = match header[1] & !GSO_ECN {
            0 => {
                return Some(Self {
                    checksum,
                    gso: None,
                });
            }
            GSO_TCPV4 => GsoKind::TcpV4,
            GSO_TCPV6 => GsoKind::TcpV6,
            GSO_UDP_L4 => GsoKind::Udp,
            _ => return None,
        };
        let gso = Gso {
            kind,
            size: field(4),
            ecn: header[1] & GSO_ECN != 0,
            header_len: field(2),
        };
        // Segmentation needs the checksum of every segment.
        checksum?;
        (gso.size > 0).then_some(Self {
            checksum,
            gso: Some(gso),
        })
    }

    /// The offload of a frame to be cut into segments of `size` bytes, whose kind its headers say.
    /// None without a TCP or UDP header.
    pub fn of_segments(frame: &[u8], size: u16) -> Option<Self> {
        let transport = Transport::parse(frame)?;
        let kind = match (transport.protocol, transport.is_v6) {
            (TCP, false) => GsoKind::TcpV4,
            (TCP, true) => GsoKind::TcpV6,
            _ => GsoKind::Udp,
        };
        let flags = frame.get(transport.l4 + 13).copied().unwrap_or(0);
        let gso = Gso {
            kind,
            size,
            ecn: kind != GsoKind::Udp && flags & CWR != 0,
            header_len: 0,
        };
        Some(Self {
            checksum: Some(transport.checksum()),
            gso: Some(gso),
        })
    }

    /// The offload of a frame to be segmented. The switch has measured its `headers` itself.
    pub fn segmented(checksum: Checksum, gso: Gso, headers: usize) -> Self {
        let header_len = u16::try_from(headers).unwrap_or(u16::MAX);
        let gso = Gso { header_len, ..gso };
        Self {
            checksum: Some(checksum),
            gso: Some(gso),
        }
    }

    pub fn to_header(self) -> [u8; VNET_HEADER] {
        let mut header = [0; VNET_HEADER];
        let mut put =
            |at: usize, value: u16| header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        if let Some(gso) = self.gso {
            put(2, gso.header_len);
            put(4, gso.size);
        }
        if let Some(checksum) = self.checksum {
            put(6, checksum.start);
            put(8, checksum.offset);
            header[0] = NEEDS_CSUM;
        }
        if let Some(gso) = self.gso {
            let kind = match gso.kind {
                GsoKind::TcpV4 => GSO_TCPV4,
                GsoKind::TcpV6 => GSO_TCPV6,
                GsoKind::Udp => GSO_UDP_L4,
            };
            header[1] = kind | if gso.ecn { GSO_ECN } else { 0 };
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: u8, gso: u8, fields: [u16; 4]) -> [u8; VNET_HEADER] {
        let mut header = [flags, gso, 0, 0, 0, 0, 0, 0, 0, 0];
        for (n, field) in fields.iter().enumerate() {
            header[2 + 2 * n..4 + 2 * n].copy_from_slice(&field.to_ne_bytes());
        }
        header
    }

    #[test]
    fn known_offloads_survive_a_round_trip() {
        for good in [
            header(0, 0, [0; 4]),
            header(1, 0, [0, 0, 34, 16]),
            header(1, GSO_TCPV4, [54, 1448, 34, 16]),
            header(1, GSO_TCPV6 | GSO_ECN, [74, 1428, 54, 16]),
            header(1, GSO_UDP_L4, [42, 1400, 34, 6]),
        ] {
            assert_eq!(TxOffload::parse(&good, 3000).unwrap().to_header(), good);
        }
    }

    #[test]
    fn other_offloads_are_refused() {
        for (bad, why) in [
            (header(1, 0, [0, 0, 2990, 16]), "checksum behind the frame"),
            (header(1, 0, [0, 0, 0xffff, 0xffff]), "overflow"),
            (
                header(0, GSO_TCPV4, [54, 1448, 34, 16]),
                "segmentation without checksum",
            ),
            (header(1, GSO_TCPV4, [54, 0, 34, 16]), "segments of nothing"),
            (header(1, 3, [42, 1400, 34, 6]), "UDP fragmentation"),
            (header(1, 9, [42, 1400, 34, 6]), "unknown kind"),
        ] {
            assert_eq!(TxOffload::parse(&bad, 3000), None, "{why}");
        }
    }
}
