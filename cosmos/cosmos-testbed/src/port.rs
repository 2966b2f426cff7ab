// SPDX-License-Identifier: Apache-2.0
//! The test's own port of the switch: a process port it sends and receives frames with.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ring::GuestPort;
use serde_json::json;
use vale_proto::ValeClient;

use crate::eventually;

/// A frame's source address is that of the port, its destination is broadcast.
pub struct TestPort {
    name: String,
    /// Frames so far.
    sent: u64,
    rings: GuestPort,
    kick: OwnedFd,
    _wake: OwnedFd,
    mac: [u8; 6],
}

impl TestPort {
    /// Adds port `t<n>` to vale0, in a segment, with its link up.
    pub fn add(vale: &mut ValeClient, n: u8, segment: u32) -> Self {
        let add = json!({
            "switch": "vale0", "port": format!("t{n}"), "kind": "process", "segment": segment,
            "mac": format!("02:00:00:00:00:{n:02x}"), "port_security": false,
        });
        let add = serde_json::from_value(add).expect("the arguments are right");
        let fds = vale
            .port_add(&add)
            .expect("valed adds it")
            .expect("a process port has rings");
        let rings = GuestPort::map(&fds.memfd).expect("valed's rings can be mapped");
        Self {
            name: format!("t{n}"),
            sent: 0,
            rings,
            kick: fds.kick,
            _wake: fds.wake,
            mac: [2, 0, 0, 0, 0, n],
        }
    }

    /// Sends a broadcast frame of an experimental type (IEEE 802 local, 0x88b5).
    pub fn send(&mut self, payload: &[u8]) {
        self.send_frame(&[&[0xff; 6][..], &self.mac, &[0x88, 0xb5], payload].concat());
    }

    /// Sends any frame.
    pub fn send_frame(&mut self, frame: &[u8]) {
        assert!(self.try_send_frame(frame), "the ring has room");
    }

    /// False if the ring is full.
    pub fn try_send_frame(&mut self, frame: &[u8]) -> bool {
        let sent = self.rings.push(frame).is_ok();
        self.sent += u64::from(sent);
        self.publish();
        sent
    }

    fn publish(&mut self) {
        if self.rings.publish() {
            rustix::io::write(&self.kick, &1u64.to_ne_bytes()).expect("valed is notified");
        }
    }

    /// Waits until the switch has taken all frames sent so far and has passed them on.
    pub fn await_switch(&self, vale: &mut ValeClient) {
        eventually("the switch takes the frames", || {
            let ports = vale.port_list(None).expect("valed answers");
            let mut own = ports.iter().filter(|info| info.port.as_str() == self.name);
            own.any(|info| info.counters.rx_packets == self.sent)
                .then_some(())
        });
    }

    /// The payload of the next frame within `patience`.
    pub fn receive(&mut self, patience: Duration) -> Option<Vec<u8>> {
        self.receive_every(Duration::from_millis(1), patience)
    }

    /// As [`Self::receive`], with a look at the ring in every `pause`.
    pub fn receive_every(&mut self, pause: Duration, patience: Duration) -> Option<Vec<u8>> {
        let deadline = Instant::now() + patience;
        let mut buffer = [0; 2048];
        loop {
            if let Some(len) = self.rings.pop(&mut buffer) {
                self.publish();
                return Some(buffer[14..len].to_vec());
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(pause);
        }
    }
}
