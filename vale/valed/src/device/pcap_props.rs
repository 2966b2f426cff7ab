// SPDX-License-Identifier: Apache-2.0
//! Properties of the reader of packet files.
use proptest::prelude::*;

use super::*;

/// A file as the format's description draws it: of either byte order, in micro- or nanoseconds.
fn file(frames: &[(u32, Vec<u8>)], big: bool, nano: bool) -> Vec<u8> {
    let word = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let half = |value: u16| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut bytes = [word(magic).to_vec(), half(2).to_vec(), half(4).to_vec()].concat();
    bytes.extend([word(0), word(0), word(65535), word(1)].concat());
    for (time, frame) in frames {
        let len = word(frame.len() as u32);
        let sub = if nano { 1_000_000_000 } else { 1_000_000 };
        bytes.extend([word(time / sub), word(time % sub), len, len].concat());
        bytes.extend(frame);
    }
    bytes
}

fn read_bytes(bytes: &[u8]) -> io::Result<Vec<(Nanoseconds, Vec<u8>)>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 14..200)
}

proptest! {
    #[test]
    fn a_file_is_read_as_it_was_built(
        gaps in prop::collection::vec((0u32..3_000_000, frame()), 1..12), start in 0u32..2_000_000_000, big: bool, nano: bool,
    ) {
        let mut time = start;
        let frames: Vec<_> = gaps.into_iter().map(|(gap, frame)| {
            time += gap;
            (time, frame)
        }).collect();
        let first = u64::from(frames[0].0);
        let unit = if nano { 1 } else { 1000 };
        let read = read_bytes(&file(&frames, big, nano)).unwrap();
        let expected: Vec<_> = frames.into_iter().map(|(time, frame)| ((u64::from(time) - first) * unit, frame)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn a_damaged_file_is_refused_or_holds_frames_of_usual_lengths(
        frames in prop::collection::vec((any::<u32>(), frame()), 1..5), at: prop::sample::Index, byte: u8, cut: prop::sample::Index,
    ) {
        let mut bytes = file(&frames, false, false);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(read) = read_bytes(&bytes) {
            prop_assert!(!read.is_empty() && read.len() <= bytes.len() / 30);
            prop_assert!(read.iter().all(|(_, frame)| (14..=ring::LONGEST).contains(&frame.len())));
        }
    }

    #[test]
    fn a_frame_of_another_length_is_refused_with_its_number(len in prop::sample::select(&[0usize, 1, 13, ring::LONGEST + 1, 20_000][..]), before in 0usize..3) {
        let mut frames = vec![(0, vec![1; 60]); before];
        frames.push((0, vec![2; len]));
        let error = read_bytes(&file(&frames, false, false)).unwrap_err().to_string();
        prop_assert!(error.contains(&format!("frame {}", before + 1)), "{}", error);
    }
}
