// SPDX-License-Identifier: Apache-2.0
//! IP payload compression with DEFLATE (IPComp, RFC 3173 and RFC 2394): the header, and both directions on a packet.
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use click_wire::ipv4;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF as WHOLE;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::ip_packet::{header, header_mut};
use crate::prelude::*;

/// IP protocol number of IPComp.
const IPCOMP: u8 = 108;
/// Bytes of the header: next protocol, flags, and the number of the algorithm.
const HEADER: usize = 4;
/// The well-known number of DEFLATE (RFC 2394).
const DEFLATE: [u8; 2] = [0, 2];
/// Flags of the compressor: a raw stream, greedy, at most 16 probes. A stream of a packet gains little from more.
const FLAGS: u32 = 16 | 0x4000;
/// The longest payload of an IP packet without options.
pub const LONGEST: usize = 65_535 - ipv4::HEADER;

/// Where the payload of the marked packet lies in its network bytes; `None` if its lengths lie.
fn payload(packet: &Packet) -> Option<core::ops::Range<usize>> {
    let ip = header(packet)?;
    let (from, to) = (ip.header_len(), ip.total_len());
    let sound = from >= ipv4::HEADER && from <= to && to <= packet.network()?.len();
    sound.then_some(from..to)
}

/// Makes the packet end `length` bytes after its network header, and its header say so.
fn settle(packet: &mut Packet, length: usize, protocol: u8) -> bool {
    let (Some(there), Ok(total)) = (packet.network().map(<[u8]>::len), u16::try_from(length))
    else {
        return false;
    };
    packet.take(there.saturating_sub(length));
    let Some(bytes) = packet.network_mut() else {
        return false;
    };
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[9] = protocol;
    if let Some(mut ip) = header_mut(packet) {
        ip.fill_checksum();
    }
    true
}

/// Compresses payloads, one packet at a time.
pub struct Compressor {
    state: Box<CompressorOxide>,
    output: Vec<u8>,
}

impl Compressor {
    /// One with its buffers, some 300 KiB.
    pub fn new() -> Self {
        Self {
            state: Box::new(CompressorOxide::new(FLAGS)),
            output: vec![0; LONGEST],
        }
    }

    /// Compresses the payload if it has at least `least` bytes and becomes shorter. Gives the lengths of the payload
    /// before and after. Fragments and compressed packets stay as they are.
    pub fn compress(&mut self, packet: &mut Packet, least: usize) -> Option<(usize, usize)> {
        let ip = header(packet)?;
        let part = ip.fragment() & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) != 0;
        let (protocol, range) = (ip.protocol(), payload(packet)?);
        if part || protocol == IPCOMP || range.len() < least {
            return None;
        }
        let length = HEADER + self.stream(&packet.network()?[range.clone()])?;
        if length >= range.len() {
            return None;
        }
        let end = range.start + length;
        let target = packet.network_mut()?.get_mut(range.start..end)?;
        target[..HEADER].copy_from_slice(&[protocol, 0, DEFLATE[0], DEFLATE[1]]);
        target[HEADER..].copy_from_slice(&self.output[..length - HEADER]);
        settle(packet, end, IPCOMP).then_some((range.len(), length))
    }

    /// The length of the payload's stream in `output`; `None` if it does not become shorter.
    fn stream(&mut self, payload: &[u8]) -> Option<usize> {
        self.state.reset();
        let room = payload.len().min(self.output.len());
        let output = &mut self.output[..room];
        let (status, _, length) = compress(&mut self.state, payload, output, TDEFLFlush::Finish);
        (status == TDEFLStatus::Done).then_some(length)
    }
}

/// A verdict of [`Decompressor::decompress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was not compressed.
    Plain,
    /// It is whole again; lengths of the payload before and after.
    Whole(usize, usize),
    /// Its stream is broken or too long, or another algorithm's.
    Broken,
}

/// Decompresses payloads, one packet at a time.
pub struct Decompressor {
    state: Box<DecompressorOxide>,
    output: Vec<u8>,
}

impl Decompressor {
    /// One for payloads of at most `most` bytes when they are whole.
    pub fn new(most: usize) -> Self {
        Self {
            state: Box::default(),
            output: vec![0; most.min(LONGEST)],
        }
    }

    /// Makes a compressed packet whole; a broken one stays as it is.
    pub fn decompress(&mut self, packet: &mut Packet) -> Outcome {
        let Some(ip) = header(packet) else {
            return Outcome::Broken;
        };
        if ip.protocol() != IPCOMP {
            return Outcome::Plain;
        }
        self.whole(packet).unwrap_or(Outcome::Broken)
    }

    fn whole(&mut self, packet: &mut Packet) -> Option<Outcome> {
        let part = header(packet)?.fragment() & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) != 0;
        let range = payload(packet)?;
        let (head, stream) = packet
            .network()?
            .get(range.clone())?
            .split_first_chunk::<HEADER>()?;
        let [protocol, _, high, low] = *head;
        if part || [high, low] != DEFLATE || protocol == IPCOMP {
            return None;
        }
        self.state.init();
        let (status, _, length) = decompress(&mut self.state, stream, &mut self.output, 0, WHOLE);
        let end = range.start + length;
        if status != TINFLStatus::Done || end > usize::from(u16::MAX) {
            return None;
        }
        let missing = end.saturating_sub(packet.network()?.len());
        if !packet.put(missing) {
            return None;
        }
        packet
            .network_mut()?
            .get_mut(range.start..end)?
            .copy_from_slice(&self.output[..length]);
        settle(packet, end, protocol).then_some(Outcome::Whole(range.len(), length))
    }
}
