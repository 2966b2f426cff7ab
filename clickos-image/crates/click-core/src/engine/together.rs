// SPDX-License-Identifier: Apache-2.0
//! Writes of one call to elements of several threads: all of them or, on an error, none.
//!
//! The thread of the call has each thread check its writes and let them wait. A thread whose writes wait begins no
//! slice until they are settled.
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_packet::memory::{RESERVE, has_room};

use crate::engine::Engine;
use crate::engine::elsewhere::{Call, Threads, borrowed};
use crate::error::HandlerError;

/// Bytes of values that come out of the reserve.
const SMALL: usize = 4 << 10;

/// Writes of handlers, with owned names.
pub type Writes = Vec<(String, Vec<u8>)>;

/// Makes writes that were checked.
type Make = Box<dyn FnOnce(&mut Engine)>;

/// Writes that wait, by the numbers of their calls.
#[derive(Default)]
pub struct Waiting {
    calls: Vec<(u64, Make)>,
    /// The numbers of calls whose writes are being checked, and whether they were settled meanwhile.
    begun: Vec<(u64, bool)>,
    /// Writes that wait until their elements, which run, have returned.
    late: Vec<Make>,
    /// The number of the next call of this thread.
    next: u64,
}

impl Waiting {
    /// A number that no thread has used.
    fn number(&mut self, own: usize) -> u64 {
        self.next += 1;
        self.next << u8::BITS | own as u64
    }

    /// The writes under a number were checked; true if they were settled before that.
    fn ends(&mut self, number: u64) -> bool {
        let place = self.begun.iter().position(|(begun, _)| *begun == number);
        place.is_some_and(|place| self.begun.remove(place).1)
    }
}

impl Engine {
    /// Writes handlers on whatever threads, those of elements with copies for all copies.
    ///
    /// # Errors
    /// The first write that is not possible, or that a thread does not answer. Nothing has changed then.
    pub(crate) fn write_everywhere(
        &mut self,
        writes: &[(&str, &[u8])],
    ) -> Result<(), HandlerError> {
        if self.threads.is_none() && self.plan.copies.is_empty() {
            return self.write_own(writes);
        }
        self.has_room_for_copies(writes)?;
        let mut parts: Vec<(Option<usize>, Writes)> = Vec::new();
        for write in self.of_copies(writes) {
            let home = self.thread_of(&write.0).map(|(_, home)| home);
            match parts.iter_mut().find(|(thread, _)| *thread == home) {
                Some((_, writes)) => writes.push(write),
                None => parts.push((home, Vec::from([write]))),
            }
        }
        let threads = self.threads.clone();
        match (threads, parts.as_slice()) {
            (Some(threads), [(Some(home), writes)]) => {
                self.ask(&threads, *home, Call::Write(writes.clone()))
            }
            (Some(threads), [_, _, ..]) => self.write_together(&threads, parts),
            _ => parts
                .iter()
                .try_for_each(|(_, writes)| self.write_own(&borrowed(writes))),
        }
    }

    /// Each thread gets the values of its copies.
    fn has_room_for_copies(&self, writes: &[(&str, &[u8])]) -> Result<(), HandlerError> {
        let values: usize = writes.iter().map(|(_, value)| value.len()).sum();
        let bytes = values.saturating_mul(2 * self.plan.copies.threads().max(1));
        let reserve = self.environment.limits.reserve_bytes;
        if bytes <= SMALL || reserve == 0 || has_room(bytes.saturating_add(RESERVE)) {
            return Ok(());
        }
        let message = format!("no memory: the values for all threads take {bytes} bytes");
        let name = writes.first().map_or("", |(name, _)| name);
        Err(HandlerError::rejected(message).named(name))
    }

