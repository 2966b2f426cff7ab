// SPDX-License-Identifier: Apache-2.0
//! One of the threads.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::spin_loop;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use click_core::threads::{Answered, Assembled, Call, Leftover, Threads, memory};
use click_core::{ConfigError, Router};
use vale_handoff::{Receiver, Sender, ring};

use crate::gauge::Gauge;
use crate::letters::{Letter, MAX_LINES, Phase, Shared};
use crate::plan::{Plan, refusal};
use crate::queue::{Inlet, Outlet, class};
use crate::watch::{Slot, Watch};

/// How long a thread waits for another one's answer; a test has no other thread that does.
const ANSWER: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });
/// How long a thread waits at a time; it then looks whether the others still run.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long a thread waits at a time at least.
const SHORTEST: Duration = Duration::from_millis(1);
/// How long a thread without work polls before it sleeps: waking a thread costs several times 10 us.
const SPIN: Duration = Duration::from_micros(50);
/// How long a thread sleeps at most while a queue that it pushes to is full: the one that pulls wakes it when half of the
/// queue is empty, which may not happen.
const FULL_NS: u64 = 10_000_000;
/// How long it sleeps at first while many of its packets are on their way to other threads.
const SHORT_NS: u64 = 100_000;
/// Letters that a thread reads before it looks at its own work again: those that call it may do so all the time.
const LETTERS: usize = 64;
/// How deep calls of other threads may be made while a thread waits.
const MAX_DEPTH: u32 = 8;

/// Classes whose elements measure the queues behind them.
const MEASURING: [&str; 2] = ["AdaptiveRED", "RED"];

/// An end of a queue between threads.
enum End {
    Inlet(Sender<Slot>, usize),
    Outlet(Vec<Receiver<Slot>>, Vec<usize>),
}

/// A thread's part of a configuration, which it installs itself.
pub struct Part {
    thread: usize,
    shared: Arc<Shared>,
    ends: Vec<(usize, &'static str, Arc<Gauge>, End)>,
}

/// The parts of the threads that have elements, thread 0 first.
///
/// # Errors
/// The system has no descriptors left.
pub fn parts(plan: Plan) -> Result<Vec<Part>, String> {
    memory::share_among(plan.threads);
    let used = plan.used();
    let homes = plan.homes;
    let shared = Shared::new(plan.threads, &used, homes.clone());
    let shared = Arc::new(shared.map_err(|e| format!("threads: {e}"))?);
    let part = |thread: &usize| Part {
        thread: *thread,
        shared: Arc::clone(&shared),
        ends: Vec::new(),
    };
    let mut parts: Vec<Part> = used.iter().map(part).collect();
    for cut in plan.cuts {
        let gauge = Arc::new(Gauge::new(cut.class, cut.capacity, cut.pushers));
        let (home, mut receivers) = (homes[cut.element], Vec::new());
        let mut add = |thread: usize, end| {
            let end = (cut.element, cut.class, Arc::clone(&gauge), end);
            if let Some(part) = parts.iter_mut().find(|part| part.thread == thread) {
                part.ends.push(end);
            }
        };
        for sender_thread in &cut.senders {
            let (sender, receiver) = ring(gauge.slots);
            receivers.push(receiver);
            add(*sender_thread, End::Inlet(sender, home));
        }
        add(home, End::Outlet(receivers, cut.senders.clone()));
    }
    Ok(parts)
}

impl Part {
    /// The thread's number.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// What it shares with the others.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Reports why this thread could not assemble the configuration; refuses the calls of other threads until all end.
    pub fn fail(self, errors: Vec<ConfigError>) {
        let member = Member::new(self.thread, self.shared, Vec::new());
        let why = member.unable();
        member.await_turn(&mut |call| Err(refusal(&call, why.clone())));
        member.shared.add_errors(errors);
        member.shared.pass_turn(member.thread);
        member.refuse_calls();
    }

