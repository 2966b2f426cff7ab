// SPDX-License-Identifier: Apache-2.0
//! Replaces the addresses of IP packets by others, alike for addresses of one network.
//!
//! # Synopsis
//! `AnonymizeIPAddr([CLASS, PRESERVE_8, SEED])`: addresses with the same first bits get addresses with as many first bits in
//! common; 0.0.0.0 and 255.255.255.255 stay. CLASS (default 0, at most 32) is how many leading ones are kept, and the
//! zero behind fewer: 1 keeps class A, 2 also B and so on; 99 is 32. PRESERVE_8 lists networks of eight bits that are
//! kept. SEED is understood: each router has a key of its own, which nothing in a configuration tells.
//! # Ports
//! 1/1-2, agnostic. The header annotation must be set. Checksums follow the change; in errors of ICMP the packet they are
//! about is changed, too. Output 1 (push) gets what is no IPv4 packet; it is dropped if it is not connected.
//! # Handlers
//! * `map` (read): what an address given as parameter becomes.
//! # Differences from Click
//! Computes addresses from a key, so it needs no memory and never fills; `map` is ours. Where
//! packets are pulled, output 1 is push.
//! # Example
//! `FromDump(in.pcap, FORCE_IP true, STOP true) -> AnonymizeIPAddr(CLASS 4) -> ToDump(out.pcap, ENCAP ETHER);`
use aes::Aes128;
use aes::cipher::{BlockEncrypt, KeyInit};
use click_core::ArgContext;
use click_core::text::split_words;
use click_wire::{checksum, icmp, ipv4};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AnonymizeIPAddr",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[keyword("CLASS"), keyword("PRESERVE_8"), keyword("SEED")],
    handlers: &[read("map", |me: &mut AnonymizeIPAddr, view| {
        text(me.map(view.parse(view.param())?))
    })],
    build: |a| {
        let (class, kept) = (a.or("CLASS", 0u32), a.or("PRESERVE_8", Networks::default()));
        a.or("SEED", false)?;
        let class = match class? {
            99 => 32,
            class @ ..=32 => class,
            class => {
                a.error("CLASS", format!("{class} is out of range, the most is 32"));
                return None;
            }
        };
        Some(Box::new(AnonymizeIPAddr {
            class,
            kept: kept?.0,
            key: Aes128::new(&[0; 16].into()),
        }))
    },
    ..Class::DEFAULT
};

/// First bytes of addresses.
#[derive(Default)]
struct Networks(Vec<u8>);

impl FromArg for Networks {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let numbers = words.iter().map(|word| u8::from_arg(word, at));
        numbers.collect::<Result<_, _>>().map(Self)
    }
}

struct AnonymizeIPAddr {
    /// Leading ones that are kept.
    class: u32,
    kept: Vec<u8>,
    key: Aes128,
}

/// Types of errors, which quote the packet they are about.
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// Octets after the quoted header that are there at least.
const QUOTED: usize = 8;

impl AnonymizeIPAddr {
    /// True if bit `n`, counted from the front, stays as it is.
    fn keeps(&self, address: u32, n: u32) -> bool {
        let front = |word: u32| word.checked_shr(32 - n).unwrap_or(0);
        let in_class = n < self.class && front(address) == front(u32::MAX);
        let kept = |net: &u8| front(u32::from(*net) << 24) == front(address);
        in_class || n < 8 && self.kept.iter().any(kept)
    }

    /// A bit that follows from the key and the first `n` bits of an address (Xu, Fan, Ammar, Moon 2002).
    fn flips(&self, address: u32, n: u32) -> bool {
        let front = address & !u32::MAX.checked_shr(n).unwrap_or(0);
        let mut block = [0; 16];
        block[..4].copy_from_slice(&front.to_be_bytes());
        block[4] = u8::try_from(n).expect("less than 32");
        let mut block = block.into();
        self.key.encrypt_block(&mut block);
        block[0] & 1 == 1
    }

