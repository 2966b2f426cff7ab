// SPDX-License-Identifier: Apache-2.0
//! The source route option of IP headers (RFC 791, section 3.1), and the way back along it.
use click_wire::ipv4::HEADER;

use crate::prelude::*;

const END: u8 = 0;
const NOTHING: u8 = 1;
const LOOSE: u8 = 131;
const STRICT: u8 = 137;
/// Where addresses begin in the option, counted from 0; its pointer counts from 1.
const FIRST: usize = 3;

/// A source route that a packet has come along.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceRoute<'a> {
    /// Where the option is in the header.
    pub at: usize,
    option: &'a [u8],
}

impl<'a> SourceRoute<'a> {
    /// The first source route option of `header`, if it and all options before it are well formed.
    pub fn find(header: &'a [u8]) -> Option<Self> {
        Self::any(header).filter(|route| route.behind_visited().is_some())
    }

    /// The first source route option of `header`, whatever its pointer says.
    fn any(header: &'a [u8]) -> Option<Self> {
        let mut at = HEADER;
        loop {
            let kind = *header.get(at)?;
            let length = match kind {
                END => return None,
                NOTHING => 1,
                _ => usize::from(*header.get(at + 1)?).max(2),
            };
            let option = header.get(at..at + length)?;
            if matches!(kind, LOOSE | STRICT) {
                return Some(Self { at, option });
            }
            at += length;
        }
    }

    /// True if `offset` of the header is in the option.
    pub fn contains(&self, offset: usize) -> bool {
        (self.at..self.at + self.option.len()).contains(&offset)
    }

    /// Where a packet with this header goes in the end: checksums of TCP and UDP are about that address (RFC 1122,
    /// 4.1.3.5), not about the next stop.
    pub fn end(header: &'a [u8]) -> Option<Ipv4Addr> {
        let Self { option, .. } = Self::any(header)?;
        let to_go = usize::from(*option.get(2)?) <= option.len();
        let last = option.get(FIRST..)?.last_chunk::<4>()?;
        to_go.then(|| Ipv4Addr::from(*last))
    }

    /// Where in the option the addresses that were visited end.
    fn behind_visited(&self) -> Option<usize> {
        let end = usize::from(*self.option.get(2)?).checked_sub(1)?;
        let whole = end >= FIRST && (end - FIRST) % 4 == 0 && end <= self.option.len();
        whole.then_some(end)
    }

    /// Options for a packet back along the visited addresses, filled up to whole words.
    pub fn reversed(&self) -> Vec<u8> {
        let end = self.behind_visited().unwrap_or(FIRST);
        let length = u8::try_from(end).expect("an option has at most 255 bytes");
        let mut options = vec![self.option[0], length, 4];
        let visited = self.option[FIRST..end].chunks(4);
        visited.rev().for_each(|address| options.extend(address));
        options.resize(options.len().next_multiple_of(4), END);
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(options: &[u8]) -> Vec<u8> {
        [&[0; HEADER], options].concat()
    }

    #[test]
    fn the_way_back_begins_with_the_last_hop() {
        let h = header(&[1, 137, 15, 12, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        let route = SourceRoute::find(&h).unwrap();
        assert_eq!(route.at, HEADER + 1);
        let back = [137, 11, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0];
        assert_eq!(route.reversed(), back);
        assert!(route.contains(HEADER + 1) && !route.contains(HEADER + 16));
    }

    #[test]
    fn a_route_that_was_not_begun_is_answered_by_an_empty_one() {
        let h = header(&[131, 7, 4, 1, 1, 1, 1, 0]);
        assert_eq!(SourceRoute::find(&h).unwrap().reversed(), [131, 3, 4, 0]);
    }

    #[test]
    fn the_end_of_a_route_is_its_last_address_until_the_packet_is_there() {
        let begun = [1, 137, 11, 8, 1, 1, 1, 1, 2, 2, 2, 2];
        let end = Some(Ipv4Addr::new(2, 2, 2, 2));
        assert_eq!(SourceRoute::end(&header(&begun)), end);
        for options in [
            &[131, 7, 8, 1, 1, 1, 1, 0][..],
            &[131, 6, 4, 1, 1, 1],
            &[0, 0, 0, 0],
            &[],
        ] {
            assert_eq!(SourceRoute::end(&header(options)), None, "{options:?}");
        }
    }

    #[test]
    fn what_is_malformed_is_no_route() {
        for options in [
            &[][..],
            &[131],
            &[131, 2],
            &[131, 0, 8],
            &[131, 7, 7, 1, 1, 1, 1, 0],
            &[131, 7, 12, 1, 1, 1, 1, 0],
            &[131, 200, 8, 1, 1, 1, 1, 0],
            &[0, 131, 7, 8, 1, 1, 1, 1],
            &[7, 99, 131, 7, 8, 1, 1, 1, 1],
        ] {
            assert_eq!(SourceRoute::find(&header(options)), None, "{options:?}");
        }
    }
}
