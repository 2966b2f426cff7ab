// SPDX-License-Identifier: Apache-2.0
//! Checks that a file is an initial RAM disk that only its guest unpacks. Source: Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst.

/// The first bytes of the kinds that Linux unpacks: cpio (newc, without and with checksums), xz
/// and zstd.
const KINDS: [&[u8]; 4] = [b"070701", b"070702", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"];
/// libxc unpacks such a file in domain 0, whatever it becomes.
const GZIP: &[u8] = b"\x1f\x8b";
/// Enough of a file to tell its kind.
pub const HEAD_BYTES: u64 = 6;

/// # Errors
/// The reason why a file with these first bytes is no RAM disk.
pub fn check(head: &[u8]) -> Result<(), String> {
    if KINDS.iter().any(|kind| head.starts_with(kind)) {
        return Ok(());
    }
    if is_gzip(head) {
        return Err(
            "it is compressed with gzip, which would be unpacked in domain 0; compress it \
                    with xz or zstd, or not at all"
                .into(),
        );
    }
    Err(
        "it is no RAM disk: expected a cpio archive (newc), alone or compressed with xz or zstd"
            .into(),
    )
}

pub fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(GZIP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_alone_unpacks_is_a_ramdisk() {
        for head in KINDS {
            assert!(head.len() as u64 <= HEAD_BYTES);
            check(head).unwrap();
            check(&[head, b"more"].concat()).unwrap();
            check(&head[..head.len() - 1]).unwrap_err();
        }
        assert!(
            check(b"\x1f\x8b\x08\0\0\0")
                .unwrap_err()
                .contains("domain 0")
        );
        for head in [&b""[..], b"\x7fELF", b"070707", b"07070"] {
            assert!(check(head).unwrap_err().contains("expected a cpio archive"));
        }
    }
}
