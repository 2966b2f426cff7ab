// SPDX-License-Identifier: Apache-2.0
//! Guest and switch over a real memfd.
use std::os::fd::OwnedFd;

use std::sync::Arc;

use clickos_ring::layout::Layout;
use clickos_ring::{
    BUFFER_SIZE, GuestPort, InPlacePort, LONGEST, Parts, PushError, Pushed, Regions, RingError,
    Slot, SwitchPort,
};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

fn pair(slots: u32) -> (SwitchPort, GuestPort) {
    let (switch, memfd) = SwitchPort::create(slots).unwrap();
    (switch, GuestPort::map(memfd).unwrap())
}

#[test]
fn frames_cross_in_order_both_ways_around_the_ring() {
    let (mut switch, mut guest) = pair(64);
    let mut buffer = [0; BUFFER_SIZE];
    for n in 0..1000usize {
        let frame = vec![n as u8; 1 + n * 7 % BUFFER_SIZE];
        guest.push(&frame).unwrap();
        switch.push(&frame).unwrap();
        assert_eq!(switch.pop(&mut buffer), None, "not published yet");
        let _ = (guest.publish(), switch.publish());
        assert_eq!(switch.pop(&mut buffer), Some(frame.len()));
        assert_eq!(buffer[..frame.len()], frame);
        buffer.fill(0);
        assert_eq!(guest.pop(&mut buffer), Some(frame.len()));
        assert_eq!(buffer[..frame.len()], frame);
        let _ = (guest.publish(), switch.publish());
    }
    assert_eq!((guest.malformed(), switch.malformed()), (0, 0));
}

/// Frames of 9,000 bytes take five slots, also around the end of the ring, and a reader with too little
/// room loses them whole.
#[test]
fn long_frames_cross_in_order_both_ways_around_the_ring() {
    let (mut switch, memfd) = SwitchPort::create(64).unwrap();
    switch.set_long();
    let mut guest = GuestPort::map(memfd).unwrap();
    let mut buffer = [0; LONGEST];
    for n in 0..1000usize {
        let frame = vec![n as u8; 1 + n * 977 % LONGEST];
        guest.push(&frame).unwrap();
        switch.push(&frame).unwrap();
        let _ = (guest.publish(), switch.publish());
        assert_eq!(switch.pop(&mut buffer), Some(frame.len()), "{n}");
        assert_eq!(buffer[..frame.len()], frame);
        let room = guest.next_room();
        assert_eq!(room, frame.len().max(BUFFER_SIZE));
        assert_eq!(guest.pop(&mut buffer[..room]), Some(frame.len()));
        assert_eq!(buffer[..frame.len()], frame);
        let _ = (guest.publish(), switch.publish());
    }
    assert_eq!((guest.malformed(), switch.malformed()), (0, 0));
    switch.push(&[1; 9014]).unwrap();
    switch.push(&[2; 60]).unwrap();
    let _ = switch.publish();
    assert_eq!(guest.pop(&mut buffer[..BUFFER_SIZE]), Some(60));
    assert_eq!(guest.malformed(), 1);
    assert_eq!(
        guest.push(&[0; LONGEST + 1]),
        Err(PushError::BadLength(LONGEST + 1))
    );
}

