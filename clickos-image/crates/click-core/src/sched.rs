// SPDX-License-Identifier: Apache-2.0
//! Which task runs next (stride scheduling, Waldspurger 1995), and which timer expires next.
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Tickets of a task unless it says otherwise.
const TICKETS: u32 = 1024;
/// More tickets count as these.
const MAX_TICKETS: u32 = 1 << 15;
const STRIDE_ONE: u64 = 1 << 16;

#[derive(Clone, Copy)]
struct Task {
    scheduled: bool,
    pass: u64,
    tickets: u32,
    stride: u64,
}

/// One task per element.
pub struct Tasks {
    tasks: Vec<Task>,
    /// Scheduled tasks and their passes, in the order of their runs. A new task almost always goes
    /// last.
    queue: VecDeque<(u64, usize)>,
    /// The pass of the last one of them, if there is one.
    last: u64,
    pass: u64,
}

impl Tasks {
    pub fn new(elements: usize) -> Self {
        let task = Task {
            scheduled: false,
            pass: 0,
            tickets: TICKETS,
            stride: STRIDE_ONE / u64::from(TICKETS),
        };
        Self {
            tasks: vec![task; elements],
            queue: VecDeque::new(),
            last: 0,
            pass: 0,
        }
    }

    /// True if the engine scheduled the element's task.
    pub fn is_scheduled(&self, element: usize) -> bool {
        self.tasks[element].scheduled
    }

    /// The share of the task of an element.
    pub fn tickets(&self, element: usize) -> u32 {
        self.tasks[element].tickets
    }

    /// Sets the share of the task of an element.
    pub fn set_tickets(&mut self, element: usize, tickets: u32) {
        let task = &mut self.tasks[element];
        task.tickets = tickets.clamp(1, MAX_TICKETS);
        task.stride = STRIDE_ONE / u64::from(task.tickets);
    }

    /// Multiplies the tickets of an element's task by `milli` thousandths.
    pub fn scale_tickets(&mut self, element: usize, milli: u64) {
        let tickets = u64::from(self.tickets(element)).saturating_mul(milli) / 1000;
        self.set_tickets(element, u32::try_from(tickets).unwrap_or(MAX_TICKETS));
    }

    /// How many tasks are scheduled.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Schedules the task of an element, unless it is.
    pub fn schedule(&mut self, element: usize) {
        let task = &mut self.tasks[element];
        if task.scheduled {
            return;
        }
        task.scheduled = true;
        task.pass = task.pass.max(self.pass);
        let queued = (task.pass, element);
        if self.last > queued.0 && !self.queue.is_empty() {
            return self.line_up(queued);
        }
        self.last = queued.0;
        self.queue.push_back(queued);
    }

    /// Lines up somewhere before the last one.
    #[cold]
    fn line_up(&mut self, queued: (u64, usize)) {
        let at = self.queue.partition_point(|(pass, _)| *pass <= queued.0);
        self.queue.insert(at, queued);
    }

    /// Takes the next task of the queue.
    #[inline]
    pub fn next(&mut self) -> Option<usize> {
        let (pass, element) = self.queue.pop_front()?;
        self.pass = pass;
        let task = &mut self.tasks[element];
        task.scheduled = false;
        task.pass = pass + task.stride;
        Some(element)
    }

    /// Counts `runs` more runs of the task that `next` returned, while it is not scheduled. With
    /// `before` these runs come before those of other tasks between them.
    pub fn skip(&mut self, element: usize, runs: usize, before: bool) {
        let task = &mut self.tasks[element];
        let by = task.stride.saturating_mul(runs as u64);
        task.pass += by;
        if !before {
            self.pass += by;
        }
    }

    /// The n-th task of the queue: its pass and its element.
    pub fn queued(&self, n: usize) -> (u64, usize) {
        self.queue[n]
    }

    /// The pass of an element's task, if it is scheduled.
    pub fn pass(&self, element: usize) -> Option<u64> {
        let task = &self.tasks[element];
        task.scheduled.then_some(task.pass)
    }

    /// True if the scheduled task of `other` runs once between any two runs of the task that `next`
    /// returned.
    pub fn alternates_with(&self, element: usize, other: usize) -> bool {
        let (mine, theirs) = (&self.tasks[element], &self.tasks[other]);
        mine.stride == theirs.stride && theirs.pass < mine.pass
    }

    /// Runs that the task which `next` returned has before the task at `pass`.
    pub fn runs_before(&self, element: usize, pass: u64) -> usize {
        let task = &self.tasks[element];
        match pass.saturating_sub(task.pass) {
            0 => 1,
            ahead => 1 + usize::try_from(ahead.div_ceil(task.stride)).unwrap_or(usize::MAX - 1),
        }
    }
}

/// One timer per element.
pub struct Timers {
    /// For each element when its timer expires, and the order of the heap's entry that says so.
    expiry: Vec<Option<(u64, u64)>>,
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    order: u64,
}

impl Timers {
    pub fn new(elements: usize) -> Self {
        Self {
            expiry: vec![None; elements],
            heap: BinaryHeap::new(),
            order: 0,
        }
    }

