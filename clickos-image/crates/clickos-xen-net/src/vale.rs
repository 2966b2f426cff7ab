// SPDX-License-Identifier: Apache-2.0
//! The vale port: the granted ring of `docs/rings.md`, with valed as the backend.
use crate::device::{Counters, NetDevice};
use crate::frontend::{Answers, Frontend, Identity, Keys};
use crate::platform::{Access, DomId, EvtchnPort, Platform};
use crate::shared::Shared;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use ring::layout::{Layout, PAGE};
use ring::{GuestPort, PushError, directory};

/// Regions of the past the switch may still hold; more are refused.
const MOST_OLD: usize = 4;

/// A port of the switch.
pub struct ValePort<P: Platform> {
    platform: Rc<P>,
    identity: Identity,
    slots: u32,
    link: Option<Link<P>>,
    up: bool,
    old: Vec<Shared<P>>,
    counters: Counters,
}

struct Link<P: Platform> {
    port: GuestPort<Shared<P>>,
    directory: Shared<P>,
    evtchn: EvtchnPort,
}

impl<P: Platform> ValePort<P> {
    pub(crate) fn new(platform: Rc<P>, identity: Identity, slots: u32) -> Self {
        Self {
            platform,
            identity,
            slots,
            link: None,
            up: false,
            old: Vec::new(),
            counters: Counters::default(),
        }
    }

    fn malformed_now(&self) -> u64 {
        self.link.as_ref().map_or(0, |link| link.port.malformed())
    }

    fn take_link(&mut self) -> Option<Link<P>> {
        self.counters.malformed += self.malformed_now();
        self.up = false;
        self.link.take()
    }
}

impl<P: Platform> Link<P> {
    fn new(platform: &Rc<P>, backend: DomId, slots: u32) -> Result<Self, String> {
        let layout = Layout::new(slots).map_err(|e| e.to_string())?;
        let pages = layout.size() / PAGE;
        let short = || format!("vale: no memory or no grants for {pages} pages");
        let region = granted(platform, backend, pages, Access::ReadWrite).ok_or_else(short)?;
        let count = directory::pages(pages);
        let list = granted(platform, backend, count, Access::Read).ok_or_else(short)?;
        directory::write(
            &list,
            &references(&list, count),
            &references(&region, pages),
        );
        let port = GuestPort::format(region, slots).map_err(|e| e.to_string())?;
        let evtchn = platform.open_evtchn(backend);
        Ok(Self {
            port,
            directory: list,
            evtchn: evtchn.ok_or("vale: no event channel is left")?,
        })
    }

    fn into_pages(self) -> [Shared<P>; 2] {
        [self.directory, self.port.into_memory()]
    }
}

fn granted<P: Platform>(
    platform: &Rc<P>,
    to: DomId,
    pages: usize,
    access: Access,
) -> Option<Shared<P>> {
    let mut shared = Shared::new(platform, to, pages, pages)?;
    shared.grant_all(access)?;
    Some(shared)
}

fn references<P: Platform>(shared: &Shared<P>, pages: usize) -> Vec<u32> {
    let grants = (0..pages).filter_map(|page| shared.gref(page));
    grants.map(|gref| gref.0).collect()
}

impl<P: Platform> Frontend for ValePort<P> {
    const BACKEND_KEYS: &'static [&'static str] = &[];

    fn connect(&mut self, backend: DomId, _: &Answers) -> Result<Keys, String> {
        self.disconnect();
        if self.old.len() > MOST_OLD {
            return Err("vale: the switch holds the pages of earlier connections".into());
        }
        let link = Link::new(&self.platform, backend, self.slots)?;
        let directory = link.directory.gref(0).map(|gref| gref.to_string());
        let keys = vec![
            ("ring-ref", directory.unwrap_or_default()),
            ("event-channel", link.evtchn.to_string()),
        ];
        self.link = Some(link);
        Ok(keys)
    }

    fn set_up(&mut self) {
        self.up = self.link.is_some();
    }

    fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    fn disconnect(&mut self) {
        if let Some(link) = self.take_link() {
            self.platform.close_evtchn(link.evtchn);
            self.old.extend(link.into_pages());
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        self.old.retain_mut(|pages| !pages.end_all());
    }

    fn forget(&mut self) {
        let link = self.take_link();
        self.old.extend(link.into_iter().flat_map(Link::into_pages));
        self.old.iter_mut().for_each(Shared::forget_grants);
        self.old.clear();
    }

    /// What the switch does wrong is passed over and counted: the ring has no state it could
    /// break.
    fn has_fault(&self) -> bool {
        false
    }

    fn take_fault(&mut self) -> Option<String> {
        None
    }
}

impl<P: Platform> NetDevice for ValePort<P> {
    fn mac(&self) -> [u8; 6] {
        self.identity.mac
    }

    fn mtu(&self) -> u16 {
        self.identity.mtu
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let length = self.link.as_mut()?.port.pop(buffer)?;
        self.counters.received(length);
        Some(length)
    }

    fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        let link = self.link.as_mut().filter(|_| self.up);
        let result = link.map_or(Err(PushError::Full), |link| link.port.push(frame));
        self.counters.sent(frame.len(), &result);
        result
    }

    fn publish(&mut self) {
        if let Some(link) = &mut self.link {
            if link.port.publish() {
                self.platform.notify(link.evtchn);
            }
        }
    }

    fn sleep_prepare(&mut self) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        self.platform.take_event(link.evtchn);
        link.port.sleep_prepare()
    }

    fn wake_done(&mut self) {
        if let Some(link) = &mut self.link {
            link.port.wake_done();
        }
    }

    fn ports(&self, into: &mut Vec<EvtchnPort>) {
        into.extend(self.link.as_ref().map(|link| link.evtchn));
    }

    fn counters(&self) -> Counters {
        Counters {
            malformed: self.counters.malformed + self.malformed_now(),
            costs: self.platform.costs(),
            ..self.counters
        }
    }
}
