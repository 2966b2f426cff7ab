// SPDX-License-Identifier: Apache-2.0
//! A guest: its routers and its control thread, driven by one loop.
use crate::control::{Control, Resumed};
use crate::routers::Routers;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use click_core::{Device, Environment, Progress, Registry};
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use xenstore::Error;
use xenstore::{Store, StoreConnection};

/// The token of the watches of a guest's control thread.
pub const TOKEN: &str = "control";

/// The last words of a guest whose router has ended.
const ENDED: &str = "router 0 has ended: a handler such as stop was written";

/// Routers and control thread of one guest.
pub struct Guest<S> {
    store: Rc<RefCell<S>>,
    routers: Rc<RefCell<Routers>>,
    clock: Rc<Cell<u64>>,
    resumed: Rc<Cell<Option<Resumed>>>,
    /// The control thread has work and waits for the loop's next round.
    yielded: Rc<Cell<bool>>,
    control: Pin<Box<dyn Future<Output = Error>>>,
    lost: Option<Error>,
    /// True if the control thread runs.
    controlled: bool,
}

impl<S: Store + 'static> Guest<S> {
    /// A guest without routers; its first run announces it in the store. `free_bytes` returns the
    /// free part of its memory, if it has memory of its own.
    pub fn new(
        store: Rc<RefCell<S>>,
        registry: Registry,
        environment: Environment,
        free_bytes: Option<fn() -> u64>,
    ) -> Self {
        let routers = Rc::new(RefCell::new(Routers::new(registry, environment)));
        let clock = Rc::new(Cell::new(0));
        let link = StoreConnection::new(Rc::clone(&store), TOKEN);
        let resumed = Rc::new(Cell::new(None));
        let yielded = Rc::new(Cell::new(false));
        let control = Control::new(
            link,
            Rc::clone(&routers),
            Rc::clone(&clock),
            Rc::clone(&resumed),
            Rc::clone(&yielded),
            free_bytes,
        );
        Self {
            store,
            routers,
            clock,
            resumed,
            yielded,
            control: Box::pin(control.run()),
            lost: None,
            controlled: true,
        }
    }

    /// The devices that configurations can use from now on, by vif number.
    pub fn set_devices(&mut self, devices: BTreeMap<u32, Rc<RefCell<dyn Device>>>) {
        self.routers.borrow_mut().set_devices(devices);
    }

    /// Runs router 0 on several threads from now on; to be called before the first run.
    #[cfg(feature = "threads")]
    pub fn set_crew(&mut self, crew: Box<dyn crate::Crew>) {
        self.routers.borrow_mut().set_crew(crew);
    }

    /// Lets the control thread wait, for example for devices that are on their way, or go on.
    /// Routers run in any case.
    pub fn set_controlled(&mut self, controlled: bool) {
        self.controlled = controlled;
    }

    /// Announces the guest and its routers in the store again, and the routers' addresses to their
    /// neighbors. The embedder calls it after a restore, over the new connection to the store.
    pub fn resume(&mut self) {
        self.routers.borrow_mut().announce(self.clock.get());
        self.resumed.set(Some(Resumed::Elsewhere));
    }

    /// As [`Guest::resume`], after the store began again: it writes the remaining answers again.
    #[cfg(feature = "relink")]
    pub fn relink(&mut self) {
        self.resumed.set(Some(Resumed::NewStore));
    }

    /// Does what is to do for a slice: the store's messages, then every router. An idle guest
    /// returns a time: call it again then, or when a device receives, or at the store's event.
    /// `now_ns` counts from the epoch and never goes back.
    pub fn run(&mut self, now_ns: u64) -> Progress {
        self.clock.set(now_ns);
        if self.lost.is_none() {
            self.store.borrow_mut().pump();
        }
        if self.lost.is_none() && self.controlled {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(error) = self.control.as_mut().poll(&mut context) {
                self.lost = Some(error);
            }
        }
        let progress = self.routers.borrow_mut().run(now_ns);
        match self.yielded.get() {
            true => Progress::Worked,
            false => progress,
        }
    }

    /// Why the guest has nothing to do any more: a write has ended its only router, as it ends
    /// Click's program. The toolstack first takes the answers that wait for it.
    pub fn ended(&self, now_ns: u64) -> Option<&'static str> {
        let is_over = self.routers.borrow_mut().is_over(now_ns);
        is_over.then_some(ENDED)
    }

    /// The error that ended the connection to the store; packets go on without it.
    pub fn lost(&self) -> Option<&Error> {
        self.lost.as_ref()
    }
}
