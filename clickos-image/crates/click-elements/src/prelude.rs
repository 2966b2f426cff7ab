// SPDX-License-Identifier: Apache-2.0
//! What an element's file uses.
pub use alloc::boxed::Box;
pub use alloc::format;
pub use alloc::string::{String, ToString};
pub use alloc::vec;
pub use alloc::vec::Vec;
pub use core::net::Ipv4Addr;

pub use click_core::class::{Family, keyword, mandatory, optional, rest, secret};
pub use click_core::handler::{
    Handler, Text, command, edit, read, read_command, read_write, write,
};
pub use click_core::value::{Bytes, DeviceId, EtherAddr, FromArg, Prefix, Shown, Span, expected};
pub use click_core::{
    Args, Batch, Built, Change, Class, Context, DROPPED, Element, HandlerError, Packet, Signal,
    View,
};

mod in_place;
pub(crate) use in_place::{InPlace, Use, in_place, kept_if, pull_in_place, push_in_place, replace};

/// The value of a read handler. The code stands once per type, not once per handler.
#[inline(never)]
pub fn text(value: impl ToString) -> Text {
    Ok(value.to_string())
}

/// A setter that runs `reset` whatever is written.
pub fn on_write<T: Element>(
    _me: &T,
    reset: impl FnOnce(&mut T, &mut Context<'_>) + 'static,
) -> Result<Change, HandlerError> {
    Ok(Change::of(reset))
}

/// A setter that parses its value and stores it.
pub fn on_value<V: FromArg + 'static, T: Element>(
    _me: &T,
    view: &View<'_>,
    value: &str,
    store: impl FnOnce(&mut T, V, &mut Context<'_>) + 'static,
) -> Result<Change, HandlerError> {
    let value: V = view.parse(value)?;
    Ok(Change::of(move |element: &mut T, ctx| {
        store(element, value, ctx)
    }))
}

/// A setter for a table of handlers: parses the value and stores it.
macro_rules! set {
    ($store:expr) => {
        |me, view, value| on_value(me, view, value, $store)
    };
}
pub(crate) use set;

/// A setter for a table of handlers: runs whatever is written.
macro_rules! run {
    ($run:expr) => {
        |me, _, _| on_write(me, $run)
    };
}
pub(crate) use run;

/// The element whose place this one takes under a new configuration; `None` in a hot swap, which keeps less.
#[inline(never)]
pub fn replaced<'o, T: Element>(ctx: &Context<'_>, old: &'o mut dyn Element) -> Option<&'o mut T> {
    let old = old.as_any_mut().downcast_mut();
    old.filter(|_| ctx.is_reconfigured())
}

/// An element with a part `P`, whose handlers it has in common with other elements.
pub trait Part<P>: Element {
    /// The part.
    fn part(&self) -> &P;
    /// The part, to change.
    fn part_mut(&mut self) -> &mut P;
}

/// `part!(VLANEncap, tag: Tag);`: the field `tag` is the element's part of type `Tag`.
macro_rules! part {
    ($element:ty, $field:tt: $part:ty) => {
        impl Part<$part> for $element {
            fn part(&self) -> &$part {
                &self.$field
            }

            fn part_mut(&mut self) -> &mut $part {
                &mut self.$field
            }
        }
    };
}
pub(crate) use part;