/// Frames of all lengths, whose ends come from the sender's region, around the end of the ring.
#[test]
fn many_frames_cross_in_one_step() {
    const HEAD: usize = 128;
    let (mut from, mut sender) = pair(64);
    let (mut to, mut receiver) = pair(64);
    let (mut slots, mut heads) = ([Slot::EMPTY; 64], vec![0; 64 * HEAD]);
    let mut buffer = [0; BUFFER_SIZE];
    for round in 0..100usize {
        let lengths = (0..round % 63 + 1).map(|n| 1 + (round * 67 + n * 131) % BUFFER_SIZE);
        let frames: Vec<Vec<u8>> = lengths.map(|len| vec![(round + len) as u8; len]).collect();
        frames.iter().for_each(|frame| sender.push(frame).unwrap());
        let _ = sender.publish();
        let count = from.fetch(&mut slots);
        assert_eq!(count, frames.len());
        from.read_heads::<HEAD>(&slots[..count], &mut heads);
        let part = |n: usize| Parts {
            head: &heads[n * HEAD..][..frames[n].len().min(HEAD)],
            rest: from.rest(slots[n], HEAD),
        };
        let parts: Vec<_> = (0..count).map(part).collect();
        let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
        let expected = Pushed {
            frames: count as u64,
            bytes,
            ..Pushed::default()
        };
        assert!(to.has_slots(count) && !to.has_slots(64));
        assert_eq!(to.push_all(&parts), expected);
        let _ = (from.release(), to.publish());
        for frame in &frames {
            assert_eq!(receiver.pop(&mut buffer), Some(frame.len()));
            assert_eq!(buffer[..frame.len()], *frame);
        }
        let _ = receiver.publish();
    }
}

#[test]
fn frames_that_do_not_fit_are_counted_one_by_one() {
    let (mut switch, mut guest) = pair(64);
    let (long, short) = ([7; BUFFER_SIZE + 1], [8; 60]);
    let part = |head| Parts { head, rest: None };
    let frames = [&long[..], &short, &[], &short].map(part);
    let pushed = switch.push_all(&frames);
    assert_eq!(
        (pushed.frames, pushed.bytes, pushed.bad_lengths),
        (2, 120, 2)
    );
    let many = [part(&short); 70];
    let pushed = switch.push_all(&many);
    assert_eq!((pushed.frames, pushed.full), (61, 9));
    let _ = switch.publish();
    let mut buffer = [0; BUFFER_SIZE];
    for _ in 0..63 {
        assert_eq!(guest.pop(&mut buffer), Some(60));
    }
    assert_eq!((guest.pop(&mut buffer), guest.malformed()), (None, 0));
    assert!(!switch.sleep_prepare());
}

#[test]
fn one_slot_stays_empty() {
    let (mut switch, mut guest) = pair(64);
    let mut buffer = [0; BUFFER_SIZE];
    for _ in 0..3 {
        for _ in 0..63 {
            guest.push(b"x").unwrap();
            switch.push(b"y").unwrap();
        }
        assert_eq!(guest.push(b"x"), Err(PushError::Full));
        assert_eq!(switch.push(b"y"), Err(PushError::Full));
        let _ = (guest.publish(), switch.publish());
        assert_eq!(switch.waiting(), 63);
        while switch.pop(&mut buffer).is_some() {}
        while guest.pop(&mut buffer).is_some() {}
        assert_eq!(
            guest.push(b"x"),
            Err(PushError::Full),
            "popped but not given back"
        );
        let _ = (guest.publish(), switch.publish());
        assert_eq!(guest.space(), 63);
    }
}

#[test]
fn lengths_are_bounded() {
    let (mut switch, mut guest) = pair(64);
    assert_eq!(guest.push(b""), Err(PushError::BadLength(0)));
    assert_eq!(
        guest.push(&[0; BUFFER_SIZE + 1]),
        Err(PushError::BadLength(BUFFER_SIZE + 1))
    );
    guest.push(&[1; 100]).unwrap();
    let _ = guest.publish();
    assert_eq!(switch.pop(&mut [0; 99]), None);
    assert_eq!(switch.malformed(), 1);
}

#[test]
fn a_kick_is_wanted_only_by_a_sleeper_and_only_once() {
    let (mut switch, mut guest) = pair(64);
    guest.push(b"x").unwrap();
    assert!(!guest.publish(), "the switch is awake");
    assert!(switch.sleep_prepare(), "a frame is waiting");
    assert_eq!(switch.pop(&mut [0; 64]), Some(1));
    let _ = switch.publish();
    assert!(!switch.sleep_prepare());
    assert!(!guest.publish(), "nothing new");
    guest.push(b"x").unwrap();
    assert!(guest.publish());
    guest.push(b"x").unwrap();
    assert!(!guest.publish(), "it has been kicked already");
    switch.wake_done();
    assert!(!guest.sleep_prepare());
    switch.push(b"y").unwrap();
    assert!(switch.publish());
}