    /// Sets or, with `None`, clears the timer of an element. Setting it to the time it has costs nothing.
    pub fn set(&mut self, element: usize, at_ns: Option<u64>) {
        let old = self.expiry[element];
        if old.map(|(at, _)| at) == at_ns {
            return;
        }
        self.order += 1;
        self.expiry[element] = at_ns.map(|at| (at, self.order));
        if let Some(at) = at_ns {
            self.heap.push(Reverse((at, self.order, element)));
        }
        // at most one entry of each element remains, so each such pass is paid for by the entries it removes
        if self.heap.len() > 2 * self.expiry.len() + 64 {
            let expiry = &self.expiry;
            self.heap
                .retain(|Reverse(entry)| is_current(expiry, *entry));
        }
    }

    /// True if the element's timer is set.
    pub fn is_set(&self, element: usize) -> bool {
        self.expiry[element].is_some()
    }

    /// When the element's timer expires, if it is set.
    pub fn expiry(&self, element: usize) -> Option<u64> {
        self.expiry[element].map(|(at_ns, _)| at_ns)
    }

    /// When the next timer expires.
    pub fn next_expiry(&mut self) -> Option<u64> {
        while let Some(Reverse(entry)) = self.heap.peek().copied() {
            if is_current(&self.expiry, entry) {
                return Some(entry.0);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes a timer that expired at or before `now_ns`.
    pub fn expired(&mut self, now_ns: u64) -> Option<usize> {
        if self.next_expiry()? > now_ns {
            return None;
        }
        let Reverse((_, _, element)) = self.heap.pop()?;
        self.expiry[element] = None;
        Some(element)
    }
}

/// True if an entry of the heap is the one that an element's timer was set by last.
fn is_current(expiry: &[Option<(u64, u64)>], (at, order, element): (u64, u64, usize)) -> bool {
    expiry[element] == Some((at, order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_take_turns() {
        let mut tasks = Tasks::new(3);
        tasks.schedule(2);
        tasks.schedule(0);
        tasks.schedule(2);
        assert_eq!(tasks.next(), Some(2));
        tasks.schedule(2);
        assert_eq!(
            (tasks.next(), tasks.next(), tasks.next()),
            (Some(0), Some(2), None)
        );
    }

    /// The elements of the next runs; each task is scheduled again after its run.
    fn run_order(tasks: &mut Tasks, count: usize) -> Vec<usize> {
        let one = |_| {
            let element = tasks.next()?;
            tasks.schedule(element);
            Some(element)
        };
        (0..count).filter_map(one).collect()
    }

    #[test]
    fn tickets_are_shares() {
        let mut tasks = Tasks::new(2);
        tasks.set_tickets(1, 3 * TICKETS);
        tasks.schedule(0);
        tasks.schedule(1);
        let of_one = run_order(&mut tasks, 400).into_iter().filter(|e| *e == 1);
        assert!((298..=302).contains(&of_one.count()));
        tasks.scale_tickets(0, 3000);
        let of_one = run_order(&mut tasks, 400).into_iter().filter(|e| *e == 1);
        assert!((198..=202).contains(&of_one.count()));
    }

    #[test]
    fn turns_that_were_skipped_were_taken() {
        let (mut skips, mut takes) = (Tasks::new(2), Tasks::new(2));
        for tasks in [&mut skips, &mut takes] {
            tasks.set_tickets(0, 2 * TICKETS);
            tasks.schedule(0);
        }
        assert_eq!(run_order(&mut takes, 5), [0; 5]);
        assert_eq!(skips.next(), Some(0));
        skips.skip(0, 4, false);
        skips.schedule(0);
        for tasks in [&mut skips, &mut takes] {
            tasks.schedule(1);
        }
        assert_eq!(run_order(&mut skips, 20), run_order(&mut takes, 20));
    }

    #[test]
    fn turns_taken_before_those_of_others_leave_these_their_turns() {
        let (mut skips, mut takes) = (Tasks::new(2), Tasks::new(2));
        for tasks in [&mut skips, &mut takes] {
            tasks.schedule(0);
            tasks.schedule(1);
        }
        assert_eq!(run_order(&mut takes, 8), [0, 1].repeat(4));
        assert_eq!(skips.next(), Some(0));
        assert_eq!(skips.runs_before(0, skips.pass(1).unwrap()), 1);
        skips.skip(0, 3, true);
        skips.schedule(0);
        assert_eq!(skips.queued(0), (0, 1));
        assert_eq!(skips.next(), Some(1));
        assert_eq!(skips.runs_before(1, skips.pass(0).unwrap()), 4);
        skips.schedule(1);
        assert_eq!(run_order(&mut skips, 3), [1; 3]);
        assert_eq!(run_order(&mut skips, 20), run_order(&mut takes, 20));
    }

    #[test]
    fn timers_expire_in_order_and_can_be_moved() {
        let mut timers = Timers::new(2);
        timers.set(0, Some(50));
        timers.set(1, Some(20));
        timers.set(0, Some(10));
        assert_eq!(timers.next_expiry(), Some(10));
        assert_eq!(
            (timers.expired(30), timers.expired(30), timers.expired(99)),
            (Some(0), Some(1), None)
        );
        (0..1000).for_each(|n| timers.set(0, Some(n)));
        assert!(timers.heap.len() < 200);
    }

    #[test]
    fn a_timer_set_often_leaves_one_entry() {
        let mut timers = Timers::new(1);
        for n in 0..10_000 {
            timers.set(0, Some(70));
            assert!(timers.heap.len() <= 67, "{n}");
            timers.set(0, Some(60 + n % 2));
        }
        assert_eq!(timers.expired(99), Some(0));
        assert_eq!((timers.expired(99), timers.is_set(0)), (None, false));
    }
}