    fn write_together(
        &mut self,
        threads: &Rc<dyn Threads>,
        parts: Vec<(Option<usize>, Writes)>,
    ) -> Result<(), HandlerError> {
        let number = self.waiting.number(threads.own().unwrap_or(0));
        let (mut asked, mut prepared) = (Vec::new(), Ok(()));
        for (home, writes) in parts {
            asked.push(home);
            prepared = match home {
                None => self.let_wait(number, &writes),
                Some(home) => self.ask(threads, home, Call::Prepare(number, writes)),
            };
            if prepared.is_err() {
                break;
            }
        }
        // one that did not answer in time may prepare its writes yet
        for home in asked {
            match home {
                None => self.settle(number, prepared.is_ok()),
                Some(home) => {
                    // it waits for this, or has ended, which the thread's loop finds
                    let _ = self.ask(threads, home, Call::Settle(number, prepared.is_ok()));
                }
            }
        }
        prepared
    }

    fn ask(
        &mut self,
        threads: &Rc<dyn Threads>,
        home: usize,
        call: Call,
    ) -> Result<(), HandlerError> {
        let answer = threads.call(home, call, &mut |call| self.answer(call));
        answer.map(drop)
    }

    /// Checks writes of this thread's elements, which then wait.
    ///
    /// # Errors
    /// One is not possible; or the caller has given them up, as it could while this thread asked another one.
    pub(crate) fn let_wait(&mut self, number: u64, writes: &Writes) -> Result<(), HandlerError> {
        self.waiting.begun.push((number, false));
        let pending = self.prepare_all(&borrowed(writes));
        let given_up = self.waiting.ends(number);
        let pending = pending?;
        if given_up {
            let name = writes.first().map_or("", |(name, _)| name);
            return Err(HandlerError::rejected("the caller has given the call up").named(name));
        }
        let make: Make = Box::new(|engine| engine.make(pending));
        self.waiting.calls.push((number, make));
        Ok(())
    }

    /// Makes a checked write once all elements have returned: the thread called another one within a slice, and the
    /// element that called runs.
    pub(crate) fn make_late(&mut self, write: impl FnOnce(&mut Self) + 'static) {
        self.waiting.late.push(Box::new(write));
    }

    /// Makes the writes that waited until no element runs.
    pub(crate) fn catch_up(&mut self) {
        for write in core::mem::take(&mut self.waiting.late) {
            write(self);
        }
    }

    /// Makes or drops the writes that wait under a number, if some do.
    pub(crate) fn settle(&mut self, number: u64, made: bool) {
        let mut calls = self.waiting.calls.iter();
        let Some(place) = calls.position(|(waiting, _)| *waiting == number) else {
            // they must not wait for this any more
            let mut begun = self.waiting.begun.iter_mut();
            if let Some((_, settled)) = begun.find(|(begun, _)| *begun == number) {
                *settled = true;
            }
            return;
        };
        let (_, make) = self.waiting.calls.remove(place);
        if made {
            make(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;
    use crate::class::optional;
    use crate::engine::elsewhere::{Answer, Answered};
    use crate::handler::{Change, Handler, command, read_write, write};
    use crate::threads::Assembled;
    use crate::{Class, Context, Element, Entry, Environment, Registry, Router, Signal, Sources};

    /// Its task reads a handler of another thread.
    #[derive(Default)]
    struct Calls {
        value: u32,
    }

    impl Element for Calls {
        fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
            ctx.schedule();
            Ok(())
        }

        fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
            assert_eq!(ctx.read_handler("far.value", "").unwrap(), "");
            true
        }
    }

    static HANDLERS: [Handler<Calls>; 1] = [read_write(
        "value",
        |me, _| Ok(me.value.to_string()),
        |_, view, value| {
            let value = view.parse(value)?;
            Ok(Change::of(move |me: &mut Calls, _| me.value = value))
        },
    )];

    static CLASS: Class = Class {
        name: "Calls",
        ports: "0/0",
        handlers: &HANDLERS,
        task: true,
        build: |_| Some(Box::<Calls>::default()),
        ..Class::DEFAULT
    };

    /// Element 1 is on another thread, which settles writes before it answers.
    struct Settling;

    impl Threads for Settling {
        fn count(&self) -> usize {
            2
        }

        fn home(&self, element: usize) -> usize {
            element
        }

        fn own(&self) -> Option<usize> {
            Some(0)
        }

        fn call(&self, _: usize, _: Call, serve: &mut dyn FnMut(Call) -> Answered) -> Answered {
            serve(Call::Settle(7, true)).unwrap();
            Ok(Answer::Text(String::new()))
        }
    }

    /// Reads a handler of another thread while it starts.
    struct Asks;

    impl Element for Asks {
        fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
            assert_eq!(ctx.read_handler("far.value", "").unwrap(), "");
            Ok(())
        }
    }

