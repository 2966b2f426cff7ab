// SPDX-License-Identifier: Apache-2.0
//! Who counts the flows of a table.
use super::id::FlowId;

/// Counts flows of tables, whatever made them: packets, copies of another guest or the configuration before.
pub trait Watch {
    /// A flow is opened; `None` refuses it.
    #[must_use]
    fn began(&self, map: u16, ids: &[FlowId; 2]) -> Option<()>;

    /// A flow has ended.
    fn ended(&self, map: u16, ids: &[FlowId; 2]);
}
