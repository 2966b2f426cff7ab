// SPDX-License-Identifier: Apache-2.0
//! Signals that ask a running program to stop, and the order in which scripts begin.
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A running `click`; ends with the test.
struct Click {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Click {
    fn start(config: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_click"))
            .args(["-e", config])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// The rest of its output, and its exit status.
    fn rest(&mut self) -> (String, ExitStatus) {
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        (text, self.child.wait().unwrap())
    }
}

impl Drop for Click {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_manager_prints_its_report_when_a_signal_comes() {
    let config = "RatedSource(RATE 100) -> c :: Counter -> Discard;
        DriverManager(print \"start\", wait, print \"end $(c.byte_count)\", stop)";
    for signal in [Signal::INT, Signal::TERM] {
        let mut click = Click::start(config);
        assert_eq!(click.line(), "start\n");
        click.signal(signal);
        let (text, status) = click.rest();
        let bytes = text.strip_prefix("end ").unwrap().trim();
        assert!(bytes.parse::<u64>().is_ok_and(|n| n % 69 == 0), "{text}");
        assert!(status.success());
    }
}

#[test]
fn the_second_signal_ends_the_program_at_once() {
    let config =
        "DriverManager(print \"start\", wait, print \"first\", wait, print \"second\", wait)";
    for (first, second) in [(Signal::INT, Signal::INT), (Signal::TERM, Signal::TERM)] {
        let mut click = Click::start(config);
        assert_eq!(click.line(), "start\n");
        click.signal(first);
        assert_eq!(click.line(), "first\n");
        click.signal(second);
        let (text, status) = click.rest();
        assert_eq!(text, "");
        assert_eq!(status.signal(), Some(second.as_raw()));
    }
}

#[test]
fn a_watched_signal_may_come_often() {
    let config = "Script(TYPE SIGNAL INT, init n 0, set n $(add $n 1), print $n, goto out $(lt $n 3), write m.step, label out);
        m :: DriverManager(print \"start\", pause, print \"end\")";
    let mut click = Click::start(config);
    assert_eq!(click.line(), "start\n");
    for n in ["1\n", "2\n"] {
        click.signal(Signal::INT);
        assert_eq!(click.line(), n);
    }
    click.signal(Signal::INT);
    let (text, status) = click.rest();
    assert_eq!(text, "3\nend\n");
    assert!(status.success());
}

#[test]
fn the_manager_begins_before_the_scripts() {
    for config in [
        "DriverManager(print 1, wait 1ms, stop); Script(print 2); Script(print 3)",
        "Script(print 2); DriverManager(print 1, wait 1ms, stop); Script(print 3)",
        "Script(print 2); Script(print 3); DriverManager(print 1, wait 1ms, stop)",
    ] {
        let (text, status) = Click::start(config).rest();
        assert_eq!(text, "1\n2\n3\n");
        assert!(status.success());
    }
}
