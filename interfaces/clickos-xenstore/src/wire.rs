// SPDX-License-Identifier: Apache-2.0
//! Message headers and path rules (`xen/io/xs_wire.h`, `docs/misc/xenstore.txt`).
use crate::error::Error;
use alloc::string::String;

/// Most bytes of a message after its header (`XENSTORE_PAYLOAD_MAX`).
pub const PAYLOAD_MAX: usize = 4096;
/// Longest absolute path (`XENSTORE_ABS_PATH_MAX`).
pub const PATH_MAX: usize = 3072;
/// Bytes of a message header.
pub(crate) const HEADER_LEN: usize = 16;

/// Message types (`enum xsd_sockmsg_type`); those this project uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    Directory = 1,
    Read = 2,
    GetPerms = 3,
    Watch = 4,
    Unwatch = 5,
    TransactionStart = 6,
    TransactionEnd = 7,
    Introduce = 8,
    Release = 9,
    GetDomainPath = 10,
    Write = 11,
    Mkdir = 12,
    Rm = 13,
    SetPerms = 14,
    WatchEvent = 15,
    Error = 16,
    IsDomainIntroduced = 17,
    ResetWatches = 21,
    DirectoryPart = 22,
}

/// The fixed part of a message, in host byte order on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// A [`Kind`], or whatever the peer sent.
    pub kind: u32,
    /// Chosen by the client, echoed by the store.
    pub req_id: u32,
    /// Transaction, 0 for none.
    pub tx_id: u32,
    /// Bytes that follow, at most [`PAYLOAD_MAX`].
    pub len: u32,
}

impl Header {
    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        let words = [self.kind, self.req_id, self.tx_id, self.len];
        for (slot, word) in out.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_ne_bytes());
        }
        out
    }

    /// Decodes a header. Any bits are a header; [`crate::Decoder`] checks the length field.
    pub fn from_bytes(bytes: &[u8; HEADER_LEN]) -> Self {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            kind: word(0),
            req_id: word(4),
            tx_id: word(8),
            len: word(12),
        }
    }
}

/// Checks the rules of the store for a path, or for the special watch paths that start with `@`.
pub(crate) fn check_path(path: &str) -> Result<(), Error> {
    let good = !path.is_empty()
        && path.len() <= PATH_MAX
        && path
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-/_@".contains(&b))
        && (path == "/" || !path.ends_with('/'))
        && !path.contains("//");
    if good {
        Ok(())
    } else {
        Err(Error::BadPath(String::from(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn header_round_trips() {
        let header = Header {
            kind: 2,
            req_id: 7,
            tx_id: 9,
            len: 4096,
        };
        assert_eq!(Header::from_bytes(&header.to_bytes()), header);
    }

    #[test]
    fn paths_of_the_store_are_taken() {
        for path in [
            "/",
            "/local/domain/5/data",
            "data/clickos",
            "@releaseDomain",
            "a_b-C/0",
        ] {
            check_path(path).unwrap();
        }
    }

    #[test]
    fn other_paths_are_refused_with_the_text_escaped() {
        let long = "x".repeat(PATH_MAX + 1);
        for path in ["", "a/", "a//b", "a b", "é", "a\u{1b}[2J", &long] {
            assert!(check_path(path).is_err(), "{path}");
        }
        let error = check_path("a\u{1b}b").unwrap_err().to_string();
        assert!(error.contains("\\u{1b}"), "{error}");
    }
}