    /// Leaves this thread's elements and its ends of queues in a configuration.
    pub fn install(self, assembled: &mut Assembled) -> Rc<Member> {
        let measures = |class: &str| MEASURING.contains(&class);
        let is_measured = assembled.elements().iter().any(|e| measures(e.class.name));
        assembled.let_packets_migrate();
        let mut watches = Vec::new();
        let mut elements = Vec::new();
        for (element, class_name, gauge, end) in self.ends {
            let shared = Arc::clone(&self.shared);
            match end {
                End::Inlet(sender, to) => {
                    let (inlet, watch) =
                        Inlet::new(element, gauge, sender, shared, to, is_measured);
                    watches.push(watch);
                    elements.push((element, None, Box::new(inlet) as Box<_>));
                }
                End::Outlet(receivers, from) => {
                    let (outlet, watch) =
                        Outlet::new(element, gauge, receivers, shared, from, is_measured);
                    watches.push(watch);
                    elements.push((element, class(class_name), Box::new(outlet) as Box<_>));
                }
            }
        }
        let member = Rc::new(Member::new(self.thread, self.shared, watches));
        assembled.set_threads(member.clone());
        for (element, class, end) in elements {
            assembled.replace(element, class, end);
        }
        member
    }
}

/// A thread, as its own loop sees it.
pub struct Member {
    thread: usize,
    shared: Arc<Shared>,
    watches: Vec<Watch>,
    /// Answers that came for calls further out.
    answers: RefCell<BTreeMap<u64, Answered>>,
    lines: RefCell<Vec<Vec<u8>>>,
    next_call: Cell<u64>,
    depth: Cell<u32>,
    /// The numbers of the writes that wait here for those of other threads.
    unsettled: RefCell<BTreeSet<u64>>,
    idle_since: Cell<Option<Instant>>,
    /// True if more than half of the packets that the thread may have were in use, some on their way to others.
    is_short: Cell<bool>,
    /// True if the thread might have more packets of others.
    takes: Cell<bool>,
}

impl Threads for Member {
    fn count(&self) -> usize {
        self.shared.threads()
    }

    fn home(&self, element: usize) -> usize {
        self.shared.homes.get(element).copied().unwrap_or(0)
    }

    fn own(&self) -> Option<usize> {
        Some(self.thread)
    }

    fn call(&self, thread: usize, call: Call, serve: &mut dyn FnMut(Call) -> Answered) -> Answered {
        let id = self.next_call.replace(self.next_call.get() + 1);
        let by = self.thread;
        let letter = Letter::Call {
            by,
            id,
            call: call.clone(),
        };
        self.shared.post(thread, letter);
        let until = Instant::now() + ANSWER;
        loop {
            self.serve(serve);
            if let Some(answer) = self.answers.borrow_mut().remove(&id) {
                return answer;
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.shared.phase() == Phase::End {
                return Err(refusal(&call, format!("thread {thread} has ended")));
            }
            // a thread whose writes wait for this makes them; a call of its own may keep it for a while
            if left.is_zero() && !matches!(call, Call::Settle(_, true)) {
                let seconds = ANSWER.as_secs();
                // without what settles them, writes that the thread prepares yet would wait for ever, and it with them
                let may_lapse = !matches!(call, Call::Settle(..));
                let rest = match may_lapse && self.shared.take_back(thread, by, id) {
                    true => "the call was not made",
                    false => "it has begun the call",
                };
                let why = format!("thread {thread} did not answer within {seconds} s; {rest}");
                return Err(refusal(&call, why));
            }
            self.shared
                .wait_for_letter(self.thread, left.clamp(SHORTEST, PATIENCE));
        }
    }
}

impl Member {
    fn new(thread: usize, shared: Arc<Shared>, watches: Vec<Watch>) -> Self {
        Self {
            thread,
            shared,
            watches,
            answers: RefCell::default(),
            lines: RefCell::default(),
            next_call: Cell::new(0),
            depth: Cell::new(0),
            unsettled: RefCell::default(),
            idle_since: Cell::new(None),
            is_short: Cell::new(false),
            takes: Cell::new(true),
        }
    }

    /// What the threads share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Reads letters, some at most, and makes the calls in them; returns whether there were any.
    fn serve(&self, serve: &mut dyn FnMut(Call) -> Answered) -> bool {
        let mut any = false;
        for _ in 0..LETTERS {
            let Some(letter) = self.shared.take_letter(self.thread) else {
                break;
            };
            any = true;
            match letter {
                Letter::Answer { id, answer } => {
                    self.answers.borrow_mut().insert(id, answer);
                }
                Letter::Line(line) => {
                    let mut lines = self.lines.borrow_mut();
                    if lines.len() < MAX_LINES {
                        lines.push(line);
                    }
                }
                Letter::Call { by, id, call } => {
                    let step = match &call {
                        Call::Prepare(number, _) => Some((*number, true)),
                        Call::Settle(number, _) => Some((*number, false)),
                        Call::Read(..) | Call::Write(_) | Call::Info(_) => None,
                    };
                    let answer = self.answer(call, serve);
                    if let (Some((number, waits)), true) = (step, answer.is_ok()) {
                        let mut unsettled = self.unsettled.borrow_mut();
                        match waits {
                            true => unsettled.insert(number),
                            false => unsettled.remove(&number),
                        };
                    }
                    self.shared.post(by, Letter::Answer { id, answer });
                }
            }
        }
        any
    }

