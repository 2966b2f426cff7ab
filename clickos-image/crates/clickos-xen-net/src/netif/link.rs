// SPDX-License-Identifier: Apache-2.0
//! Both rings of a connected netfront and their event channels.
use super::fault::Fault;
use super::rx::Rx;
use super::tx::Tx;
use crate::device::Counters;
use crate::options::Options;
use crate::platform::{DomId, EvtchnPort, Platform};
use crate::shared::Shared;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use ring::PushError;

pub(super) struct Link<P: Platform> {
    platform: Rc<P>,
    tx: Tx<P>,
    rx: Rx<P>,
    tx_port: EvtchnPort,
    /// The same as `tx_port` if the backend has no split event channels.
    rx_port: EvtchnPort,
    poll: bool,
    /// Without polling: an event came and the ring was not found empty since.
    awake: bool,
}

impl<P: Platform> Link<P> {
    /// Makes rings and event channels for `backend`.
    ///
    /// # Errors The resource that the guest lacks.
    pub fn new(
        platform: &Rc<P>,
        backend: DomId,
        split: bool,
        options: Options,
    ) -> Result<Self, String> {
        let pages = || "netfront: no memory or no grants for the rings".to_string();
        let tx = Tx::new(platform, backend, options).ok_or_else(pages)?;
        let rx = Rx::new(platform, backend, options).ok_or_else(pages)?;
        let (tx_port, rx_port) = open_channels(&**platform, backend, split)
            .ok_or("netfront: no event channel is left")?;
        Ok(Self {
            platform: Rc::clone(platform),
            tx,
            rx,
            tx_port,
            rx_port,
            poll: options.poll,
            awake: true,
        })
    }

    /// The nodes that the backend reads.
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        let gref = |gref: Option<_>| gref.map_or_else(String::new, |g| format!("{g}"));
        let mut keys = vec![
            ("tx-ring-ref", gref(self.tx.gref())),
            ("rx-ring-ref", gref(self.rx.gref())),
            ("request-rx-copy", "1".into()),
            ("feature-rx-notify", "1".into()),
        ];
        if self.tx_port == self.rx_port {
            keys.push(("event-channel", self.tx_port.to_string()));
        } else {
            keys.push(("event-channel-tx", self.tx_port.to_string()));
            keys.push(("event-channel-rx", self.rx_port.to_string()));
        }
        keys
    }

    pub fn pop(
        &mut self,
        buffer: &mut [u8],
        counters: &mut Counters,
    ) -> Result<Option<usize>, Fault> {
        if self.poll {
            return self.rx.pop(buffer, counters);
        }
        self.awake |= self.platform.take_event(self.rx_port);
        while self.awake {
            if let Some(length) = self.rx.pop(buffer, counters)? {
                return Ok(Some(length));
            }
            self.awake = self.rx.arm()?;
        }
        Ok(None)
    }

    pub fn push(&mut self, frame: &[u8]) -> Result<Result<(), PushError>, Fault> {
        self.tx.push(frame)
    }

    pub fn publish(&mut self) -> Result<(), Fault> {
        if self.tx.publish() {
            self.platform.notify(self.tx_port);
        }
        if self.rx.publish() {
            self.platform.notify(self.rx_port);
        }
        self.tx.reap()
    }

    /// True if something came since this was last asked.
    pub fn sleep_prepare(&mut self) -> Result<bool, Fault> {
        if self.tx_port != self.rx_port {
            self.platform.take_event(self.tx_port);
        }
        let sendable = self.tx.sleep_prepare()?;
        self.awake |= self.platform.take_event(self.rx_port);
        Ok(self.rx.arm()? || sendable)
    }

    pub fn ports(&self, into: &mut Vec<EvtchnPort>) {
        into.push(self.tx_port);
        if self.rx_port != self.tx_port {
            into.push(self.rx_port);
        }
    }

    pub fn tx_errors(&self) -> u64 {
        self.tx.errors
    }

    /// Closes the event channels; the pages stay until the backend lets go of them.
    pub fn close(self) -> Vec<Shared<P>> {
        self.platform.close_evtchn(self.tx_port);
        if self.rx_port != self.tx_port {
            self.platform.close_evtchn(self.rx_port);
        }
        self.into_pages()
    }

    /// After a restore: neither event channels nor grants exist any more.
    pub fn forget(self) {
        let mut pages = self.into_pages();
        pages.iter_mut().for_each(Shared::forget_grants);
    }

    fn into_pages(self) -> Vec<Shared<P>> {
        let ([a, b], [c, d]) = (self.tx.into_pages(), self.rx.into_pages());
        vec![a, b, c, d]
    }
}

fn open_channels<P: Platform>(
    platform: &P,
    backend: DomId,
    split: bool,
) -> Option<(EvtchnPort, EvtchnPort)> {
    let tx = platform.open_evtchn(backend)?;
    if !split {
        return Some((tx, tx));
    }
    let rx = platform.open_evtchn(backend);
    if rx.is_none() {
        platform.close_evtchn(tx);
    }
    Some((tx, rx?))
}
