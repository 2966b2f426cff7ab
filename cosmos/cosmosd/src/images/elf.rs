// SPDX-License-Identifier: Apache-2.0
//! Checks that a file is a kernel for Xen: ELF for x86-64 with Xen's notes. Sources: the ELF
//! specification, and xen/elfnote.h for the numbers of the notes.

/// `XEN_ELFNOTE_PHYS32_ENTRY`: where a PVH guest begins.
const NOTE_PVH_ENTRY: u32 = 18;
/// `XEN_ELFNOTE_ENTRY`: where a PV guest begins.
const NOTE_PV_ENTRY: u32 = 1;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const MACHINE_X86_64: u16 = 62;
const HEADER_BYTES: usize = 64;
/// `sizeof(Elf64_Phdr)`.
const ENTRY_BYTES: u16 = 56;
/// The mark of a compressed Linux kernel, and its place (Linux, Documentation/arch/x86/boot.rst).
const BZIMAGE: &[u8] = b"HdrS";
const BZIMAGE_AT: usize = 0x202;
const COMPRESSED: &str = "it is a compressed Linux kernel (bzImage), which would be unpacked in \
                          domain 0; give the ELF file in it (extract-vmlinux)";
/// The mark of a table for Xen's loader of plain binaries (`XEN_MULTIBOOT_MAGIC3`), which the loader
/// looks for in words of this part.
const PLAIN: [u8; 4] = 0x336e_c578_u32.to_le_bytes();
const PLAIN_WITHIN: usize = (8 << 10) + 32;
/// Most program headers; a Linux kernel has 5.
const MAX_ENTRIES: u16 = 64;
/// Most bytes of all note segments together; a Linux kernel has less than 1 KiB.
const MAX_NOTE_BYTES: u64 = 64 << 10;
/// Most memory that the segments of a kernel span.
const MAX_SPAN: u64 = 256 << 20;

/// The entry points of a kernel, and the memory that it is loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entries {
    pub pv: bool,
    pub pvh: bool,
    /// The first physical address behind its segments.
    pub end: u64,
}

/// A program header.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

/// The ways Xen can start this kernel: at least one.
pub fn entries(file: &[u8]) -> Result<Entries, String> {
    let segments = segments(file)?;
    let mut entries = Entries {
        end: check_memory(&segments)?,
        ..Entries::default()
    };
    for notes in notes(file, &segments)? {
        scan(notes, &mut entries);
    }
    if !entries.pv && !entries.pvh {
        return Err("it has no note of Xen: no kernel that Xen can start".into());
    }
    Ok(entries)
}

fn check_header(file: &[u8]) -> Result<(), String> {
    // Xen asks its loaders of plain binaries and of bzImage before that of ELF, and a file can be both.
    if file.get(BZIMAGE_AT..BZIMAGE_AT + BZIMAGE.len()) == Some(BZIMAGE) {
        return Err(COMPRESSED.into());
    }
    let head = &file[..file.len().min(PLAIN_WITHIN)];
    if head.chunks_exact(PLAIN.len()).any(|word| word == PLAIN) {
        return Err("it has a table for Xen's loader of plain binaries".into());
    }
    if !file.starts_with(b"\x7fELF") {
        return Err("it is no ELF file".into());
    }
    let (class, order) = (file.get(4), file.get(5));
    if file.len() < HEADER_BYTES || class != Some(&2) || order != Some(&1) {
        return Err("it is not a little-endian 64-bit ELF file".into());
    }
    match u16_at(file, 18) {
        Some(MACHINE_X86_64) => Ok(()),
        machine => Err(format!(
            "it is for ELF machine {}, expected {MACHINE_X86_64} (x86-64)",
            machine.unwrap_or(0)
        )),
    }
}

