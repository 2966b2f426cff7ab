// SPDX-License-Identifier: Apache-2.0
//! The domain below a guest's loop: clock, console, power, network devices.
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use clickos_control::Platform;
use clickos_os::clock::{Clock, deadline_ns};
use clickos_os::console::Console;
use clickos_os::notices::Notices;
use clickos_os::platform::Xen;
use clickos_os::power::{self, Power, Request};
use clickos_os::{SharedStore, Store, StoreHandle, command_line, wait};
use xen_net::{EvtchnPort, Options, Vifs};
use xenstore::{Mux, Store as _};

/// The longest wait for the store before a suspend.
const QUIESCE_MS: u32 = 1000;
/// A guest that did not sleep for this long never sleeps.
const NEVER_SLEEPS_NS: u64 = 1_000_000_000;

/// A domain of Xen.
pub struct Domain {
    clock: Clock,
    console: Rc<Console>,
    store: SharedStore,
    power: Power,
    /// From the first sleep on, so that the start takes no longer.
    notices: Option<Notices>,
    began_ns: u64,
    vifs: Vifs<Xen, Store>,
    link: StoreHandle,
    /// Event channels to wait for, as the loop went to sleep last.
    ports: Vec<EvtchnPort>,
}

impl Domain {
    /// The domain that this program runs in; to be called once.
    pub fn new(console: Rc<Console>, store: SharedStore) -> Self {
        let options = Options::parse(&command_line()).unwrap_or_else(|error| {
            console.line(&format!("command line: {error}"));
            Options::default()
        });
        let xen = Rc::new(Xen::new(Rc::clone(&console)));
        let mut clock = Clock::default();
        Self {
            began_ns: clock.now_ns(),
            clock,
            power: Power::new(Mux::handle(&store, Power::TOKEN)),
            notices: None,
            link: Mux::handle(&store, "domain"),
            vifs: Vifs::new(xen, Rc::clone(&store), options),
            console,
            store,
            ports: Vec::new(),
        }
    }

    /// Continues with looking for devices. True if all that the toolstack has made are there, or
    /// were given up.
    pub fn poll_vifs(&mut self) -> bool {
        self.link.pump();
        let now_ns = self.clock.now_ns();
        self.vifs.poll(now_ns)
    }

    /// The network devices.
    pub fn vifs(&self) -> &Vifs<Xen, Store> {
        &self.vifs
    }

    /// How many of them configurations can use.
    pub fn usable_vifs(&self) -> usize {
        let usable = self.vifs.list().iter().filter(|vif| vif.is_usable());
        usable.count()
    }

    /// Obeys `control/shutdown`, and reports requests that the guest ignores. True if the guest was
    /// saved and continues in a new domain.
    pub fn obey(&mut self) -> bool {
        self.say_notices();
        match self.power.poll() {
            Some(Request::End(reason)) => power::end(reason),
            Some(Request::Suspend) => self.suspend(),
            None => false,
        }
    }

    fn say_notices(&mut self) {
        let now_ns = self.clock.now_ns();
        let Some(notices) = &mut self.notices else {
            if now_ns > self.began_ns.saturating_add(NEVER_SLEEPS_NS) {
                self.begin_notices();
            }
            return;
        };
        while let Some(line) = notices.poll(now_ns) {
            self.console.line(&line);
        }
    }

    fn begin_notices(&mut self) {
        self.notices = Some(Notices::new(Mux::link(&self.store, "notices")));
    }

    fn suspend(&mut self) -> bool {
        self.quiesce();
        let suspended = power::suspend();
        match &suspended {
            Ok(true) => self.resume(),
            Ok(false) => self
                .console
                .line("suspend: cancelled, everything is as before"),
            Err(error) => self.console.line(&format!("suspend: {error}")),
        }
        suspended == Ok(true)
    }

    /// Waits until the store has answered everything, but not for ever.
    fn quiesce(&mut self) {
        for _ in 0..QUIESCE_MS {
            self.link.pump();
            if self.store.borrow().is_quiet() {
                return;
            }
            wait(&[], Some(deadline_ns(1_000_000)));
        }
    }

    fn resume(&mut self) {
        self.clock.rebase();
        self.store.borrow_mut().reconnect(clickos_os::connect());
        self.vifs.resume();
        self.console.line("resumed");
    }
}

impl Platform for Domain {
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    fn publish(&mut self) {
        self.vifs.publish();
        self.console.pump();
    }

    fn sleep_prepare(&mut self) -> bool {
        self.vifs.sleep_prepare()
    }

    fn wait(&mut self, timeout_ns: Option<u64>) {
        if self.store.borrow().has_news() {
            return;
        }
        if self.notices.is_none() {
            self.begin_notices();
            return;
        }
        self.ports.clear();
        self.vifs.ports(&mut self.ports);
        let ports: Vec<u32> = self.ports.iter().map(|port| port.0).collect();
        wait(&ports, timeout_ns.map(deadline_ns));
    }

    fn wake_done(&mut self) {
        self.vifs.wake_done();
    }

    fn say(&mut self, line: &str) {
        self.console.line(line);
    }

    fn end(&mut self, why: &str) {
        clickos_os::end_with(why)
    }
}