    static ASKS: Class = Class {
        name: "Asks",
        ports: "0/0",
        live: true,
        build: |_| Some(Box::new(Asks)),
        ..Class::DEFAULT
    };

    /// Nothing would settle the writes any more, and the thread would wait for that.
    #[test]
    fn writes_that_are_settled_while_they_are_checked_do_not_wait() {
        let entries = [&CLASS, &ASKS].map(|class| Entry {
            class,
            group: "",
            source: "",
        });
        let registry = Registry::new(&entries, &[]);
        let sources = Sources::new("test", "near :: Asks; far :: Calls;".to_string());
        let assembled = Assembled::new(sources, &registry, Environment::new(), &[], 0);
        let mut assembled = assembled.unwrap();
        assembled.set_threads(Rc::new(Settling));
        let mut router = assembled.start().unwrap();
        let writes = vec![("near.config".to_string(), Vec::new())];
        let waits = router.answer(Call::Prepare(7, writes), 0);
        let error = waits.unwrap_err().to_string();
        assert_eq!(error, "near.config: the caller has given the call up");
        assert!(router.engine.waiting.calls.is_empty() && router.engine.waiting.begun.is_empty());
    }

    /// Stands for a queue: while it starts it tells that it is empty, and its state says more.
    struct Store {
        limit: u32,
        color: u32,
        packets: u32,
    }

    impl Element for Store {
        fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
            ctx.set_readable(false);
            ctx.set_timer(u64::from(self.limit));
            let _ = ctx.random_u32();
            Ok(())
        }

        fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
            if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
                self.packets = old.packets;
                ctx.set_readable(self.packets > 0);
            }
        }

        fn signal(&self) -> Signal {
            Signal::Own
        }
    }

    static STORE_HANDLERS: [Handler<Store>; 3] = [
        write("limit", |_, view, value| {
            let limit = view.parse(value)?;
            Ok(Change::of(move |me: &mut Store, _| me.limit = limit))
        }),
        write("color", |_, view, value| {
            let color = view.parse(value)?;
            Ok(Change::of(move |me: &mut Store, _| me.color = color))
        }),
        command("run", |_, _, _| {
            Ok(Change::of(|me: &mut Store, ctx| {
                me.packets += 1;
                ctx.set_readable(true);
            }))
        }),
    ];

    static STORE: Class = Class {
        name: "Store",
        ports: "0/0",
        args: &[optional("LIMIT"), optional("COLOR")],
        handlers: &STORE_HANDLERS,
        live: true,
        build: |a| {
            let (limit, color) = (a.or("LIMIT", 100), a.or("COLOR", 0));
            Some(Box::new(Store {
                limit: limit?,
                color: color?,
                packets: 0,
            }))
        },
        ..Class::DEFAULT
    };

    /// A store, with random numbers that follow from a seed.
    fn store() -> Router {
        let entry = Entry {
            class: &STORE,
            group: "",
            source: "",
        };
        let registry = Registry::new(&[entry], &[]);
        let sources = Sources::new("test", "s :: Store;".to_string());
        let assembled = Assembled::new(sources, &registry, Environment::new(), &[], 0);
        let mut router = assembled.unwrap().start().unwrap();
        router.engine.random.seed(Some(5));
        router
    }

    fn prepare(router: &mut Router, number: u64, name: &str, value: &str) {
        let writes = vec![(name.to_string(), value.as_bytes().to_vec())];
        router.answer(Call::Prepare(number, writes), 0).unwrap();
    }

    fn settle(router: &mut Router, number: u64, made: bool) {
        router.answer(Call::Settle(number, made), 0).unwrap();
    }

    /// Its signal, its timer and its configuration.
    fn seen(router: &Router) -> (bool, Option<u64>, &str) {
        let engine = &router.engine;
        (
            engine.slots[0].readable,
            engine.timers.expiry(0),
            engine.config(0),
        )
    }

    /// In whatever order calls of two threads are made and dropped.
    #[test]
    fn a_dropped_call_changes_nothing_that_another_has_made() {
        for dropped_first in [false, true] {
            let mut router = store();
            let mut other = store();
            router.write_handlers(&[("s.run", b"")], 0).unwrap();
            prepare(&mut router, 1, "s.config", "7");
            prepare(&mut router, 2, "s.config", "8");
            assert_eq!(seen(&router), (true, Some(100), ""), "nothing is made yet");
            for number in [1, 2] {
                let number = if dropped_first { 3 - number } else { number };
                settle(&mut router, number, number == 1);
            }
            assert_eq!(seen(&router), (true, Some(7), "7"), "{dropped_first}");
            // as if the dropped one had never started
            other.write_handlers(&[("s.config", b"7")], 0).unwrap();
            let drawn = [&mut router, &mut other].map(|r| r.engine.random.random_u32());
            assert_eq!(drawn[0], drawn[1]);
        }
    }

    /// A write in between wakes those that wait for packets; they would sleep with packets in the queue.
    #[test]
    fn a_dropped_call_restores_no_signal_that_changed_meanwhile() {
        let mut router = store();
        prepare(&mut router, 1, "s.config", "7");
        router.write_handlers(&[("s.run", b"")], 0).unwrap();
        settle(&mut router, 1, false);
        assert_eq!(seen(&router), (true, Some(100), ""));
    }

    /// Also if it tells what was the case when it started.
    #[test]
    fn what_an_element_tells_at_its_start_holds_whatever_others_told_since() {
        let mut router = store();
        let twice = [("s.config", &b"7"[..]), ("s.config", b"100")];
        router.write_handlers(&twice, 0).unwrap();
        assert_eq!(seen(&router), (false, Some(100), "100"));
        prepare(&mut router, 1, "s.config", "7");
        prepare(&mut router, 2, "s.config", "100");
        settle(&mut router, 1, true);
        settle(&mut router, 2, true);
        assert_eq!(seen(&router), (false, Some(100), "100"));
    }

    #[test]
    fn the_configuration_says_what_all_calls_wrote() {
        let mut router = store();
        prepare(&mut router, 1, "s.limit", "7");
        prepare(&mut router, 2, "s.color", "9");
        settle(&mut router, 1, true);
        settle(&mut router, 2, true);
        assert_eq!(seen(&router).2, "LIMIT 7, COLOR 9");
        let both = [("s.limit", &b"1"[..]), ("s.color", b"2")];
        router.write_handlers(&both, 0).unwrap();
        assert_eq!(seen(&router).2, "LIMIT 1, COLOR 2");
    }

    #[test]
    fn writes_of_an_element_that_runs_when_they_are_settled_are_made_after_that() {
        let entry = Entry {
            class: &CLASS,
            group: "",
            source: "",
        };
        let registry = Registry::new(&[entry], &[]);
        let sources = Sources::new("test", "near :: Calls; far :: Calls;".to_string());
        let environment = Environment::new();
        let assembled = Assembled::new(sources, &registry, environment, &[], 0);
        let mut assembled = assembled.unwrap();
        assembled.set_threads(Rc::new(Settling));
        let mut router = assembled.start().unwrap();
        let writes = vec![("near.value".to_string(), b"5".to_vec())];
        router.answer(Call::Prepare(7, writes), 0).unwrap();
        assert_eq!(router.read_handler("near.value", "", 0).unwrap(), b"0");
        router.run(0);
        assert_eq!(router.read_handler("near.value", "", 0).unwrap(), b"5");
    }
}
