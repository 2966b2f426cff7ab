// SPDX-License-Identifier: Apache-2.0
//! Packets and their pool: contents, bounds, and where buffers go.
use click_packet::{Batch, HEADROOM, MAX_PACKET, PacketPool};

#[test]
fn content_and_headers_survive_stripping_and_encapsulating() {
    let mut pool = PacketPool::new(1);
    let mut packet = pool.packet_from(b"ether|ip|payload").unwrap();
    packet.set_mac_offset(0);
    packet.set_network(6, 3);
    packet.pull(6);
    assert_eq!(packet.data(), b"ip|payload");
    assert_eq!(packet.mac_offset(), Some(-6));
    assert_eq!(packet.mac(), Some(&b"ether|ip|payload"[..]));
    assert_eq!(packet.transport(), Some(&b"payload"[..]));
    assert!(packet.push(6));
    assert_eq!(packet.data(), b"ether|ip|payload");
    packet.take(8);
    assert_eq!(packet.data(), b"ether|ip");
    assert_eq!(packet.transport(), None);
    packet.pull(usize::MAX);
    packet.take(usize::MAX);
    assert!(packet.is_empty());
}

#[test]
fn a_packet_grows_at_both_ends_and_keeps_what_was_stripped() {
    let mut pool = PacketPool::new(1);
    let mut packet = pool.packet_from(b"headdata").unwrap();
    packet.set_network(4, 2);
    packet.pull(4);
    assert!(packet.put(3000));
    assert!(packet.push(4));
    assert_eq!(&packet.data()[..8], b"headdata");
    assert_eq!(packet.len(), 3008);
    assert!(packet.data()[8..].iter().all(|b| *b == 0));
    assert!(packet.push(HEADROOM + 1));
    assert_eq!(packet.network_offset(), Some(HEADROOM as isize + 5));
    assert_eq!(&packet.network().unwrap()[..4], b"data");
    assert!(!packet.push(2 * MAX_PACKET) && !packet.put(usize::MAX));
    assert_eq!(pool.in_use(), 1);
}

#[test]
fn bytes_are_appended_whatever_their_number() {
    let mut pool = PacketPool::new(2);
    for len in [0, 1, 40, 2000, MAX_PACKET] {
        let more: Vec<u8> = (0..len).map(|n| n as u8 | 1).collect();
        let mut packet = pool.packet_from(b"head").unwrap();
        packet.pull(2);
        let copy = pool.duplicate(&mut packet).unwrap();
        assert!(packet.append(&more));
        assert_eq!(
            (&packet.data()[..2], &packet.data()[2..]),
            (&b"ad"[..], &more[..])
        );
        assert_eq!(copy.data(), b"ad");
        assert!(packet.push(2));
        assert_eq!(&packet.data()[..2], b"he");
        assert!(!packet.append(&vec![0; 2 * MAX_PACKET]));
    }
}

#[test]
fn annotations_are_taken_over_and_a_destination_has_sixteen_bytes() {
    let mut pool = PacketPool::new(2);
    let [mut plain, mut noted] = [(); 2].map(|()| pool.alloc(60).unwrap());
    let address = core::array::from_fn(|n| n as u8 + 1);
    noted.anno_mut().set_u8(16, 7);
    noted.anno_mut().set_dst_ip6(address);
    assert_eq!(noted.anno().dst_ip6(), address);
    assert_eq!((noted.anno().u8(15), noted.anno().u8(16)), (16, 7));
    let mut other = pool.alloc(60);
    assert!(other.is_none());
    plain.anno_mut().copy_from(noted.anno());
    assert_eq!(plain.anno().bytes(), noted.anno().bytes());
    drop(noted);
    other = pool.alloc(60);
    plain.anno_mut().copy_from(other.unwrap().anno());
    assert_eq!(plain.anno().bytes(), [0; 48]);
}

#[test]
fn a_copy_has_what_was_stripped_and_what_is_known() {
    let mut pool = PacketPool::new(2);
    for len in [0, 1, 31, 32, 33, 64, 255, 256, 257, 1500, MAX_PACKET - 2] {
        let data: Vec<u8> = (0..len + 2).map(|n| n as u8).collect();
        let mut packet = pool.packet_from(&data).unwrap();
        packet.set_timestamp_ns(7);
        packet.anno_mut().set_u32(20, 0x0102_0304);
        packet.set_network(0, 1);
        packet.pull(2);
        let mut copy = pool.duplicate(&mut packet).unwrap();
        packet.data_mut().fill(0xee);
        assert_eq!(copy.data(), &data[2..]);
        assert_eq!((copy.timestamp_ns(), copy.anno().u32(20)), (7, 0x0102_0304));
        assert_eq!(copy.network_offset(), Some(-2));
        assert!(copy.push(2));
        assert_eq!(copy.data(), &data[..]);
    }
}

#[test]
fn annotations_of_a_fresh_packet_are_zero() {
    let mut pool = PacketPool::new(1);
    let mut packet = pool.alloc(60).unwrap();
    packet.anno_mut().set_u8(47, 9);
    packet.anno_mut().set_u32(45, 9);
    assert_eq!((packet.anno().u8(47), packet.anno().u32(45)), (9, 0));
    packet.set_network(0, 20);
    drop(packet);
    let packet = pool.alloc(60).unwrap();
    assert_eq!(packet.anno().bytes(), [0; 48]);
    assert_eq!((packet.network(), packet.timestamp_ns()), (None, 0));
}

