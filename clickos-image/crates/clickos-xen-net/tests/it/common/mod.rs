// SPDX-License-Identifier: Apache-2.0
//! A guest in memory: pages, grants and event channels without Xen, and a simulated store.
mod area;
pub mod netback;

use area::{Area, Live};
use click_core::{Batch, PacketPool};
use click_packet::Region;
use clickos_control::simulator::{Connection, Simulator};
use ring::layout::PAGE;
use ring::{Memory, PushError};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use xen_net::{Access, DomId, EvtchnPort, GrantRef, NetDevice, Options, Platform, Vifs};
use xenstore::{Access as Rights, Handle, Mux, Perm, Store};

pub const DOMID: u16 = 7;

/// A page of a guest: the allocation it is in, and its number there.
pub type Page = (Rc<Area>, usize);

#[derive(Default)]
pub struct Xen {
    pub grants: RefCell<BTreeMap<u32, (Page, Access)>>,
    /// References the backend does not let go of.
    pub held: RefCell<Vec<u32>>,
    /// Event channels and whether an event is pending.
    pub channels: RefCell<BTreeMap<u32, bool>>,
    /// Events the guest sent.
    pub notified: Cell<u32>,
    pub said: RefCell<Vec<String>>,
    pub live_pages: Rc<Cell<usize>>,
    pub page_limit: Cell<usize>,
    next: Cell<u32>,
}

/// Memory of the guest.
pub struct Pages {
    area: Rc<Area>,
    live: Rc<Live>,
    /// Bytes that the guest reaches.
    reach: usize,
}

impl Xen {
    fn pages(&self, count: usize, reach: usize) -> Option<Pages> {
        let live = self.live_pages.get() + count;
        let is_enough = self.page_limit.get() == 0 || live <= self.page_limit.get();
        is_enough.then(|| Pages {
            area: Rc::new(Area::new(count)),
            live: Live::new(count, &self.live_pages),
            reach,
        })
    }

    fn number(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// The page that the backend reaches by a reference.
    pub fn page(&self, gref: u32, writes: bool) -> Page {
        let grants = self.grants.borrow();
        let (page, access) = grants.get(&gref).expect("a reference is a grant");
        assert!(
            !writes || *access == Access::ReadWrite,
            "{gref} is read-only"
        );
        (Rc::clone(&page.0), page.1)
    }

    pub fn send_event(&self, port: u32) {
        if let Some(pending) = self.channels.borrow_mut().get_mut(&port) {
            *pending = true;
        }
    }
}

impl Platform for Xen {
    type Memory = Pages;

    fn allocate(&self, pages: usize) -> Option<Pages> {
        self.pages(pages, pages * PAGE)
    }

    fn allocate_blocks(&self, count: usize) -> Option<(Pages, Region)> {
        let pages = self.pages(count * Region::BLOCK / PAGE, 0)?;
        let region = area::region(&pages.area, &pages.live);
        Some((pages, region))
    }

    fn grant(&self, memory: &Pages, page: usize, _: DomId, access: Access) -> Option<GrantRef> {
        let gref = self.number();
        let page = (Rc::clone(&memory.area), page);
        self.grants.borrow_mut().insert(gref, (page, access));
        Some(GrantRef(gref))
    }

    fn end_grant(&self, gref: GrantRef) -> bool {
        if self.held.borrow().contains(&gref.0) {
            return false;
        }
        let ended = self.grants.borrow_mut().remove(&gref.0);
        assert!(ended.is_some(), "{gref} is ended twice");
        true
    }

    fn open_evtchn(&self, _: DomId) -> Option<EvtchnPort> {
        let port = self.number();
        self.channels.borrow_mut().insert(port, false);
        Some(EvtchnPort(port))
    }

    fn notify(&self, port: EvtchnPort) {
        assert!(self.channels.borrow().contains_key(&port.0));
        self.notified.set(self.notified.get() + 1);
    }

