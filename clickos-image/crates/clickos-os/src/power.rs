// SPDX-License-Identifier: Apache-2.0
//! What the toolstack asks of the guest in `control/shutdown`.
use alloc::boxed::Box;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};
use xenstore::{Error, Store, StoreConnection};

use xen_sys::Kind;
pub use xen_sys::power::{Reason, SuspendError, end, suspend};

const PATH: &str = "control/shutdown";
/// The toolstack offers saving in the name of each guest.
const CAN_SUSPEND: &str = "control/feature-suspend";
const TOKEN: &str = "power";

/// The action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    End(Reason),
    Suspend,
}

impl Request {
    fn of(text: &[u8]) -> Option<Self> {
        match text {
            b"poweroff" | b"halt" => Some(Self::End(Reason::PowerOff)),
            b"reboot" => Some(Self::End(Reason::Reboot)),
            b"crash" => Some(Self::End(Reason::Crash)),
            b"suspend" => Some(Self::Suspend),
            _ => None,
        }
    }
}

/// Watches the toolstack's key.
pub struct Power {
    request: Rc<Cell<Option<Request>>>,
    watch: Pin<Box<dyn Future<Output = Result<Infallible, Error>>>>,
    ended: bool,
}

impl Power {
    /// The name that the store connection must be given.
    pub const TOKEN: &'static str = TOKEN;

    /// Watches over this connection.
    pub fn new<S: Store + 'static>(store: S) -> Self {
        let request = Rc::new(Cell::new(None));
        let link = StoreConnection::new(Rc::new(RefCell::new(store)), TOKEN);
        let watch = Box::pin(watch(link, Rc::clone(&request)));
        Self {
            request,
            watch,
            ended: false,
        }
    }

    /// The toolstack's request, once. The guest has acknowledged it.
    pub fn poll(&mut self) -> Option<Request> {
        if !self.ended {
            let mut context = Context::from_waker(Waker::noop());
            self.ended = self.watch.as_mut().poll(&mut context).is_ready();
        }
        self.request.take()
    }
}

async fn watch<S: Store>(
    link: StoreConnection<S>,
    request: Rc<Cell<Option<Request>>>,
) -> Result<Infallible, Error> {
    link.watch(PATH).await?;
    if xen_sys::kind() == Kind::Pv {
        match link.remove(CAN_SUSPEND).await {
            Err(error) if error.is_fatal() => return Err(error),
            _ => {} // The toolstack may keep it from the guest; the console says it, too.
        }
    }
    loop {
        link.event().await?;
        let text = link.read(PATH).await?.unwrap_or_default();
        if let Some(new) = Request::of(&text) {
            // The answer that the toolstack waits for; it may have taken the node away meanwhile.
            match link.write(PATH, b"").await {
                Err(error) if error.is_fatal() => return Err(error),
                _ => request.set(Some(new)),
            }
        }
    }
}
