// SPDX-License-Identifier: Apache-2.0
//! IP summary dumps: a line of fields for each packet, written and read.
mod digest;
mod field;
mod options;
mod packet;
mod record;

pub use field::{Field, fields};
pub use packet::show;
pub use record::{Defaults, Record, protocol};
