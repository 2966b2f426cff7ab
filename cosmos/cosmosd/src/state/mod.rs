// SPDX-License-Identifier: Apache-2.0
//! What is on disk of guests: their ledgers, the memory of saved ones, and the room for their files.

pub mod files;
pub mod ledger;
pub mod ledger_files;
pub mod room;
pub mod saved;
