// SPDX-License-Identifier: Apache-2.0
//! Arguments of elements, the values they have, and the environment that gives names a meaning.
pub mod arg;
pub mod args;
pub mod environment;
pub mod names;
pub mod value;
