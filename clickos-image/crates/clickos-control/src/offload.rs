// SPDX-License-Identifier: Apache-2.0
//! Wishes that the switch decides packets, and the toolstack's answers.
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use click_core::offload::{Board, Wish};
use xenstore::{Error, Store};

use crate::control::Control;
use crate::next::Next;
use crate::node;

impl<S: Store> Control<S> {
    fn board(&self) -> Rc<RefCell<Board>> {
        Rc::clone(&self.routers.borrow().environment().offload)
    }

    /// Waits for an event of the store, or for wishes of elements.
    pub(crate) async fn next(&self) -> Result<Next, Error> {
        let mut event = pin!(self.link.event());
        let board = self.board();
        poll_fn(|context| match event.as_mut().poll(context) {
            Poll::Ready(event) => Poll::Ready(event.map(Next::Event)),
            Poll::Pending if board.borrow().has_wishes() => {
                Poll::Ready(Ok(Next::Wishes(board.borrow_mut().wishes())))
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    pub(crate) async fn tell_wishes(&self, wishes: Vec<Wish>) -> Result<(), Error> {
        for Wish { device, text } in wishes {
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
            let board = self.board();
            board.borrow_mut().answer(device, answer);
        }
        Ok(())
    }

    /// Takes all answers, after events were lost.
    pub(crate) async fn look_at_answers(&self) -> Result<(), Error> {
        let board = self.board();
        let devices = board.borrow().devices();
        for device in devices {
            self.offloaded(device).await?;
        }
        Ok(())
    }

    /// The store knows no wish any more.
    pub(crate) fn ask_again(&self) {
        let board = self.board();
        board.borrow_mut().ask_again();
    }
}
