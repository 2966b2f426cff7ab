// SPDX-License-Identifier: Apache-2.0
//! Guests that are processes: what they cost, and what they cannot do to others.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Guest, Valed, eventually, ok, tool};
use serde_json::{Value, json};

const PACKETS: u64 = 100_000;

fn open_guest(valed: &Valed, name: &str, last: u8) -> Guest {
    let mac = format!("02:00:00:00:00:{last:02x}");
    Guest::new(valed, name, json!({"mac": mac, "port_security": false}))
}

fn frame(destination: u8, source: u8, kind: [u8; 2]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source];
    frame.extend(kind);
    frame.resize(60, 0);
    frame
}

/// The `calls` column of strace's last line.
fn calls(summary: &Path) -> u64 {
    let text = std::fs::read_to_string(summary).unwrap();
    let total = text
        .lines()
        .rfind(|l| l.ends_with("total"))
        .unwrap_or_else(|| panic!("strace: {text}"));
    total
        .split_whitespace()
        .nth(3)
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("strace: {total}"))
}

/// Neither guests nor the switch make a system call per packet while there is traffic. Under
/// strace each call costs a multiple; all calls from start to end count.
#[test]
fn packets_cross_without_system_calls() {
    let pkt_gen = tool("pkt-gen");
    let summaries = tempfile::tempdir().unwrap();
    let summary = |name: &str| summaries.path().join(name);
    let switch_summary = summary("valed");
    let mut valed =
        Valed::start_under(&["strace", "-f", "-c", "-o", switch_summary.to_str().unwrap()]);
    let start = |name: &str, arguments: &[&str]| {
        let mut command = Command::new("strace");
        command
            .args(["-f", "-c", "-o"])
            .arg(summary(name))
            .arg(&pkt_gen)
            .arg("--socket")
            .arg(&valed.socket);
        command
            .args(["-o", "json", "-i", &format!("vale0:{name}")])
            .args(arguments);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let receiver = start(
        "rx",
        &["-f", "rx", "--mac", "02:00:00:00:00:02", "--slots", "2048"],
    );
    eventually("the receiver is there", || {
        valed.client().port_list(None).unwrap().len() == 1
    });
    let count = PACKETS.to_string();
    let sender = start("tx", &["-f", "tx", "-D", "02:00:00:00:00:02", "-n", &count]);
    let sent: Value = serde_json::from_slice(&sender.wait_with_output().unwrap().stdout).unwrap();
    let settled = || {
        let counters = valed.counters("rx");
        (counters.tx_packets + counters.dropped_full == PACKETS).then_some(counters)
    };
    eventually("the switch has each packet done", || settled().is_some());
    let counters = settled().unwrap();
    // strace passes no signal on: it goes to the receiver itself.
    let strace = receiver.id();
    let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children"));
    ok("kill", &["-TERM", children.unwrap().trim()]);
    let received: Value =
        serde_json::from_slice(&receiver.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(sent["packets"], PACKETS);
    assert_eq!(received["packets"], counters.tx_packets);
    assert!(counters.tx_packets > PACKETS / 4, "{counters:?}");
    assert_eq!(valed.stop(), Some(0));
    for name in ["tx", "rx", "valed"] {
        let calls = calls(&summary(name));
        println!("{name}: {calls} system calls for {PACKETS} packets");
        bounds::hold("min_packets_per_system_call", PACKETS as f64 / calls as f64);
    }
}

#[test]
fn a_made_capture_is_replayed_and_pings_come_back() {
    let pkt_gen = tool("pkt-gen");
    let valed = Valed::start();
    let capture = valed.dir.path().join("mix.pcap");
    let start = |arguments: &str| {
        let mut command = Command::new(&pkt_gen);
        command
            .args(arguments.split(' '))
            .args(["-o", "json"])
            .arg("--socket")
            .arg(&valed.socket);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let end = |child: std::process::Child| -> Value {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let path = capture.to_str().unwrap();
    end(start(&format!(
        "-f pcap-make --pcap {path} -n 300 -s 10.0.0.1:4000 -d 10.0.0.2:80"
    )));
    let receiver = start("-f rx -i vale0:rx --mac 02:00:00:00:00:02 -n 300 --seconds 50");
    eventually("the receiver is there", || {
        valed.client().port_list(None).unwrap().len() == 1
    });
    let allow = "--mac 02:00:00:00:00:01 --allow 10.0.0.1/32";
    let replay = start(&format!(
        "-f tx -i vale0:tx --pcap {path} -D 02:00:00:00:00:02 -S 02:00:00:00:00:01 {allow} -r 20000"
    ));
    assert_eq!(end(replay)["packets"], 300);
    assert_eq!(end(receiver)["packets"], 300);
    let pong = start("-f pong -i vale0:pong --mac 02:00:00:00:00:02 -n 20 --seconds 50");
    eventually("pong is there", || {
        valed.client().port_list(None).unwrap().len() == 1
    });
    let ping = start(
        "-f ping -i vale0:ping --mac 02:00:00:00:00:01 -D 02:00:00:00:00:02 -n 20 -r 1000 --idle 50",
    );
    assert_eq!(end(ping)["received"], 20);
    end(pong);
    assert!(
        valed.client().port_list(None).unwrap().is_empty(),
        "ports are detached"
    );
}

#[test]
fn a_guest_cannot_use_anothers_addresses() {
    let valed = Valed::start();
    let own = json!({"mac": "02:00:00:00:00:01", "allowed": [{"ip": "10.7.0.1/32"}]});
    let mut guest = Guest::new(&valed, "guest", own);
    let mut other = open_guest(&valed, "other", 2);
    let mut ip = frame(2, 1, [8, 0]);
    ip[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6]);
    ip[26..30].copy_from_slice(&[10, 7, 0, 99]);
    guest.send(&frame(2, 9, [0x88, 0xb5]));
    guest.send(&ip);
    ip[29] = 1;
    guest.send(&ip);
    assert_eq!(other.receive().unwrap(), ip);
    assert_eq!(valed.counters("guest").dropped_spoof, 2);
}

#[test]
fn a_namespace_with_a_changed_mac_or_address_is_cut_off() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _b = valed.attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
    a.assert_answers("10.7.0.2", 3);
    a.ip("addr del 10.7.0.1/24 dev eth0");
    a.ip("addr add 10.7.0.66/24 dev eth0");
    a.assert_silence("10.7.0.2", 3);
    let by_address = valed.counters("a").dropped_spoof;
    assert!(by_address >= 1);
    a.ip("link set dev eth0 address 02:00:00:00:00:02");
    a.assert_silence("10.7.0.2", 3);
    assert!(valed.counters("a").dropped_spoof > by_address);
}

#[test]
fn segments_are_apart() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _b = valed.attach("b", 2, 2, &["10.7.0.2/24"], json!({}));
    let _twin = valed.attach("twin", 2, 1, &["10.7.0.3/24"], json!({}));
    a.assert_silence("10.7.0.2", 3);
    a.assert_answers("10.7.0.3", 3);
    assert_eq!(valed.counters("b").tx_packets, 0);
}

/// Ends a thread also when an assertion fails, which would otherwise be waited for for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn ports_come_and_go_while_traffic_runs() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _b = valed.attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
    let mut sender = open_guest(&valed, "sender", 3);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                while sender.ring.push(&frame(4, 3, [0x88, 0xb5])).is_ok() {}
                sender.publish();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let _stop = StopOnDrop(&stop);
        for _ in 0..50 {
            let guest = open_guest(&valed, "target", 4);
            eventually("frames arrive", || valed.counters("target").tx_packets > 0);
            valed
                .client()
                .port_remove(&"vale0".parse().unwrap(), &"target".parse().unwrap())
                .unwrap();
            // The guest still has its rings; it may go on writing to them.
            drop(guest);
        }
        a.assert_answers("10.7.0.2", 20);
    });
    assert!(valed.counters("sender").dropped_unknown > 0);
}

