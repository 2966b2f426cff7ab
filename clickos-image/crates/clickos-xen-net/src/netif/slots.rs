// SPDX-License-Identifier: Apache-2.0
//! Requests and responses of `xen/io/netif.h`, to and from their bytes.
use crate::GrantRef;

/// Bytes of a tx slot: its request is longer than its response.
pub(super) const TX_SLOT: usize = 12;
/// Bytes of an rx slot.
pub(super) const RX_SLOT: usize = 8;

/// `NETRXF_csum_blank`: TCP or UDP checksum left to do.
pub(super) const CHECKSUM_BLANK: u16 = 1 << 1;
/// `NETRXF_more_data`: the frame continues in the next slot.
pub(super) const MORE_DATA: u16 = 1 << 2;
/// `NETRXF_extra_info`: the next slot is no frame but tells of this one.
pub(super) const EXTRA_INFO: u16 = 1 << 3;
/// `NETRXF_gso_prefix`: this slot is no frame but tells of the next one.
pub(super) const GSO_PREFIX: u16 = 1 << 4;

/// `NETIF_RSP_NULL`: the slot carried an extra of a request.
pub(super) const STATUS_NULL: i16 = 1;

/// `netif_tx_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TxRequest {
    pub gref: GrantRef,
    pub offset: u16,
    pub id: u16,
    pub size: u16,
}

impl TxRequest {
    pub fn to_bytes(self) -> [u8; TX_SLOT] {
        let mut bytes = [0; TX_SLOT];
        bytes[0..4].copy_from_slice(&self.gref.0.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.offset.to_le_bytes());
        // 6..8 are the flags: no checksum or segment is left to do.
        bytes[8..10].copy_from_slice(&self.id.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.size.to_le_bytes());
        bytes
    }
}

/// `netif_tx_response`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TxResponse {
    pub id: u16,
    pub status: i16,
}

impl TxResponse {
    pub const BYTES: usize = 4;

    pub fn from_bytes(b: [u8; Self::BYTES]) -> Self {
        Self {
            id: u16::from_le_bytes([b[0], b[1]]),
            status: i16::from_le_bytes([b[2], b[3]]),
        }
    }
}

/// `netif_rx_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RxRequest {
    pub id: u16,
    pub gref: GrantRef,
}

impl RxRequest {
    pub fn to_bytes(self) -> [u8; RX_SLOT] {
        let mut bytes = [0; RX_SLOT];
        bytes[0..2].copy_from_slice(&self.id.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.gref.0.to_le_bytes());
        bytes
    }
}

/// `netif_rx_response`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RxResponse {
    pub id: u16,
    pub offset: u16,
    pub flags: u16,
    /// An error if negative, otherwise the frame's length.
    pub status: i16,
}

impl RxResponse {
    pub fn from_bytes(b: [u8; RX_SLOT]) -> Self {
        let word = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
        Self {
            id: word(0),
            offset: word(2),
            flags: word(4),
            status: i16::from_le_bytes([b[6], b[7]]),
        }
    }
}
