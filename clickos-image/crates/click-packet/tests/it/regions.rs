// SPDX-License-Identifier: Apache-2.0
//! Packets in a device's memory, also under Miri.
#![allow(unsafe_code)]

use click_packet::anno::PacketType;
use click_packet::{Batch, Packet, PacketPool, Region};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;

const BLOCKS: usize = 2;

/// Memory that says when it is given back.
struct Owner {
    memory: NonNull<u8>,
    is_alive: Rc<Cell<bool>>,
}

fn layout() -> Layout {
    Layout::from_size_align(BLOCKS * Region::BLOCK, Region::BLOCK).unwrap()
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.is_alive.set(false);
        // SAFETY: allocated with this layout by `region`, and the last packet there is gone.
        unsafe { dealloc(self.memory.as_ptr(), layout()) };
    }
}

/// A region, its memory, and whether that is still there.
fn region() -> (Region, NonNull<u8>, Rc<Cell<bool>>) {
    // SAFETY: the layout is not empty.
    let memory = NonNull::new(unsafe { alloc_zeroed(layout()) }).unwrap();
    let is_alive = Rc::new(Cell::new(true));
    let owner = Owner {
        memory,
        is_alive: Rc::clone(&is_alive),
    };
    // SAFETY: just allocated so, and the owner frees it when it is dropped.
    let region = unsafe { Region::new(memory, BLOCKS, |n| n * 64, Box::new(owner)) };
    (region, memory, is_alive)
}

#[test]
fn all_buffers_are_apart_and_in_their_chunks() {
    let (mut region, ..) = region();
    let count = BLOCKS * Region::PER_CHUNK;
    assert_eq!(region.free(), count);
    let mut packets: Vec<Packet> = std::iter::from_fn(|| region.take()).collect();
    assert_eq!(packets.len(), count);
    for (n, packet) in packets.iter_mut().enumerate() {
        let (block, place) = (n / Region::PER_CHUNK, n % Region::PER_CHUNK);
        let offset = block * (Region::CHUNK + 64) + place * Region::STRIDE + Region::BEFORE_DATA;
        assert_eq!(region.offset_of(packet).map(|p| p.offset), Some(offset));
        assert_eq!(packet.len(), Region::ROOM);
        packet.data_mut().fill(n as u8);
    }
    for (n, packet) in packets.iter().enumerate() {
        assert!(packet.data().iter().all(|byte| *byte == n as u8));
    }
    drop(packets);
    assert_eq!(region.free(), count);
}

#[test]
fn the_memory_lives_as_long_as_a_packet() {
    let (mut region, _, is_alive) = region();
    let mut batch = Batch::new();
    batch.extend((0..5).map_while(|_| region.take()));
    drop(region);
    batch.pop_back();
    assert!(is_alive.get());
    batch.clear();
    assert!(!is_alive.get());
}

#[test]
fn a_copy_and_a_longer_packet_lie_elsewhere() {
    let (mut region, ..) = region();
    let mut pool = PacketPool::new(10);
    let mut packet = region.take().unwrap();
    packet.take(Region::ROOM - 4);
    packet.data_mut().copy_from_slice(b"data");
    packet.anno_mut().set_u8(click_packet::anno::PAINT, 7);
    let mut copy = pool.duplicate(&mut packet).unwrap();
    assert_eq!(region.offset_of(&copy), None);
    copy.data_mut()[0] = b'D';
    assert_eq!((packet.data(), copy.data()), (&b"data"[..], &b"Data"[..]));
    assert_eq!(copy.anno().u8(click_packet::anno::PAINT), 7);
    assert!(packet.push(14), "the headroom is there");
    assert!(region.offset_of(&packet).is_some());
    assert!(packet.push(1000), "it moves to a larger buffer");
    assert_eq!(region.offset_of(&packet), None);
    assert_eq!(region.free(), BLOCKS * Region::PER_CHUNK);
    let mut long = region.take().unwrap();
    assert!(long.put(4000));
    assert_eq!(long.len(), Region::ROOM + 4000);
}

#[test]
fn regions_with_numbers_know_each_other() {
    let (one, ..) = region();
    let (other, ..) = region();
    let (mut one, mut other) = (one.numbered(1, 100), other.numbered(2, 200));
    let (a, b) = (one.take().unwrap(), other.take().unwrap());
    let place = |region: &Region, packet| {
        let place = region.offset_of(packet)?;
        Some((place.number, place.offset - Region::BEFORE_DATA))
    };
    assert_eq!(place(&one, &a), Some((0, 100)));
    assert_eq!(place(&one, &b), Some((2, 200)));
    assert_eq!(place(&other, &a), Some((1, 100)));
    let (alone, ..) = region();
    assert_eq!(place(&alone, &a), None);
}

/// A peer that writes all that it can reach changes what packets say, and nothing else.
#[test]
fn a_peer_that_writes_anything_reaches_no_more() {
    let (mut region, memory, _) = region();
    let mut packets: Vec<Packet> = (0..4).map_while(|_| region.take()).collect();
    for packet in &mut packets {
        packet.anno_mut().set_packet_type(PacketType::Multicast);
        packet.set_mac_offset(2000); // beyond what lies next to the pointer
    }
    for block in 0..BLOCKS {
        // SAFETY: the chunk of a block of the region; no reference to it exists now.
        unsafe {
            let chunk = memory.add(block * Region::BLOCK + Region::PRIVATE);
            chunk.write_bytes(0xff, Region::CHUNK);
        }
    }
    for packet in &mut packets {
        assert_eq!(packet.anno().packet_type(), PacketType::Host);
        assert_eq!(packet.mac(), None, "no such bytes");
        assert_eq!(packet.tailroom(), 128);
        assert!(packet.push(500) && packet.put(500));
        assert_eq!(packet.len(), Region::ROOM + 1000);
    }
}