/// The program headers; everything they name lies in the file.
fn segments(file: &[u8]) -> Result<Vec<Segment>, String> {
    check_header(file)?;
    let word = |at| u16_at(file, at).unwrap_or(0);
    let (start, bytes, count) = (u64_at(file, 32).unwrap_or(0), word(54), word(56));
    if bytes != ENTRY_BYTES {
        return Err(format!(
            "its program headers have {bytes} bytes each, expected {ENTRY_BYTES}"
        ));
    }
    if !(1..=MAX_ENTRIES).contains(&count) {
        return Err(format!(
            "it has {count} program headers, expected 1 to {MAX_ENTRIES}"
        ));
    }
    let table = slice(file, start, u64::from(bytes) * u64::from(count));
    let table = table.ok_or("its program headers lie outside the file")?;
    let entries = table.chunks_exact(ENTRY_BYTES.into());
    let segments: Option<Vec<Segment>> = entries.map(segment).collect();
    let segments = segments.unwrap_or_default();
    let lies_in = |s: &Segment| slice(file, s.offset, s.file_bytes).is_some();
    match segments.iter().position(|s| !lies_in(s)) {
        Some(n) => Err(format!("its segment {n} lies outside the file")),
        None => Ok(segments),
    }
}

fn segment(header: &[u8]) -> Option<Segment> {
    Some(Segment {
        kind: u32_at(header, 0)?,
        offset: u64_at(header, 8)?,
        address: u64_at(header, 24)?,
        file_bytes: u64_at(header, 32)?,
        memory_bytes: u64_at(header, 40)?,
    })
}

/// Checks what the loader makes of the segments: memory in bounds, each byte loaded once. Returns
/// the end of the last one.
fn check_memory(segments: &[Segment]) -> Result<u64, String> {
    let loaded = segments.iter().filter(|s| s.kind == PT_LOAD);
    let mut ranges = Vec::new();
    for s in loaded.filter(|s| s.memory_bytes > 0 || s.file_bytes > 0) {
        let end = s.address.checked_add(s.memory_bytes);
        let end = end.filter(|_| s.file_bytes <= s.memory_bytes);
        ranges.push((s.address, end.ok_or("a segment is larger than its memory")?));
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Err("its segments overlap in memory".into());
    }
    let end = ranges.last().map_or(0, |last| last.1);
    let span = ranges.first().map_or(0, |first| end - first.0);
    if span > MAX_SPAN {
        return Err(format!(
            "its segments span {span} bytes of memory, at most {MAX_SPAN} are loaded"
        ));
    }
    Ok(end)
}

/// The contents of all note segments.
fn notes<'a>(file: &'a [u8], segments: &[Segment]) -> Result<Vec<&'a [u8]>, String> {
    let notes = segments.iter().filter(|s| s.kind == PT_NOTE);
    let (mut found, mut total) = (Vec::new(), 0u64);
    for s in notes {
        total = total.saturating_add(s.file_bytes);
        found.extend(slice(file, s.offset, s.file_bytes));
    }
    if total > MAX_NOTE_BYTES {
        return Err(format!(
            "its note segments have {total} bytes, at most {MAX_NOTE_BYTES} are read"
        ));
    }
    Ok(found)
}

