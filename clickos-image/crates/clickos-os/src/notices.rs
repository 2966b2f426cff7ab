// SPDX-License-Identifier: Apache-2.0
//! Lines on the console about requests that a guest ignores.
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;
use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};
use xen_sys::events::nmis;
use xenstore::{Error, Store, StoreConnection};

const TARGET: &str = "memory/target";
/// Where guests of ClickOS of 2014 had their keys.
const OLD: &str = "clickos";
const OLD_LINE: &str = "store: the keys of ClickOS of 2014 below clickos are ignored: this guest \
                        reads data/clickos (docs/from-clickos-2014.md)";
/// A line of one kind comes at most this often.
const PERIOD_NS: u64 = 10_000_000_000;

/// A kind of notice.
#[derive(Clone, Copy)]
enum Kind {
    Memory,
    OldKeys,
    Nmi,
}

/// Watches what the guest ignores.
pub struct Notices {
    found: Rc<RefCell<VecDeque<(Kind, String)>>>,
    watch: Pin<Box<dyn Future<Output = Result<Infallible, Error>>>>,
    ended: bool,
    nmis: u64,
    /// When each kind may be said again.
    quiet_until_ns: [u64; 3],
}

impl Notices {
    /// Watches over this link.
    pub fn new<S: Store + 'static>(link: StoreConnection<S>) -> Self {
        let found = Rc::new(RefCell::new(VecDeque::new()));
        Self {
            watch: Box::pin(watch(link, Rc::clone(&found))),
            found,
            ended: false,
            nmis: 0,
            quiet_until_ns: [0; 3],
        }
    }

    /// The next line for the console.
    pub fn poll(&mut self, now_ns: u64) -> Option<String> {
        if !self.ended {
            let mut context = Context::from_waker(Waker::noop());
            self.ended = self.watch.as_mut().poll(&mut context).is_ready();
        }
        self.look_at_nmis();
        loop {
            let (kind, line) = self.found.borrow_mut().pop_front()?;
            let quiet_until_ns = &mut self.quiet_until_ns[kind as usize];
            if now_ns >= *quiet_until_ns {
                *quiet_until_ns = now_ns.saturating_add(PERIOD_NS);
                return Some(line);
            }
        }
    }

    fn look_at_nmis(&mut self) {
        let now = nmis();
        if now != self.nmis {
            self.nmis = now;
            let line = format!("nmi: ignored, {now} since the start");
            self.found.borrow_mut().push_back((Kind::Nmi, line));
        }
    }
}

async fn watch<S: Store>(
    link: StoreConnection<S>,
    found: Rc<RefCell<VecDeque<(Kind, String)>>>,
) -> Result<Infallible, Error> {
    let mut target = tolerate(link.read(TARGET).await)?;
    for path in [TARGET, OLD] {
        tolerate(link.watch(path).await)?;
    }
    loop {
        let event = link.event().await?;
        let path = event.map(|event| event.path).unwrap_or_default();
        if path.is_empty() || path == TARGET {
            let now = tolerate(link.read(TARGET).await)?;
            if now.is_some() && now != target {
                let line = memory_line(now.as_deref().unwrap_or_default());
                found.borrow_mut().push_back((Kind::Memory, line));
            }
            target = now;
        }
        if path != TARGET && tolerate(link.read(OLD).await)?.is_some() {
            found
                .borrow_mut()
                .push_back((Kind::OldKeys, OLD_LINE.into()));
        }
    }
}

/// Only a broken connection ends the watch; a refused request gives no notice.
fn tolerate<T: Default>(result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(error) if !error.is_fatal() => Ok(T::default()),
        result => result,
    }
}

fn memory_line(kib: &[u8]) -> String {
    let kib = String::from_utf8_lossy(kib);
    format!("memory: a target of {kib:.20} KiB is ignored: a guest keeps its first size")
}