    fn answer(&self, call: Call, serve: &mut dyn FnMut(Call) -> Answered) -> Answered {
        let depth = self.depth.get();
        // what is to settle waits for it
        if depth >= MAX_DEPTH && !matches!(call, Call::Settle(..)) {
            let why = format!("threads call each other {MAX_DEPTH} deep");
            return Err(refusal(&call, why));
        }
        self.depth.set(depth + 1);
        let answer = serve(call);
        self.depth.set(depth);
        answer
    }

    /// Answers calls only, until no writes wait here for those of other threads.
    fn await_settling(&self, serve: &mut dyn FnMut(Call) -> Answered) {
        while !self.unsettled.borrow().is_empty() && self.shared.phase() != Phase::End {
            if !self.serve(serve) {
                self.shared.wait_for_letter(self.thread, PATIENCE);
            }
        }
    }

    /// Starts the elements of this thread once those of the threads before it have.
    ///
    /// # Errors
    /// Thread 0 returns the errors of all threads, others their own.
    pub fn start(&self, mut assembled: Assembled) -> Result<Router, Vec<ConfigError>> {
        self.await_turn(&mut |call| assembled.answer(call));
        let started = assembled.start();
        if self.thread > 0 {
            if let Err(errors) = &started {
                self.shared.add_errors(errors.clone());
            }
            self.shared.pass_turn(self.thread);
            return started;
        }
        let mut errors = self.shared.take_errors();
        match started {
            Ok(router) if errors.is_empty() => Ok(router),
            own => {
                errors.extend(own.err().into_iter().flatten());
                errors.sort_by_key(|e| (e.place.line, e.place.column));
                Err(errors)
            }
        }
    }

    /// Waits until the threads before this one have started their elements.
    fn await_turn(&self, serve: &mut dyn FnMut(Call) -> Answered) {
        memory::settle();
        while self.shared.turn() != self.thread && self.shared.phase() != Phase::End {
            self.serve(serve);
            if self.shared.turn() != self.thread {
                self.shared.wait_for_letter(self.thread, PATIENCE);
            }
        }
    }

    fn unable(&self) -> String {
        format!("the elements of thread {} did not start", self.thread)
    }

    /// Does what other threads want between two slices; returns whether there was anything. The answers to calls that
    /// waited too long are dropped.
    pub fn tend(&self, router: &mut Router, now_ns: u64) -> bool {
        memory::settle();
        let is_short = router.is_short_of_packets();
        // a source that found no packet may find one now
        let mut any = is_short && self.settle();
        self.is_short
            .set(is_short && self.watches.iter().any(Watch::is_underway));
        any |= self.serve(&mut |call| router.answer(call, now_ns));
        self.await_settling(&mut |call| router.answer(call, now_ns));
        self.answers.borrow_mut().clear();
        let takes = router.takes_packets();
        self.takes.set(takes);
        for watch in self.watches.iter().filter(|watch| watch.is_due(takes)) {
            router.poke(watch.element, now_ns);
            any = true;
        }
        if self.thread > 0 {
            let stops = router.take_stops();
            if stops > 0 {
                self.shared.stop(stops);
            }
        } else if self.shared.has_stops() {
            (0..self.shared.take_stops()).for_each(|_| router.request_stop());
            any = true;
        }
        any
    }

    /// Gives what queues of the former configuration have left to those that continue with it, on thread 0.
    pub fn move_on(&self, router: &mut Router, mut left: Vec<Leftover>, now_ns: u64) {
        left.sort_by_key(|left| left.is_newest);
        for left in left {
            let Some(element) = router.heir(&left) else {
                continue;
            };
            match self.home(element) {
                home if home == self.thread => router.take_in(element, left.packets, now_ns),
                _ => self.shared.move_to(element, left.packets),
            }
        }
    }

    /// Takes in what thread 0 has given to elements of this one; to be called before a new configuration runs.
    pub fn take_moved(&self, router: &mut Router, now_ns: u64) {
        for (element, packets) in self.shared.take_moved(self.thread) {
            router.take_in(element, packets, now_ns);
        }
    }

    /// The lines that other threads wrote.
    pub fn take_lines(&self) -> Vec<Vec<u8>> {
        self.lines.take()
    }