/// Garbage over the whole region, again and again, while two others talk.
#[test]
fn a_guest_that_writes_garbage_hurts_only_itself() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _b = valed.attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
    let bad = Guest::new(
        &valed,
        "bad",
        json!({"mac": "02:00:00:00:00:03", "allowed": [{"ip": "10.7.0.3/32"}], "slots": 64}),
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut state = 1u64;
            while !stop.load(Ordering::Relaxed) {
                let words = std::iter::repeat_with(|| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 16).to_le_bytes()
                });
                let garbage: Vec<u8> = words.take(0x3000 / 8).flatten().collect();
                for at in [0, 0x100, 0x1000] {
                    rustix::io::pwrite(&bad.memfd, &garbage[at..], at as u64).unwrap();
                }
                let _ = rustix::io::write(&bad.kick, &u64::MAX.wrapping_sub(1).to_ne_bytes());
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let _stop = StopOnDrop(&stop);
        a.assert_answers("10.7.0.2", 50);
        eventually("the garbage is counted", || {
            valed.counters("bad").dropped_malformed > 0
        });
    });
    assert!(valed.counters("b").tx_packets >= 50);
    rustix::fs::ftruncate(&bad.memfd, 0).expect_err("a guest can shrink its rings");
}

/// A receiver that frees its ring sends no notification: valed has to look again by itself.
#[test]
fn frames_that_wait_go_on_when_the_receiver_has_room() {
    let valed = Valed::start();
    let port = |last: u8, extra: Value| {
        let mut args = json!({"mac": format!("02:00:00:00:00:{last:02x}"), "port_security": false});
        extra
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(k, v)| args[k] = v.clone());
        args
    };
    let mut receiver = Guest::new(&valed, "slow", port(2, json!({"slots": 64})));
    let mut sender = Guest::new(
        &valed,
        "fast",
        port(1, json!({"slots": 256, "backpressure": true})),
    );
    (0..200).for_each(|_| sender.ring.push(&frame(2, 1, [0x88, 0xb5])).unwrap());
    sender.publish();
    let mut got = 0;
    for _ in 0..400 {
        // The switch is asleep by now, and no verb wakes it.
        std::thread::sleep(Duration::from_millis(5));
        got += std::iter::from_fn(|| receiver.ring.pop(&mut [0; 2048])).count() as u64;
        receiver.publish();
        if got == 200 {
            break;
        }
    }
    // Frames may be lost only if this process stood still for 100 ms.
    eventually("each frame arrives or is lost", || {
        got += std::iter::from_fn(|| receiver.ring.pop(&mut [0; 2048])).count() as u64;
        receiver.publish();
        got + valed.counters("slow").dropped_full == 200
    });
    assert!(got > 63, "frames wait for room");
}
