// SPDX-License-Identifier: Apache-2.0
//! Signals: SIGINT and SIGTERM ask the router to stop, the second one ends the program at once. Elements
//! can watch for any that can be caught.
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    FORBIDDEN, SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1,
    SIGUSR2, SIGWINCH,
};
use signal_hook::low_level::unregister;
use signal_hook::{SigId, flag};

const NAMES: [(&str, i32); 11] = [
    ("HUP", SIGHUP),
    ("INT", SIGINT),
    ("QUIT", SIGQUIT),
    ("USR1", SIGUSR1),
    ("USR2", SIGUSR2),
    ("PIPE", SIGPIPE),
    ("ALRM", SIGALRM),
    ("TERM", SIGTERM),
    ("CHLD", SIGCHLD),
    ("CONT", SIGCONT),
    ("WINCH", SIGWINCH),
];

/// The number of a signal: `INT`, `SIGINT` or `2`.
fn number(name: &str) -> Result<i32, String> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES.iter().find(|(n, _)| *n == short).map(|(_, n)| *n);
    let number = named.or_else(|| short.parse().ok());
    number.ok_or_else(|| format!("no signal \"{}\"", name.escape_debug()))
}

/// Sends a signal to a process.
///
/// # Errors
/// There is no such signal or process.
pub fn kill(signal: &str, process: &str) -> Result<(), String> {
    let number = number(signal)?;
    let signal = Signal::from_named_raw(number);
    let signal = signal.ok_or_else(|| format!("no signal {number}"))?;
    let id = process.parse().ok().filter(|id: &i32| *id > 0);
    let pid = id.and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| format!("expected a process, got \"{process}\""))?;
    kill_process(pid, signal).map_err(|e| format!("process {process}: {e}"))
}

/// A signal that is caught.
struct Caught {
    number: i32,
    raised: Arc<AtomicBool>,
    /// It does what it did before.
    ignored: Arc<AtomicBool>,
    /// The action that gives an unwatched stop signal its old effect from the second one on.
    last: Option<SigId>,
}

impl Caught {
    /// Lets the second signal end the program, or no longer.
    fn set_last(&mut self, is_last: bool) -> io::Result<()> {
        match self.last.take() {
            Some(id) if is_last => self.last = Some(id),
            Some(id) => {
                unregister(id);
                self.ignored.store(false, Ordering::Relaxed);
            }
            None if is_last => {
                self.last = Some(flag::register(self.number, Arc::clone(&self.ignored))?);
            }
            None => {}
        }
        Ok(())
    }
}

/// The requests that signals have brought.
#[derive(Default)]
pub struct Signals {
    caught: Vec<Caught>,
    watches: Vec<(i32, String)>,
}

/// The requests of signals.
#[derive(Default)]
pub struct Raised {
    /// The program is to end.
    pub stop: bool,
    /// These elements are to run.
    pub elements: Vec<String>,
}

const STOPPING: [i32; 2] = [SIGINT, SIGTERM];

impl Signals {
    /// Catches the signals that end the run.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn catch_stopping(&mut self) -> Result<(), String> {
        for number in STOPPING {
            self.catch(number)?;
            self.choose_last(number)?;
        }
        Ok(())
    }

    /// Lets a second signal end the program if the first one asks the router to stop.
    fn choose_last(&mut self, number: i32) -> Result<(), String> {
        let watched = self.watches.iter().any(|(n, _)| *n == number);
        let is_last = STOPPING.contains(&number) && !watched;
        let mut caught = self.caught.iter_mut().filter(|c| c.number == number);
        let chosen = caught.try_for_each(|c| c.set_last(is_last));
        chosen.map_err(|e| format!("signal {number}: {e}"))
    }

    fn catch(&mut self, number: i32) -> Result<(), String> {
        if let Some(known) = self.caught.iter().find(|c| c.number == number) {
            known.ignored.store(false, Ordering::Relaxed);
            return Ok(());
        }
        if FORBIDDEN.contains(&number) {
            return Err(format!("signal {number} cannot be caught"));
        }
        let caught = Caught {
            number,
            raised: Arc::default(),
            ignored: Arc::default(),
            last: None,
        };
        let failed = |e: io::Error| format!("signal {number}: {e}");
        flag::register_conditional_default(number, Arc::clone(&caught.ignored)).map_err(failed)?;
        flag::register(number, Arc::clone(&caught.raised)).map_err(failed)?;
        self.caught.push(caught);
        Ok(())
    }

    /// Lets `element` run whenever the signal arrives.
    ///
    /// # Errors
    /// There is no such signal, or it cannot be caught.
    pub fn watch(&mut self, element: &str, signal: &str) -> Result<(), String> {
        let watch = (number(signal)?, element.to_string());
        self.catch(watch.0)?;
        let number = watch.0;
        if !self.watches.contains(&watch) {
            self.watches.push(watch);
        }
        self.choose_last(number)
    }

    /// Keeps the watches of these elements only.
    pub fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.watches.retain(|(_, element)| is_kept(element));
        for caught in &self.caught {
            let watched = self.watches.iter().any(|(n, _)| *n == caught.number);
            if !watched && !STOPPING.contains(&caught.number) {
                caught.ignored.store(true, Ordering::Relaxed);
            }
        }
        for number in STOPPING {
            // no new signal is caught, so what can fail has succeeded before
            if let Err(message) = self.choose_last(number) {
                eprintln!("click: {message}");
            }
        }
    }

    /// Returns the requests of the signals that arrived since the last call.
    pub fn take(&self) -> Raised {
        let mut raised = Raised::default();
        for caught in &self.caught {
            if caught.raised.swap(false, Ordering::Relaxed) {
                let watches = self.watches.iter().filter(|(n, _)| *n == caught.number);
                let before = raised.elements.len();
                raised
                    .elements
                    .extend(watches.map(|(_, element)| element.clone()));
                raised.stop |= raised.elements.len() == before;
            }
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for name in ["USR1", "sigusr1", "10"] {
            assert_eq!(number(name), Ok(SIGUSR1));
        }
        assert!(number("NONE").is_err());
        assert!(kill("USR1", "-1").is_err() && kill("USR1", "x").is_err());
    }

    #[test]
    fn watchers_run_and_signals_without_one_stop() {
        let mut signals = Signals::default();
        signals.watch("a", "USR2").unwrap();
        signals.watch("b", "USR2").unwrap();
        assert!(signals.watch("a", "KILL").is_err() && signals.watch("a", "9").is_err());
        kill("USR2", &std::process::id().to_string()).unwrap();
        // it may be another thread of the test that is interrupted
        let mut raised = signals.take();
        while raised.elements.is_empty() {
            std::thread::yield_now();
            raised = signals.take();
        }
        assert_eq!(raised.elements, ["a", "b"]);
        assert!(!raised.stop && signals.take().elements.is_empty());
    }
}
