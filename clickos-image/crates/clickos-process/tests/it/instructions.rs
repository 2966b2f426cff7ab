// SPDX-License-Identifier: Apache-2.0
//! Counts the instructions of the confined process with a real store, from its argument line to
//! `Running` with a firewall of ten rules. The test steps them one by one from outside: a tool that
//! rewrites the program cannot run below the system call filter.
//!
//! `cargo test --release -p clickos-process --test it instructions:: -- --nocapture`
#![allow(unsafe_code, reason = "ptrace(2)")]

use crate::common::guest::{Guest, wait_for_its_read};
use crate::common::{Host, PATIENCE};
use std::io::Write;
use std::time::{Duration, Instant};
use xenstore::Tx;

const DOMID: u16 = 5;
/// A process that does not stop for this long sleeps.
const ASLEEP: Duration = Duration::from_millis(100);
const FIREWALL: &str = "
InfiniteSource(LIMIT 0) -> CheckIPHeader(OFFSET 0, VERBOSE false)
-> fw :: IPFilter(
allow tcp && dst port 22, allow tcp && dst port 80,
allow tcp && dst port 443, allow udp && dst port 53,
deny src net 10.0.0.0/8, deny src net 172.16.0.0/12,
allow icmp type echo, allow udp && src port 123,
deny dst host 192.0.2.7, allow all) -> Discard;
";

#[test]
#[cfg_attr(debug_assertions, ignore = "a promise of the release build")]
fn few_from_the_argument_line_to_running() {
    let mut host = Host::new();
    host.make_domain(DOMID);
    let root = format!("/local/domain/{DOMID}/data/clickos/0");
    for (key, value) in [("config/0", FIREWALL), ("generation", "1")] {
        let path = format!("{root}/{key}");
        host.client
            .write(Tx::NONE, &path, value.as_bytes())
            .unwrap();
    }
    let state = format!("{root}/state");
    let (mut child, mut argument, line) = Guest::spawn(&host, DOMID, &[], |_| {});
    // Before it reads, the count has up to 409,000 instructions of the linker more, as the load has it.
    wait_for_its_read(child.id());
    let stepped = Stepped::attach(child.id());
    argument.write_all(format!("{line}\n").as_bytes()).unwrap();
    let steps = stepped.count_until(|| host.text(&state).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(host.text(&state).unwrap(), "Running 1");
    println!("{steps} instructions");
    assert!(steps > 100_000, "{steps} instructions");
    bounds::hold("max_process_start_instructions", steps as f64);
}

/// A process that this one steps through.
struct Stepped {
    pid: libc::pid_t,
}

impl Stepped {
    fn attach(pid: u32) -> Self {
        let stepped = Self {
            pid: libc::pid_t::try_from(pid).unwrap(),
        };
        stepped.ptrace(libc::PTRACE_ATTACH);
        assert!(stepped.stops_within(PATIENCE));
        stepped
    }

    /// Steps until the process sleeps and nothing is left to wait for; gives the number of steps.
    fn count_until(&self, mut is_done: impl FnMut() -> bool) -> u64 {
        for steps in 1.. {
            self.ptrace(libc::PTRACE_SINGLESTEP);
            while !self.stops_within(ASLEEP) {
                if is_done() {
                    return steps;
                }
            }
        }
        unreachable!("so many steps")
    }

    fn ptrace(&self, request: libc::c_uint) {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: these requests take no address, and the process is a child of the test.
        let result = unsafe { libc::ptrace(request, self.pid, none, none) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }

    fn stops_within(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let mut status = 0;
            // SAFETY: the status is written to a variable that outlives the call.
            let pid = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) };
            assert!(
                pid == 0 || libc::WIFSTOPPED(status),
                "it ended: {status:#x}"
            );
            if pid != 0 {
                return true;
            }
        }
        false
    }
}