    fn map(&self, address: Ipv4Addr) -> Ipv4Addr {
        if address.is_unspecified() || address.is_broadcast() {
            return address;
        }
        let old = u32::from(address);
        let flipped = |n: &u32| !self.keeps(old, *n) && self.flips(old, *n);
        let mask = (0..32)
            .filter(flipped)
            .fold(0, |mask, n| mask | 1 << (31 - n));
        Ipv4Addr::from(old ^ mask)
    }

    /// Maps an address in a packet; the checksum that covers it afterwards.
    fn change(&self, bytes: &mut [u8], at: usize, sum: u16) -> u16 {
        let Some(field) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut::<4>()) else {
            return sum;
        };
        let old = Ipv4Addr::from(*field);
        let new = self.map(old);
        *field = new.octets();
        checksum::update_u32(sum, old.into(), new.into())
    }

    /// Both addresses of a header.
    fn change_both(&self, header: &mut [u8], sum: u16) -> u16 {
        [12, 16]
            .into_iter()
            .fold(sum, |sum, at| self.change(header, at, sum))
    }

    /// The packet that an error quotes. The header's own checksum is left as it was.
    fn change_quoted(&self, message: &mut [u8]) -> Option<()> {
        let quoted = message.get_mut(icmp::HEADER..)?;
        let header = usize::from(quoted.first()? & 15) * 4;
        let whole = header >= ipv4::HEADER && quoted.len() >= header + QUOTED;
        let is_error = ERRORS.contains(&message[0]);
        if whole && is_error {
            let sum = u16::from_be_bytes([message[2], message[3]]);
            let sum = self.change_both(&mut message[icmp::HEADER..], sum);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        Some(())
    }
}

impl InPlace for AnonymizeIPAddr {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(header) = packet
            .network_mut()
            .filter(|h| h.len() >= ipv4::HEADER && h[0] >> 4 == 4)
        else {
            return 1;
        };
        let sum = u16::from_be_bytes([header[10], header[11]]);
        let sum = self.change_both(header, sum);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        if header[9] == ipv4::ICMP {
            packet
                .transport_mut()
                .and_then(|message| self.change_quoted(message));
        }
        0
    }
}

impl Element for AnonymizeIPAddr {
    in_place!(plain);

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let halves = [ctx.random(), ctx.random()].map(u64::to_le_bytes);
        let mut key = [0; 16];
        key[..8].copy_from_slice(&halves[0]);
        key[8..].copy_from_slice(&halves[1]);
        self.key = Aes128::new(&key.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn anonymizer(class: u32, kept: &[u8]) -> AnonymizeIPAddr {
        AnonymizeIPAddr {
            class,
            kept: kept.to_vec(),
            key: Aes128::new(&[7; 16].into()),
        }
    }

    fn common(a: Ipv4Addr, b: Ipv4Addr) -> u32 {
        (u32::from(a) ^ u32::from(b)).leading_zeros()
    }

    proptest! {
        #[test]
        fn as_many_first_bits_are_common_after_as_before(a: u32, bits in 0u32..32, b: u32) {
            let element = anonymizer(0, &[]);
            let (a, b) = (Ipv4Addr::from(a), Ipv4Addr::from(a ^ b >> bits));
            prop_assume!([a, b].iter().all(|a| !a.is_unspecified() && !a.is_broadcast()));
            prop_assert_eq!(common(element.map(a), element.map(b)), common(a, b));
        }

        #[test]
        fn classes_and_networks_are_kept(a: u32, net: u8, class in 0u32..33) {
            let element = anonymizer(class, &[net]);
            let old = Ipv4Addr::from(a);
            let new = element.map(old);
            let ones = |a: Ipv4Addr| u32::from(a).leading_ones().min(class);
            prop_assert_eq!(ones(new), ones(old));
            prop_assert_eq!(new.octets()[0] == net, old.octets()[0] == net);
        }
    }

    #[test]
    fn most_addresses_change() {
        let element = anonymizer(0, &[]);
        let addresses = (0..1000u32).map(|n| Ipv4Addr::from(n * 4_000_037));
        assert!(addresses.filter(|a| element.map(*a) != *a).count() > 990);
    }
}
