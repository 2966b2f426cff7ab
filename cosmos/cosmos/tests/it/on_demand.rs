// SPDX-License-Identifier: Apache-2.0
//! Guests that a frame makes, on a real host. Needs root and NOXEN_PREFIX.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use cosmos_testbed::{PATIENCE, TestPort, Testbed, eventually, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

const SEGMENT: u32 = 7;
const CONFIG: &str = "FromDevice(0) -> c :: Classifier(12/0806 20/0001, -);
c[0] -> ARPResponder($ADDRESS $MAC) -> q :: Queue -> ToDevice(0);
c[1] -> MarkIPHeader(14) -> IPMirror -> EtherMirror -> q;
";
/// After this time without an answer a client asks again.
const AGAIN: Duration = Duration::from_millis(300);

/// `cosmos on-demand` that runs, and what it tells.
struct OnDemand {
    program: Child,
    told: Receiver<Value>,
}

impl OnDemand {
    fn start(bed: &Testbed, flags: &[&str]) -> Self {
        std::fs::write(bed.path("guest.click"), CONFIG).expect("the folder is ours");
        let file = "config = 'guest.click'\nvif = ['segment=7']\n";
        std::fs::write(bed.path("guest.cfg"), file).expect("the folder is ours");
        let mut program = Command::new(env!("CARGO_BIN_EXE_cosmos"))
            .env("COSMOSD_SOCKET", bed.socket())
            .env("VALED_SOCKET", bed.path("valed.sock"))
            .args(["-o", "json", "on-demand", "--network", "10.0.0.0/24"])
            .args(flags)
            .arg(bed.path("guest.cfg"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built with this test");
        let (tell, told) = channel();
        let lines = BufReader::new(program.stdout.take().expect("it has a pipe")).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).expect("each line is JSON"));
            }
        });
        let this = Self { program, told };
        eventually("the program's port", || {
            let ports = bed.vale().port_list(None).expect("valed answers");
            ports.iter().find(|p| p.port.as_str() == "react7").map(drop)
        });
        this
    }

    /// The next event and its address.
    fn told(&self) -> (String, String) {
        let event = self.told.recv_timeout(PATIENCE).expect("an event comes");
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        (text("event"), text("address"))
    }

    fn end(self, signal: Signal) {
        kill(self.program.id().try_into().expect("a process id"), signal);
        self.ended(signal == Signal::TERM);
    }

    fn ended(mut self, is_good: bool) {
        let status = self.program.wait().expect("it was started");
        assert_eq!(status.success(), is_good, "{status}");
    }
}

