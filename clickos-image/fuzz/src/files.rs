// SPDX-License-Identifier: Apache-2.0
//! Files of packets: whatever is in them, elements read them to an end and write what they found.
use std::rc::Rc;

use click_core::{Environment, Host, Router};
use clickos_control::files::{Quota, RamFiles};

use crate::router::{choose, limits, registry, run};

/// Bytes that files may take.
const QUOTA: usize = 1 << 20;

/// The readers, each with the text in front of the bytes.
const READERS: [(&str, &[u8]); 5] = [
    ("FromDump(in, FORCE_IP true)", b""),
    ("FromDump(in, TIMING true)", &PCAP),
    (
        "FromDump(in, SAMPLE 0.5)",
        b"\xa1\xb2\x3c\x4d\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0\0\x01",
    ),
    (
        "FromIPSummaryDump(in, MULTIPACKET true, CHECKSUM true)",
        FIELDS,
    ),
    ("FromIPSummaryDump(in, TIMING true)", BINARY),
];
/// The header of a pcap file of IP packets.
const PCAP: [u8; 24] = *b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x65\0\0\0";
const FIELDS: &[u8] =
    b"!data timestamp src dst proto sport dport ip_opt tcp_opt ip_fragoff payload count\n";
const BINARY: &[u8] =
    b"!data timestamp src dst proto ip_hl ip_opt tcp_opt ip_frag ip_len link\n!binary\n";

/// A file that is read, and what is found written in all forms.
pub fn files(data: &[u8]) {
    let Some((index, rest)) = choose(data, READERS.len()) else {
        return;
    };
    let (reader, front) = READERS[index];
    let host = RamFiles::new(Quota::new(QUOTA));
    let written = host.write_file("in", false, &[front, rest].concat());
    written.expect("an input is smaller than the quota");
    let environment = Environment {
        host: Some(Rc::new(host)),
        limits: limits(),
        ..Environment::new()
    };
    let config = format!(
        "{reader} -> ToDump(out.pcap, ENCAP IP) -> ToIPSummaryDump(text, FIELDS timestamp src ip_opt tcp_opt tcp_sack payload payload_md5)
            -> ToIPSummaryDump(binary, BINARY true, FIELDS timestamp src ip_opt tcp_ntopt payload_len icmp_type_name) -> Discard;"
    );
    // what is no file of its kind is refused
    if let Ok(mut router) = Router::build("fuzz", &config, &registry(), environment, 1) {
        run(&mut router, 1);
        run(&mut router, 1 << 62);
    }
}
