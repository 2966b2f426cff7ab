// SPDX-License-Identifier: Apache-2.0
//! Makes, changes and ends guests: the steps between the states of `guest`, and their undoing.

mod beside;
mod create;
mod destroy;
mod fill;
mod links;
mod plug;
mod recover;
mod rejoin;
mod relink;
mod replace;
mod retry;
mod save;
mod silent;

pub use create::Created;
