// SPDX-License-Identifier: Apache-2.0
//! The fields of a dump and their names.
use crate::prelude::*;

macro_rules! fields {
    ($($variant:ident $name:literal $(or $alias:literal)*),* $(,)?) => {
        /// The contents of a column of a dump.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field { $(#[doc = $name] $variant),* }

        impl Field {
            /// The field's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn named(name: &str) -> Option<Self> {
                match name { $($name $(| $alias)* => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

fields! {
    Timestamp "timestamp" or "ts",
    TsSec "ts_sec" or "sec",
    TsUsec "ts_usec" or "usec",
    TsUsec1 "ts_usec1" or "usec1",
    FirstTimestamp "first_timestamp",
    IpSrc "ip_src" or "src",
    IpDst "ip_dst" or "dst",
    IpProto "ip_proto" or "proto",
    IpLen "ip_len" or "len" or "length",
    IpHl "ip_hl",
    IpId "ip_id" or "id",
    IpTos "ip_tos" or "tos",
    IpDscp "ip_dscp" or "dscp",
    IpEcn "ip_ecn" or "ecn",
    IpTtl "ip_ttl" or "ttl",
    IpSum "ip_sum",
    IpFrag "ip_frag" or "frag",
    IpFragoff "ip_fragoff" or "fragoff",
    IpOpt "ip_opt",
    IpCaptureLen "ip_capture_len",
    Sport "sport",
    Dport "dport",
    TcpSeq "tcp_seq",
    TcpAck "tcp_ack",
    TcpOff "tcp_off",
    TcpFlags "tcp_flags",
    TcpWindow "tcp_window" or "tcp_win",
    TcpUrp "tcp_urp",
    TcpOpt "tcp_opt",
    TcpNtopt "tcp_ntopt",
    TcpSack "tcp_sack",
    UdpLen "udp_len",
    IcmpType "icmp_type",
    IcmpCode "icmp_code",
    IcmpTypeName "icmp_type_name",
    IcmpCodeName "icmp_code_name",
    IcmpFlowid "icmp_flowid",
    IcmpSeq "icmp_seq",
    IcmpNextmtu "icmp_nextmtu",
    Payload "payload",
    PayloadLen "payload_len",
    PayloadMd5 "payload_md5",
    PayloadMd5Hex "payload_md5_hex",
    Count "count" or "pkt_count",
    Direction "direction",
    Link "link" or "paint",
    Aggregate "aggregate",
    EthSrc "eth_src",
    EthDst "eth_dst",
    EthType "eth_type",
    WireLen "wire_len",
}

/// Parses a list of field names; a quoted name may have blanks in place of underscores.
///
/// # Errors
/// The first name that is not one.
pub fn fields(list: &str) -> Result<Vec<Field>, String> {
    let words = click_core::text::split_words(list);
    let parse = |word: &String| {
        let name = click_core::text::unquote(word).replace(' ', "_");
        Field::named(&name).ok_or_else(|| format!("unknown field \"{}\"", name.shown()))
    };
    words.iter().map(parse).collect()
}

/// The letters of TCP flags, from the lowest bit.
pub const FLAGS: &str = "FSRPAUECN";

/// The protocols that have letters.
pub const PROTOCOLS: [(char, u8); 3] = [('I', 1), ('T', 6), ('U', 17)];
