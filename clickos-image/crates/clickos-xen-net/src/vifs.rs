// SPDX-License-Identifier: Apache-2.0
//! All network devices of a guest.
use crate::counting_platform::CountingPlatform;
use crate::device::NetDevice;
use crate::device_watch::{Class, Found, Progress, Search};
use crate::frontend::{Frontend, Handshake, Identity, NO_ADDRESS, Signals};
use crate::netif::Netfront;
use crate::options::Options;
use crate::platform::{EvtchnPort, Platform};
use crate::rings::Numbers;
use crate::vale::ValePort;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};
use xenstore::{Error, Mux, Store};

/// How long a configuration waits for a device that has been found to come up.
const SETTLE_NS: u64 = 10_000_000_000;

type Task = Pin<Box<dyn Future<Output = Error>>>;

/// A device by its number.
pub struct Vif {
    /// The toolstack's number, which configurations use.
    pub devid: u32,
    class: Class,
    /// The device; it comes and goes with its backend.
    pub device: Rc<RefCell<dyn NetDevice>>,
    /// None after the connection to the store broke.
    handshake: Option<Task>,
    signals: Rc<Signals>,
    found_ns: u64,
    /// The toolstack has taken it away. The handshake serves it if it comes back.
    is_gone: bool,
}

impl Vif {
    /// True if configurations can use it: it has an address and has been up, though it may be down
    /// now.
    pub fn is_usable(&self) -> bool {
        self.signals.was_up.get() && self.device.borrow().mac() != NO_ADDRESS
    }

    /// The toolstack has removed it: no configuration can use it any more.
    fn leave(&mut self) {
        self.is_gone = true;
        self.signals.was_up.set(false);
        self.signals.settled.set(true);
    }

    fn come_back(&mut self, now_ns: u64) {
        self.is_gone = false;
        self.found_ns = now_ns;
        self.signals.settled.set(false);
    }

    fn is_settled(&self, now_ns: u64) -> bool {
        let is_late = now_ns.saturating_sub(self.found_ns) > SETTLE_NS;
        self.signals.settled.get() || self.handshake.is_none() || is_late
    }
}

/// The devices the toolstack gives the guest, before it starts or later.
pub struct Vifs<P, S> {
    platform: Rc<P>,
    mux: Rc<RefCell<Mux<S>>>,
    options: Options,
    search: Option<Task>,
    progress: Rc<RefCell<Progress>>,
    numbers: Option<Rc<Numbers>>,
    list: Vec<Vif>,
}

impl<P: Platform + 'static, S: Store + 'static> Vifs<P, S> {
    /// Nothing happens before the first [`Vifs::poll`].
    pub fn new(platform: Rc<P>, mux: Rc<RefCell<Mux<S>>>, options: Options) -> Self {
        let progress = Rc::new(RefCell::new(Progress::default()));
        let search = Search {
            link: Mux::link(&mux, "vifs"),
            platform: Rc::clone(&platform),
            progress: Rc::clone(&progress),
        };
        Self {
            platform,
            mux,
            options,
            search: Some(Box::pin(search.run())),
            progress,
            numbers: options.in_place.then(Rc::default),
            list: Vec::new(),
        }
    }

    /// Continues with the search and the handshakes; to be called once a round of the guest's
    /// loop, after the store's connection was pumped. True if the devices the toolstack has made
    /// are found, and up or given up: a configuration that names one can be installed.
    pub fn poll(&mut self, now_ns: u64) -> bool {
        poll(&mut self.search);
        let (found, gone) = self.progress.borrow_mut().take();
        let list = self.list.iter_mut();
        list.filter(|vif| gone.contains(&vif.devid))
            .for_each(Vif::leave);
        for device in found {
            if !self.give_address(&device, now_ns) {
                let vif = self.start(&device, now_ns);
                self.list.push(vif);
            }
        }
        for vif in &mut self.list {
            poll(&mut vif.handshake);
        }
        let is_searching = self.search.is_some() && self.progress.borrow().busy;
        !is_searching && self.list.iter().all(|vif| vif.is_settled(now_ns))
    }

    /// Gives an address to a preconnected device, or to one that comes back. False if no device has the number.
    fn give_address(&mut self, found: &Found, now_ns: u64) -> bool {
        let mut list = self.list.iter_mut();
        let Some(vif) = list.find(|vif| vif.devid == found.devid) else {
            return false;
        };
        let Identity { mac, mtu } = found.identity;
        if vif.class == found.class {
            vif.device.borrow_mut().set_identity(mac, mtu);
            if vif.is_gone {
                vif.come_back(now_ns);
            }
        } else if vif.is_gone {
            let place = found.directory();
            let text = format!("{place}: comes back as another kind of device; it is not used");
            self.platform.say(&text);
        }
        true
    }

    fn start(&self, found: &Found, now_ns: u64) -> Vif {
        let (platform, identity) = (CountingPlatform::new(&self.platform), found.identity);
        match found.class {
            Class::Vif => {
                let device = Netfront::new(platform, identity, self.options);
                self.serve(found, Rc::new(RefCell::new(device)), now_ns)
            }
            Class::Vale { slots } => {
                let device = ValePort::new(platform, identity, slots, self.numbers.clone());
                self.serve(found, Rc::new(RefCell::new(device)), now_ns)
            }
        }
    }

    fn serve<F: Frontend + NetDevice + 'static>(
        &self,
        found: &Found,
        device: Rc<RefCell<F>>,
        now_ns: u64,
    ) -> Vif {
        let signals = Rc::new(Signals::default());
        let directory = found.directory();
        // one handshake for all classes: it is large, and runs seldom
        let served: Rc<RefCell<dyn Frontend>> = device.clone();
        let handshake = Handshake::new(
            Rc::clone(&self.platform),
            Mux::link(&self.mux, &directory),
            directory,
            served,
            Rc::clone(&signals),
        );
        Vif {
            devid: found.devid,
            class: found.class,
            device,
            handshake: Some(Box::pin(handshake.run())),
            signals,
            found_ns: now_ns,
            is_gone: false,
        }
    }

    /// All devices found so far.
    pub fn list(&self) -> &[Vif] {
        &self.list
    }

    /// To be called after the routers ran: shows the backends what was sent and received.
    pub fn publish(&self) {
        for vif in &self.list {
            vif.device.borrow_mut().publish();
        }
    }

    /// Asks all backends for events. True if something came since this was last asked.
    #[must_use = "sleeping after true can be forever"]
    pub fn sleep_prepare(&self) -> bool {
        let prepare = |vif: &Vif| vif.device.borrow_mut().sleep_prepare();
        self.list.iter().filter(|vif| prepare(vif)).count() > 0
    }

    /// Ends what `sleep_prepare` began.
    pub fn wake_done(&self) {
        for vif in &self.list {
            vif.device.borrow_mut().wake_done();
        }
    }

    /// Appends the event channels to wait for.
    pub fn ports(&self, into: &mut Vec<EvtchnPort>) {
        for vif in &self.list {
            vif.device.borrow().ports(into);
        }
    }

    /// To be called after the guest was restored, before anything else here: its grants and event
    /// channels are gone, and it has new backends.
    pub fn resume(&self) {
        for vif in &self.list {
            vif.signals.resumed.set(true);
        }
    }
}

/// Polls a task; one that has ended is not polled again.
fn poll(task: &mut Option<Task>) {
    let mut context = Context::from_waker(Waker::noop());
    task.take_if(|task| task.as_mut().poll(&mut context).is_ready());
}
