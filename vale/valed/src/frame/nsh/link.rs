// SPDX-License-Identifier: Apache-2.0
//! The states that the hosts of a chain's path exchange.
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Content, FIRST_INDEX, Label, State, TTL, headers};

/// What waits for the next tick of the chains at most.
const HEARD: usize = 512;

/// A sign of life of another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    State(State),
    /// A frame came by this version.
    Frame(u64),
}

/// The states that the hosts of one path exchange.
pub struct Link {
    pub number: u32,
    pub local: IpAddr,
    port: u16,
    socket: Arc<UdpSocket>,
    heard: Mutex<Vec<(IpAddr, Heard)>>,
    /// The number of the tick to come.
    tick: AtomicU32,
}

impl Link {
    /// The link of a path at a socket; all hosts use one UDP port.
    pub fn new(number: u32, local: IpAddr, port: u16, socket: Arc<UdpSocket>) -> Self {
        Self {
            number,
            local,
            port,
            socket,
            heard: Mutex::default(),
            tick: AtomicU32::default(),
        }
    }

    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The UDP port of all hosts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Keeps what came for the next tick.
    pub fn keep(&self, from: IpAddr, heard: Heard) {
        let mut all = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < HEARD {
            all.push((from, heard));
        }
    }

    /// A number that changes when what was kept has been taken.
    pub fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    /// Announces a state to another host. A lost one costs time only.
    pub fn announce(&self, host: IpAddr, state: &State) {
        let label = Label {
            number: self.number,
            reverse: false,
            index: FIRST_INDEX,
            ttl: TTL,
            version: state.version,
        };
        let mut datagram = headers(&label, Content::State).to_vec();
        state.write(&mut datagram);
        let _ = self.socket.send_to(&datagram, (host, self.port));
    }

    /// What came since.
    pub fn take(&self) -> Vec<(IpAddr, Heard)> {
        self.tick.fetch_add(1, Ordering::Relaxed);
        std::mem::take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
