// SPDX-License-Identifier: Apache-2.0
//! Tables of handlers: each entry has a name, a getter and a setter.
//!
//! A class lists the handlers of its element's type, and [`Table`] hides that type from the engine.
//! Programs see the names of the same table whose functions answer.
use alloc::boxed::Box;
use alloc::string::String;

use crate::engine::context::Context;
use crate::engine::element::{Element, View};
use crate::error::HandlerError;
use crate::handler_info::{HandlerDecl, Kind};

/// The value of a read handler.
pub type Text = Result<String, HandlerError>;

/// A getter.
type Get<T> = fn(&mut T, &mut View<'_>) -> Text;
/// A setter: it checks a value without any effect and returns the change for later.
type Set<T> = fn(&T, &View<'_>, &str) -> Result<Change, HandlerError>;

/// A handler of elements of type `T`.
pub struct Handler<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Answers a read.
    pub get: Option<Get<T>>,
    /// Checks a write.
    pub set: Option<Set<T>>,
}

impl<T> Clone for Handler<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handler<T> {}

/// A handler to read.
pub const fn read<T>(name: &'static str, get: Get<T>) -> Handler<T> {
    Handler {
        name,
        get: Some(get),
        set: None,
    }
}

/// A handler to write: the last value is in force.
pub const fn write<T>(name: &'static str, set: Set<T>) -> Handler<T> {
    Handler {
        name,
        get: None,
        set: Some(set),
    }
}

/// A handler to write that does something once, whatever its value. Its name is one of
/// [`Kind::of`], as of each handler that is no value: a word in each entry would cost 5 KiB.
pub const fn command<T>(name: &'static str, set: Set<T>) -> Handler<T> {
    write(name, set)
}

/// A handler to write that changes a part of a table.
pub const fn edit<T>(name: &'static str, set: Set<T>) -> Handler<T> {
    write(name, set)
}

/// A handler to read and write.
pub const fn read_write<T>(name: &'static str, get: Get<T>, set: Set<T>) -> Handler<T> {
    Handler {
        name,
        get: Some(get),
        set: Some(set),
    }
}

/// A handler to read, where a write does something once.
pub const fn read_command<T>(name: &'static str, get: Get<T>, set: Set<T>) -> Handler<T> {
    read_write(name, get, set)
}

impl<T> Handler<T> {
    /// The handler as programs see it.
    pub fn decl(&self) -> HandlerDecl {
        HandlerDecl {
            name: self.name,
            read: self.get.is_some(),
            write: self.set.is_some(),
            kind: Kind::of(self.name),
        }
    }
}

/// The effect of a write handler. The engine applies it once it knows that every write of the call
/// is good.
pub struct Change(Box<Apply>);

type Apply = dyn FnOnce(&mut dyn Element, &mut Context<'_>);

impl Change {
    /// A change of an element of type `T`, the one whose setter returns it.
    pub fn of<T: Element>(apply: impl FnOnce(&mut T, &mut Context<'_>) + 'static) -> Self {
        Self(boxed(move |element, ctx| {
            if let Some(me) = cast(element) {
                apply(me, ctx);
            }
        }))
    }

    pub(crate) fn apply(self, element: &mut dyn Element, ctx: &mut Context<'_>) {
        (self.0)(element, ctx);
    }
}

/// Boxes a change. The code stands once for all closures of the same size.
#[inline(never)]
fn boxed<F: FnOnce(&mut dyn Element, &mut Context<'_>)>(apply: F) -> Box<F> {
    Box::new(apply)
}

/// The handlers of a class, whatever the type of its element.
pub trait Table: Sync {
    /// The handler at this place, as programs see it.
    fn decl(&self, place: usize) -> Option<HandlerDecl>;

    /// Reads the handler at this place.
    ///
    /// # Errors
    /// The parameter is wrong.
    fn read(&self, place: usize, element: &mut dyn Element, view: &mut View<'_>) -> Text;

    /// Checks a value for the handler at this place without any effect.
    ///
    /// # Errors
    /// The value is wrong.
    fn write(
        &self,
        place: usize,
        element: &mut dyn Element,
        view: &View<'_>,
        value: &str,
    ) -> Result<Change, HandlerError>;
}

impl<T: Element, const N: usize> Table for [Handler<T>; N] {
    fn decl(&self, place: usize) -> Option<HandlerDecl> {
        self.get(place).map(Handler::decl)
    }

    fn read(&self, place: usize, element: &mut dyn Element, view: &mut View<'_>) -> Text {
        match (self.get(place).and_then(|h| h.get), cast(element)) {
            (Some(get), Some(me)) => get(me, view),
            _ => Err(missing()),
        }
    }

    fn write(
        &self,
        place: usize,
        element: &mut dyn Element,
        view: &View<'_>,
        value: &str,
    ) -> Result<Change, HandlerError> {
        match (self.get(place).and_then(|h| h.set), cast(element)) {
            (Some(set), Some(me)) => set(me, view, value),
            _ => Err(missing()),
        }
    }
}

/// The element as the type that its table is of; `None` if the class builds another type.
#[inline(never)]
fn cast<T: Element>(element: &mut dyn Element) -> Option<&mut T> {
    element.as_any_mut().downcast_mut()
}

#[cold]
#[inline(never)]
fn missing() -> HandlerError {
    HandlerError::rejected("the handler is not one of this element")
}

impl dyn Table + '_ {
    /// All handlers, as programs see them.
    pub fn iter(&self) -> impl Iterator<Item = HandlerDecl> + '_ {
        (0..).map_while(|place| self.decl(place))
    }

    /// The place of the handler of this name.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, HandlerDecl)> {
        self.iter().enumerate().find(|(_, h)| h.name == name)
    }
}

/// The table of a class without handlers.
impl Table for () {
    fn decl(&self, _: usize) -> Option<HandlerDecl> {
        None
    }

    fn read(&self, _: usize, _: &mut dyn Element, _: &mut View<'_>) -> Text {
        Err(missing())
    }

    fn write(
        &self,
        _: usize,
        _: &mut dyn Element,
        _: &View<'_>,
        _: &str,
    ) -> Result<Change, HandlerError> {
        Err(missing())
    }
}
