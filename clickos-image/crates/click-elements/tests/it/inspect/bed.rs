// SPDX-License-Identifier: Apache-2.0
//! A router between two devices, of a configuration or of a package of the catalog.
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use click_core::{Entropy, Environment, Limits, MemoryDevice, Progress, Router};

use super::packets::{ACK, SYN, Segment};
use crate::devices::{Memory, environment};

/// The first numbers of both sides: that of the client wraps.
pub const CLIENT_SEQ: u32 = u32::MAX - 20;
pub const SERVER_SEQ: u32 = 7000;

pub struct Bed {
    pub router: Router,
    devices: [Memory; 2],
    now_ns: u64,
}

/// What packages define at their right side.
const RIGHT: &str = "define($RIGHT_IP 10.0.0.9, $RIGHT_MAC 02:00:00:00:00:09, $RIGHT_NET 10.0.0.0/24, $RIGHT_GW 0.0.0.0, $RIGHT_MTU 300);\n";

/// The configuration of a package, with its libraries, behind some definitions.
pub fn package(name: &str, definitions: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vnfd-templates");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let text = read(&format!("{name}/Files/{name}.click"));
    let library = |line: &str| {
        let name = line.strip_prefix("require(library ")?.strip_suffix(");")?;
        Some(read(&format!("library/{name}")))
    };
    let lines = text
        .lines()
        .map(|line| library(line).unwrap_or_else(|| line.to_string()) + "\n");
    [RIGHT, definitions, &lines.collect::<String>()].concat()
}

/// Frames of two sides through an inspector with arguments.
pub fn inspector(arguments: &str) -> String {
    format!(
        "FromDevice(0) -> MarkIPHeader(14) -> ips :: StreamInspector({arguments}) -> Queue -> ToDevice(1);
        FromDevice(1) -> MarkIPHeader(14) -> [1]ips[1] -> Queue -> ToDevice(0);"
    )
}

impl Bed {
    pub fn new(config: &str) -> Self {
        Self::within(config, Limits::default())
    }

    pub fn within(config: &str, limits: Limits) -> Self {
        let device = |n| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, n])));
        let devices = [device(1), device(2)];
        let environment = Environment {
            entropy: Entropy::new(&[7; 32]),
            limits,
            ..environment(&devices)
        };
        let now_ns = 1_000_000_000;
        let registry = click_elements::registry();
        let router = Router::build("t", config, &registry, environment, now_ns);
        let router = router.unwrap_or_else(|errors| panic!("{errors:#?}"));
        Self {
            router,
            devices,
            now_ns,
        }
    }

    /// An inspector with rules.
    pub fn with_rules(rules: &str) -> Self {
        let mut bed = Self::new(&inspector(""));
        bed.write("ips.rules", rules);
        bed
    }

    /// Lets some time pass.
    pub fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now_ns += 1_000_000_000;
            while self.router.run(self.now_ns) == Progress::Worked {}
        }
    }

    /// Sends a frame by a side, 0 for the left one; returns those that leave by the other one.
    pub fn send(&mut self, side: usize, frame: Vec<u8>) -> Vec<Vec<u8>> {
        self.devices[side].borrow_mut().input.push_back(frame);
        self.now_ns += 1000;
        while self.router.run(self.now_ns) == Progress::Worked {}
        std::mem::take(&mut self.devices[1 - side].borrow_mut().output)
    }

    /// True if a segment passes.
    pub fn passes(&mut self, segment: &Segment) -> bool {
        let side = usize::from(!segment.from_client);
        self.send(side, segment.frame()).len() == 1
    }

    pub fn read(&mut self, handler: &str) -> String {
        String::from_utf8(self.router.read_handler(handler, "", self.now_ns).unwrap()).unwrap()
    }

    pub fn count(&mut self, handler: &str) -> u64 {
        self.read(handler).trim().parse().unwrap()
    }

    pub fn write(&mut self, handler: &str, value: &str) {
        self.router
            .write_handlers(&[(handler, value.as_bytes())], self.now_ns)
            .unwrap();
    }

    /// Changes to another configuration.
    pub fn swap(&mut self, config: &str) {
        let registry = click_elements::registry();
        self.router
            .hotswap("t", config, &registry, self.now_ns)
            .unwrap();
    }

    /// Packets that were dropped for a reason.
    pub fn drops(&mut self, reason: &str) -> u64 {
        let drops = self.read("ips.drops");
        let line = drops
            .lines()
            .find(|line| line.ends_with(&format!("\t{reason}")))
            .unwrap();
        line.split('\t').next().unwrap().parse().unwrap()
    }

    /// Opens a connection.
    pub fn open(&mut self) {
        let syn = Segment::new(true, SYN, CLIENT_SEQ, 0, b"");
        let answer = Segment::new(
            false,
            SYN | ACK,
            SERVER_SEQ,
            CLIENT_SEQ.wrapping_add(1),
            b"",
        );
        for segment in [syn, answer, from_client(0, b"")] {
            assert!(self.passes(&segment), "{segment:?}");
        }
    }

    /// True if data of the client passes, at a place of its stream.
    pub fn client_sends(&mut self, at: u32, data: &str) -> bool {
        self.passes(&from_client(at, data.as_bytes()))
    }

    /// True if data of the server passes.
    pub fn server_sends(&mut self, at: u32, data: &str) -> bool {
        self.passes(&from_server(at, 0, data.as_bytes()))
    }

    /// The server has the client's bytes up to a place.
    pub fn server_has(&mut self, at: u32) {
        assert!(self.passes(&from_server(0, at, b"")));
    }
}

/// Data of the client, which has nothing of the server yet.
pub fn from_client(at: u32, data: &[u8]) -> Segment {
    let seq = CLIENT_SEQ.wrapping_add(1 + at);
    Segment::new(true, ACK, seq, SERVER_SEQ + 1, data)
}

/// Data of the server, which has the client's bytes up to a place.
pub fn from_server(at: u32, has: u32, data: &[u8]) -> Segment {
    let ack = CLIENT_SEQ.wrapping_add(1 + has);
    Segment::new(false, ACK, SERVER_SEQ + 1 + at, ack, data)
}
