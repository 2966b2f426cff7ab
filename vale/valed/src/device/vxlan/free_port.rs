// SPDX-License-Identifier: Apache-2.0
//! Ports of loopback addresses for tests.
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU16, Ordering};

/// Where the kernel takes no ports from for sockets that name none (ip_local_port_range).
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// A port that no socket of these addresses has. No other test of this process gets it, and those of
/// other processes begin elsewhere.
pub fn free_port(hosts: &[&str]) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % 311) as u16 * 64;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + own.wrapping_add(step) % COUNT;
        if hosts
            .iter()
            .all(|host| UdpSocket::bind((*host, port)).is_ok())
        {
            return port;
        }
    }
}
