// SPDX-License-Identifier: Apache-2.0
//! The guard next to a second judge. `differential/frames.py` makes a hostile guest's frames with
//! scapy, and `differential/judge.py` judges them. The real valed must pass the same frames.
//! Afterwards a Linux host of the segment believes what it believed before.
//!
//! `VALE_FRAMES` and `VALE_SEED` make a longer or another run.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Lines};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::{Guest, Namespace, Valed, eventually};
use serde_json::{Value, json};
use vale_netdev::{Received, RecvBatch, open_packet_socket};
use vale_proto::Counters;

const SEED: u64 = 1;
const FRAMES: u64 = 5_000;
/// Frames under way at a time.
const WINDOW: usize = 31;
/// Lines that the test takes at a time.
const CHUNK: usize = 2_000;
const OTHER_MAC: &str = "02:00:00:00:00:03";
/// The header of an honest datagram; a number follows.
const MARKER: &[u8] = b"\
    \x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0\
    \x45\0\0\x2e\0\0\0\0\x40\x11\0\0\x0a\x07\0\x01\x0a\x07\0\x02\
    \0\x09\0\x09\0\x1a\0\0marker";

fn number(variable: &str, usual: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(usual, |text| text.parse().expect(variable))
}

/// A frame with the second judge's verdict.
struct Case {
    port: String,
    passes: bool,
    family: String,
    frame: Vec<u8>,
}

impl Case {
    fn parse(line: &str) -> Self {
        let words: Vec<_> = line.split(' ').collect();
        let [port, verdict, family, hex] = words[..] else {
            panic!("{line}");
        };
        let byte = |hex: &[u8]| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap();
        Self {
            port: port.to_owned(),
            passes: verdict == "pass",
            family: family.to_owned(),
            frame: hex.as_bytes().chunks(2).map(byte).collect(),
        }
    }
}

/// The program that makes the cases.
struct Source {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Source {
    fn start(seed: u64, count: u64) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/differential/frames.py");
        let mut python = Command::new("python3");
        python
            .arg(script)
            .args([seed.to_string(), count.to_string()]);
        let mut child = python.stdout(Stdio::piped()).spawn().expect("python3");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next cases, by port; empty at the end.
    fn chunk(&mut self) -> BTreeMap<String, Vec<Case>> {
        let mut chunk = BTreeMap::<_, Vec<_>>::new();
        for line in self.lines.by_ref().take(CHUNK) {
            let case = Case::parse(&line.unwrap());
            chunk.entry(case.port.clone()).or_default().push(case);
        }
        if chunk.is_empty() {
            let status = self.child.wait().unwrap();
            assert!(status.success(), "frames.py needs python3 with scapy");
        }
        chunk
    }
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn marker(number: u64) -> Vec<u8> {
    let mut frame = [MARKER, &number.to_be_bytes()].concat();
    frame.resize(60, 0);
    frame
}

fn marked(frame: &[u8]) -> Option<u64> {
    let number = frame.strip_prefix(MARKER)?.first_chunk()?;
    Some(u64::from_be_bytes(*number))
}

/// Frames that arrive at `eth0` of a namespace.
struct Arrivals {
    socket: OwnedFd,
    batch: RecvBatch,
    frames: VecDeque<Vec<u8>>,
}

impl Arrivals {
    fn at(place: &Namespace) -> Self {
        let opening = place.thread(|| open_packet_socket("eth0").unwrap());
        Self {
            socket: opening.join().unwrap(),
            batch: RecvBatch::default(),
            frames: VecDeque::new(),
        }
    }

