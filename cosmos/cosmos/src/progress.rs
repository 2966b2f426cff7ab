// SPDX-License-Identifier: Apache-2.0
//! What takes long, shown on a terminal while it does.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the seconds are drawn again.
const REDRAW: Duration = Duration::from_millis(500);
/// Begin of a line, and nothing in it.
const CLEAR: &str = "\r\x1b[K";

/// A line on standard error that tells what is done, for how long; nothing if that is no
/// terminal. Dropping it clears the line.
pub struct Progress(Option<Drawer>);

struct Drawer {
    steps: Sender<String>,
    thread: JoinHandle<()>,
}

impl Progress {
    pub fn begin(what: &str) -> Self {
        let mut this = Self(std::io::stderr().is_terminal().then(Drawer::start));
        this.step(what);
        this
    }

    /// The current step.
    pub fn step(&mut self, what: &str) {
        if let Some(drawer) = &self.0 {
            // The thread ends only when this is dropped.
            let _ = drawer.steps.send(what.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(drawer) = self.0.take() {
            drop(drawer.steps);
            // It only draws; a panic in it was reported when it happened.
            let _ = drawer.thread.join();
        }
    }
}

impl Drawer {
    fn start() -> Self {
        let (steps, asked) = channel();
        let thread = std::thread::spawn(move || {
            let (mut what, mut since) = (String::new(), Instant::now());
            loop {
                match asked.recv_timeout(REDRAW) {
                    Ok(step) => (what, since) = (step, Instant::now()),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return draw(CLEAR),
                }
                draw(&line(&what, since.elapsed()));
            }
        });
        Self { steps, thread }
    }
}

fn draw(text: &str) {
    let mut out = std::io::stderr().lock();
    // A terminal that is gone gets no error.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn line(what: &str, elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0 => format!("{CLEAR}{what} ..."),
        seconds => format!("{CLEAR}{what} ... {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_told_from_the_first_on() {
        let shown = |ms| line("saving fw", Duration::from_millis(ms));
        assert_eq!(shown(999), "\r\x1b[Ksaving fw ...");
        assert_eq!(shown(2500), "\r\x1b[Ksaving fw ... 2 s");
    }
}
