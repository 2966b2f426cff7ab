// SPDX-License-Identifier: Apache-2.0
//! Which port has an address: configured or learned.
pub(crate) mod lookup;
pub(crate) mod mac_learning;
