// SPDX-License-Identifier: Apache-2.0
//! A process held by its pidfd: a pid that was given to another process is never signalled.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, WaitId, WaitIdOptions, pidfd_getfd, pidfd_open,
    pidfd_send_signal, waitid,
};

/// How long a killed process may take to be gone.
const KILL_TIMEOUT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// A process that is not watched yet.
pub struct Existing {
    pid: Pid,
    pidfd: Arc<OwnedFd>,
}

/// A process whose end is reported once, by a thread that also reaps it.
pub struct Watched {
    pid: Pid,
    pidfd: Arc<OwnedFd>,
    watcher: JoinHandle<()>,
}

impl Existing {
    /// Watches the process; `report` gets the reason of its end.
    pub fn report(self, report: impl FnOnce(String) + Send + 'static) -> io::Result<Watched> {
        let pidfd = Arc::clone(&self.pidfd);
        let thread = std::thread::Builder::new().name(format!("pid {}", self.pid));
        let thread = thread.stack_size(128 << 10);
        let watcher = control_socket::spawn(thread, move || report(wait(&pidfd)))?;
        Ok(Watched {
            pid: self.pid,
            pidfd: self.pidfd,
            watcher,
        })
    }
}

impl Watched {
    /// Watches a child of this process before any wait for it.
    pub fn new(pid: Pid, report: impl FnOnce(String) + Send + 'static) -> io::Result<Self> {
        let pidfd = Arc::new(pidfd_open(pid, PidfdFlags::empty())?);
        Existing { pid, pidfd }.report(report)
    }

    /// Opens a process by its pid, `None` if there is none.
    pub fn existing(pid: Pid) -> io::Result<Option<Existing>> {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Some(Existing {
                pid,
                pidfd: Arc::new(pidfd),
            })),
            Err(Errno::SRCH) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&*self.pidfd, signal)?)
    }

    /// A duplicate of a descriptor of the process.
    pub fn descriptor(&self, number: i32) -> io::Result<OwnedFd> {
        Ok(pidfd_getfd(&*self.pidfd, number, PidfdGetfdFlags::empty())?)
    }

    /// Kills the process and waits until it is gone; gives itself back if that takes too long.
    pub fn kill(self) -> Result<(), (Self, io::Error)> {
        match self.signal(Signal::KILL) {
            Err(e) if e.raw_os_error() != Some(Errno::SRCH.raw_os_error()) => {
                return Err((self, e));
            }
            _ => {}
        }
        match ended(&self.pidfd, Some(&KILL_TIMEOUT)) {
            Ok(true) => {
                // Its end is certain now, so the thread reaps it and is done.
                let _ = self.watcher.join();
                Ok(())
            }
            Ok(false) => Err((self, io::Error::other("killed, but not gone within 10 s"))),
            Err(e) => Err((self, e)),
        }
    }
}

/// Waits for the end of a process and says why it ended.
fn wait(pidfd: &OwnedFd) -> String {
    while !matches!(ended(pidfd, None), Ok(true)) {}
    match waitid(
        WaitId::PidFd(std::os::fd::AsFd::as_fd(pidfd)),
        WaitIdOptions::EXITED,
    ) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exited with status {code}"),
            (None, Some(signal)) => format!("killed by {}", signal_name(signal)),
            (None, None) => "ended".to_owned(),
        },
        // Not our child: an earlier cosmosd started it.
        _ => "ended (status unknown: cosmosd was restarted after it had started)".to_owned(),
    }
}

fn ended(pidfd: &OwnedFd, timeout: Option<&Timespec>) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], timeout) {
            Err(Errno::INTR) => {}
            other => return Ok(other? > 0),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match Signal::from_named_raw(signal) {
        Some(Signal::KILL) => "SIGKILL",
        Some(Signal::TERM) => "SIGTERM",
        Some(Signal::SEGV) => "SIGSEGV",
        Some(Signal::ABORT) => "SIGABRT",
        Some(Signal::BUS) => "SIGBUS",
        Some(Signal::SYS) => "SIGSYS, a forbidden system call",
        Some(Signal::XFSZ) => "SIGXFSZ, its console log is full",
        Some(Signal::INT) => "SIGINT",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    fn watched(script: &str) -> (Child, Watched, Receiver<String>) {
        let child = Command::new("/bin/sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let (sender, receiver) = channel();
        let pid = Pid::from_child(&child);
        let watched = Watched::new(pid, move |reason| sender.send(reason).unwrap()).unwrap();
        (child, watched, receiver)
    }

    #[test]
    fn the_reason_is_told() {
        for (script, reason) in [
            ("exit 3", "exited with status 3"),
            ("kill -9 $$", "killed by signal 9 (SIGKILL)"),
            ("kill -USR1 $$", "killed by signal 10"),
        ] {
            let (_child, watched, reasons) = watched(script);
            assert_eq!(
                reasons.recv_timeout(Duration::from_secs(60)).unwrap(),
                reason
            );
            watched.kill().map_err(|(_, e)| e).unwrap();
        }
    }

    #[test]
    fn a_killed_process_is_gone_and_reaped() {
        let (child, watched, reasons) = watched("exec sleep 60");
        let pid = Pid::from_child(&child);
        watched.kill().map_err(|(_, e)| e).unwrap();
        assert!(reasons.try_recv().unwrap().contains("SIGKILL"));
        assert!(Watched::existing(pid).unwrap().is_none());
    }
}
