// SPDX-License-Identifier: Apache-2.0
//! Checksums that a virtual interface left to its receiver.
//!
//! The other end of a veth pair marks such a frame in the kernel's buffer, which an AF_XDP socket
//! does not show. The checksum field then holds the pseudo header's sum. A completed checksum
//! equals that sum for one frame in 65,536, and completing it again changes nothing.
use crate::VNET_HEADER;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;

/// The virtio header of a frame without one.
pub(crate) fn header(frame: &[u8]) -> [u8; VNET_HEADER] {
    let mut header = [0; VNET_HEADER];
    if let Some((start, offset)) = partial(frame) {
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
    }
    header
}

/// The start of a transport header whose checksum is partial, and the checksum's offset there.
fn partial(frame: &[u8]) -> Option<(u16, u16)> {
    let word = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let mut payload = 14;
    while matches!(word(payload - 2)?, 0x8100 | 0x88a8) && payload < 22 {
        payload += 4;
    }
    let first = usize::from(*frame.get(payload)?);
    let (addresses, start, protocol, length) = match word(payload - 2)? {
        0x0800 if first >> 4 == 4 => {
            let header = (first & 15) * 4;
            // A fragment has no checksum of its own.
            (word(payload + 6)? & 0x3fff == 0).then_some(())?;
            let length = usize::from(word(payload + 2)?).checked_sub(header)?;
            let protocol = *frame.get(payload + 9)?;
            (
                payload + 12..payload + 20,
                payload + header,
                protocol,
                length,
            )
        }
        0x86dd if first >> 4 == 6 => {
            let length = usize::from(word(payload + 4)?);
            let protocol = *frame.get(payload + 6)?;
            (payload + 8..payload + 40, payload + 40, protocol, length)
        }
        _ => return None,
    };
    let offset = match protocol {
        6 => 16,
        17 => 6,
        _ => return None,
    };
    let found = word(start + offset)?;
    let words = frame.get(addresses)?.chunks_exact(2);
    let mut sum = words.fold(0u32, |sum, w| {
        sum + u32::from(u16::from_be_bytes([w[0], w[1]]))
    });
    sum += u32::from(protocol) + u32::try_from(length).ok()?;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    (u32::from(found) == sum).then_some((u16::try_from(start).ok()?, offset as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from 10.0.0.1 to 10.0.0.2, 4 bytes: the pseudo header's sum is 0x1420.
    fn udp(checksum: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([
            0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend([0, 7, 0, 7, 0, 12]);
        frame.extend(checksum.to_be_bytes());
        frame.extend(*b"ping");
        frame
    }

    #[test]
    fn a_field_with_the_sum_of_the_pseudo_header_is_partial() {
        let sum = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 12;
        let frame = udp(sum);
        assert_eq!(partial(&frame), Some((34, 6)));
        let header = header(&frame);
        assert_eq!((header[0], &header[6..10]), (1, &[34, 0, 6, 0][..]));
        assert_eq!(partial(&udp(sum + 1)), None);
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert_eq!(partial(&tagged), Some((38, 6)));
        let mut fragment = frame.clone();
        fragment[20] = 0x20;
        assert_eq!(partial(&fragment), None);
        for len in 0..42 {
            assert_eq!(partial(&frame[..len]), None, "{len}");
        }
    }
}
