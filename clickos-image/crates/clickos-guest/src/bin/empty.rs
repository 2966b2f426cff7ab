// SPDX-License-Identifier: Apache-2.0
//! A guest that does nothing but to say so in the store: what others are measured against.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use alloc::boxed::Box;
use clickos_os::{StoreHandle, wait};
use core::future::Future;
use core::task::{Context, Waker};
use xenstore::{Error, Mux, Store as _, StoreConnection};

clickos_os::entry!(main);

const KEY: &str = "data/empty";

fn main() -> ! {
    let store = clickos_os::store();
    let mut pump = Mux::handle(&store, "pump");
    let mut told = Box::pin(tell(Mux::link(&store, "empty")));
    loop {
        pump.pump();
        let mut context = Context::from_waker(Waker::noop());
        let _ = told.as_mut().poll(&mut context);
        if !store.borrow().has_news() {
            wait(&[], None);
        }
    }
}

async fn tell(link: StoreConnection<StoreHandle>) -> Result<(), Error> {
    link.write(KEY, b"Running").await?;
    core::future::pending().await
}
