// SPDX-License-Identifier: Apache-2.0
//! The handshake with a backend over the Xen store (`xen/io/xenbus.h`), the same for all classes.
//!
//! Each side has a directory that names the other's, and a state in it. The frontend connects
//! when the backend waits for it, closes when the backend closes or goes, and offers itself again
//! when the backend has closed: a backend that comes back finds it.
use crate::platform::{DomId, Platform};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use xenstore::{Error, Store, StoreConnection};

/// Values of the backend's keys, in the order of [`Frontend::backend_keys`].
pub(crate) type Answers = [Option<String>];
/// A message to the backend.
pub(crate) type Keys = Vec<(&'static str, String)>;

/// The address of a device without one: it connects, and no configuration can use it yet.
pub(crate) const NO_ADDRESS: [u8; 6] = [0; 6];

/// The toolstack's description of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub mac: [u8; 6],
    pub mtu: u16,
}

impl Identity {
    pub fn is_preconnected(&self) -> bool {
        self.mac == NO_ADDRESS
    }
}

/// A class of devices.
pub(crate) trait Frontend {
    /// Keys of the backend's directory that `connect` wants.
    fn backend_keys(&self) -> &'static [&'static str];
    /// Makes rings for `backend`; the keys say where they are.
    fn connect(&mut self, backend: DomId, answers: &Answers) -> Result<Keys, String>;
    /// The backend has connected too.
    fn set_up(&mut self);
    /// True if there are rings.
    fn is_connected(&self) -> bool;
    /// Ends the rings.
    fn disconnect(&mut self);
    /// Tries again to end grants a backend held on to.
    fn tidy(&mut self);
    /// After a restore: drops the rings, whose grants and event channels are gone already.
    fn forget(&mut self);
    /// True if the device has closed by itself.
    fn has_fault(&self) -> bool;
    /// Why, once.
    fn take_fault(&mut self) -> Option<String>;
}

/// `XenbusState...`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown = 0,
    Initialising = 1,
    InitWait = 2,
    Connected = 4,
    Closing = 5,
    Closed = 6,
}

impl State {
    /// What is missing or makes no sense is unknown; so are states that only devices of other
    /// classes have.
    fn parse(text: Option<String>) -> Self {
        match text.as_deref() {
            Some("1") => Self::Initialising,
            Some("2") => Self::InitWait,
            Some("4") => Self::Connected,
            Some("5") => Self::Closing,
            Some("6") => Self::Closed,
            _ => Self::Unknown,
        }
    }
}

/// Between a handshake and the guest's loop.
#[derive(Default)]
pub(crate) struct Signals {
    /// The guest was restored, and the handshake has not seen it yet.
    pub resumed: Cell<bool>,
    /// The device was up, or was found to be of no use.
    pub settled: Cell<bool>,
    /// The device was up.
    pub was_up: Cell<bool>,
}

/// One device's handshake.
pub(crate) struct Handshake<P, S> {
    pub platform: Rc<P>,
    pub link: StoreConnection<S>,
    /// The frontend's directory, relative to the domain's.
    pub directory: String,
    pub device: Rc<RefCell<dyn Frontend>>,
    pub signals: Rc<Signals>,
    memory: Memory,
}

/// The state of the handshake between two looks.
#[derive(Default)]
struct Memory {
    backend: String,
    /// The state we wrote last.
    own: Option<State>,
    /// The backend has connected to our rings.
    met: bool,
    /// The backend has offered itself, or is about to.
    offered: bool,
    /// The device closed by itself, and the backend has not parted yet.
    failed: bool,
    told: bool,
}

impl<P: Platform, S: Store> Handshake<P, S> {
    pub fn new(
        platform: Rc<P>,
        link: StoreConnection<S>,
        directory: String,
        device: Rc<RefCell<dyn Frontend>>,
        signals: Rc<Signals>,
    ) -> Self {
        Self {
            platform,
            link,
            directory,
            device,
            signals,
            memory: Memory::default(),
        }
    }

    /// Serves until the connection to the store breaks; gives what broke it.
    pub async fn run(mut self) -> Error {
        // The node is made again when the toolstack attaches the device again.
        let mut result = self.link.watch(&self.path("backend")).await;
        loop {
            match result {
                Err(error) if error.is_fatal() => return error,
                Err(error) => self.tell(&error.to_string()),
                Ok(()) => {}
            }
            result = self.wait().await;
            if result.is_ok() {
                result = self.look().await;
            }
        }
    }

    fn path(&self, key: &str) -> String {
        format!("{}/{key}", self.directory)
    }

    /// Waits for a change in the store, a fault of the device, or a resume.
    async fn wait(&self) -> Result<(), Error> {
        let mut event = pin!(self.link.event());
        poll_fn(|context| {
            if self.signals.resumed.get() || self.device.borrow().has_fault() {
                return Poll::Ready(Ok(()));
            }
            event.as_mut().poll(context).map_ok(drop)
        })
        .await
    }

