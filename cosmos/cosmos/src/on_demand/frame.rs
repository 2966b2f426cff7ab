// SPDX-License-Identifier: Apache-2.0
//! The address that a frame asks for, and the MAC address of its guest.

use std::net::Ipv4Addr;

use vale_proto::Mac;

/// First octets of the guests' MAC addresses: locally administered. Their IPv4 address follows.
const PREFIX: [u8; 2] = [0x02, 0x00];
const ETHERNET: usize = 14;
/// An ARP request for IPv4 over Ethernet begins so (RFC 826).
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
const ARP_TARGET: usize = ETHERNET + 24;

/// The MAC address of the guest for an address.
pub fn mac_of(address: Ipv4Addr) -> Mac {
    let [a, b, c, d] = address.octets();
    Mac([PREFIX[0], PREFIX[1], a, b, c, d])
}

/// The address whose guest is to get the frame: the one that an ARP request asks for, or the one in
/// the destination's MAC address.
pub fn wanted(frame: &[u8]) -> Option<Ipv4Addr> {
    let [first, second, rest @ ..] = *frame.first_chunk::<6>()?;
    if [first, second] == PREFIX {
        return Some(rest.into());
    }
    let target = frame.get(ARP_TARGET..ARP_TARGET + 4)?;
    let is_request = frame[12..14] == [8, 6] && frame[ETHERNET..].starts_with(&ARP_REQUEST);
    let octets: [u8; 4] = target.try_into().ok()?;
    is_request.then(|| octets.into())
}

/// True if the frame went to all stations, so that a guest has got it already.
pub fn is_group(frame: &[u8]) -> bool {
    frame.first().is_some_and(|octet| octet & 1 == 1)
}

/// The frame to the guest for an address alone: the switch drops a group frame that comes from a
/// port other than its sender's.
pub fn readdressed(mut frame: Vec<u8>, address: Ipv4Addr) -> Vec<u8> {
    if let Some(destination) = frame.first_chunk_mut() {
        *destination = mac_of(address).0;
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: [u8; 4]) -> Vec<u8> {
        let ethernet = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 6];
        let sender = [2, 0, 0, 0, 0, 9, 10, 0, 0, 9];
        [&ethernet[..], &ARP_REQUEST, &sender, &[0; 6], &target].concat()
    }

    #[test]
    fn requests_and_the_guests_own_frames_name_an_address() {
        let address = Ipv4Addr::new(10, 0, 0, 7);
        let asked = request(address.octets());
        assert_eq!(wanted(&asked), Some(address));
        assert!(is_group(&asked));
        let sent = readdressed(asked, address);
        assert_eq!(&sent[..6], &[2, 0, 10, 0, 0, 7]);
        assert_eq!(wanted(&sent), Some(address));
        assert!(!is_group(&sent));
    }

    #[test]
    fn other_frames_name_none() {
        let mut answer = request([10, 0, 0, 7]);
        answer[21] = 2;
        assert_eq!(wanted(&answer), None);
        for length in 0..42 {
            assert_eq!(wanted(&request([10, 0, 0, 7])[..length]), None, "{length}");
        }
        assert_eq!(wanted(&[0x33; 60]), None);
    }
}
