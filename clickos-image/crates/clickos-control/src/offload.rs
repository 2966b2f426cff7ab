// SPDX-License-Identifier: Apache-2.0
//! Requests of elements for offload rules, and the answers of the toolstack.
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use click_core::offload::{OffloadRegistry, OffloadRequest};
use xenstore::{Error, Store};

use crate::control::Control;
use crate::event::ControlEvent;
use crate::node;

impl<S: Store> Control<S> {
    fn registry(&self) -> Rc<RefCell<OffloadRegistry>> {
        Rc::clone(&self.routers.borrow().environment().offload)
    }

    /// Waits for an event of the store, or for requests of elements.
    pub(crate) async fn next(&self) -> Result<ControlEvent, Error> {
        let mut event = pin!(self.link.event());
        let registry = self.registry();
        poll_fn(|context| match event.as_mut().poll(context) {
            Poll::Ready(event) => Poll::Ready(event.map(ControlEvent::Event)),
            Poll::Pending if registry.borrow().has_requests() => Poll::Ready(Ok(
                ControlEvent::OffloadRequests(registry.borrow_mut().take_requests()),
            )),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    pub(crate) async fn send_offload_requests(
        &self,
        requests: Vec<OffloadRequest>,
    ) -> Result<(), Error> {
        for OffloadRequest { device, text } in requests {
            self.link
                .write(&node::offload(device), text.as_bytes())
                .await?;
        }
        Ok(())
    }

    /// Takes the toolstack's answer about a device.
    pub(crate) async fn offloaded(&self, device: u32) -> Result<(), Error> {
        let Some(answer) = self.link.read(&node::offloaded(device)).await? else {
            return Ok(());
        };
        if let Ok(answer) = core::str::from_utf8(&answer) {
            let registry = self.registry();
            registry.borrow_mut().answer(device, answer);
        }
        Ok(())
    }

    /// Takes all answers, after events were lost.
    pub(crate) async fn look_at_answers(&self) -> Result<(), Error> {
        let registry = self.registry();
        let devices = registry.borrow().devices();
        for device in devices {
            self.offloaded(device).await?;
        }
        Ok(())
    }

    /// Sends all requests again, since the store does not know them any more.
    pub(crate) fn resend_all(&self) {
        let registry = self.registry();
        registry.borrow_mut().resend_all();
    }
}