    fn take_event(&self, port: EvtchnPort) -> bool {
        let mut channels = self.channels.borrow_mut();
        std::mem::take(channels.get_mut(&port.0).expect("the channel is open"))
    }

    fn close_evtchn(&self, port: EvtchnPort) {
        assert!(self.channels.borrow_mut().remove(&port.0).is_some());
    }

    fn say(&self, line: &str) {
        self.said.borrow_mut().push(line.into());
    }
}

/// Granted pages one after another, as the backend maps them.
pub struct View(pub Vec<Page>);

impl View {
    /// Calls `work` for each part of a range that lies in one page: the bytes before it, its page and
    /// its place there.
    fn parts(&self, at: usize, len: usize, mut work: impl FnMut(usize, usize, &Page, usize)) {
        let mut done = 0;
        while done < len {
            let (page, start) = ((at + done) / PAGE, (at + done) % PAGE);
            let count = (len - done).min(PAGE - start);
            work(done, count, &self.0[page], self.0[page].1 * PAGE + start);
            done += count;
        }
    }

    fn word(&self, at: usize) -> (&Area, usize) {
        let (area, page) = &self.0[at / PAGE];
        (area, page * PAGE + at % PAGE)
    }
}

impl Memory for View {
    fn size(&self) -> usize {
        self.0.len() * PAGE
    }
    fn load(&self, at: usize) -> u32 {
        let (area, at) = self.word(at);
        area.memory().load(at)
    }
    fn store(&self, at: usize, value: u32) {
        let (area, at) = self.word(at);
        area.memory().store(at, value);
    }
    fn load_descriptor(&self, at: usize) -> u64 {
        let (area, at) = self.word(at);
        area.memory().load_descriptor(at)
    }
    fn store_descriptor(&self, at: usize, value: u64) {
        let (area, at) = self.word(at);
        area.memory().store_descriptor(at, value);
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        self.parts(at, into.len(), |done, count, page, at| {
            page.0.memory().read(at, &mut into[done..done + count]);
        });
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.parts(at, from.len(), |done, count, page, at| {
            page.0.memory().write(at, &from[done..done + count]);
        });
    }
    fn fence(&self) {}
}

impl Pages {
    fn memory(&self, at: usize, len: usize) -> &ring::Mapping {
        assert!(
            at + len <= self.reach,
            "{len} bytes at {at} of {}",
            self.reach
        );
        self.area.memory()
    }
}

impl Memory for Pages {
    fn size(&self) -> usize {
        self.reach
    }
    fn load(&self, at: usize) -> u32 {
        self.memory(at, 4).load(at)
    }
    fn store(&self, at: usize, value: u32) {
        self.memory(at, 4).store(at, value);
    }
    fn load_descriptor(&self, at: usize) -> u64 {
        self.memory(at, 8).load_descriptor(at)
    }
    fn store_descriptor(&self, at: usize, value: u64) {
        self.memory(at, 8).store_descriptor(at, value);
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        self.memory(at, into.len()).read(at, into);
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.memory(at, from.len()).write(at, from);
    }
    fn fence(&self) {}
}

/// A guest and the store its toolstack writes to.
pub struct Guest {
    pub xen: Rc<Xen>,
    pub store: Simulator,
    pub vifs: Vifs<Xen, Connection>,
    pub mux: Rc<RefCell<Mux<Connection>>>,
    pump: Handle<Connection>,
    pub now_ns: u64,
    pub pool: RefCell<PacketPool>,
}

impl Guest {
    pub fn new(options: Options) -> Self {
        let (xen, store) = (Rc::new(Xen::default()), Simulator::new());
        let mux = Mux::new(store.domain(DOMID));
        Self {
            vifs: Vifs::new(Rc::clone(&xen), Rc::clone(&mux), options),
            pump: Mux::handle(&mux, "pump"),
            mux,
            xen,
            store,
            now_ns: 0,
            pool: RefCell::new(PacketPool::new(1 << 16)),
        }
    }