    async fn look(&mut self) -> Result<(), Error> {
        if self.signals.resumed.take() {
            self.device.borrow_mut().forget();
            self.memory = Memory::default();
        }
        self.device.borrow_mut().tidy();
        let fault = self.device.borrow_mut().take_fault();
        if let Some(fault) = fault {
            return self.fail(&fault).await;
        }
        let state = self.backend_state().await?;
        self.memory.offered |= matches!(state, State::Initialising | State::InitWait);
        match state {
            State::InitWait if self.may_connect() => self.connect().await,
            State::Connected => self.met(),
            State::Closing | State::Closed | State::Unknown => self.part(state).await,
            State::InitWait | State::Initialising => Ok(()),
        }
    }

    /// The backend waits, and did not just refuse us; or it waits again.
    fn may_connect(&self) -> bool {
        !self.memory.failed && (self.memory.met || !self.is_connected())
    }

    fn is_connected(&self) -> bool {
        self.device.borrow().is_connected()
    }

    async fn backend_state(&mut self) -> Result<State, Error> {
        // At once, since mostly it is the backend that it was before.
        let paths = [self.path("backend"), self.backend_path("state")];
        let mut values = self.link.texts(&paths).await?;
        let state = values.pop().flatten();
        let backend = values.pop().flatten().unwrap_or_default();
        if backend.is_empty() {
            return Ok(State::Unknown);
        }
        if backend == self.memory.backend {
            return Ok(State::parse(state));
        }
        self.link.watch(&format!("{backend}/state")).await?;
        self.memory.backend = backend;
        let state = self.link.texts(&[self.backend_path("state")]).await?.pop();
        Ok(State::parse(state.flatten()))
    }

    fn backend_path(&self, key: &str) -> String {
        format!("{}/{key}", self.memory.backend)
    }

    async fn connect(&mut self) -> Result<(), Error> {
        self.memory.met = false;
        let wanted = self.device.borrow().backend_keys();
        let keys = wanted.iter().map(|key| self.backend_path(key));
        let mut paths = Vec::from([self.path("backend-id")]);
        paths.extend(keys);
        let values = self.link.texts(&paths).await?;
        let (domid, answers) = values.split_first().expect("a value for each path");
        let domid = domid.as_deref().and_then(|id| id.parse().ok());
        let Some(backend) = domid.map(DomId) else {
            return self.fail("backend-id: is not a domain").await;
        };
        let keys = self.device.borrow_mut().connect(backend, answers);
        match keys {
            Ok(keys) => self.publish(keys).await,
            Err(error) => self.fail(&error).await,
        }
    }

    async fn publish(&mut self, keys: Keys) -> Result<(), Error> {
        let values = keys
            .iter()
            .map(|(key, value)| (self.path(key), value.as_bytes()));
        self.link.write_all(&values.collect::<Vec<_>>()).await?;
        self.enter(State::Connected).await
    }

    fn met(&mut self) -> Result<(), Error> {
        self.memory.met = self.is_connected();
        self.device.borrow_mut().set_up();
        self.signals.settled.set(true);
        self.signals.was_up.set(true);
        Ok(())
    }

    /// The backend closes, has closed, or is gone.
    async fn part(&mut self, state: State) -> Result<(), Error> {
        self.memory.met = false;
        if state != State::Unknown || self.memory.offered {
            self.signals.settled.set(true); // it went before the device was up
        }
        if core::mem::take(&mut self.memory.failed) {
            self.memory.own = None; // we do not offer ourselves again, but take a new offer
        } else if self.is_connected() {
            self.device.borrow_mut().disconnect();
            self.enter(State::Closed).await?;
        }
        if self.memory.own == Some(State::Closed) && state == State::Closed {
            self.enter(State::Initialising).await?;
        }
        Ok(())
    }

    /// Closes the device for good: until its backend starts again.
    async fn fail(&mut self, why: &str) -> Result<(), Error> {
        self.tell(why);
        self.signals.settled.set(true);
        self.device.borrow_mut().disconnect();
        (self.memory.failed, self.memory.met) = (true, false);
        let text = format!("{}: {why}", self.directory);
        let path = format!("error/{}/error", self.directory);
        // The toolstack may keep the guest from this node; then the console has said it.
        let _ = self.link.write(&path, text.as_bytes()).await;
        self.enter(State::Closing).await?;
        self.enter(State::Closed).await
    }

    async fn enter(&mut self, state: State) -> Result<(), Error> {
        self.memory.own = Some(state);
        let (path, number) = (self.path("state"), (state as u8).to_string());
        match self.link.write(&path, number.as_bytes()).await {
            // Without its directory the device is detached and needs no answer.
            Err(error) if !error.is_fatal() => Ok(()),
            result => result,
        }
    }

    /// Says something on the console, once in the device's life.
    fn tell(&mut self, what: &str) {
        if !core::mem::replace(&mut self.memory.told, true) {
            self.platform.say(&format!("{}: {what}", self.directory));
        }
    }
}
