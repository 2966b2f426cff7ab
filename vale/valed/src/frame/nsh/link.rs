// SPDX-License-Identifier: Apache-2.0
//! The states that the hosts of a chain's path exchange.
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Content, FIRST_INDEX, Label, State, TTL, headers};

/// States that wait for the next look at the chains.
const STATES: usize = 512;

/// The states that the hosts of one path exchange.
pub struct Link {
    pub number: u32,
    pub local: IpAddr,
    port: u16,
    socket: Arc<UdpSocket>,
    states: Mutex<Vec<(IpAddr, State)>>,
}

impl Link {
    /// The link of a path at a socket; all hosts use one UDP port.
    pub fn new(number: u32, local: IpAddr, port: u16, socket: Arc<UdpSocket>) -> Self {
        Self {
            number,
            local,
            port,
            socket,
            states: Mutex::default(),
        }
    }

    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The UDP port of all hosts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Keeps a state that came.
    pub fn keep(&self, from: IpAddr, state: State) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if states.len() < STATES {
            states.push((from, state));
        }
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

    /// The states that came since.
    pub fn take(&self) -> Vec<(IpAddr, State)> {
        std::mem::take(&mut self.states.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