/// Looks for entries of Xen among notes; what is cut short ends them. Returns the notes read.
fn scan(mut notes: &[u8], entries: &mut Entries) -> u64 {
    let mut read = 0;
    while let Some((name, kind, rest)) = next_note(notes) {
        if name == b"Xen\0" {
            entries.pvh |= kind == NOTE_PVH_ENTRY;
            entries.pv |= kind == NOTE_PV_ENTRY;
        }
        notes = rest;
        read += 1;
    }
    read
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
                pvh: true,
                end: 0
            }
        );
    }

    #[test]
    fn what_is_no_kernel_is_told_why() {
        let mut arm = kernel(&[1]);
        arm[18] = 183;
        let mut narrow = kernel(&[1]);
        narrow[4] = 1;
        let mut compressed = vec![0; 4096];
        compressed[BZIMAGE_AT..][..4].copy_from_slice(BZIMAGE);
        // Good kernels that other loaders take for theirs.
        let mut both = kernel(&[1]);
        both.resize(4096, 0);
        let mut plain = both.clone();
        both[BZIMAGE_AT..][..4].copy_from_slice(BZIMAGE);
        plain[2048..2052].copy_from_slice(&PLAIN);
        let mut outside = kernel(&[1]);
        outside[64 + 32] = 255;
        for (file, words) in [
            (&b"#!/bin/sh\n"[..], "no ELF file"),
            (&compressed, "(extract-vmlinux)"),
            (&both, "(extract-vmlinux)"),
            (&plain, "plain binaries"),
            (&b"\x7fELF\x02"[..], "not a little-endian 64-bit"),
            (&narrow, "not a little-endian 64-bit"),
            (&arm, "machine 183"),
            (&outside, "outside"),
            (&kernel(&[6]), "no note of Xen"),
        ] {
            assert!(entries(file).unwrap_err().contains(words), "{words}");
        }
    }

    /// A kernel whose program headers are all `header`.
    fn repeated(header: &[u8], count: u16) -> Vec<u8> {
        let mut file = kernel(&[1]);
        let notes = file.split_off(64 + 56);
        file.truncate(64);
        file[56..58].copy_from_slice(&count.to_le_bytes());
        (0..count).for_each(|_| file.extend(header));
        file.extend(notes);
        file
    }

    fn header(kind: u32, words: [u64; 5]) -> Vec<u8> {
        let [offset, address, rest @ ..] = words;
        let mut header = u64::from(kind).to_le_bytes().to_vec();
        for word in [offset, 0, address].into_iter().chain(rest) {
            header.extend(word.to_le_bytes());
        }
        header
    }

    #[test]
    fn the_end_of_a_kernel_in_memory_is_known() {
        let load = header(PT_LOAD, [0, 16 << 20, 64, 4 << 20, 1]);
        let mut file = kernel(&[1]);
        // The table moves behind the notes, and has one more row.
        let table = file.len() as u64;
        file.extend_from_within(64..64 + 56);
        file.extend(load);
        file[32..40].copy_from_slice(&table.to_le_bytes());
        file[56] = 2;
        let found = entries(&file).unwrap();
        assert_eq!((found.end, found.pv), (20 << 20, true));
    }

    #[test]
    fn headers_that_cost_much_work_or_memory_are_refused() {
        let mut shared = kernel(&[1]);
        (shared[54], shared[56], shared[57]) = (0, 255, 255);
        let many = repeated(&header(PT_NOTE, [0, 0, 64, 64, 4]), 65);
        let mut long = repeated(&header(PT_NOTE, [0, 0, 2000, 2000, 4]), 64);
        long.resize(10_000, 0);
        let load = |address, memory| header(PT_LOAD, [0, address, 64, memory, 1]);
        for (file, words) in [
            (shared, "have 0 bytes each, expected 56"),
            (
                repeated(b"", 0),
                "it has 0 program headers, expected 1 to 64",
            ),
            (many, "it has 65 program headers, expected 1 to 64"),
            (long, "its note segments have 128000 bytes, at most 65536"),
            (repeated(&load(0, 64), 2), "overlap in memory"),
            (repeated(&load(0, 1 << 40), 1), "span 1099511627776 bytes"),
            (repeated(&load(u64::MAX, 64), 1), "larger than its memory"),
            (repeated(&load(0, 63), 1), "larger than its memory"),
        ] {
            let error = entries(&file).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    /// Notes read of a file; each takes 12 bytes at least.
    fn steps(file: &[u8]) -> u64 {
        let segments = segments(file).unwrap_or_default();
        let notes = notes(file, &segments).unwrap_or_default();
        let mut entries = Entries::default();
        notes.into_iter().map(|n| scan(n, &mut entries)).sum()
    }

    #[test]
    fn the_work_is_bounded_whatever_the_headers_say() {
        // All headers name the same note segment of 256 bytes, full of the smallest notes.
        let mut file = repeated(&header(PT_NOTE, [64 + 64 * 56, 0, 256, 256, 4]), 64);
        file.resize(64 + 64 * 56 + 4096, 0);
        assert!(steps(&file) > 64 * 19);
        let mut seed = 1u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..1000 {
            let mut changed = file.clone();
            for _ in 0..1 + random() % 4 {
                let at = random() as usize % (64 + 56 * 4);
                changed[at] = random() as u8;
            }
            assert!(steps(&changed) <= MAX_NOTE_BYTES / 12);
            let _ = entries(&changed);
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
