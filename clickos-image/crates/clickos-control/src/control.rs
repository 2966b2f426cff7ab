// SPDX-License-Identifier: Apache-2.0
//! The control thread: takes the store's events one by one.
use crate::element_nodes::ElementNodes;
use crate::event::ControlEvent;
use crate::node::{self, Node};
use crate::requests::Requests;
use crate::router_spec::Handled;
use crate::routers::Routers;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use click_lang::sort;
use clickos_protocol::{ROOT, ROUTERS};
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::future::poll_fn;
use core::task::Poll;
use xenstore::Error;
use xenstore::{Store, StoreConnection};

/// Complaints about the store go to the console at most this often.
const COMPLAINT_NS: u64 = 1_000_000_000;

/// Why a guest has to announce itself again.
#[derive(Clone, Copy)]
pub(crate) enum Resumed {
    /// It continues in a new domain, maybe on another host.
    Elsewhere,
    /// The store began again, and its toolstack looks for lost answers.
    #[cfg(feature = "relink")]
    NewStore,
}

/// State of the control thread. The modules `router_spec`, `requests` and `element_nodes` have its
/// parts.
pub(crate) struct Control<S> {
    pub(crate) link: StoreConnection<S>,
    pub(crate) routers: Rc<RefCell<Routers>>,
    pub(crate) handled: BTreeMap<u8, Handled>,
    pub(crate) requests: Requests,
    pub(crate) element_nodes: ElementNodes,
    /// Routers whose `error` node has a text.
    pub(crate) told: BTreeSet<u8>,
    clock: Rc<Cell<u64>>,
    /// Its part of the store is empty, and why.
    resumed: Rc<Cell<Option<Resumed>>>,
    /// It waits for the next round of the guest's loop.
    yielded: Rc<Cell<bool>>,
    /// Free bytes of the guest's memory, if it knows them.
    pub(crate) free_bytes: Option<fn() -> u64>,
    quiet_until_ns: u64,
}

impl<S: Store> Control<S> {
    pub(crate) fn new(
        link: StoreConnection<S>,
        routers: Rc<RefCell<Routers>>,
        clock: Rc<Cell<u64>>,
        resumed: Rc<Cell<Option<Resumed>>>,
        yielded: Rc<Cell<bool>>,
        free_bytes: Option<fn() -> u64>,
    ) -> Self {
        Self {
            link,
            routers,
            handled: BTreeMap::new(),
            requests: Requests::default(),
            element_nodes: ElementNodes::default(),
            told: BTreeSet::new(),
            clock,
            resumed,
            yielded,
            free_bytes,
            quiet_until_ns: 0,
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.get()
    }

    /// Serves until the connection to the store breaks; gives what broke it. A guest that may not
    /// announce itself cannot be controlled either.
    pub(crate) async fn run(mut self) -> Error {
        match self.serve().await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn serve(&mut self) -> Result<Infallible, Error> {
        self.begin().await?;
        loop {
            let next = self.next().await?;
            if let Some(resumed) = self.resumed.take() {
                let told = self.tell_all(resumed).await;
                self.tolerate(told)?;
            }
            let node = match next {
                ControlEvent::OffloadRequests(requests) => {
                    let sent = self.send_offload_requests(requests).await;
                    self.tolerate(sent)?;
                    None
                }
                ControlEvent::Event(Some(event)) => Node::of(&event.path),
                ControlEvent::Event(None) => {
                    self.expect_no_echoes();
                    Some(Node::Everything)
                }
            };
            if let Some(node) = node {
                let handled = self.handle(node).await;
                self.tolerate(handled)?;
            }
        }
    }

    /// Logs a refusal of the store and continues; a broken connection ends the task.
    fn tolerate(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error) if !error.is_fatal() => self.complain(&error),
            result => result?,
        }
        Ok(())
    }

    /// Announces the guest. A guest without a configuration, such as one of a pool, rehearses
    /// first, so that it is paused with warm caches.
    async fn begin(&self) -> Result<(), Error> {
        let names = self.link.adopt(ROOT).await?;
        if names.iter().all(|name| node::number(name).is_none()) {
            self.routers.borrow().rehearse(self.now_ns());
        }
        self.link
            .write(&node::version(), version().as_bytes())
            .await
    }

