// SPDX-License-Identifier: Apache-2.0
//! A thread besides the first one, and its parts of configurations.
use crate::clock::Clock;
use crate::console;
use click_core::threads::{Assembled, Leftover, memory};
use click_core::{
    Batch, ConfigError, Device, Entropy, Environment, Host, Limits, PacketPool, Progress, ReadFile,
    Router, Sources, WriteFile,
};
use click_threads::{Guard, Member, Part, Phase};
use clickos_control::files::{Quota, RamFiles};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What thread 0 and its helpers share.
pub(crate) struct Common {
    /// Helpers that have followed the last order.
    done: AtomicUsize,
    /// The last words of a helper that broke an invariant.
    words: Mutex<Option<String>>,
    /// What queues of the configuration that was replaced have left.
    left: Mutex<Vec<Leftover>>,
    /// Readable if there are such words.
    alarm: OwnedFd,
}

impl Common {
    /// # Errors
    /// The process has no descriptor left.
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self {
            done: AtomicUsize::new(0),
            words: Mutex::default(),
            left: Mutex::default(),
            alarm: eventfd(0, flags)?,
        })
    }

    fn done(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// To be called before an order.
    pub(crate) fn expect(&self) {
        self.done.store(0, Ordering::SeqCst);
    }

    /// Helpers that have followed the last order.
    pub(crate) fn count(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    fn leave(&self, left: Vec<Leftover>) {
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(left);
    }

    /// What queues of the configuration that was replaced have left.
    pub(crate) fn take_left(&self) -> Vec<Leftover> {
        std::mem::take(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Readable if a helper broke an invariant.
    pub(crate) fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// Leaves the last words of a helper.
    pub(crate) fn raise(&self, words: String) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
        let _ = rustix::io::write(&self.alarm, &1_u64.to_ne_bytes());
    }

    /// The last words of a helper, if one broke an invariant.
    pub(crate) fn words(&self) -> Option<String> {
        self.words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// An order of thread 0.
pub(crate) enum Order {
    /// To be followed between two slices: the part that runs rests.
    Pause,
    /// Assemble and start a part of a configuration, which waits then.
    Build(Box<Build>),
    /// The part that waits replaces the one that ran, or nothing does.
    Commit,
    /// The part that waits is dropped.
    Abort,
}

/// A part of a configuration.
pub(crate) struct Build {
    pub name: String,
    pub text: String,
    pub files: Vec<(String, Vec<u8>)>,
    pub stubs: Vec<Stub>,
    pub limits: Limits,
    pub key: [u8; 32],
    pub part: Part,
}

/// A device of thread 0, as other threads know it: by its number, its address and its MTU.
#[derive(Clone)]
pub(crate) struct Stub {
    devid: u32,
    mac: [u8; 6],
    mtu: u16,
}

impl Stub {
    pub(crate) fn all(environment: &Environment) -> Vec<Self> {
        let stub = |(devid, device): (&u32, &Rc<RefCell<dyn Device>>)| {
            let device = device.borrow();
            Self {
                devid: *devid,
                mac: device.mac(),
                mtu: device.mtu(),
            }
        };
        environment.devices.iter().map(stub).collect()
    }
}

impl Device for Stub {
    fn receive(&mut self, _: usize, _: &mut PacketPool, _: &mut Batch) -> usize {
        0
    }

    fn transmit(&mut self, _: &mut Batch, _: &mut PacketPool) -> usize {
        0
    }

    fn flush(&mut self) {}

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }
}

/// Copies of the router's files. Those that thread 0 writes later are not among them, so none is written here.
struct Files(RamFiles);

impl Host for Files {
    fn print(&self, text: &str) -> bool {
        self.0.print(text)
    }

    /// Thread 0 has told of it.
    fn notice(&self, _: &ConfigError) -> bool {
        true
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        self.0.open_file(path)
    }

    fn create_file(&self, path: &str, _append: bool) -> Result<Box<dyn WriteFile>, String> {
        Err(format!("{path}: files are written on thread 0 only"))
    }
}

/// A part that runs, or waits.
struct Seat {
    member: Rc<Member>,
    router: Router,
}

/// The parts of a helper. If it breaks an invariant, threads that wait for it learn that from what they share.
#[derive(Default)]
struct Seats {
    active: Option<Seat>,
    waiting: Option<Seat>,
}

impl Drop for Seats {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seats = self.active.iter().chain(&self.waiting);
            seats.for_each(|seat| seat.member.shared().lose());
        }
    }
}

/// Follows orders until thread 0 ends.
pub(crate) fn work(orders: &Receiver<Order>, common: &Common) {
    let clock = Clock::new();
    let mut seats = Seats::default();
    loop {
        let Seats { active, waiting } = &mut seats;
        let has_part = active.is_some() || waiting.is_some();
        let order = match has_part {
            true => orders.try_recv().ok(),
            false => {
                // what this thread was promised is there for the others while it has no part
                memory::settle();
                match orders.recv() {
                    Ok(order) => Some(order),
                    Err(_) => return,
                }
            }
        };
        match order {
            None => {}
            Some(Order::Build(build)) => *waiting = Seat::build(*build, &clock),
            Some(Order::Pause) => common.done(),
            Some(Order::Commit) => {
                match (active.as_mut(), waiting.take()) {
                    (Some(old), Some(new)) => common.leave(old.replace_by(new)),
                    (Some(old), None) => {
                        common.leave(old.router.leftovers());
                        *active = None;
                    }
                    (None, new) => *active = new,
                }
                common.done();
            }
            Some(Order::Abort) => {
                *waiting = None;
                common.done();
            }
        }
        if let Some(seat) = waiting.as_mut().or(active.as_mut()) {
            seat.step(&clock);
        }
    }
}

impl Seat {
    /// None if the part does not start; thread 0 knows why then, and has ended the others.
    fn build(build: Build, clock: &Clock) -> Option<Self> {
        let part = build.part;
        // a fault here must not leave thread 0 waiting for its turn
        let guard = Guard::new(Arc::clone(part.shared()));
        let environment = environment(build.files, &build.stubs, build.limits, &build.key);
        let registry = click_elements::registry();
        let sources = Sources::new(&build.name, build.text);
        let assembled = Assembled::new(sources, &registry, environment, &[], clock.now_ns());
        let mut assembled = match assembled {
            Ok(assembled) => assembled,
            Err(errors) => {
                part.fail(errors);
                return None;
            }
        };
        let member = part.install(&mut assembled);
        let started: Result<Router, Vec<ConfigError>> = member.start(assembled);
        match started {
            Ok(router) => {
                guard.disarm();
                Some(Self { member, router })
            }
            Err(_) => {
                member.refuse_calls();
                None
            }
        }
    }

    fn replace_by(&mut self, new: Self) -> Vec<Leftover> {
        let left = self.router.replace_by(new.router);
        self.member = new.member;
        left
    }

    /// A slice, if parts run, and what other threads want.
    fn step(&mut self, clock: &Clock) {
        let now_ns = clock.now_ns();
        let phase = self.member.shared().phase();
        self.member.take_moved(&mut self.router, now_ns);
        let progress = match phase {
            Phase::Run => self.router.run(now_ns),
            Phase::Answer | Phase::End => Progress::Idle { until_ns: None },
        };
        let tended = self.member.tend(&mut self.router, clock.now_ns());
        match progress {
            Progress::Idle { until_ns } if !tended => {
                let until_ns = self.member.sleep_until(until_ns, now_ns);
                let left_ns = until_ns.map(|until| until.saturating_sub(now_ns));
                self.member.rest(|event| wait(event, left_ns));
            }
            _ => self.member.worked(),
        }
    }
}

fn environment(
    files: Vec<(String, Vec<u8>)>,
    stubs: &[Stub],
    limits: Limits,
    key: &[u8; 32],
) -> Environment {
    let host = RamFiles::new(Quota::new(limits.file_bytes));
    for (name, bytes) in files {
        // Those of thread 0 fitted into as many bytes; if memory is short, the part lacks the file and does not start.
        let _ = host.write_file(&name, false, &bytes);
    }
    let device = |stub: &Stub| {
        let device: Rc<RefCell<dyn Device>> = Rc::new(RefCell::new(stub.clone()));
        (stub.devid, device)
    };
    Environment {
        devices: stubs.iter().map(device).collect::<BTreeMap<_, _>>(),
        console: Rc::new(console::line),
        limits,
        entropy: Entropy::new(key),
        offload: Rc::default(),
        implicit: vec!["ClickOSControl".into()],
        host: Some(Rc::new(Files(host))),
    }
}

fn wait(event: BorrowedFd<'_>, timeout_ns: Option<u64>) {
    let timeout = timeout_ns.and_then(|ns| Timespec::try_from(Duration::from_nanos(ns)).ok());
    // A signal: everything is looked at again.
    let _ = poll(
        &mut [PollFd::from_borrowed_fd(event, PollFlags::IN)],
        timeout.as_ref(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_threads::{Plan, parts};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_helper_that_panics_ends_the_threads_that_wait_for_it() {
        let environment = environment(Vec::new(), &[], Limits::default(), &[7; 32]);
        let registry = click_elements::registry();
        let sources = Sources::new("test", "Idle -> Discard;".to_string());
        let assembled = Assembled::new(sources, &registry, environment, &[], 0);
        let mut assembled = assembled.unwrap();
        let plan = Plan::new(&mut assembled, 2, &[]).unwrap();
        let part = parts(plan).unwrap().remove(0);
        let shared = Arc::clone(part.shared());
        let member = part.install(&mut assembled);
        let router = member.start(assembled).unwrap();
        let seats = Seats {
            active: Some(Seat { member, router }),
            waiting: None,
        };
        let broken = catch_unwind(AssertUnwindSafe(move || {
            let _seats = seats;
            panic!("an invariant");
        }));
        assert!(broken.is_err() && shared.is_lost() && shared.phase() == Phase::End);
    }
}
