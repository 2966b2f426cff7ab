// SPDX-License-Identifier: Apache-2.0
//! netfront: the standard netif protocol (`xen/io/netif.h`) against any netback.
//!
//! It offers neither `feature-sg` nor segmentation nor IPv6 checksums, so each frame is one slot;
//! what an IPv4 sender left of a checksum is filled in before anybody sees the frame.
mod fault;
mod link;
mod ring;
mod rx;
mod slots;
mod tx;

pub use ring::{BadIndex, FrontRing, SLOTS};

use crate::device::{Counters, NetDevice};
use crate::frontend::{Answers, Frontend, Identity, Keys};
use crate::options::Options;
use crate::platform::{DomId, EvtchnPort, Platform};
use crate::shared::Shared;
use ::ring::PushError;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_core::{Batch, PacketPool};
use clickos_vif::copying;
use fault::Fault;
use link::Link;

/// Connections of the past whose pages the backend may still hold; more are refused.
const MAX_OLD: usize = 4 * 4;

/// One vif.
pub struct Netfront<P: Platform> {
    platform: Rc<P>,
    identity: Identity,
    options: Options,
    link: Option<Link<P>>,
    up: bool,
    old: Vec<Shared<P>>,
    counters: Counters,
    fault: Option<Fault>,
}

impl<P: Platform> Netfront<P> {
    pub(crate) fn new(platform: Rc<P>, identity: Identity, options: Options) -> Self {
        Self {
            platform,
            identity,
            options,
            link: None,
            up: false,
            old: Vec::new(),
            counters: Counters::default(),
            fault: None,
        }
    }

    /// What `work` gives; a fault ends the connection.
    fn with_link<T>(
        &mut self,
        work: impl FnOnce(&mut Link<P>, &mut Counters) -> Result<T, Fault>,
    ) -> Option<T> {
        let link = self.link.as_mut()?;
        let result = work(link, &mut self.counters);
        if let Err(fault) = result {
            self.counters.faults += 1;
            self.fault = Some(fault);
            self.close();
        }
        result.ok()
    }

    fn close(&mut self) {
        self.up = false;
        if let Some(link) = self.link.take() {
            self.counters.tx_errors += link.tx_errors();
            self.old.extend(link.close());
        }
    }

    fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        let pushed = match self.up {
            true => self.with_link(|link, _| link.push(frame)),
            false => None,
        };
        let result = pushed.unwrap_or(Err(PushError::Full));
        self.counters.sent(frame.len(), &result);
        result
    }
}

impl<P: Platform> Frontend for Netfront<P> {
    fn backend_keys(&self) -> &'static [&'static str] {
        &["feature-split-event-channels"]
    }

    fn connect(&mut self, backend: DomId, answers: &Answers) -> Result<Keys, String> {
        self.disconnect();
        if self.old.len() > MAX_OLD {
            return Err("netfront: the backend holds the pages of earlier connections".into());
        }
        let split = answers[0].as_deref() == Some("1");
        let mut link = Link::new(&self.platform, backend, split, self.options)?;
        link.publish().map_err(|fault| fault.to_string())?;
        let keys = link.keys();
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
        self.close();
        self.tidy();
    }

    fn tidy(&mut self) {
        self.old.retain_mut(|pages| !pages.end_all());
    }

    fn forget(&mut self) {
        self.up = false;
        self.old.iter_mut().for_each(Shared::forget_grants);
        self.old.clear();
        if let Some(link) = self.link.take() {
            link.forget();
        }
    }

    fn has_fault(&self) -> bool {
        self.fault.is_some()
    }

    fn take_fault(&mut self) -> Option<String> {
        self.fault.take().map(|fault| fault.to_string())
    }
}

impl<P: Platform> copying::Source for Netfront<P> {
    fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        let length = self.with_link(|link, counters| link.pop(into, counters))??;
        self.counters.received(length);
        Some(length)
    }
}

impl<P: Platform> NetDevice for Netfront<P> {
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
        copying::receive(max, pool, out, self, |_| {})
    }

    fn transmit(&mut self, batch: &mut Batch) -> usize {
        copying::transmit(batch, |frame| self.push(frame))
    }

    fn publish(&mut self) {
        self.with_link(|link, _| link.publish());
    }

    fn sleep_prepare(&mut self) -> bool {
        self.with_link(|link, _| link.sleep_prepare())
            .unwrap_or(self.fault.is_some())
    }

    fn wake_done(&mut self) {}

    fn ports(&self, into: &mut Vec<EvtchnPort>) {
        if let Some(link) = &self.link {
            link.ports(into);
        }
    }

    fn counters(&self) -> Counters {
        let tx_errors = self.link.as_ref().map_or(0, Link::tx_errors);
        Counters {
            tx_errors: self.counters.tx_errors + tx_errors,
            costs: self.platform.costs(),
            ..self.counters
        }
    }
}