    /// The frames before marker `number`.
    fn before(&mut self, number: u64) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        eventually("the marker arrives", || {
            for n in 0..self.batch.receive(self.socket.as_fd()).unwrap() {
                if let Received::Frame(_, frame) = self.batch.frame(n) {
                    self.frames.push_back(frame.to_vec());
                }
            }
            while let Some(frame) = self.frames.pop_front() {
                if marked(&frame) == Some(number) {
                    return true;
                }
                found.push(frame);
            }
            false
        });
        found
    }
}

/// A port of a hostile guest, and a host of its segment.
struct Trial {
    guest: Guest,
    arrivals: Arrivals,
    next: u64,
    passed: u64,
    dropped: u64,
}

impl Trial {
    fn new(guest: Guest, host: &Namespace) -> Self {
        let (arrivals, next) = (Arrivals::at(host), 0);
        Self {
            guest,
            arrivals,
            next,
            passed: 0,
            dropped: 0,
        }
    }

    /// Sends the frames; says for each on which the judges disagree why.
    fn run(&mut self, cases: &[Case]) -> Vec<String> {
        let windows = cases.chunks(WINDOW).enumerate();
        let disagreements = windows.flat_map(|(n, window)| match n % 2 {
            0 => self.window(window),
            _ => self.burst(window),
        });
        disagreements.collect()
    }

    /// A burst in which each frame comes twice, the second time as a later one of its flow, without other
    /// frames in between.
    fn burst(&mut self, cases: &[Case]) -> Vec<String> {
        let twice = || cases.iter().flat_map(|case| [case, case]);
        twice().for_each(|case| self.guest.ring.push(&case.frame).unwrap());
        let number = self.next;
        self.guest.ring.push(&marker(number)).unwrap();
        self.guest.publish();
        let arrived = self.arrivals.before(number).into_iter();
        let arrived = arrived.filter(|frame| cases.iter().any(|case| case.frame == *frame));
        let arrived: Vec<_> = arrived.collect();
        self.next += cases.len() as u64;
        self.passed += arrived.len() as u64;
        self.dropped += (2 * cases.len() - arrived.len()) as u64;
        let expected: Vec<_> = twice().filter(|case| case.passes).collect();
        if arrived.iter().eq(expected.iter().map(|case| &case.frame)) {
            return Vec::new();
        }
        let all = cases.iter().map(|case| (case.passes, hex(&case.frame)));
        let arrived: Vec<_> = arrived.iter().map(|frame| hex(frame)).collect();
        vec![format!(
            "a burst: {:?} arrived of {:?}",
            arrived,
            all.collect::<Vec<_>>()
        )]
    }

    /// Each frame with a marker behind it.
    fn window(&mut self, window: &[Case]) -> Vec<String> {
        for (number, case) in (self.next..).zip(window) {
            self.guest.ring.push(&case.frame).unwrap();
            self.guest.ring.push(&marker(number)).unwrap();
        }
        self.guest.publish();
        let disagreements = window.iter().filter_map(|case| self.compare(case));
        disagreements.collect()
    }

