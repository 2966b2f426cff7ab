// SPDX-License-Identifier: Apache-2.0
//! Batches of frames between the switch and a packet socket or tap.
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::partial;
use crate::sys::{self, BATCH, Message};
use crate::{MAX_FRAME, VNET_HEADER};

/// Bytes of a VLAN tag; each message has as many free bytes before it.
const TAG: usize = 4;
/// The type of a VLAN tag (802.1Q).
const TPID: u16 = 0x8100;
const STRIDE: usize = (TAG + VNET_HEADER + MAX_FRAME).next_multiple_of(64);
/// Bytes of frames collected before they are sent.
const SEND_BYTES: usize = 256 << 10;

/// Buffers to receive a batch into.
pub struct RecvBatch {
    buffer: Vec<u8>,
    messages: [Message; BATCH],
}

/// The result of [`RecvBatch::frame`].
pub enum Received<'a> {
    /// The virtio header and the frame.
    Frame([u8; VNET_HEADER], &'a mut [u8]),
    /// A message too short or too long for a frame.
    Malformed,
}

impl Default for RecvBatch {
    fn default() -> Self {
        Self {
            buffer: vec![0; BATCH * STRIDE],
            messages: [Message::default(); BATCH],
        }
    }
}

impl RecvBatch {
    /// Most frames of one batch.
    pub const MAX: usize = BATCH;

    /// Receives the waiting frames of a packet socket; fewer than [`Self::MAX`] were all.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        none_if_would_block(sys::receive(
            socket,
            &mut self.buffer,
            STRIDE,
            TAG,
            &mut self.messages,
        ))
    }

    /// Reads the waiting frames of a tap; fewer than [`Self::MAX`] were all.
    pub fn read(&mut self, tap: BorrowedFd<'_>) -> io::Result<usize> {
        for n in 0..BATCH {
            let space = &mut self.buffer[n * STRIDE + TAG..(n + 1) * STRIDE];
            match sys::read(tap, space) {
                Ok(len) => {
                    // A read that fills the buffer may have lost the end of the frame.
                    self.messages[n] = Message {
                        len,
                        truncated: len == space.len(),
                        vlan: None,
                    };
                }
                Err(_) if n > 0 => return Ok(n),
                Err(e) => return none_if_would_block(Err(e)),
            }
        }
        Ok(BATCH)
    }

    /// Puts a frame of an AF_XDP socket, which has no virtio header, at place `n`. The caller writes
    /// its `len` bytes. With `takes_tag` the VLAN tag leaves the frame, as the kernel takes it out for
    /// a packet socket.
    pub(crate) fn put(
        &mut self,
        n: usize,
        len: usize,
        takes_tag: bool,
        write: impl FnOnce(&mut [u8]),
    ) {
        let header = n * STRIDE + TAG;
        let start = header + VNET_HEADER;
        write(&mut self.buffer[start..start + len]);
        let (mut end, mut vlan) = (start + len, None);
        if takes_tag && len >= 18 {
            let word = |at: usize| u16::from_be_bytes([self.buffer[at], self.buffer[at + 1]]);
            vlan = Some((word(start + 12), word(start + 14)));
            self.buffer.copy_within(start + 16..end, start + 12);
            end -= TAG;
        }
        let of = partial::header(&self.buffer[start..end]);
        self.buffer[header..start].copy_from_slice(&of);
        self.messages[n] = Message {
            len: end - header,
            truncated: false,
            vlan,
        };
    }

    /// Frame `n` of the last batch with its virtio header, if [`Self::frame`], or [`Self::frame_of_vlan`]
    /// with a VLAN, returns it as it lies.
    pub fn peek(&self, n: usize, vlan: Option<u16>) -> Option<(&[u8; VNET_HEADER], &[u8])> {
        let message = self.messages[n];
        let lies = match (message.vlan, vlan) {
            (None, None) => true,
            (Some((TPID, tci)), Some(vlan)) => tci & 0xfff == vlan,
            _ => false,
        };
        if !lies || message.truncated || message.len < VNET_HEADER + 14 {
            return None;
        }
        self.buffer[n * STRIDE + TAG..][..message.len].split_first_chunk()
    }

    /// Frame `n` of the last batch.
    pub fn frame(&mut self, n: usize) -> Received<'_> {
        let message = self.messages[n];
        let bytes = &mut self.buffer[n * STRIDE..(n + 1) * STRIDE];
        if message.truncated || message.len < VNET_HEADER + 14 {
            return Received::Malformed;
        }
        let end = TAG + message.len;
        let begin = match message.vlan {
            Some((tpid, tci)) => {
                insert_tag(&mut bytes[..end], tpid, tci);
                0
            }
            None => TAG,
        };
        let (header, frame) = bytes[begin..end].split_at_mut(VNET_HEADER);
        match header.try_into() {
            Ok(header) => Received::Frame(header, frame),
            Err(_) => Received::Malformed,
        }
    }
}