    /// Has thread 0 pass a line to the console's listeners.
    pub fn send_line(&self, line: &[u8]) {
        self.shared.post(0, Letter::Line(line.to_vec()));
    }

    /// Refuses the calls of other threads until all end, since this one has no router.
    pub fn refuse_calls(&self) {
        memory::settle();
        while self.shared.phase() != Phase::End {
            self.serve(&mut |call| Err(refusal(&call, self.unable())));
            self.shared.wait_for_letter(self.thread, PATIENCE);
        }
    }

    /// Until when a thread that waits until `until_ns` may sleep.
    pub fn sleep_until(&self, until_ns: Option<u64>, now_ns: u64) -> Option<u64> {
        let takes = self.takes.get();
        let is_full = self.watches.iter().any(|watch| watch.is_full(takes));
        let nap_ns = match (self.is_short.get(), is_full) {
            // no thread tells that it has taken packets; the longer nothing happens, the less often it is looked for
            (true, _) => Some(self.idle_ns().clamp(SHORT_NS, FULL_NS)),
            (false, true) => Some(FULL_NS),
            (false, false) => None,
        };
        let soon = nap_ns.map(|nap_ns| now_ns.saturating_add(nap_ns));
        until_ns.into_iter().chain(soon).min()
    }

    /// Looks which packets other threads have taken; true if they have taken some.
    fn settle(&self) -> bool {
        let settled = self.watches.iter().map(Watch::settle);
        settled.fold(false, |any, one| any | one)
    }

    fn idle_ns(&self) -> u64 {
        let idle = self
            .idle_since
            .get()
            .map_or(Duration::ZERO, |i| i.elapsed());
        u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX)
    }

    /// To be called after work: the thread is not idle.
    pub fn worked(&self) {
        self.idle_since.set(None);
    }

    /// To be called without work. At first the thread polls; then it sleeps in `poll`, which the descriptor ends.
    pub fn rest(&self, poll: impl FnOnce(BorrowedFd<'_>)) {
        let since = self.idle_since.get().unwrap_or_else(Instant::now);
        self.idle_since.set(Some(since));
        if since.elapsed() < SPIN {
            return spin_loop();
        }
        let phase = self.shared.phase();
        let takes = self.takes.get();
        let is_idle = || {
            !self.shared.has_letters(self.thread)
                && self.shared.phase() == phase
                && !self.watches.iter().any(|watch| watch.keeps_awake(takes))
                && (self.thread > 0 || !self.shared.has_stops())
        };
        self.shared.sleep(self.thread, is_idle, poll);
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use click_core::threads::Answer;

    use super::*;

    fn members() -> [Member; 2] {
        let shared = Arc::new(Shared::new(2, &[0, 1], vec![0, 1]).unwrap());
        [0, 1].map(|thread| Member::new(thread, Arc::clone(&shared), Vec::new()))
    }

    #[test]
    fn a_write_that_was_not_answered_in_time_is_not_made_later() {
        let [caller, busy] = members();
        let call = Call::Write(vec![("c.reset".to_string(), Vec::new())]);
        let answer = caller.call(1, call, &mut |_| panic!("nobody calls thread 0"));
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("the call was not made"), "{error}");
        assert!(!busy.serve(&mut |_| panic!("the caller has given up")));
    }

    #[test]
    fn what_settles_writes_reaches_a_thread_that_prepares_them_too_late() {
        let [caller, busy] = members();
        let call = Call::Settle(3, false);
        let answer = caller.call(1, call, &mut |_| panic!("nobody calls thread 0"));
        assert!(answer.is_err());
        busy.unsettled.borrow_mut().insert(3);
        busy.serve(&mut |_| Ok(Answer::Written));
        assert!(busy.unsettled.borrow().is_empty());
    }

    #[test]
    fn a_thread_that_others_call_all_the_time_continues_its_own_work() {
        let [first, other] = members();
        let call = || Letter::Call {
            by: 1,
            id: 0,
            call: Call::Info(String::new()),
        };
        let mut answered = 0;
        other.shared.post(0, call());
        first.serve(&mut |_| {
            answered += 1;
            assert!(answered < 10_000, "no end");
            other.shared.post(0, call());
            Ok(Answer::Written)
        });
        assert!(first.shared.has_letters(0));
    }

    #[test]
    fn lines_that_nobody_takes_are_bounded() {
        let [first, other] = members();
        for _ in 0..3 * MAX_LINES {
            other.send_line(b"line");
            first.serve(&mut |_| panic!("there is no call"));
        }
        assert_eq!(first.take_lines().len(), MAX_LINES);
    }
}