    /// Tells an empty store what the guest is and what runs; the version comes last.
    async fn tell_all(&mut self, resumed: Resumed) -> Result<(), Error> {
        self.link.write(ROOT, b"").await?;
        match resumed {
            Resumed::Elsewhere => self.requests = Requests::default(),
            #[cfg(feature = "relink")]
            Resumed::NewStore => self.tell_answers().await?,
        }
        self.told.clear();
        self.expect_no_echoes();
        self.resend_all();
        self.tell_states().await?;
        let version = version();
        self.link.write(&node::version(), version.as_bytes()).await
    }

    async fn handle(&mut self, node: Node) -> Result<(), Error> {
        match node {
            Node::Everything => self.look_at_everything().await,
            Node::Router(rid) => self.look_at_router(rid).await,
            Node::Generation(rid) => self.look_at_spec(rid, false).await,
            Node::Status(rid) => self.look_at_spec(rid, true).await,
            Node::State(rid) => self.state_changed(rid).await,
            Node::Piece(rid, seq) => self.request_arrived(rid, seq).await,
            Node::Request(rid, seq) => self.request_changed(rid, seq).await,
            Node::Response(rid, seq) => self.response_gone(rid, seq).await,
            Node::Offloaded(device) => self.offloaded(device).await,
            Node::Element(rid, handler) => self.element_written(rid, &handler).await,
            Node::ReadRequest(rid, handler) => self.read_requested(rid, &handler).await,
        }
    }

    async fn look_at_everything(&mut self) -> Result<(), Error> {
        let names = self.link.list(ROOT).await?;
        if self.resumed() {
            return Ok(());
        }
        if !names.iter().any(|name| name == "version") {
            let version = version();
            self.link
                .write(&node::version(), version.as_bytes())
                .await?;
            self.resend_all();
        }
        self.look_at_answers().await?;
        let numbers = names.iter().filter_map(|name| node::number(name));
        let numbers = numbers.filter_map(|n| u8::try_from(n).ok());
        let mut rids: BTreeSet<u8> = sort::tree(numbers.filter(|rid| *rid < ROUTERS));
        rids.extend(self.routers.borrow().states().iter().map(|(rid, _)| rid));
        for rid in rids {
            self.look_at_router(rid).await?;
        }
        Ok(())
    }

    /// A router requested by hand before the guest started counts as just written. A router that
    /// runs ends when its node was removed.
    async fn look_at_router(&mut self, rid: u8) -> Result<(), Error> {
        let runs = self.routers.borrow().contains(rid);
        match runs && !self.has_keys(rid).await? {
            true => self.end_router(rid),
            false => {
                self.look_at_spec(rid, !self.handled.contains_key(&rid))
                    .await?
            }
        }
        self.look_at_requests(rid).await
    }

    /// True until the guest has announced itself to an empty store.
    pub(crate) fn resumed(&self) -> bool {
        self.resumed.get().is_some()
    }

    /// Waits for the next round of the guest's loop, which looks at its devices first. A toolstack
    /// makes a device before it writes the configuration that names it. The events of both can
    /// come in one round, after the look at the devices.
    pub(crate) async fn next_round(&self) {
        poll_fn(|_| match self.yielded.replace(!self.yielded.get()) {
            false => Poll::Pending,
            true => Poll::Ready(()),
        })
        .await;
    }

    /// From now on each event of a `state` is looked at.
    fn expect_no_echoes(&mut self) {
        self.handled
            .values_mut()
            .for_each(|handled| handled.echo = false);
    }

    /// Writes a line to the console.
    pub(crate) fn say(&self, line: &str) {
        let console = Rc::clone(&self.routers.borrow().environment().console);
        console(line);
    }

    /// Says on the console what the store refused; once a second at most.
    fn complain(&mut self, error: &Error) {
        if self.now_ns() < self.quiet_until_ns {
            return;
        }
        self.quiet_until_ns = self.now_ns().saturating_add(COMPLAINT_NS);
        self.say(&format!("control: {error}"));
    }
}

fn version() -> String {
    format!("clickos {} protocol 1", env!("CARGO_PKG_VERSION"))
}
