// SPDX-License-Identifier: Apache-2.0
//! What an element's file uses.
pub use alloc::boxed::Box;
pub use alloc::format;
pub use alloc::string::{String, ToString};
pub use alloc::vec;
pub use alloc::vec::Vec;
pub use core::net::Ipv4Addr;

pub use click_core::class::{keyword, mandatory, optional, read, read_write, rest, write};
pub use click_core::value::{Bytes, DeviceId, EtherAddr, FromArg, Prefix, Span};
pub use click_core::{
    Args, Batch, Built, Change, Class, Context, Element, HandlerError, Packet, Signal, View,
};

mod in_place;
pub(crate) use in_place::{
    DROPPED, InPlace, Use, in_place, kept_if, pull_in_place, push_in_place, replace,
};

/// What `Element::read` returns.
pub type Text = Result<String, HandlerError>;

/// The value of a read handler.
pub fn text(value: impl ToString) -> Text {
    Ok(value.to_string())
}

/// For the last arm of `read` and `write`: the router lets only declared handlers through.
pub fn undeclared<T>(handler: &str) -> Result<T, HandlerError> {
    Err(HandlerError::rejected(format!(
        "{handler}: declared but not implemented"
    )))
}

/// Which port `handler` is about if it is one of the `port_handlers` called `name`: 3 for `pattern3`.
pub fn port_of(handler: &str, name: &str) -> Option<usize> {
    handler.strip_prefix(name)?.parse().ok()
}

/// A handler that runs `reset` whatever is written.
pub fn on_write<T: Element>(
    reset: impl FnOnce(&mut T, &mut Context<'_>) + 'static,
) -> Result<Change, HandlerError> {
    Ok(Change::of(reset))
}

/// A handler that parses its value and stores it.
pub fn on_value<V: FromArg + 'static, T: Element>(
    view: &View<'_>,
    value: &str,
    store: impl FnOnce(&mut T, V, &mut Context<'_>) + 'static,
) -> Result<Change, HandlerError> {
    let value: V = view.parse(value)?;
    Ok(Change::of(move |element: &mut T, ctx| {
        store(element, value, ctx)
    }))
}
