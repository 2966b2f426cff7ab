// SPDX-License-Identifier: Apache-2.0
//! The guest's threads besides the first one (docs/adr/0121-several-vcpus.md). They exist from the start, since a
//! confined process starts none, and wait for parts of configurations.
use crate::helper::{Build, Common, Order, Stub, work};
use crate::panic_report;
use click_core::threads::Assembled;
use click_core::{ConfigError, Environment, Registry, Router, Sources};
use click_threads::{Member, Phase, Plan, parts};
use clickos_control::Text;
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// Classes whose elements have devices, which thread 0 has.
const WITH_DEVICES: [&str; 2] = ["FromDevice", "ToDevice"];
/// How long thread 0 waits at a time until the helpers have followed an order.
const WAIT: Duration = Duration::from_micros(20);

/// The helpers of a guest with several VCPUs.
pub(crate) struct Helpers {
    orders: Vec<Sender<Order>>,
    common: Arc<Common>,
}

impl Helpers {
    /// Starts them, and waits until all run: what a thread needs for its start is forbidden later.
    pub(crate) fn start(count: usize) -> Result<Self, String> {
        let fault = |e: &dyn std::fmt::Display| format!("threads: {e}");
        let common = Arc::new(Common::new().map_err(|e| fault(&e))?);
        let (ready, started) = channel();
        let mut orders = Vec::new();
        for thread in 1..=count {
            let (sender, receiver) = channel();
            let (common, ready) = (Arc::clone(&common), ready.clone());
            let builder = Builder::new().name(format!("vcpu-{thread}"));
            let body = move || {
                // No receiver means that the guest ends.
                let _ = ready.send(());
                let worked = catch_unwind(AssertUnwindSafe(|| work(&receiver, &common)));
                if worked.is_err() {
                    common.raise(panic_report::take());
                }
            };
            let spawned = builder.stack_size(crate::confine::STACK).spawn(body);
            spawned.map_err(|e| fault(&e))?;
            orders.push(sender);
        }
        drop(ready);
        for _ in 0..count {
            started.recv().map_err(|e| fault(&e))?;
        }
        Ok(Self { orders, common })
    }
}

/// Why a configuration does not start; with the member to wake helpers by, if they have parts of it.
type Refusal = (Vec<ConfigError>, Option<Rc<Member>>);

/// The threads as thread 0 sees them.
pub(crate) struct Team {
    helpers: Helpers,
    /// Of the configuration that runs, if one does.
    member: Option<Rc<Member>>,
    is_running: bool,
}

/// The team, which the control thread and the guest's loop share.
#[derive(Clone)]
pub(crate) struct Crew(Rc<RefCell<Team>>);

impl Crew {
    pub(crate) fn new(helpers: Helpers) -> Self {
        Self(Rc::new(RefCell::new(Team {
            helpers,
            member: None,
            is_running: false,
        })))
    }

    /// The last words of a helper, if one broke an invariant.
    pub(crate) fn words(&self) -> Option<String> {
        self.0.borrow().helpers.common.words()
    }

    /// How long thread 0 may sleep at a time that would sleep for `timeout_ns`.
    pub(crate) fn nap_ns(&self, timeout_ns: Option<u64>) -> Option<u64> {
        match &self.0.borrow().member {
            Some(member) => member.sleep_until(timeout_ns, 0),
            None => timeout_ns,
        }
    }