#[test]
fn frames_that_nobody_takes_keep_nobody_awake() {
    let (mut switch, mut guest) = pair(64);
    for _ in 0..3 {
        switch.push(b"x").unwrap();
        assert!(!switch.publish(), "the guest is awake");
        assert!(guest.sleep_prepare(), "one is new");
        assert!(!guest.sleep_prepare(), "none is new");
        switch.push(b"y").unwrap();
        assert!(switch.publish(), "the guest sleeps");
        guest.wake_done();
    }
    assert!(guest.sleep_prepare());
    assert_eq!(guest.pop(&mut [0; 64]), Some(1));
    assert!(guest.sleep_prepare(), "one was taken, the rest may be, too");
    assert!(!guest.sleep_prepare());
}

#[test]
fn a_full_guest_is_woken_when_half_of_the_ring_is_free() {
    let (mut switch, mut guest) = pair(64);
    while guest.push(b"x").is_ok() {}
    assert!(!guest.publish());
    assert!(!guest.sleep_prepare());
    let mut wakes = Vec::new();
    for n in 1..=63 {
        assert_eq!(switch.pop(&mut [0; 64]), Some(1));
        if switch.publish() {
            wakes.push(n);
        }
    }
    assert_eq!(wakes, [32]);
    guest.wake_done();
    assert_eq!(guest.space(), 63);
}

#[test]
fn a_region_that_is_no_port_is_refused() {
    let memfd = |size: u64, seal: bool| -> OwnedFd {
        let file = memfd_create("t", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, size).unwrap();
        if seal {
            fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        }
        file
    };
    let refused = |fd: OwnedFd| GuestPort::map(fd).map(drop).unwrap_err();
    assert_eq!(refused(memfd(1 << 20, false)), RingError::NotSealed);
    assert_eq!(refused(memfd(1 << 20, true)), RingError::BadMagic(0));
    assert!(matches!(
        refused(memfd(4096, true)),
        RingError::Size { have: 4096, .. }
    ));
    let (_, fd) = SwitchPort::create(64).unwrap();
    for (at, value, error) in [
        (0x0c, 100, RingError::Slots(100)),
        (
            0x0c,
            2048,
            RingError::Size {
                have: 274_432,
                need: 8_425_472,
            },
        ),
        (0x08, 3, RingError::BadVersion(3)),
        (0x10, 4096, RingError::BadBufferSize(4096)),
    ] {
        let mut old = [0; 4];
        rustix::io::pread(&fd, &mut old, at).unwrap();
        rustix::io::pwrite(&fd, &u32::to_le_bytes(value), at).unwrap();
        assert_eq!(GuestPort::map(&fd).map(drop).unwrap_err(), error);
        rustix::io::pwrite(&fd, &old, at).unwrap();
    }
    assert!(SwitchPort::create(63).is_err());
    ftruncate(&fd, 0).unwrap_err();
}