    fn compare(&mut self, case: &Case) -> Option<String> {
        let passed = self.arrivals.before(self.next).contains(&case.frame);
        self.next += 1;
        *(if passed {
            &mut self.passed
        } else {
            &mut self.dropped
        }) += 1;
        let Case { port, family, .. } = case;
        let frame = hex(&case.frame);
        (passed != case.passes)
            .then(|| format!("{port}, {family}: valed passes: {passed}: {frame}"))
    }
}

/// The host's routes, addresses, and link-layer addresses of a neighbor.
fn beliefs(host: &Namespace) -> String {
    let show = |what: &str| {
        let output = host.exec(&format!("ip -o {what}"));
        assert!(output.status.success(), "ip -o {what}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lasting = |text: String| -> Vec<String> {
        let words = |line: &str| line.split("valid_lft").next().unwrap().to_owned();
        text.lines().map(words).collect()
    };
    let neighbors = ["10.7.0.3", "2001:db8::3"].map(|address| {
        let text = show(&format!("neigh show {address} dev eth0"));
        let mut words = text.split_whitespace().skip_while(|word| *word != "lladdr");
        words.nth(1).map(str::to_owned)
    });
    let tables = [
        "route",
        "-6 route",
        "addr show dev eth0",
        "-6 addr show dev eth0",
    ];
    let tables = tables.map(|table| lasting(show(table)));
    format!("{tables:#?} {neighbors:?}")
}

fn refused(counters: &Counters) -> u64 {
    counters.dropped_spoof
        + counters.dropped_type
        + counters.dropped_rogue
        + counters.dropped_hidden
        + counters.dropped_link_control
        + counters.dropped_malformed
        + counters.dropped_loop
}

/// The attacker of each port with the host that receives its frames, in segments 1 to 3.
fn trials(valed: &Valed, hosts: [&Namespace; 3]) -> BTreeMap<&'static str, Trial> {
    let pair = "02:00:00:00:00:04";
    let own = json!([{"ip": "10.7.0.1/32"}, {"ip": "2001:db8::1/128"}]);
    let both = json!([own[0], own[1], {"mac": pair, "ip": "10.7.9.0/24"},
        {"mac": pair, "ip": "2001:db8:9::/64"}]);
    let trial = |port, host: &Namespace, mut extra: Value| {
        extra["mac"] = json!("02:00:00:00:00:01");
        (port, Trial::new(Guest::new(valed, port, extra), host))
    };
    let tagged = json!({"segment": 2, "allowed": both, "vlan_tags": true});
    let open = json!({"segment": 3, "port_security": false});
    BTreeMap::from([
        trial("plain", hosts[0], json!({"allowed": own})),
        trial("tagged", hosts[1], tagged),
        trial("open", hosts[2], open),
    ])
}

/// Sends all cases; returns the disagreements.
fn run(mut source: Source, trials: &mut BTreeMap<&str, Trial>) -> Vec<String> {
    let mut disagreements = Vec::new();
    loop {
        let chunk = source.chunk();
        if chunk.is_empty() {
            return disagreements;
        }
        for (port, cases) in chunk {
            disagreements.extend(trials.get_mut(port.as_str()).unwrap().run(&cases));
        }
    }
}

fn assert_reached(host: &Namespace) {
    for address in ["10.7.0.3", "2001:db8::3"] {
        host.assert_answers(address, 3);
    }
}

#[test]
fn two_judges_agree_and_a_host_believes_nothing() {
    let (seed, count) = (number("VALE_SEED", SEED), number("VALE_FRAMES", FRAMES));
    println!("VALE_SEED={seed} VALE_FRAMES={count}");
    let valed = Valed::start();
    let host = valed.attach("b", 2, 1, &["10.7.0.2/24", "2001:db8::2/64"], json!({}));
    let other = valed.attach("c", 3, 1, &["10.7.0.3/24", "2001:db8::3/64"], json!({}));
    let ready = |host: &Namespace| !beliefs(host).contains("tentative");
    eventually("no address is tentative", || ready(&host) && ready(&other));
    assert_reached(&host);
    let before = beliefs(&host);
    assert!(before.contains(OTHER_MAC), "{before}");
    let alone = |name, segment| valed.attach(name, 2, segment, &[], json!({}));
    let (of_tagged, of_open) = (alone("d", 2), alone("e", 3));
    let mut trials = trials(&valed, [&host, &of_tagged, &of_open]);
    let found = run(Source::start(seed, count), &mut trials);
    let some = found[..found.len().min(20)].join("\n");
    assert!(
        found.is_empty(),
        "seed {seed}: {} disagreements:\n{some}",
        found.len()
    );
    assert_eq!(trials.values().map(|trial| trial.next).sum::<u64>(), count);
    for (
        port,
        Trial {
            passed, dropped, ..
        },
    ) in &trials
    {
        println!("{port}: {passed} frames passed, {dropped} dropped");
        assert_eq!(refused(&valed.counters(port)), *dropped, "{port}");
        assert!(*passed.min(dropped) > count / 1000, "{port}");
    }
    assert_eq!(beliefs(&host), before);
    assert_reached(&host);
}
