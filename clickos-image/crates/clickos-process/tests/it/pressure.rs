// SPDX-License-Identifier: Apache-2.0
//! Writes and packets that ask for more memory than a guest of 8 MiB has: it refuses or drops them,
//! and its router keeps running.

use crate::common::guest::{Guest, Port};
use crate::common::hostile::{crossed_rules, each_byte};
use crate::common::{Host, eventually};
use clickos_protocol::Command as Handler;

/// Packets that a guest of 8 MiB can hold, and some more.
const FLOOD: u16 = 1200;

fn assert_forwards(guest: &mut Guest, host: &Host, what: &str) {
    guest.ports[0].send(&[7; 60]);
    let frame = guest.ports[1].receive();
    assert_eq!(frame, Some(vec![7; 60]), "{what}: {}", guest.console(host));
    guest.assert_alive();
}

const WIRE: &str = "FromDevice(0) -> wire :: Queue(50) -> ToDevice(1);\n\
                    FromDevice(1) -> back :: Discard;\n";

#[test]
fn a_guest_survives_hostile_writes() {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 2);
    let counts: String = (0..240)
        .map(|n| format!("Idle -> n{n} :: CheckNumberPacket -> back;"))
        .collect();
    let matcher = "Idle -> m :: StringMatcher(x) -> back;";
    let config = format!("{WIRE}{counts}{matcher}");
    let installed = guest.install(&mut host, 0, &config);
    assert_eq!(installed.0, "Running", "{}", installed.1);
    let pattern = each_byte(8000);
    let names: Vec<_> = (0..240).map(|n| format!("n{n}.count")).collect();
    let counts = names.iter().map(|name| (&**name, "8192")).collect();
    let one = |name, value| vec![(name, value)];
    for (what, writes) in [
        ("many counts", counts),
        ("a long pattern", one("m.config", &*pattern)),
    ] {
        let (code, text) = guest.write(&mut host, 0, &writes);
        assert_forwards(&mut guest, &host, what);
        assert_eq!(code, 520, "{what}: {text}");
    }
}

/// A packet of UDP from a station to an address without a station.
fn to_absent(n: u16) -> Vec<u8> {
    let [high, low] = n.to_be_bytes();
    let mut frame = vec![0_u8; 60];
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = [
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 9, 10, 2, high, low,
    ];
    frame[14..34].copy_from_slice(&ip);
    frame
}

fn to_absent6(n: u16) -> Vec<u8> {
    let mut frame = vec![0_u8; 60];
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 6, 59, 64]);
    frame[22] = 0x20;
    frame[38] = 0x20;
    frame[52..54].copy_from_slice(&n.to_be_bytes());
    frame
}

/// Packets that wait for a neighbor's answer take a part of the buffers only.
#[test]
fn packets_for_absent_neighbors_leave_buffers_for_others() {
    let config = "FromDevice(0) -> kind :: Classifier(12/0800, 12/86dd, -);\n\
                  out :: Queue(50) -> ToDevice(1); FromDevice(1) -> Discard;\n\
                  kind[2] -> out; gone :: Discard;\n\
                  kind[0] -> Strip(14) -> MarkIPHeader -> GetIPAddress(16) -> c :: Counter\n\
                  -> arp :: ARPQuerier(10.2.0.1, 2:0:0:0:0:1) -> gone; Idle -> [1]arp;\n\
                  kind[1] -> Strip(14) -> GetIP6Address(24) -> c6 :: Counter\n\
                  -> nd :: IP6NDSolicitor(2000::1, 2:0:0:0:0:1) -> gone; Idle -> [1]nd;\n";
    for in_place in [false, true] {
        for (packet, counter) in [
            (to_absent as fn(u16) -> Vec<u8>, "c.count"),
            (to_absent6, "c6.count"),
        ] {
            let mut host = Host::new();
            let mut guest = match in_place {
                true => Guest::start(&mut host, 5, 2),
                false => Guest::start_with(&mut host, 5, vec![Port::new(), Port::new()]),
            };
            assert_eq!(guest.install(&mut host, 0, config).0, "Running");
            for n in 0..FLOOD {
                let what = format!("in place {in_place}, {counter} {n}");
                let frame = packet(n);
                eventually(&what, || guest.ports[0].switch.push(&frame).is_ok());
                if n % 50 == 49 {
                    assert_forwards(&mut guest, &host, &what);
                }
            }
            let came = guest.read(&mut host, 0, counter);
            assert_eq!(came, FLOOD.to_string());
        }
    }
}