/// A guest of version 2 sends from the region of its other port, while that is there.
#[test]
fn a_frame_leaves_by_another_port_of_its_guest() {
    let regions = Arc::new(Regions::default());
    let layout = Layout::of(2, 64).unwrap();
    let port = |number| {
        let (switch, memfd) = SwitchPort::create_in(&regions, 64).unwrap();
        let (guest, _blocks) = InPlacePort::map(memfd).unwrap();
        assert_eq!(guest.region(), number);
        (switch, guest)
    };
    let ((mut from, mut first), (mut to, mut second)) = (port(1), port(2));
    let (mut slots, mut got) = ([Slot::EMPTY; 4], [0; BUFFER_SIZE]);
    from.push(&[7; 300]).unwrap();
    let _ = from.publish();
    assert_eq!(first.receive(), Some((0, 300)));
    first.offer(0, layout.frame(64) as u32);
    let offset = layout.frame(0) as u32;
    assert_eq!(second.send(1, offset, 300), Ok(0));
    assert_eq!(second.send(3, offset, 300), Ok(1), "no such region");
    let _ = second.publish();
    assert_eq!(to.fetch(&mut slots), 1);
    to.read(slots[0], &mut got);
    assert_eq!(got[..300], [7; 300]);
    assert_eq!(to.rest(slots[0], 100).map(|rest| rest.len()), Some(200));
    assert_eq!(to.malformed(), 1);
    second.refresh();
    assert!(!second.is_taken(0) && !second.is_taken(1) && second.is_taken(2));
    let _ = to.publish();
    second.refresh();
    assert!(second.is_taken(0) && second.is_taken(1));
    drop(from);
    assert_eq!(regions.number(), 3, "no number comes again");
    second.send(1, offset, 300).unwrap();
    let _ = second.publish();
    assert_eq!(to.fetch(&mut slots), 0, "the region is gone");
    assert_eq!(to.malformed(), 2);
}

/// A short frame needs no buffer of the guest's, and lies in that of its slot.
#[test]
fn a_short_frame_is_copied_to_its_slot() {
    let (mut switch, memfd) = SwitchPort::create_in(&Arc::default(), 64).unwrap();
    let (mut guest, _blocks) = InPlacePort::map(&memfd).unwrap();
    assert_eq!(guest.send_copy(&[1; 257]), Err(PushError::BadLength(257)));
    let mut frame = [0; BUFFER_SIZE];
    for n in 0..200u8 {
        guest.send_copy(&[n; 256]).unwrap();
        let _ = guest.publish();
        assert_eq!((switch.pop(&mut frame), frame[255]), (Some(256), n));
        let _ = switch.publish();
    }
    assert_eq!(switch.malformed(), 0);
}

/// A frame goes where the guest offers room for the longest, or nowhere.
#[test]
fn a_frame_needs_the_room_that_is_offered() {
    let layout = Layout::of(2, 64).unwrap();
    let (mut switch, memfd) = SwitchPort::create_in(&Arc::default(), 64).unwrap();
    let offer = (layout.size() - BUFFER_SIZE + 1) as u64;
    rustix::io::pwrite(&memfd, &offer.to_le_bytes(), 0x2000).unwrap();
    assert_eq!(switch.push(&[1; 101]), Err(PushError::BadBuffer));
    switch.push(&[2; 101]).unwrap();
    let _ = switch.publish();
    let (mut guest, _blocks) = InPlacePort::map(&memfd).unwrap();
    assert_eq!(guest.receive(), Some((1, 101)));
    assert_eq!(guest.malformed(), 1);
}

/// A switch that took over in the middle of the traffic continues in either version.
#[test]
fn the_next_switch_goes_on_with_rings_of_version_2() {
    let layout = Layout::of(2, 64).unwrap();
    let (mut switch, memfd) = SwitchPort::create_in(&Arc::default(), 64).unwrap();
    let (mut guest, _blocks) = InPlacePort::map(&memfd).unwrap();
    switch.push(&[1; 60]).unwrap();
    guest.send(0, layout.frame(80) as u32, 60).unwrap();
    let _ = (switch.publish(), guest.publish());
    drop(switch);
    let mut next = SwitchPort::remap(&memfd, 64).unwrap();
    next.push(&[2; 61]).unwrap();
    let _ = next.publish();
    assert_eq!(guest.receive(), Some((0, 60)));
    assert_eq!(guest.receive(), Some((1, 61)));
    assert_eq!(next.fetch(&mut [Slot::EMPTY; 4]), 1);
}
