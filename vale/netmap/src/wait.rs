// SPDX-License-Identifier: Apache-2.0
//! The wrapper of `poll`: it synchronizes our descriptors and sleeps on all.
use std::time::{Duration, Instant};

use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, pollfd};

use crate::registry::{self, Shared, lock};

/// Sleep between two looks at a ring that has news, but none that the program can see. An example
/// is a receive ring whose `cur` is at its end.
const PAUSE: Duration = Duration::from_millis(1);

/// Sleeps in the kernel's `poll`; the timeout is in milliseconds, negative for none.
pub type Sleep<'a> = &'a mut dyn FnMut(&mut [pollfd], i32) -> Result<usize, i32>;

/// Our descriptors among those of a call, by their place.
fn ours(fds: &[pollfd]) -> Vec<(usize, Shared)> {
    let found = fds.iter().map(|f| registry::find(f.fd)).enumerate();
    found.filter_map(|(n, port)| Some((n, port?))).collect()
}

/// Waits for events; the error is an error number.
pub fn poll(fds: &mut [pollfd], timeout_ms: i32, sleep: Sleep<'_>) -> Result<usize, i32> {
    let ports = ours(fds);
    if ports.is_empty() {
        return sleep(fds, timeout_ms);
    }
    let limit = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let end = limit.map(|limit| Instant::now() + limit);
    let mut pause = Duration::ZERO;
    loop {
        let mut copy = fds.to_vec();
        let is_ready = synchronize(&ports, fds);
        let mut longest = end.map(|end| end.saturating_duration_since(Instant::now()));
        let is_last = is_ready || longest == Some(Duration::ZERO);
        if is_last {
            longest = Some(Duration::ZERO);
        } else if prepare(&ports, fds) {
            longest = Some(longest.map_or(pause, |longest| longest.min(pause)));
            pause = PAUSE;
        }
        ports.iter().for_each(|(n, _)| copy[*n].events = POLLIN);
        sleep(&mut copy, milliseconds(longest))?;
        let others = take(&ports, fds, &copy);
        if is_last || others {
            return Ok(fds.iter().filter(|f| f.revents != 0).count());
        }
    }
}

/// Synchronizes our descriptors and sets their events. True if there are any.
fn synchronize(ports: &[(usize, Shared)], fds: &mut [pollfd]) -> bool {
    for (n, port) in ports {
        fds[*n].revents = lock(port).ready(fds[*n].events);
    }
    ports.iter().any(|(n, _)| fds[*n].revents != 0)
}

/// Asks all switches for wake-ups. True if one has news already.
fn prepare(ports: &[(usize, Shared)], fds: &[pollfd]) -> bool {
    let mut is_there = false;
    for (n, port) in ports {
        is_there |= lock(port).prepare(fds[*n].events);
    }
    is_there
}

/// Takes the events of the others' descriptors, and notes the ports that have ended. True if
/// another descriptor has events.
fn take(ports: &[(usize, Shared)], fds: &mut [pollfd], copy: &[pollfd]) -> bool {
    let mut ports = ports.iter().peekable();
    let mut is_there = false;
    for (n, (fd, copy)) in fds.iter_mut().zip(copy).enumerate() {
        if let Some((_, port)) = ports.next_if(|(own, _)| *own == n) {
            if copy.revents & (POLLHUP | POLLERR | POLLNVAL) != 0 {
                lock(port).end();
            }
        } else {
            fd.revents = copy.revents;
            is_there |= fd.revents != 0;
        }
    }
    is_there
}

/// Rounds up, so that a sleep does not end before its time.
fn milliseconds(time: Option<Duration>) -> i32 {
    time.map_or(-1, |time| {
        i32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    })
}
