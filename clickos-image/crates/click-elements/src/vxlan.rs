// SPDX-License-Identifier: Apache-2.0
//! The header of VXLAN (RFC 7348, section 5): flags, three reserved bytes, the network's number, a reserved byte.
use click_core::ArgContext;

use crate::prelude::*;

/// Bytes of the header.
pub const HEADER: usize = 8;
/// The flag I: the number is valid. Other bits are ignored.
const VALID: u8 = 0x08;
const MAX: u32 = 0xff_ffff;

/// The number of a virtual network, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vni(pub u32);

impl Vni {
    /// The number in a packet's header, if it has a valid one.
    pub fn of(data: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = data.first_chunk()?;
        let valid = header[0] & VALID != 0;
        valid.then(|| Self(u32::from_be_bytes([0, header[4], header[5], header[6]])))
    }

    /// The header with this number.
    pub fn header(self) -> [u8; HEADER] {
        let [_, high, middle, low] = self.0.to_be_bytes();
        [VALID, 0, 0, 0, high, middle, low, 0]
    }
}

impl FromArg for Vni {
    fn from_arg(text: &str, around: ArgContext<'_>) -> Result<Self, String> {
        let number = u32::from_arg(text, around)?;
        if number > MAX {
            return Err(format!("{number} is out of range, it is 0 to {MAX}"));
        }
        Ok(Self(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_its_number_back() {
        for vni in [0, 1, 0x12_3456, MAX].map(Vni) {
            assert_eq!(Vni::of(&vni.header()), Some(vni));
        }
    }

    #[test]
    fn a_short_header_and_one_without_the_flag_have_no_number() {
        assert_eq!(Vni::of(&[VALID; HEADER - 1]), None);
        assert_eq!(Vni::of(&[!VALID; HEADER]), None);
    }
}
