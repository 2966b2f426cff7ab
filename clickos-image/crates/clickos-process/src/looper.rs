// SPDX-License-Identifier: Apache-2.0
//! The process below the guest's loop: its vifs, the store's events, the clock.
use crate::arguments::Arguments;
use crate::clock::Clock;
use crate::crew::Crew;
use crate::hotplug::Hotplug;
use crate::link::{self, Client, FromStore, Link};
use crate::vif::Vif;
use crate::{console, panic_report};
use click_core::{Device, Entropy, Environment};
use clickos_control::{Guest, GuestLoop, Platform, TOKEN, limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;
use xenstore::Mux;

/// A busy guest looks for vifs that come or go this often; a sleeping one is woken.
const PLUG_PERIOD_NS: u64 = 20_000_000;

type Devices = BTreeMap<u32, Rc<RefCell<dyn Device>>>;

/// Runs the guest. It ends by a signal, by a panic, which aborts, or with its router.
pub(crate) fn run(
    arguments: &Arguments,
    vifs: Vec<Vif>,
    link: Link,
    plug: Option<Hotplug>,
    crew: Option<Crew>,
) -> Result<Infallible, String> {
    let mux = Mux::new(link.client);
    let handle = Mux::handle(&mux, TOKEN);
    let environment = environment(arguments, &vifs)?;
    let mut guest = Guest::new(
        Rc::new(RefCell::new(handle)),
        click_elements::registry(),
        environment,
        None,
    );
    if let Some(crew) = &crew {
        guest.set_crew(Box::new(crew.clone()));
    }
    let process = Process {
        vifs,
        events: link.events,
        clock: Clock::new(),
        mux: Rc::clone(&mux),
        plug,
        plug_due_ns: 0,
        now_ns: 0,
        crew,
        ended: None,
    };
    let mut looper = GuestLoop::new(guest, process);
    console::line(&format!(
        "clickos {} domain {}",
        env!("CARGO_PKG_VERSION"),
        arguments.domid
    ));
    let end = catch_unwind(AssertUnwindSafe(|| -> Infallible {
        loop {
            looper.step();
            if let Some(words) = looper.platform().crew.as_ref().and_then(Crew::words) {
                panic!("{words}");
            }
            if let Some(devices) = looper.platform().plugged() {
                looper.guest().set_devices(devices);
            }
            if looper.platform().relinked() {
                looper.guest().relink();
            }
            if let Some(why) = looper.platform().ended.take() {
                say_to_store(&mux, &why);
                std::process::exit(0);
            }
        }
    }));
    let Err(_) = end;
    say_to_store(&mux, &panic_report::take());
    std::process::abort()
}

fn say_to_store(mux: &RefCell<Mux<Client>>, words: &str) {
    if let Ok(mut mux) = mux.try_borrow_mut() {
        link::last_words(mux.store_mut(), words);
    }
}

fn environment(arguments: &Arguments, vifs: &[Vif]) -> Result<Environment, String> {
    Ok(Environment {
        devices: devices(vifs),
        console: Rc::new(console::line),
        // Each thread has the elements of all while it builds, and packets of its own.
        limits: limits(arguments.heap_bytes() / u64::from(arguments.vcpus)),
        entropy: Entropy::new(&arguments.seed()?),
        offload: Rc::default(),
        implicit: vec!["ClickOSControl".into()],
        host: None, // A guest reaches no file.
    })
}

fn devices(vifs: &[Vif]) -> Devices {
    vifs.iter()
        .map(|vif| (vif.devid, Rc::clone(&vif.device) as Rc<RefCell<dyn Device>>))
        .collect()
}

/// Waits until one of the descriptors is readable. Returns which of `own` are; none after a signal, after which
/// everything is looked at again.
fn readable(
    own: &[BorrowedFd<'_>],
    others: &[BorrowedFd<'_>],
    timeout_ns: Option<u64>,
) -> Vec<bool> {
    let all = own.iter().chain(others);
    let mut all: Vec<PollFd<'_>> = all
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let timeout = timeout_ns.and_then(|ns| Timespec::try_from(Duration::from_nanos(ns)).ok());
    if poll(&mut all, timeout.as_ref()).is_err() {
        return Vec::new();
    }
    let own = all[..own.len()].iter();
    own.map(|fd| !fd.revents().is_empty()).collect()
}

struct Process {
    vifs: Vec<Vif>,
    events: FromStore,
    clock: Clock,
    mux: Rc<RefCell<Mux<Client>>>,
    plug: Option<Hotplug>,
    /// The time of the next look at `plug`.
    plug_due_ns: u64,
    now_ns: u64,
    /// The other threads, if the guest has several VCPUs.
    crew: Option<Crew>,
    /// Why the guest ends.
    ended: Option<String>,
}

impl Process {
    /// All devices, if some came or went.
    fn plugged(&mut self) -> Option<Devices> {
        let plug = self.plug.as_mut()?;
        if self.now_ns < self.plug_due_ns {
            return None;
        }
        self.plug_due_ns = self.now_ns + PLUG_PERIOD_NS;
        plug.serve(&mut self.vifs).then(|| devices(&self.vifs))
    }
}

impl Process {
    /// Continues with the link to a new store, if one came.
    fn relinked(&mut self) -> bool {
        let Some(plug) = &mut self.plug else {
            return false;
        };
        let Some(link) = plug.take_link() else {
            return false;
        };
        self.events = link.events;
        self.mux.borrow_mut().reconnect(link.client);
        plug.settle_link(self.vifs.len());
        true
    }
}

impl Platform for Process {
    fn now_ns(&mut self) -> u64 {
        self.now_ns = self.clock.now_ns();
        self.now_ns
    }

    fn publish(&mut self) {
        self.vifs.iter().for_each(Vif::publish);
    }

    fn sleep_prepare(&mut self) -> bool {
        self.vifs.iter().filter(|vif| vif.sleep_prepare()).count() > 0
    }

    fn wait(&mut self, timeout_ns: Option<u64>) {
        if self.mux.borrow().has_news() {
            return;
        }
        let vifs = self.vifs.iter().map(Vif::descriptor);
        let own: Vec<BorrowedFd<'_>> = vifs
            .chain(self.events.descriptor())
            .chain(self.plug.as_ref().map(Hotplug::descriptor))
            .collect();
        let mut woken = Vec::new();
        match &self.crew {
            None => woken = readable(&own, &[], timeout_ns),
            Some(crew) => {
                let nap_ns = crew.nap_ns(timeout_ns);
                crew.rest(|others| woken = readable(&own, others, nap_ns));
            }
        }
        let mut woken = woken.into_iter();
        for vif in &self.vifs {
            if woken.next() == Some(true) {
                vif.drain();
            }
        }
        if self.events.descriptor().is_some() && woken.next() == Some(true) {
            self.events.drain();
        }
        if woken.next() == Some(true) {
            self.plug_due_ns = 0;
        }
    }

    fn wake_done(&mut self) {
        self.vifs.iter().for_each(Vif::wake_done);
    }

    fn say(&mut self, line: &str) {
        console::line(line);
    }

    fn end(&mut self, why: &str) {
        console::line(why);
        self.ended = Some(why.to_owned());
    }
}
