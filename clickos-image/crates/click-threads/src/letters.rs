// SPDX-License-Identifier: Apache-2.0
//! What threads send each other besides packets: calls, answers, lines for the console's listeners.
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use click_core::ConfigError;
use click_core::threads::{Answered, Call, InTransit};
use rustix::event::{EventfdFlags, eventfd};
use vale_handoff::NeedWakeup;

/// Lines that wait for thread 0 at most.
pub(crate) const MAX_LINES: usize = 1024;

/// What the threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They answer calls only: before the run, and after it.
    Answer,
    /// They run tasks.
    Run,
    /// They end.
    End,
}

/// A message to a thread.
pub enum Letter {
    /// A call by another thread, with its number there.
    Call { by: usize, id: u64, call: Call },
    /// The answer to a call of this thread.
    Answer { id: u64, answer: Answered },
    /// A line that another thread wrote to the console.
    Line(Vec<u8>),
}

/// The messages that wait for a thread.
struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    arrived: Condvar,
    /// True if there are letters.
    any: AtomicBool,
    need_wakeup: NeedWakeup,
    event: OwnedFd,
}

/// What all threads of a configuration share.
pub struct Shared {
    mailboxes: Vec<Option<Mailbox>>,
    /// The thread of each element.
    pub(crate) homes: Vec<usize>,
    phase: AtomicU8,
    stops: AtomicU32,
    /// The thread that starts its elements now.
    turn: AtomicUsize,
    /// True if a thread ended because of a fault.
    lost: AtomicBool,
    errors: Mutex<Vec<ConfigError>>,
    /// Packets that elements have to take in, by number.
    moved: Mutex<Vec<(usize, Vec<InTransit>)>>,
    any_moved: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that ends before the others ends them, too.
pub struct Guard(Option<Arc<Shared>>);

impl Guard {
    /// To be dropped when the thread ends.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self(Some(shared))
    }

    /// The thread continues.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take().filter(|s| s.phase() != Phase::End) {
            shared.lose();
        }
    }
}

impl Shared {
    /// For the threads that have elements.
    pub(crate) fn new(threads: usize, used: &[usize], homes: Vec<usize>) -> io::Result<Self> {
        let mailbox = |thread: usize| -> io::Result<Option<Mailbox>> {
            if !used.contains(&thread) {
                return Ok(None);
            }
            Ok(Some(Mailbox {
                letters: Mutex::default(),
                arrived: Condvar::new(),
                any: AtomicBool::new(false),
                need_wakeup: NeedWakeup::default(),
                event: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            }))
        };
        Ok(Self {
            mailboxes: (0..threads).map(mailbox).collect::<io::Result<_>>()?,
            homes,
            phase: AtomicU8::new(Phase::Answer as u8),
            stops: AtomicU32::new(0),
            turn: AtomicUsize::new(used.get(1).copied().unwrap_or(0)),
            lost: AtomicBool::new(false),
            errors: Mutex::default(),
            moved: Mutex::default(),
            any_moved: AtomicBool::new(false),
        })
    }

    pub(crate) fn threads(&self) -> usize {
        self.mailboxes.len()
    }

    fn mailbox(&self, thread: usize) -> &Mailbox {
        self.mailboxes[thread]
            .as_ref()
            .expect("a thread that has elements")
    }