fn names(bed: &Testbed) -> Vec<String> {
    let list = bed.call("list", json!({})).expect("cosmosd answers");
    let guests = list["guests"].as_array().expect("a list").iter();
    let mut names: Vec<_> = guests
        .map(|guest| guest["name"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

fn client(bed: &Testbed) -> TestPort {
    TestPort::add(&mut bed.vale(), 1, SEGMENT)
}

/// Asks for the MAC address of 10.0.0.`host`, as any station does.
fn ask(port: &mut TestPort, host: u8) {
    let ethernet = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6];
    let request = [0, 1, 8, 0, 6, 4, 0, 1];
    let (sender, target) = ([2, 0, 0, 0, 0, 1, 10, 0, 0, 1], [10, 0, 0, host]);
    port.send_frame(&[&ethernet[..], &request, &sender, &[0; 6], &target, &[0; 18]].concat());
}

/// The MAC address and the IP address of an ARP answer.
fn answered(port: &mut TestPort, patience: Duration) -> Option<Vec<u8>> {
    let answer = port.receive(patience)?;
    assert_eq!(answer[..8], [0, 1, 8, 0, 6, 4, 0, 2]);
    Some(answer[8..18].to_vec())
}

/// Sends a packet to the guest of 10.0.0.`host`, which sends it back.
fn knock(port: &mut TestPort, host: u8, word: &[u8; 4]) {
    let ethernet = [2, 0, 10, 0, 0, host, 2, 0, 0, 0, 0, 1, 8, 0];
    let ip = [
        0x45, 0, 0, 24, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, host,
    ];
    let ip = with_checksum(ip);
    port.send_frame(&[&ethernet[..], &ip, word, &[0; 22]].concat());
}

fn with_checksum(mut header: [u8; 20]) -> [u8; 20] {
    let words = header
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// The next packet is the answer to a knock.
fn knocked(port: &mut TestPort, word: &[u8; 4]) {
    let packet = port.receive(PATIENCE).expect("a packet comes");
    assert_eq!(
        (&packet[16..20], &packet[20..24]),
        (&[10, 0, 0, 1][..], &word[..])
    );
}

#[test]
fn a_frame_makes_its_guest_and_goes_through_it() {
    let bed = Testbed::start();
    let running = OnDemand::start(&bed, &["--most", "2"]);
    let mut port = client(&bed);
    let begun = Instant::now();
    ask(&mut port, 7);
    let answer = answered(&mut port, PATIENCE).unwrap();
    let first_ms = begun.elapsed().as_secs_f64() * 1e3;
    assert_eq!(answer, [2, 0, 10, 0, 0, 7, 10, 0, 0, 7]);
    assert_eq!(running.told(), ("made".into(), "10.0.0.7".into()));
    let begun = Instant::now();
    knock(&mut port, 7, b"next");
    knocked(&mut port, b"next");
    let second_ms = begun.elapsed().as_secs_f64() * 1e3;
    println!("from packet to packet: first {first_ms:.1} ms, then {second_ms:.1} ms");

    // Frames that come meanwhile wait; the guest answers each.
    for word in [b"one ", b"two "] {
        knock(&mut port, 8, word);
    }
    for word in [b"one ", b"two "] {
        knocked(&mut port, word);
    }
    assert_eq!(running.told(), ("made".into(), "10.0.0.8".into()));

    // No guest beyond the limit, nor outside the network.
    ask(&mut port, 9);
    assert_eq!(running.told(), ("full".into(), "10.0.0.9".into()));
    knock(&mut port, 9, b"none");
    // The next packet is that of a guest that is there.
    knock(&mut port, 7, b"then");
    knocked(&mut port, b"then");
    let wanted = ["react-vale0-7-10.0.0.7", "react-vale0-7-10.0.0.8"];
    assert_eq!(names(&bed), wanted);
    running.end(Signal::TERM);
    bed.vale()
        .port_remove(&"vale0".parse().unwrap(), &"t1".parse().unwrap())
        .unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn a_guest_that_is_idle_or_dead_goes_and_comes_again() {
    let bed = Testbed::start();
    let running = OnDemand::start(&bed, &["--idle", "1"]);
    let mut port = client(&bed);
    ask(&mut port, 7);
    assert!(answered(&mut port, PATIENCE).is_some());
    assert_eq!(running.told(), ("made".into(), "10.0.0.7".into()));
    assert_eq!(running.told(), ("gone".into(), "10.0.0.7".into()));
    assert_eq!(names(&bed), Vec::<String>::new());
    knock(&mut port, 7, b"more");
    knocked(&mut port, b"more");
    assert_eq!(running.told(), ("made".into(), "10.0.0.7".into()));
    for pid in bed.guest_processes() {
        kill(pid, Signal::KILL);
    }
    assert_eq!(running.told(), ("gone".into(), "10.0.0.7".into()));
    knock(&mut port, 7, b"last");
    knocked(&mut port, b"last");
    running.end(Signal::TERM);
    assert_eq!(names(&bed), Vec::<String>::new());
}

#[test]
fn guests_that_a_killed_program_left_are_taken_over() {
    let bed = Testbed::start();
    let mut port = client(&bed);
    let running = OnDemand::start(&bed, &[]);
    knock(&mut port, 7, b"one ");
    knocked(&mut port, b"one ");
    running.end(Signal::KILL);
    assert_eq!(names(&bed).len(), 1);
    bed.vale()
        .port_remove(&"vale0".parse().unwrap(), &"react7".parse().unwrap())
        .unwrap();
    let running = OnDemand::start(&bed, &["--keep"]);
    knock(&mut port, 7, b"two ");
    knocked(&mut port, b"two ");
    assert_eq!(names(&bed).len(), 1);
    running.end(Signal::TERM);
    assert_eq!(names(&bed).len(), 1);
    let running = OnDemand::start(&bed, &[]);
    running.end(Signal::TERM);
    assert_eq!(names(&bed), Vec::<String>::new());
}

#[test]
fn guests_outlive_a_killed_switch() {
    let mut bed = Testbed::start();
    let mut port = client(&bed);
    let running = OnDemand::start(&bed, &[]);
    knock(&mut port, 7, b"one ");
    knocked(&mut port, b"one ");
    bed.restart_vale();
    running.ended(false);
    assert_eq!(names(&bed).len(), 1);
    let running = OnDemand::start(&bed, &[]);
    running.end(Signal::TERM);
    assert_eq!(names(&bed), Vec::<String>::new());
}

#[test]
fn a_guest_that_cannot_be_made_is_told_and_tried_again_later() {
    let bed = Testbed::start();
    let running = OnDemand::start(&bed, &[]);
    let mut port = client(&bed);
    let taken = json!({
        "switch": "vale0", "port": "r70a000007", "kind": "process", "segment": 9,
        "port_security": false,
    });
    bed.vale()
        .port_add(&serde_json::from_value(taken).unwrap())
        .unwrap();
    ask(&mut port, 7);
    assert_eq!(running.told(), ("refused".into(), "10.0.0.7".into()));
    bed.vale()
        .port_remove(&"vale0".parse().unwrap(), &"r70a000007".parse().unwrap())
        .unwrap();
    eventually("an answer", || {
        ask(&mut port, 7);
        answered(&mut port, AGAIN)
    });
    running.end(Signal::TERM);
    assert_eq!(names(&bed), Vec::<String>::new());
}
