// SPDX-License-Identifier: Apache-2.0
//! What a test can be about, and the words for it.
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
    Field(Field),
}

/// A header field by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub transport: bool,
    /// The protocol the field belongs to, if it is that of one.
    pub protocol: Option<u32>,
    pub offset: usize,
    pub len: usize,
}

const fn ip_field(offset: usize, len: usize) -> Subject {
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

pub const SUBJECTS: [(&str, Subject); 18] = [
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

/// The subject a word names.
pub fn subject(word: &str) -> Option<Subject> {
    SUBJECTS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, s)| *s)
}