/// A fragment of a packet of `id`, 1,480 bytes long, which is never whole.
fn fragment(id: u16, number: u16) -> Vec<u8> {
    let ([high, low], place) = (id.to_be_bytes(), 0x2000 | (number * 185));
    let [flags, offset] = place.to_be_bytes();
    let mut frame = vec![0_u8; 1514];
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = [
        0x45, 0, 5, 220, high, low, flags, offset, 64, 17, 0, 0, 10, 1, 0, 9, 10, 2, 0, 9,
    ];
    frame[14..34].copy_from_slice(&ip);
    frame
}

/// An answer to a question for an address of its own.
fn arp_reply(n: u16) -> Vec<u8> {
    let [high, low] = n.to_be_bytes();
    let mut frame = vec![0_u8; 60];
    frame[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    frame[22..32].copy_from_slice(&[2, 0, 0, 0, high, low, 10, 3, high, low]);
    frame
}

/// Neither fragments nor long answers take memory that everything else needs.
#[test]
fn a_guest_survives_when_memory_is_short() {
    let config = format!(
        "FromDevice(0) -> kind :: Classifier(12/88b5, 12/0800 20/2000%3fff, 12/0800, 12/0806, -);\n\
         kind[0] -> hold :: Queue(4000) -> Idle; FromDevice(1) -> Discard;\n\
         kind[1] -> Strip(14) -> MarkIPHeader -> all :: Tee(14);\n\
         kind[2] -> Strip(14) -> MarkIPHeader -> all;\n\
         kind[3] -> [1]arp :: ARPQuerier(10.3.0.1, 2:0:0:0:0:1) -> Discard; Idle -> arp;\n\
         kind[4] -> Queue(50) -> ToDevice(1);\n\
         Idle -> IPFilter({}) -> Discard; {}",
        crossed_rules(),
        (0..14)
            .map(|n| format!("all[{n}] -> IPReassembler -> Discard;"))
            .collect::<String>()
    );
    let mut host = Host::new();
    let mut guest = Guest::start_with(&mut host, 5, vec![Port::new(), Port::new()]);
    let installed = guest.install(&mut host, 0, &config);
    assert_eq!(installed.0, "Running", "{}", installed.1);
    let mut held = vec![0_u8; 1514];
    held[12..14].copy_from_slice(&[0x88, 0xb5]);
    let entries = (0..9000).map(arp_reply);
    let floods = (0..500).map(|_| held.clone());
    let fragments = (0..20).flat_map(|id| (1..44).map(move |number| fragment(id, number)));
    let all = entries.chain(floods).chain(fragments);
    for (n, frame) in all.enumerate() {
        let what = format!("frame {n}");
        eventually(&what, || guest.ports[0].switch.push(&frame).is_ok());
        if n % 50 == 49 {
            assert_forwards(&mut guest, &host, &what);
        }
    }
    assert_eq!(guest.read(&mut host, 0, "arp.count"), "8192");
    let request = Handler::Read {
        name: "arp.table",
        param: "",
    };
    let (code, text) = guest.request(&mut host, 0, &request.encode());
    assert_eq!(code, 200);
    assert!(text.ends_with(b"\n...\n"), "{} bytes", text.len());
    assert_forwards(&mut guest, &host, "a long answer");
}
