// SPDX-License-Identifier: Apache-2.0
//! What a test can be about, and the words for it.
use super::names::ICMP6;

/// Subjects of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Host,
    Net,
    Protocol,
    Port,
    TcpFlag,
    Ether,
    Fragment,
    Unfragmented,
    Ect,
    Ce,
    /// The header chain of IPv6 does not say the protocol.
    Hidden,
    Field(Field),
}

/// A header field by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub transport: bool,
    /// The protocol the field belongs to, if it is that of one.
    pub protocol: Option<u32>,
    pub offset: u32,
    pub len: u8,
}

const fn ip_field(offset: u32, len: u8) -> Subject {
    Subject::Field(Field {
        transport: false,
        protocol: None,
        offset,
        len,
    })
}

const TOS: Subject = ip_field(8, 8);
pub const ICMP_TYPE: Subject = Subject::Field(Field {
    transport: true,
    protocol: Some(1),
    offset: 0,
    len: 8,
});

pub const ICMP6_TYPE: Subject = Subject::Field(Field {
    transport: true,
    protocol: Some(ICMP6),
    offset: 0,
    len: 8,
});

/// What `ip6` in front changes.
const SUBJECTS6: [(&str, Subject); 5] = [
    ("vers", ip_field(0, 4)),
    ("tos", ip_field(4, 8)),
    ("dscp", ip_field(4, 6)),
    ("len", ip_field(32, 16)),
    ("hlim", ip_field(56, 8)),
];

/// Subjects of IPv4 only, and of IPv6 only.
pub const ONLY4: [&str; 3] = ["hl", "id", "ttl"];
pub const ONLY6: [&str; 2] = ["hlim", "hidden"];

pub const SUBJECTS: [(&str, Subject); 20] = [
    ("host", Subject::Host),
    ("net", Subject::Net),
    ("proto", Subject::Protocol),
    ("port", Subject::Port),
    ("opt", Subject::TcpFlag),
    ("frag", Subject::Fragment),
    ("unfrag", Subject::Unfragmented),
    ("ect", Subject::Ect),
    ("ce", Subject::Ce),
    ("vers", ip_field(0, 4)),
    ("hl", ip_field(4, 4)),
    ("tos", TOS),
    ("dscp", ip_field(8, 6)),
    ("len", ip_field(16, 16)),
    ("id", ip_field(32, 16)),
    ("ttl", ip_field(64, 8)),
    ("hlim", ip_field(56, 8)),
    ("hidden", Subject::Hidden),
    ("type", ICMP_TYPE),
    (
        "win",
        Subject::Field(Field {
            transport: true,
            protocol: Some(6),
            offset: 112,
            len: 16,
        }),
    ),
];

/// The subject a word names behind `ip6`.
#[inline(never)]
pub fn subject6(word: &str) -> Option<Subject> {
    let six = SUBJECTS6.iter().find(|(name, _)| *name == word);
    six.map(|(_, s)| *s).or_else(|| subject(word))
}

/// The subject a word names.
#[inline(never)]
pub fn subject(word: &str) -> Option<Subject> {
    SUBJECTS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, s)| *s)
}