    /// Wakes a thread if it sleeps.
    pub fn wake(&self, thread: usize) {
        let mailbox = self.mailbox(thread);
        if mailbox.need_wakeup.is_due() {
            // a counter that is full wakes the thread, too
            let _ = rustix::io::write(&mailbox.event, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn post(&self, to: usize, letter: Letter) {
        let mailbox = self.mailbox(to);
        let mut letters = lock(&mailbox.letters);
        if matches!(letter, Letter::Line(_)) && letters.len() >= MAX_LINES {
            return;
        }
        letters.push_back(letter);
        mailbox.any.store(true, Ordering::SeqCst);
        mailbox.arrived.notify_one();
        drop(letters);
        self.wake(to);
    }

    pub(crate) fn has_letters(&self, thread: usize) -> bool {
        self.mailbox(thread).any.load(Ordering::SeqCst)
    }

    pub(crate) fn take_letter(&self, thread: usize) -> Option<Letter> {
        if !self.has_letters(thread) {
            return None;
        }
        let mailbox = self.mailbox(thread);
        let mut letters = lock(&mailbox.letters);
        let letter = letters.pop_front();
        mailbox.any.store(!letters.is_empty(), Ordering::SeqCst);
        letter
    }

    /// Takes a call back that the thread `to` has not read; false if it has.
    pub(crate) fn take_back(&self, to: usize, by: usize, id: u64) -> bool {
        let is_it = |letter: &Letter| match letter {
            Letter::Call {
                by: caller, id: n, ..
            } => (*caller, *n) == (by, id),
            Letter::Answer { .. } | Letter::Line(_) => false,
        };
        let mut letters = lock(&self.mailbox(to).letters);
        let place = letters.iter().position(is_it);
        place.and_then(|place| letters.remove(place)).is_some()
    }

    /// Waits until a letter arrives, something changes, or the time is over.
    pub(crate) fn wait_for_letter(&self, thread: usize, most: Duration) {
        let mailbox = self.mailbox(thread);
        let letters = lock(&mailbox.letters);
        if letters.is_empty() {
            let waited = mailbox.arrived.wait_timeout(letters, most);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Has `thread` sleep in `poll` on the descriptor, unless `is_idle` says that it must not.
    pub(crate) fn sleep(
        &self,
        thread: usize,
        is_idle: impl FnOnce() -> bool,
        poll: impl FnOnce(BorrowedFd<'_>),
    ) {
        let mailbox = self.mailbox(thread);
        mailbox.need_wakeup.prepare();
        if is_idle() {
            poll(mailbox.event.as_fd());
            let _ = rustix::io::read(&mailbox.event, &mut [0; 8]);
        }
        mailbox.need_wakeup.done();
    }

    fn wake_all(&self) {
        for mailbox in self.mailboxes.iter().flatten() {
            let letters = lock(&mailbox.letters);
            mailbox.arrived.notify_all();
            drop(letters);
            let _ = rustix::io::write(&mailbox.event, &1u64.to_ne_bytes());
        }
    }

    /// What the threads do now.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Answer,
            1 => Phase::Run,
            _ => Phase::End,
        }
    }

    /// Sets what the threads do; the end is final.
    pub fn set_phase(&self, phase: Phase) {
        let next = |old: u8| (old != Phase::End as u8).then_some(phase as u8);
        let _ = self
            .phase
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        self.wake_all();
    }

    /// Asks thread 0 to stop the router `n` times.
    pub fn stop(&self, n: u32) {
        let add = |stops: u32| Some(stops.saturating_add(n));
        let _ = self
            .stops
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        self.wake(0);
    }

    pub(crate) fn has_stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn take_stops(&self) -> u32 {
        self.stops.swap(0, Ordering::SeqCst)
    }

    /// Ends all threads because one of them failed.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
        self.set_phase(Phase::End);
    }

    /// True if a thread ended because of a fault.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// The thread that starts its elements now.
    pub(crate) fn turn(&self) -> usize {
        self.turn.load(Ordering::SeqCst)
    }

    /// Hands packets of a former queue to the thread of an element.
    pub(crate) fn move_to(&self, element: usize, packets: Vec<InTransit>) {
        lock(&self.moved).push((element, packets));
        self.any_moved.store(true, Ordering::SeqCst);
        self.wake(self.homes[element]);
    }

    /// The packets for elements of a thread.
    pub(crate) fn take_moved(&self, thread: usize) -> Vec<(usize, Vec<InTransit>)> {
        if !self.any_moved.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut moved = lock(&self.moved);
        let (own, others) = moved
            .drain(..)
            .partition(|(element, _)| self.homes[*element] == thread);
        *moved = others;
        own
    }

    /// Lets the next thread start its elements, thread 0 last.
    pub(crate) fn pass_turn(&self, thread: usize) {
        let later = self.mailboxes.iter().enumerate().skip(thread + 1);
        let next = later
            .filter(|(_, mailbox)| mailbox.is_some())
            .map(|(n, _)| n)
            .next();
        self.turn.store(next.unwrap_or(0), Ordering::SeqCst);
        self.wake_all();
    }

    pub(crate) fn add_errors(&self, errors: Vec<ConfigError>) {
        lock(&self.errors).extend(errors);
    }

    pub(crate) fn take_errors(&self) -> Vec<ConfigError> {
        std::mem::take(&mut lock(&self.errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_early_ends_the_others() {
        let shared = Arc::new(Shared::new(2, &[0, 1], Vec::new()).unwrap());
        Guard::new(Arc::clone(&shared)).disarm();
        assert!(!shared.is_lost() && shared.phase() != Phase::End);
        drop(Guard::new(Arc::clone(&shared)));
        assert!(shared.is_lost() && shared.phase() == Phase::End);
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