    /// A guest whose toolstack made device `class/0`, and whose loop ran.
    pub fn with(class: &str, options: Options) -> Self {
        let mut guest = Self::new(options);
        guest.add(class, 0);
        guest.turn();
        guest
    }

    /// The nodes that a toolstack writes for a device.
    pub fn add(&self, class: &str, devid: u32) {
        let read = |domid| Perm::new(Rights::Read, domid);
        let none = |domid| Perm::new(Rights::None, domid);
        let devices = format!("/local/domain/{DOMID}/device/{class}");
        let front = format!("{devices}/{devid}");
        let back = backend(class, devid);
        self.store.write(&devices, b"");
        self.store.set_perms(&devices, &[none(0), read(DOMID)]);
        for (path, owner, reader) in [(&front, DOMID, 0), (&back, 0, DOMID)] {
            self.store.write(path, b"");
            self.store.set_perms(path, &[none(owner), read(reader)]);
        }
        for (key, value) in [
            ("backend", back.as_str()),
            ("backend-id", "0"),
            ("mac", "00:16:3e:01:02:03"),
            ("state", "1"),
        ] {
            self.store
                .write(&format!("{front}/{key}"), value.as_bytes());
        }
        let errors = format!("/local/domain/{DOMID}/error");
        self.store.write(&errors, b"");
        self.store.set_perms(&errors, &[none(DOMID), read(0)]);
        self.set_backend(class, devid, "1");
    }

    pub fn set_backend(&self, class: &str, devid: u32, state: &str) {
        let path = format!("{}/state", backend(class, devid));
        self.store.write(&path, state.as_bytes());
    }

    /// The guest's loop, until nothing happens any more; true if its devices are settled.
    pub fn turn(&mut self) -> bool {
        let mut settled = false;
        for _ in 0..200 {
            self.pump.pump();
            settled = self.vifs.poll(self.now_ns);
        }
        settled
    }

    /// A key of the guest's end of device 0.
    pub fn key(&self, class: &str, key: &str) -> String {
        self.key_of(class, 0, key)
    }

    pub fn key_of(&self, class: &str, devid: u32, key: &str) -> String {
        let path = format!("/local/domain/{DOMID}/device/{class}/{devid}/{key}");
        self.store.text(&path).unwrap_or_default()
    }

    pub fn number(&self, class: &str, key: &str) -> u32 {
        let value = self.key(class, key);
        value
            .parse()
            .unwrap_or_else(|_| panic!("{key} is {value:?}"))
    }

    pub fn device(&self) -> Rc<RefCell<dyn NetDevice>> {
        Rc::clone(&self.vifs.list()[0].device)
    }

    /// All frames that wait.
    pub fn receive(&self) -> Vec<Vec<u8>> {
        let (device, mut batch) = (self.device(), Batch::new());
        let mut device = device.borrow_mut();
        while device.receive(32, &mut self.pool.borrow_mut(), &mut batch) > 0 {}
        let frames = batch.iter().map(|packet| packet.data().to_vec()).collect();
        batch.clear();
        device.publish();
        frames
    }

    /// Puts a frame into the ring.
    pub fn push(&self, frame: &[u8]) -> Result<(), PushError> {
        let packet = self.pool.borrow_mut().packet_from(frame).unwrap();
        let mut batch = Batch::new();
        batch.push_back(packet);
        match (self.device().borrow_mut().transmit(&mut batch), batch.len()) {
            (_, 1) => Err(PushError::Full),
            (1, _) => Ok(()),
            _ => Err(PushError::BadLength(frame.len())),
        }
    }

    /// An event is pending on one of the device's channels.
    pub fn is_woken(&self) -> bool {
        let mut ports = Vec::new();
        self.device().borrow().ports(&mut ports);
        let channels = self.xen.channels.borrow();
        ports.iter().any(|port| channels[&port.0])
    }
}

fn backend(class: &str, devid: u32) -> String {
    format!("/local/domain/0/backend/{class}/{DOMID}/{devid}")
}
