// SPDX-License-Identifier: Apache-2.0
//! The guest's one loop: poll while there is work, sleep when there is none.
use crate::arguments::Arguments;
use crate::clock::Clock;
use crate::link::{self, Client, FromStore, Link};
use crate::vif::Vif;
use crate::{console, last_words};
use click_core::{Device, Environment, Limits, Progress};
use clickos_control::Guest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

/// How long an idle guest goes on polling: waking a sleeper costs the switch about 12 us.
const LINGER_NS: u64 = 50_000;
/// The longest sleep while a device has frames that no router takes.
const STALLED_NS: u64 = 100_000_000;
/// Bytes of a packet buffer with its management, about.
const PACKET_BYTES: u64 = 2560;

/// Runs the guest. It ends by a signal, or by a panic, which aborts.
pub(crate) fn run(arguments: &Arguments, vifs: Vec<Vif>, link: Link) -> Result<Infallible, String> {
    let client = Rc::new(RefCell::new(link.client));
    let environment = environment(arguments, &vifs)?;
    let guest = Guest::new(
        Rc::clone(&client),
        click_elements::registry().guest(),
        environment,
    );
    let mut looper = Looper {
        guest,
        vifs,
        events: link.events,
        clock: Clock::new(),
        again: false,
        told: false,
    };
    console::line(&format!(
        "clickos {} domain {}",
        env!("CARGO_PKG_VERSION"),
        arguments.domid
    ));
    let end = catch_unwind(AssertUnwindSafe(|| looper.run()));
    let Err(_) = end;
    say_to_store(&client);
    std::process::abort()
}

fn say_to_store(client: &RefCell<Client>) {
    if let Ok(mut client) = client.try_borrow_mut() {
        link::last_words(&mut client, &last_words::take());
    }
}

fn environment(arguments: &Arguments, vifs: &[Vif]) -> Result<Environment, String> {
    let devices: BTreeMap<u32, Rc<RefCell<dyn Device>>> = vifs
        .iter()
        .map(|vif| (vif.devid, Rc::clone(&vif.device) as Rc<RefCell<dyn Device>>))
        .collect();
    Ok(Environment {
        devices,
        console: Rc::new(console::line),
        limits: limits(arguments.heap_bytes()),
        seed: arguments.seed()?,
        implicit: vec!["ClickOSControl".into()],
        host: None, // A guest reaches no file.
    })
}

/// Limits that fit the guest's memory, so that a configuration or a flood of packets is refused
/// before an allocation fails, which would end the guest.
fn limits(heap_bytes: u64) -> Limits {
    let usual = Limits::default();
    let per = |bytes: u64, usual: usize| usual.min((heap_bytes / bytes) as usize);
    Limits {
        packet_buffers: per(4 * PACKET_BYTES, usual.packet_buffers),
        // Its syntax tree may take 700 times the text, next to the router that runs.
        config_bytes: per(1 << 10, usual.config_bytes),
        handler_bytes: per(64, usual.handler_bytes),
        elements: per(16 << 10, usual.elements),
        connections: per(4 << 10, usual.connections),
        table_entries: per(1 << 10, usual.table_entries),
        flows: per(1 << 10, usual.flows),
        ..usual
    }
}

struct Looper {
    guest: Guest<Client>,
    vifs: Vec<Vif>,
    events: FromStore,
    clock: Clock,
    /// A device had something when we wanted to sleep, and the routers were run again for it.
    again: bool,
    /// The loss of the store was told.
    told: bool,
}

impl Looper {
    fn run(&mut self) -> Infallible {
        let mut worked_ns = 0;
        loop {
            let now_ns = self.clock.now_ns();
            let progress = self.guest.run(now_ns);
            self.vifs.iter().for_each(Vif::publish);
            self.tell_loss();
            match progress {
                Progress::Worked => {
                    worked_ns = now_ns;
                    self.again = false;
                }
                Progress::Idle { .. } if now_ns < worked_ns + LINGER_NS => std::hint::spin_loop(),
                Progress::Idle { until_ns } => self.sleep(now_ns, until_ns),
            }
        }
    }

    fn tell_loss(&mut self) {
        if let (Some(error), false) = (self.guest.lost(), self.told) {
            console::line(&format!("control: the store is lost: {error}"));
            self.told = true;
        }
    }

    fn sleep(&mut self, now_ns: u64, until_ns: Option<u64>) {
        let ready = self.vifs.iter().filter(|vif| vif.sleep_prepare()).count();
        let pending = ready > 0;
        if pending && !self.again {
            self.again = true;
        } else {
            // Frames that no router took when it was run for them: nobody wants them now.
            let longest = if pending {
                Some(now_ns + STALLED_NS)
            } else {
                None
            };
            let until_ns = until_ns.into_iter().chain(longest).min();
            self.wait(until_ns.map(|until| Duration::from_nanos(until.saturating_sub(now_ns))));
            self.again = false;
        }
        self.vifs.iter().for_each(Vif::wake_done);
    }

    /// Sleeps until a vif or the store has something, or for `timeout`.
    fn wait(&mut self, timeout: Option<Duration>) {
        let mut ready: Vec<PollFd<'_>> = self
            .vifs
            .iter()
            .map(|vif| PollFd::new(vif, PollFlags::IN))
            .collect();
        let store = self.events.descriptor();
        ready.extend(store.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        if poll(&mut ready, timeout.as_ref()).is_err() {
            return; // A signal: look at everything again.
        }
        let woken: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (vif, _) in self.vifs.iter().zip(&woken).filter(|(_, woken)| **woken) {
            vif.drain();
        }
        if woken.get(self.vifs.len()) == Some(&true) {
            self.events.drain();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fit_the_memory() {
        let small = limits(64 << 20);
        assert_eq!(small.config_bytes, 64 << 10); // Nova's user_data is at most 48 KiB.
        assert!(small.packet_buffers as u64 * PACKET_BYTES <= 16 << 20);
        assert_eq!(
            limits(1 << 30).packet_buffers,
            Limits::default().packet_buffers
        );
    }
}
