// SPDX-License-Identifier: Apache-2.0
//! Codes of the ControlSocket protocol, as Click's documentation of that element lists them.

pub const OK: u16 = 200;
pub const SYNTAX: u16 = 500;
pub const UNIMPLEMENTED: u16 = 501;
pub const NO_SUCH_ELEMENT: u16 = 510;
pub const NO_SUCH_HANDLER: u16 = 511;
pub const HANDLER_ERROR: u16 = 520;
pub const DATA_TOO_BIG: u16 = 521;
pub const LLRPC_ERROR: u16 = 522;
pub const PERMISSION: u16 = 530;