#[test]
fn a_pool_has_a_limit_and_counts_what_it_refuses() {
    let mut pool = PacketPool::new(2);
    let kept = (pool.alloc(0), pool.alloc(MAX_PACKET));
    assert!(kept.0.is_some() && kept.1.is_some());
    assert!(pool.alloc(1).is_none());
    assert_eq!((pool.in_use(), pool.refused()), (2, 1));
    drop(kept);
    assert_eq!(pool.in_use(), 0);
    assert!(pool.alloc(MAX_PACKET + 1).is_none());
    assert!(pool.alloc_with(usize::MAX, 1).is_none());
    assert_eq!(pool.refused(), 3);
}

#[test]
fn packets_outlive_their_pool() {
    let mut pool = PacketPool::new(100);
    let mut packets: Vec<_> = (0..50).map(|n| pool.alloc(n * 40).unwrap()).collect();
    drop(pool);
    assert!(packets[3].put(5000));
    assert_eq!(packets[3].len(), 5120);
}

#[test]
fn many_packets_of_one_content_end_at_the_limit() {
    for len in [4, 1000, 9000] {
        let (mut pool, mut batch) = (PacketPool::new(51), Batch::new());
        let mut packet = pool.packet_from(&vec![7; len]).unwrap();
        packet.set_timestamp_ns(7);
        pool.repeat(&mut packet, 40, &mut batch);
        assert_eq!((batch.len(), pool.in_use(), pool.refused()), (40, 41, 0));
        pool.repeat(&mut packet, 40, &mut batch);
        assert_eq!((batch.len(), pool.in_use()), (50, 51));
        assert!(pool.refused() > 0);
        assert!((batch.iter()).all(|p| p.data() == vec![7; len] && p.timestamp_ns() == 7));
        batch.iter_mut().for_each(|p| p.data_mut().fill(9));
        assert!(batch.iter().all(|p| p.data() == vec![9; len]));
        drop((packet, batch));
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn copies_of_a_batch_keep_its_order_whatever_their_sizes() {
    for limit in [12, 9] {
        let (mut pool, mut batch, mut copies) =
            (PacketPool::new(limit), Batch::new(), Batch::new());
        for (n, len) in [4, 60, 400, 1500, 64, 9000].into_iter().enumerate() {
            let mut packet = pool.alloc(len).unwrap();
            packet.data_mut().fill(n as u8);
            packet.set_timestamp_ns(n as u64);
            batch.push_back(packet);
        }
        pool.duplicate_all(&mut batch, &mut copies);
        let same = copies.iter().zip(batch.iter());
        assert!(
            same.clone()
                .all(|(copy, packet)| copy.data() == packet.data())
        );
        assert!({ same }.all(|(copy, packet)| copy.timestamp_ns() == packet.timestamp_ns()));
        assert_eq!((copies.len(), pool.in_use()), (limit - 6, limit));
        drop((batch, copies));
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn packets_of_several_pools_go_home_from_one_batch() {
    let (mut one, mut other, mut batch) = (PacketPool::new(9), PacketPool::new(9), Batch::new());
    for len in [10, 20, 3000, 30, 600] {
        batch.extend(one.alloc(len));
        batch.extend(other.alloc(len));
    }
    assert_eq!((one.in_use(), other.in_use()), (5, 5));
    batch.extend(other.alloc(60_000));
    drop(one);
    batch.clear();
    assert_eq!(other.in_use(), 0);
}

#[test]
fn a_sweep_passes_packets_that_were_looked_at() {
    for (keep, left) in [(true, [0, 1, 2, 4]), (false, [2, 4, 5, 6])] {
        let (mut pool, mut batch) = (PacketPool::new(9), Batch::new());
        (0..7).for_each(|n| batch.extend(pool.packet_from(&[n])));
        let mut cursor = batch.cursor_mut();
        cursor.skip(2, keep);
        let (kept, _dropped) = (cursor.next().unwrap(), cursor.next());
        cursor.keep(kept);
        cursor.skip(1, true);
        drop(cursor);
        let data: Vec<u8> = batch.iter().map(|p| p.data()[0]).collect();
        assert_eq!(data[..4], left);
    }
}

#[test]
fn copies_need_a_buffer_only_when_changed_and_find_one() {
    let (mut pool, mut copies) = (PacketPool::new(100), Batch::new());
    let mut packet = pool.packet_from(b"stored").unwrap();
    pool.repeat(&mut packet, 99, &mut copies);
    let place = packet.data().as_ptr();
    assert!(copies.iter().all(|copy| copy.data().as_ptr() == place));
    assert!(pool.alloc(1).is_none());
    for copy in copies.iter_mut() {
        copy.data_mut()[0] = b'S';
        assert_ne!(copy.data().as_ptr(), place);
    }
    copies.clear();
    packet.data_mut()[0] = b'T';
    assert_eq!(packet.data().as_ptr(), place, "the last one has it alone");
}
