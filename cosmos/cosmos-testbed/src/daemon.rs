// SPDX-License-Identifier: Apache-2.0
//! A daemon of the test, which ends with it.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::eventually;

/// How long a daemon may take to end when asked to.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts a daemon, its log in `<dir>/<name>.log`, and waits until it listens on `socket`.
    pub fn start(mut command: Command, name: &str, dir: &Path, socket: &Path) -> Self {
        let path = dir.join(format!("{name}.log"));
        let log = File::options()
            .create(true)
            .append(true)
            .open(path)
            .expect("a log can be made");
        let errors = log.try_clone().expect("a descriptor can be duplicated");
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut daemon = Self { child };
        eventually(&format!("{name} listens"), || {
            if let Ok(Some(status)) = daemon.child.try_wait() {
                let log = std::fs::read_to_string(dir.join(format!("{name}.log")));
                panic!("{name} ended with {status}:\n{}", log.unwrap_or_default());
            }
            UnixStream::connect(socket).ok()
        });
        daemon
    }

    pub fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// Kills it without a warning and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and kills it if it does not.
    pub fn stop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}
