// SPDX-License-Identifier: Apache-2.0
//! Rings outlive the valed that made them: the next one continues with them (docs/adr/0050).

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::common::{Guest, Valed, eventually, port_add};
use ring::BUFFER_SIZE;
use serde_json::{Value, json};
use vale_proto::{RingFds, ValeClient};

const KILLS: u64 = 10;
/// Offset of the index that the switch publishes in ring tx (docs/rings.md).
const TX_TAIL: u64 = 0x180;
/// Offset of the version.
const VERSION: u64 = 0x08;

fn port(last: u8) -> Value {
    json!({"mac": format!("02:00:00:00:00:{last:02x}"), "port_security": false})
}

/// The state that the threads of a test share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    received: AtomicU64,
}

/// Sends frames with rising numbers as fast as the ring takes them.
fn send(mut guest: Guest, shared: Arc<Shared>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut number = 0u64;
        while !shared.stop.load(Ordering::Relaxed) {
            let mut frame = [0; 128];
            frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
            frame[14..22].copy_from_slice(&number.to_le_bytes());
            frame[120..].copy_from_slice(&number.to_le_bytes());
            match guest.ring.push(&frame) {
                Ok(()) => number += 1,
                Err(_) => {
                    guest.publish();
                    Guest::sleep(std::slice::from_mut(&mut guest));
                }
            }
            if number.is_multiple_of(16) {
                guest.publish();
            }
        }
    })
}

/// Checks that the numbers rise and that no frame was changed.
fn receive(mut guest: Guest, shared: Arc<Shared>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut buffer, mut last) = ([0; BUFFER_SIZE], None);
        while !shared.stop.load(Ordering::Relaxed) {
            let Some(len) = guest.ring.pop(&mut buffer) else {
                guest.publish();
                Guest::sleep(std::slice::from_mut(&mut guest));
                continue;
            };
            assert_eq!((len, &buffer[14..22]), (128, &buffer[120..128]));
            let number = u64::from_le_bytes(buffer[14..22].try_into().unwrap());
            assert!(last < Some(number), "{number} came after {last:?}");
            last = Some(number);
            shared.received.fetch_add(1, Ordering::Relaxed);
        }
    })
}

#[test]
fn frames_are_lost_but_never_come_twice_when_valed_is_killed() {
    let mut valed = Valed::start();
    let (from, to) = (
        Guest::new(&valed, "from", port(1)),
        Guest::new(&valed, "to", port(2)),
    );
    let rings = [("from", 1, from.fds()), ("to", 2, to.fds())];
    let shared = Arc::new(Shared::default());
    let threads = [
        send(from, Arc::clone(&shared)),
        receive(to, Arc::clone(&shared)),
    ];
    for _ in 0..KILLS {
        let before = shared.received.load(Ordering::Relaxed);
        eventually("frames arrive", || {
            assert!(!threads.iter().any(JoinHandle::is_finished));
            shared.received.load(Ordering::Relaxed) > before + 1_000
        });
        valed.kill_and_restart();
        for (name, last, fds) in &rings {
            let add = port_add(name, port(*last));
            valed.client().port_resume(&add, fds).unwrap();
        }
    }
    shared.stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|t| t.join().unwrap());
}

fn refusal(client: &mut ValeClient, fds: &RingFds) -> String {
    let error = client.port_resume(&port_add("one", port(1)), fds);
    error.unwrap_err().to_string()
}

fn null() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

#[test]
fn descriptors_that_are_no_rings_are_refused() {
    let mut valed = Valed::start();
    let guest = Guest::new(&valed, "one", port(1));
    valed.kill_and_restart();
    let mut client = valed.client();
    let with = |change: fn(&mut RingFds)| {
        let mut fds = guest.fds();
        change(&mut fds);
        fds
    };
    let text = |reason: &str| format!("port one: rings: {reason} (bad-request)");
    for (fds, reason) in [
        (with(|fds| fds.memfd = null()), "region: error number 22"),
        (with(|fds| fds.kick = null()), "kick: not an eventfd"),
        (with(|fds| fds.wake = null()), "wake: not a pipe"),
    ] {
        assert_eq!(refusal(&mut client, &fds), text(reason));
    }
    let region = File::from(guest.memfd.try_clone().unwrap());
    region.write_all_at(&[0xff; 4], TX_TAIL).unwrap();
    let reason = "index: 4294967295 is not a slot of the ring";
    assert_eq!(refusal(&mut client, &guest.fds()), text(reason));
    assert!(client.port_list(None).unwrap().is_empty());
    region.write_all_at(&255u32.to_le_bytes(), TX_TAIL).unwrap();
    client
        .port_resume(&port_add("one", port(1)), &guest.fds())
        .unwrap();
}

fn version(fds: &RingFds) -> u32 {
    let (region, mut word) = (File::from(fds.memfd.try_clone().unwrap()), [0; 4]);
    region.read_exact_at(&mut word, VERSION).unwrap();
    u32::from_le_bytes(word)
}

/// The first step back to a valed that knows version 1 only (docs/operator/production.md).
#[test]
fn rings_of_version_2_go_on_while_new_ones_have_version_1() {
    // The second line is of before 1.0.
    for line in ["max_ring_version = 1", "copying_rings = true"] {
        check_new_rings(line);
    }
}

/// Restarts valed with a line in its configuration that keeps new rings at version 1.
fn check_new_rings(line: &str) {
    let mut valed = Valed::start();
    let in_place = |last| {
        let mut port = port(last);
        port["in_place_domid"] = json!(7);
        port
    };
    let one = valed.add("one", in_place(1)).unwrap();
    let config = valed.dir.path().join("valed.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{line}\n{text}")).unwrap();
    valed.kill_and_restart();
    let add = port_add("one", in_place(1));
    valed.client().port_resume(&add, &one).unwrap();
    let two = valed.add("two", in_place(2)).unwrap();
    assert_eq!([version(&one), version(&two)], [2, 1]);
}
