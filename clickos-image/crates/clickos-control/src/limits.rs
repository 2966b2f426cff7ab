// SPDX-License-Identifier: Apache-2.0
//! What configurations may use, by the guest's memory.
use click_core::Limits;
use clickos_protocol::ANSWER_MAX;

/// Bytes of a packet buffer with its management, about.
const PACKET_BYTES: u64 = 2560;

/// Bytes that an installation leaves free: an eighth of the memory, between these bounds.
const RESERVE_MIN: u64 = 512 << 10;
const RESERVE_MAX: u64 = 8 << 20;

/// More entries of a table are not allowed in any memory: a full BGP table several times.
const MAX_TABLE_ENTRIES: u64 = 1 << 22;

/// Limits that fit the memory, so that a configuration or a flood of packets is refused before an
/// allocation fails, which would end the guest.
pub fn limits(heap_bytes: u64) -> Limits {
    let usual = Limits::default();
    let per = |bytes: u64, usual: usize| usual.min((heap_bytes / bytes) as usize);
    Limits {
        packet_buffers: per(4 * PACKET_BYTES, usual.packet_buffers),
        // The text as it arrived, what it expands to, and the elements' share, twice in a swap.
        config_bytes: per(16, usual.config_bytes),
        file_bytes: per(8, usual.file_bytes),
        handler_bytes: per(64, usual.handler_bytes),
        answer_bytes: per(64, ANSWER_MAX),
        elements: per(16 << 10, usual.elements),
        connections: per(4 << 10, usual.connections),
        table_entries: (heap_bytes >> 10).min(MAX_TABLE_ENTRIES) as usize,
        flows: per(1 << 10, usual.flows),
        reserve_bytes: (heap_bytes / 8).clamp(RESERVE_MIN, RESERVE_MAX) as usize,
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fit_the_memory() {
        let small = limits(64 << 20);
        assert_eq!(small.config_bytes, 1 << 20);
        assert_eq!(
            (small.handler_bytes, small.answer_bytes),
            (1 << 20, ANSWER_MAX)
        );
        assert!(small.packet_buffers as u64 * PACKET_BYTES <= 16 << 20);
        assert!(limits(2 << 20).config_bytes > 48 << 10); // Nova's user_data is at most 48 KiB.
        assert_eq!(small.table_entries, Limits::default().table_entries);
        assert_eq!(limits(2 << 30).table_entries, 2 << 20);
        assert_eq!(
            limits(1 << 30).packet_buffers,
            Limits::default().packet_buffers
        );
    }
}
