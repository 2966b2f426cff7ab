// SPDX-License-Identifier: Apache-2.0
//! Opens a port for `nm_open`.
use std::path::PathBuf;
use std::ptr::NonNull;

use vale_link::Link;
use vale_proto::{DEFAULT_SOCKET, SOCKET_VARIABLE};

use crate::name;
use crate::port::Port;

/// Attaches the port of a name. Returns the address of its memory too.
pub fn open(text: &str, slots: u32) -> Result<(Port, NonNull<u8>), String> {
    let add = name::parse(text, slots)?;
    let socket = std::env::var_os(SOCKET_VARIABLE);
    let socket = socket.map_or_else(|| PathBuf::from(DEFAULT_SOCKET), PathBuf::from);
    Port::new(Link::attach(&socket, &add)?, text)
}
