// SPDX-License-Identifier: Apache-2.0
//! IP summary dumps: a line of fields for each packet, written and read.
pub mod binary;
mod digest;
mod field;
mod options;
mod packet;
mod record;
mod times;
mod words;

pub use field::{Field, fields};
pub use packet::{EXTRA_PACKETS, show, store};
pub use record::{Defaults, Record};
pub use words::protocol;
