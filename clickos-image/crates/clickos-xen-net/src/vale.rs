// SPDX-License-Identifier: Apache-2.0
//! The vale port: the granted ring of `docs/rings.md`, with valed as the backend.
use crate::device::{Counters, NetDevice};
use crate::frontend::{Answers, Frontend, Identity, Keys};
use crate::platform::{Access, DomId, EvtchnPort, Platform};
use crate::rings::{Numbers, Rings, short};
use crate::shared::Shared;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use click_core::{Batch, PacketPool};
use ring::directory;

/// Regions of the past the switch may still hold; more are refused.
const MAX_OLD: usize = 4;

/// A port of the switch.
pub struct ValePort<P: Platform> {
    platform: Rc<P>,
    identity: Identity,
    slots: u32,
    /// Numbers for regions of version 2. `None`: version 1 only.
    numbers: Option<Rc<Numbers>>,
    link: Option<Link<P>>,
    up: bool,
    old: Vec<Shared<P>>,
    counters: Counters,
}

struct Link<P: Platform> {
    rings: Rings<P>,
    directory: Shared<P>,
    evtchn: EvtchnPort,
}

impl<P: Platform> ValePort<P> {
    pub(crate) fn new(
        platform: Rc<P>,
        identity: Identity,
        slots: u32,
        numbers: Option<Rc<Numbers>>,
    ) -> Self {
        Self {
            platform,
            identity,
            slots,
            numbers,
            link: None,
            up: false,
            old: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Rings of the highest version that both sides have and the guest has memory for. Long frames need
    /// those of version 1.
    fn make_rings(&self, backend: DomId, version: Option<&str>) -> Result<Rings<P>, String> {
        let accepts: u32 = version.and_then(|text| text.parse().ok()).unwrap_or(1);
        let long = usize::from(self.identity.mtu) > ring::SHORT_MTU;
        let numbers = self.numbers.as_ref().filter(|_| accepts >= 2 && !long);
        let in_place =
            numbers.and_then(|n| Rings::in_place(&self.platform, backend, self.slots, n));
        match in_place {
            Some(rings) => Ok(rings),
            None => Rings::copying(&self.platform, backend, self.slots, long),
        }
    }

    fn malformed_now(&self) -> u64 {
        self.link.as_ref().map_or(0, |link| link.rings.malformed())
    }

    fn take_link(&mut self) -> Option<Link<P>> {
        self.counters.malformed += self.malformed_now();
        self.up = false;
        self.link.take()
    }
}

impl<P: Platform> Link<P> {
    fn new(platform: &Rc<P>, backend: DomId, rings: Rings<P>) -> Result<Self, String> {
        let references = rings.references();
        let count = directory::pages(references.len());
        let mut list = Shared::new(platform, backend, count, count).ok_or_else(|| short(count))?;
        list.grant_all(Access::Read).ok_or_else(|| short(count))?;
        let own: Vec<u32> = list.references().collect();
        directory::write(&list, &own, &references);
        let evtchn = platform.open_evtchn(backend);
        Ok(Self {
            rings,
            directory: list,
            evtchn: evtchn.ok_or("vale: no event channel is left")?,
        })
    }

    fn into_pages(self) -> impl Iterator<Item = Shared<P>> {
        let rings = self.rings.into_pages();
        rings.into_iter().chain([self.directory])
    }
}

impl<P: Platform> Frontend for ValePort<P> {
    fn backend_keys(&self) -> &'static [&'static str] {
        &["ring-version"]
    }

    fn connect(&mut self, backend: DomId, answers: &Answers) -> Result<Keys, String> {
        self.disconnect();
        if self.old.len() > MAX_OLD {
            return Err("vale: the switch holds the pages of earlier connections".into());
        }
        let accepted = answers.first().and_then(Option::as_deref);
        let rings = self.make_rings(backend, accepted)?;
        let link = Link::new(&self.platform, backend, rings)?;
        let directory = link.directory.gref(0).map(|gref| gref.to_string());
        let keys = vec![
            ("ring-ref", directory.unwrap_or_default()),
            ("ring-version", link.rings.version().to_string()),
            ("event-channel", link.evtchn.to_string()),
        ];
        self.link = Some(link);
        Ok(keys)
    }

    fn set_up(&mut self) {
        self.up = self.link.is_some();
        if let Some(link) = &mut self.link {
            link.rings.negotiate();
        }
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

    fn set_identity(&mut self, mac: [u8; 6], mtu: u16) {
        self.identity = Identity { mac, mtu };
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize {
        let counters = &mut self.counters;
        let link = self.link.as_mut();
        link.map_or(0, |link| {
            let done = |length| counters.received(length);
            link.rings.receive(max, pool, out, done)
        })
    }

    fn transmit(&mut self, batch: &mut Batch) -> usize {
        let before = self.counters.tx_packets;
        let counters = &mut self.counters;
        match self.link.as_mut().filter(|_| self.up) {
            Some(link) => link
                .rings
                .transmit(batch, |length, result| counters.sent(length, result)),
            None if !batch.is_empty() => counters.tx_full += 1,
            None => {}
        }
        (self.counters.tx_packets - before) as usize
    }

    fn publish(&mut self) {
        if let Some(link) = &mut self.link {
            if link.rings.publish() {
                self.platform.notify(link.evtchn);
            }
        }
    }

    fn sleep_prepare(&mut self) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        self.platform.take_event(link.evtchn);
        link.rings.sleep_prepare()
    }

    fn wake_done(&mut self) {
        if let Some(link) = &mut self.link {
            link.rings.wake_done();
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
