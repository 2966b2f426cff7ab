// SPDX-License-Identifier: Apache-2.0
//! Whether a file is a kernel Xen can start: ELF for x86-64 with Xen's notes (the ELF
//! specification; the numbers of the notes stand in xen/elfnote.h).

/// `XEN_ELFNOTE_PHYS32_ENTRY`: where a PVH guest begins.
const NOTE_PVH_ENTRY: u32 = 18;
/// `XEN_ELFNOTE_ENTRY`: where a PV guest begins.
const NOTE_PV_ENTRY: u32 = 1;
const PT_NOTE: u32 = 4;
const MACHINE_X86_64: u16 = 62;
const HEADER_BYTES: usize = 64;

/// What of Xen a kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entries {
    pub pv: bool,
    pub pvh: bool,
}

/// The ways Xen can start this kernel: at least one.
pub fn entries(file: &[u8]) -> Result<Entries, String> {
    check_header(file)?;
    let mut entries = Entries::default();
    for notes in notes(file).ok_or("its program headers lie outside of it")? {
        scan(notes, &mut entries);
    }
    if entries == Entries::default() {
        return Err("it has no note of Xen: no kernel that Xen can start".into());
    }
    Ok(entries)
}

fn check_header(file: &[u8]) -> Result<(), String> {
    if !file.starts_with(b"\x7fELF") {
        return Err("it is no ELF file".into());
    }
    let (class, order) = (file.get(4), file.get(5));
    if file.len() < HEADER_BYTES || class != Some(&2) || order != Some(&1) {
        return Err("it is no little-endian 64-bit ELF file".into());
    }
    match u16_at(file, 18) {
        Some(MACHINE_X86_64) => Ok(()),
        machine => Err(format!(
            "it is for ELF machine {}, expected {MACHINE_X86_64} (x86-64)",
            machine.unwrap_or(0)
        )),
    }
}

/// The contents of all note segments; `None` if one is not in the file.
fn notes(file: &[u8]) -> Option<Vec<&[u8]>> {
    let start = usize::try_from(u64_at(file, 32)?).ok()?;
    let (size, count) = (u16_at(file, 54)?.into(), u16_at(file, 56)?.into());
    let header = |n: usize| file.get(start.checked_add(n.checked_mul(size)?)?..);
    let mut found = Vec::new();
    for n in 0..count {
        let header = header(n)?;
        if u32_at(header, 0)? == PT_NOTE {
            found.push(slice(file, u64_at(header, 8)?, u64_at(header, 32)?)?);
        }
    }
    Some(found)
}

/// Looks for entries of Xen among notes; what is cut short ends them.
fn scan(mut notes: &[u8], entries: &mut Entries) {
    while let Some((name, kind, rest)) = next_note(notes) {
        if name == b"Xen\0" {
            entries.pvh |= kind == NOTE_PVH_ENTRY;
            entries.pv |= kind == NOTE_PV_ENTRY;
        }
        notes = rest;
    }
}

/// The first note's name and type, and what follows it.
fn next_note(notes: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let (name_bytes, bytes, kind) = (u32_at(notes, 0)?, u32_at(notes, 4)?, u32_at(notes, 8)?);
    let name = slice(notes, 12, name_bytes.into())?;
    let end = 12 + padded(name_bytes) + padded(bytes);
    Some((name, kind, notes.get(usize::try_from(end).ok()?..)?))
}

fn padded(bytes: u32) -> u64 {
    u64::from(bytes).next_multiple_of(4)
}

fn slice(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(start..end)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A kernel of nothing but a header and notes of these types.
    pub fn kernel(types: &[u32]) -> Vec<u8> {
        let mut notes = Vec::new();
        for kind in types {
            for word in [4, 8, *kind] {
                notes.extend(u32::to_le_bytes(word));
            }
            notes.extend(b"Xen\0\0\0\0\0\0\0\0\0");
        }
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 62;
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64] = 4;
        file[64 + 8] = 64 + 56;
        file[64 + 32] = notes.len() as u8;
        file.extend(notes);
        file
    }

    #[test]
    fn the_notes_say_how_a_kernel_starts() {
        let of = |types: &[u32]| entries(&kernel(types)).unwrap();
        let (pv, pvh) = (of(&[6, 1]), of(&[18]));
        assert_eq!((pv.pv, pv.pvh), (true, false));
        assert_eq!((pvh.pv, pvh.pvh), (false, true));
        assert_eq!(
            of(&[1, 18]),
            Entries {
                pv: true,
                pvh: true
            }
        );
    }

    #[test]
    fn what_is_no_kernel_is_told_why() {
        let mut arm = kernel(&[1]);
        arm[18] = 183;
        let mut narrow = kernel(&[1]);
        narrow[4] = 1;
        let mut outside = kernel(&[1]);
        outside[64 + 32] = 255;
        for (file, words) in [
            (&b"#!/bin/sh\n"[..], "no ELF file"),
            (&b"\x7fELF\x02"[..], "no little-endian 64-bit"),
            (&narrow, "no little-endian 64-bit"),
            (&arm, "machine 183"),
            (&outside, "outside"),
            (&kernel(&[6]), "no note of Xen"),
        ] {
            assert!(entries(file).unwrap_err().contains(words), "{words}");
        }
    }

    #[test]
    fn a_kernel_cut_short_or_changed_anywhere_is_no_panic() {
        let whole = kernel(&[1, 18]);
        for end in 0..whole.len() {
            let _ = entries(&whole[..end]);
            for value in [0, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[end] = value;
                let _ = entries(&changed);
            }
        }
    }
}
