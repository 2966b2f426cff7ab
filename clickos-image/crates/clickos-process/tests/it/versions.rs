// SPDX-License-Identifier: Apache-2.0
//! Rings of version 1, which the guest copies, and of version 2, whose buffers are its packets.

use crate::common::Host;
use crate::common::guest::{Guest, Port};
use ring::Regions;
use std::sync::Arc;

const WIRE: &str = "FromDevice(0) -> ToDevice(1); FromDevice(1) -> ToDevice(0);";
/// A guest of two vifs with rings of a version.
fn guest(host: &mut Host, domid: u16, version: u32, config: &str) -> Guest {
    let regions = Arc::new(Regions::default());
    let ports = (0..2).map(|_| match version {
        1 => Port::new(),
        _ => Port::in_place(&regions),
    });
    let mut guest = Guest::start_with(host, domid, ports.collect());
    assert_eq!(guest.install(host, 0, config).0, "Running");
    guest
}

/// A UDP frame of this length.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip_len = (len - 14) as u16;
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    let words = frame[14..34].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[34..38].copy_from_slice(&[0x12, 0x34, 0, 53]);
    frame[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes());
    frame
}

/// The descriptor of a slot of tx: length and region.
fn descriptor(port: &Port, slot: u64) -> (u16, u16) {
    let mut word = [0; 8];
    rustix::io::pread(&port.memfd, &mut word, 0x1000 + slot * 8).unwrap();
    let word = u64::from_le_bytes(word);
    ((word >> 32) as u16, (word >> 48) as u16)
}

#[test]
fn a_received_frame_leaves_by_another_port_from_where_it_lies() {
    let mut host = Host::new();
    for (version, region) in [(1, 0), (2, 1)] {
        let mut guest = guest(&mut host, 4 + version as u16, version, WIRE);
        for n in 0..2000usize {
            let sent = frame(60 + n % 1400);
            let is_short = sent.len() <= 256;
            guest.ports[0].send(&sent);
            assert_eq!(guest.ports[1].receive(), Some(sent.clone()));
            let slot = n as u64 % 256;
            assert_eq!(
                descriptor(&guest.ports[1], slot),
                (sent.len() as u16, if is_short { 0 } else { region })
            );
        }
        assert_eq!(guest.ports[1].switch.malformed(), 0);
    }
}

/// Packets that wait in a queue take no more than the spare buffers, and the port continues.
#[test]
fn frames_pass_while_many_wait_in_a_queue() {
    let mut host = Host::new();
    let config = "FromDevice(0) -> c :: Classifier(0/02, -);
        c[0] -> Queue(1000) -> u :: Unqueue(ACTIVE false) -> Queue(1000) -> ToDevice(1);
        c[1] -> ToDevice(0);";
    let mut guest = guest(&mut host, 5, 2, config);
    let held = |n: usize| frame(260 + n);
    for n in 0..600 {
        guest.ports[0].send(&held(n));
        let mut back = frame(1000 + n % 100);
        back[0] = 4;
        guest.ports[0].send(&back);
        assert_eq!(guest.ports[0].receive(), Some(back), "{n}");
    }
    guest.write(&mut host, 0, &[("u.active", "true")]);
    for n in 0..600 {
        assert_eq!(guest.ports[1].receive(), Some(held(n)), "{n}");
    }
}

/// Copies of a packet are changed one by one, whatever port sends them.
#[test]
fn copies_of_a_frame_are_frames_of_their_own() {
    let mut host = Host::new();
    let config = "FromDevice(0) -> t :: Tee;
        t[0] -> StoreData(0, \\<aa>) -> ToDevice(0);
        t[1] -> ToDevice(1);";
    let mut guest = guest(&mut host, 5, 2, config);
    for n in 0..1000 {
        let sent = frame(60 + n);
        let mut changed = sent.clone();
        changed[0] = 0xaa;
        guest.ports[0].send(&sent);
        assert_eq!(guest.ports[0].receive(), Some(changed));
        assert_eq!(guest.ports[1].receive(), Some(sent));
    }
}