impl RecvBatch {
    /// Frame `n` of the last batch without the tag that the kernel took out. A frame of another VLAN
    /// than `vlan` is malformed.
    pub fn frame_of_vlan(&mut self, n: usize, vlan: u16) -> Received<'_> {
        match self.messages[n].vlan.take() {
            Some((TPID, tci)) if tci & 0xfff == vlan => self.frame(n),
            _ => Received::Malformed,
        }
    }
}

/// Puts back the tag that the kernel took out. The virtio header and the addresses move into the
/// free bytes before them. The header's offsets from the start of the frame grow by the tag.
fn insert_tag(bytes: &mut [u8], tpid: u16, tci: u16) {
    let moved = VNET_HEADER + 12;
    bytes.copy_within(TAG..TAG + moved, 0);
    bytes[moved..moved + 2].copy_from_slice(&tpid.to_be_bytes());
    bytes[moved + 2..moved + 4].copy_from_slice(&tci.to_be_bytes());
    let [needs_checksum, gso] = [bytes[0] & 1 != 0, bytes[1] != 0];
    // hdr_len, csum_start (linux/virtio_net.h), in native byte order.
    for (at, applies) in [(2, gso), (6, needs_checksum)] {
        if applies {
            let value = u16::from_ne_bytes([bytes[at], bytes[at + 1]]).wrapping_add(TAG as u16);
            bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
    }
}

fn none_if_would_block(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

/// Collects frames and sends them together.
#[derive(Default)]
pub struct SendBatch {
    buffer: Vec<u8>,
    frames: Vec<Range<usize>>,
}

/// The outcome of one frame of a batch, and its length without the virtio header.
pub type Sent = (io::Result<()>, usize);

impl SendBatch {
    /// Adds a frame; false if the batch has to be sent first.
    #[must_use]
    pub fn push(&mut self, header: &[u8; VNET_HEADER], frame: &[u8]) -> bool {
        let begin = self.buffer.len();
        let end = begin + VNET_HEADER + frame.len();
        if self.frames.len() == BATCH || (end > SEND_BYTES && begin > 0) {
            return false;
        }
        self.buffer.extend_from_slice(header);
        self.buffer.extend_from_slice(frame);
        self.frames.push(begin..end);
        true
    }

    /// As [`Self::push`], with a tag of `vlan` after the addresses.
    #[must_use]
    pub fn push_to_vlan(&mut self, header: &[u8; VNET_HEADER], frame: &[u8], vlan: u16) -> bool {
        let begin = self.buffer.len();
        if !self.push(header, frame) {
            return false;
        }
        // `insert_tag` moves the headers into the free bytes before them.
        self.buffer.splice(begin..begin, [0; TAG]);
        insert_tag(&mut self.buffer[begin..], TPID, vlan);
        if let Some(range) = self.frames.last_mut() {
            range.end += TAG;
        }
        true
    }

    /// Sends everything to a packet socket and reports on each frame.
    pub fn send(&mut self, socket: BorrowedFd<'_>, mut report: impl FnMut(Sent)) {
        let all: Vec<&[u8]> = self
            .frames
            .iter()
            .map(|f| &self.buffer[f.clone()])
            .collect();
        let mut rest = &all[..];
        while let Some(first) = rest.first() {
            // The error is the first frame's; those after it are tried again.
            let (done, error) = match sys::send(socket, rest) {
                Ok(0) => (1, Some(ErrorKind::WouldBlock.into())),
                Ok(sent) => (sent, None),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => (1, Some(e)),
            };
            match error {
                Some(error) => report((Err(error), first.len() - VNET_HEADER)),
                None => rest[..done]
                    .iter()
                    .for_each(|f| report((Ok(()), f.len() - VNET_HEADER))),
            }
            rest = &rest[done..];
        }
        self.clear();
    }

    /// Writes everything to a tap and reports on each frame.
    pub fn write(&mut self, tap: BorrowedFd<'_>, mut report: impl FnMut(Sent)) {
        for frame in &self.frames {
            let result = sys::write(tap, &self.buffer[frame.clone()]);
            report((result, frame.len() - VNET_HEADER));
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_returns_to_its_place() {
        let mut batch = RecvBatch::default();
        let mut header = [0; VNET_HEADER];
        header[0] = 1;
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        let frame: Vec<u8> = (0..60).collect();
        let message = [&header[..], &frame].concat();
        batch.buffer[TAG..TAG + message.len()].copy_from_slice(&message);
        batch.messages[0] = Message {
            len: message.len(),
            truncated: false,
            vlan: Some((0x8100, 0x0203)),
        };
        let Received::Frame(header, tagged) = batch.frame(0) else {
            panic!("malformed")
        };
        assert_eq!(tagged[..12], frame[..12]);
        assert_eq!(tagged[12..16], [0x81, 0, 2, 3]);
        assert_eq!(tagged[16..], frame[12..]);
        assert_eq!(u16::from_ne_bytes([header[6], header[7]]), 38);
    }

    #[test]
    fn a_frame_of_a_vlan_leaves_with_its_tag_and_comes_without() {
        let frame: Vec<u8> = (0..60).collect();
        let mut sent = SendBatch::default();
        let mut header = [0; VNET_HEADER];
        header[0] = 1;
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        for _ in 0..2 {
            assert!(sent.push_to_vlan(&header, &frame, 101));
        }
        for range in &sent.frames {
            let message = &sent.buffer[range.clone()];
            assert_eq!(message[6..8], 38u16.to_ne_bytes());
            let tagged = &message[VNET_HEADER..];
            assert_eq!(tagged[12..16], [0x81, 0, 0, 101]);
            assert_eq!([&tagged[..12], &tagged[16..]].concat(), frame);
        }
        let mut batch = RecvBatch::default();
        let message = [&header[..], &frame].concat();
        batch.buffer[TAG..TAG + message.len()].copy_from_slice(&message);
        for (vlan, good) in [
            (Some((0x8100, 0x2065)), true),
            (Some((0x8100, 102)), false),
            (Some((0x88a8, 101)), false),
            (None, false),
        ] {
            batch.messages[0] = Message {
                len: message.len(),
                truncated: false,
                vlan,
            };
            match batch.frame_of_vlan(0, 101) {
                Received::Frame(_, found) => assert!(good && found == frame),
                Received::Malformed => assert!(!good, "{vlan:?}"),
            }
        }
    }

    #[test]
    fn a_frame_of_an_xdp_socket_loses_the_tag_of_its_vlan() {
        let frame: Vec<u8> = (0..60).collect();
        let tagged = [&frame[..12], &[0x81, 0, 0x20, 101], &frame[12..]].concat();
        let mut batch = RecvBatch::default();
        for (vlan, good) in [(101, true), (102, false)] {
            batch.put(3, tagged.len(), true, |to| to.copy_from_slice(&tagged));
            match batch.frame_of_vlan(3, vlan) {
                Received::Frame(header, found) => {
                    assert!(good && found == frame && header == [0; VNET_HEADER]);
                }
                Received::Malformed => assert!(!good, "{vlan}"),
            }
        }
        batch.put(0, tagged.len(), false, |to| to.copy_from_slice(&tagged));
        assert!(matches!(batch.frame(0), Received::Frame(_, found) if found == tagged));
        batch.put(0, 13, true, |_| ());
        assert!(matches!(batch.frame(0), Received::Malformed));
    }

    #[test]
    fn a_peeked_frame_is_the_one_that_is_taken() {
        let frame: Vec<u8> = (0..60).collect();
        let message = [&[0; VNET_HEADER][..], &frame].concat();
        let mut batch = RecvBatch::default();
        for (tag, vlan, lies) in [
            (None, None, true),
            (Some((0x8100, 101)), None, false),
            (Some((0x8100, 0x2065)), Some(101), true),
            (Some((0x8100, 102)), Some(101), false),
            (Some((0x88a8, 101)), Some(101), false),
            (None, Some(101), false),
        ] {
            batch.buffer[TAG..TAG + message.len()].copy_from_slice(&message);
            batch.messages[0] = Message {
                len: message.len(),
                truncated: false,
                vlan: tag,
            };
            let peeked = batch.peek(0, vlan).map(|(_, bytes)| bytes.to_vec());
            assert_eq!(peeked, lies.then(|| frame.clone()), "{tag:?} {vlan:?}");
            let taken = match vlan {
                Some(vlan) => batch.frame_of_vlan(0, vlan),
                None => batch.frame(0),
            };
            if let (Some(peeked), Received::Frame(_, taken)) = (peeked, taken) {
                assert_eq!(peeked, taken);
            }
        }
    }

    #[test]
    fn short_and_truncated_messages_are_malformed() {
        let mut batch = RecvBatch::default();
        for (len, truncated) in [(0, false), (VNET_HEADER + 13, false), (STRIDE - TAG, true)] {
            batch.messages[0] = Message {
                len,
                truncated,
                vlan: None,
            };
            assert!(matches!(batch.frame(0), Received::Malformed));
            assert!(batch.peek(0, None).is_none());
        }
    }

    #[test]
    fn a_batch_is_bounded_but_takes_the_longest_frame() {
        let mut batch = SendBatch::default();
        let header = [0; VNET_HEADER];
        let mut taken = 0;
        while batch.push(&header, &[0; MAX_FRAME]) {
            taken += 1;
        }
        assert!((1..=4).contains(&taken));
        batch.clear();
        for _ in 0..BATCH {
            assert!(batch.push(&header, &[0; 60]));
        }
        assert!(!batch.push(&header, &[0; 60]));
    }
}