    /// Sleeps by `poll`, which gets the descriptors that wake this thread, unless another thread wants something.
    pub(crate) fn rest(&self, poll: impl FnOnce(&[BorrowedFd<'_>])) {
        let team = self.0.borrow();
        let alarm = team.helpers.common.alarm();
        match &team.member {
            Some(member) => member.rest(|event| poll(&[alarm, event])),
            None => poll(&[alarm]),
        }
    }
}

impl Team {
    fn threads(&self) -> usize {
        self.helpers.orders.len() + 1
    }

    /// Gives all helpers an order, wakes them and waits until they have followed it. Meanwhile thread 0 answers calls.
    fn order(&self, order: fn() -> Order, members: &[&Member], mut tend: impl FnMut()) {
        let common = &self.helpers.common;
        common.expect();
        for helper in &self.helpers.orders {
            // A helper that has ended has left its last words.
            let _ = helper.send(order());
        }
        for member in members {
            member.shared().set_phase(member.shared().phase());
        }
        while common.count() < self.helpers.orders.len() {
            tend();
            if let Some(words) = common.words() {
                panic!("{words}");
            }
            sleep(WAIT);
        }
    }

    /// Assembles a configuration here, and its parts at the helpers; starts all elements.
    fn start(
        &self,
        text: &Text<'_>,
        registry: &Registry,
        mut environment: Environment,
        now_ns: u64,
        pause: impl FnOnce(),
    ) -> Result<(Router, Rc<Member>), Refusal> {
        let here = |errors| (errors, None);
        environment.limits.threads = self.threads();
        let stubs = Stub::all(&environment);
        let (limits, entropy) = (environment.limits, environment.entropy.clone());
        let sources = Sources::new(text.name, text.text.to_string());
        let assembled = Assembled::new(sources, registry, environment, &[], now_ns);
        let mut assembled = assembled.map_err(here)?;
        let plan = Plan::new(&mut assembled, self.threads(), &WITH_DEVICES).map_err(here)?;
        let refused = |message| here(vec![assembled.error(0, message)]);
        // each helper has the texts twice for a moment: as they come, and where they stay
        let files = text.files.iter().map(|(_, bytes)| 2 * bytes.len());
        let bytes = (2 * text.text.len() + files.sum::<usize>()) * (plan.used().len() - 1);
        if bytes > 0
            && let Err(message) = assembled.has_memory(bytes.saturating_add(plan.ring_bytes()))
        {
            let message = format!("the texts for all threads, and their queues: {message}");
            return Err(refused(message));
        }
        let parts = parts(plan).map_err(refused)?;
        let mut parts = parts.into_iter();
        let own = parts.next().expect("thread 0 always has a part");
        pause();
        for part in parts {
            let build = Build {
                name: text.name.to_string(),
                text: text.text.to_string(),
                files: text.files.clone(),
                stubs: stubs.clone(),
                limits,
                key: entropy.key(),
                part,
            };
            let _ =
                self.helpers.orders[build.part.thread() - 1].send(Order::Build(Box::new(build)));
        }
        if let Some(old) = &self.member {
            old.shared().set_phase(Phase::Answer);
        }
        let member = own.install(&mut assembled);
        match member.start(assembled) {
            Ok(router) => Ok((router, member)),
            Err(errors) => {
                member.shared().set_phase(Phase::End);
                Err((errors, Some(member)))
            }
        }
    }

    fn phase(&self) -> Phase {
        match self.is_running {
            true => Phase::Run,
            false => Phase::Answer,
        }
    }

    fn set_phase(&self) {
        if let Some(member) = &self.member {
            member.shared().set_phase(self.phase());
        }
    }
}

impl clickos_control::Crew for Crew {
    fn build(
        &mut self,
        text: &Text<'_>,
        registry: &Registry,
        environment: Environment,
        now_ns: u64,
    ) -> Result<Router, Vec<ConfigError>> {
        let mut team = self.0.borrow_mut();
        match team.start(text, registry, environment, now_ns, || {}) {
            Ok((mut router, member)) => {
                team.order(
                    || Order::Commit,
                    &[&member],
                    || {
                        member.tend(&mut router, now_ns);
                    },
                );
                team.member = Some(member);
                Ok(router)
            }
            Err((errors, member)) => {
                if let Some(member) = member {
                    team.order(|| Order::Abort, &[&member], || {});
                }
                Err(errors)
            }
        }
    }

    fn replace(
        &mut self,
        router: &mut Router,
        text: &Text<'_>,
        registry: &Registry,
        now_ns: u64,
    ) -> Result<(), Vec<ConfigError>> {
        let mut team = self.0.borrow_mut();
        let Some(old) = team.member.clone() else {
            unreachable!("router 0 is built before it is replaced");
        };
        let environment = router.environment().clone();
        let pause = || {
            old.shared().set_phase(Phase::Answer);
            team.order(
                || Order::Pause,
                &[&old],
                || {
                    old.tend(router, now_ns);
                },
            );
        };
        let started = team.start(text, registry, environment, now_ns, pause);
        match started {
            Ok((new, member)) => {
                let mut left = router.replace_by(new);
                team.order(
                    || Order::Commit,
                    &[&old, &member],
                    || {
                        member.tend(router, now_ns);
                    },
                );
                old.shared().set_phase(Phase::End);
                left.extend(team.helpers.common.take_left());
                member.move_on(router, left, now_ns);
                team.member = Some(member);
                team.set_phase();
                Ok(())
            }
            Err((errors, None)) => Err(errors),
            Err((errors, Some(member))) => {
                team.order(
                    || Order::Abort,
                    &[&old, &member],
                    || {
                        old.tend(router, now_ns);
                    },
                );
                team.set_phase();
                Err(errors)
            }
        }
    }

    fn tend(&mut self, router: &mut Router, now_ns: u64) -> bool {
        let team = self.0.borrow();
        let Some(member) = &team.member else {
            return false;
        };
        if router.is_stopped() && member.shared().phase() == Phase::Run {
            member.shared().set_phase(Phase::Answer);
        }
        let tended = member.tend(router, now_ns);
        if tended {
            member.worked();
        }
        tended
    }

    fn set_running(&mut self, running: bool) {
        let mut team = self.0.borrow_mut();
        team.is_running = running;
        team.set_phase();
    }

    fn remove(&mut self) {
        let mut team = self.0.borrow_mut();
        if let Some(old) = team.member.take() {
            old.shared().set_phase(Phase::End);
            team.order(|| Order::Commit, &[&old], || {});
            team.helpers.common.take_left();
        }
    }
}
