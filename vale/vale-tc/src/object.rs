// SPDX-License-Identifier: Apache-2.0
//! The programs as an object file, the form in which loaders and `llvm-objdump` take them.
use object::write::{Object, Relocation, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope,
};

use crate::asm::{INSTRUCTION, Map, Program};
use crate::connection::KEY_BYTES;
use crate::counter;
use crate::policy::Policy;
use crate::program::Programs;

pub const FROM_GUEST: &str = "from_guest";
pub const TO_GUEST: &str = "to_guest";
pub const CONNECTIONS: &str = "connections";
pub const COUNTERS: &str = "counters";
/// Connections of a vif, as many as of a port of valed.
const MAX_CONNECTIONS: u32 = 8192;
/// include/uapi/linux/bpf.h: the least recently used entry gives way.
const LRU_HASH: u32 = 9;
const PERCPU_ARRAY: u32 = 6;
/// The loader opens or makes the map by its name in a folder of the BPF file system.
const PIN_BY_NAME: u32 = 1;
/// R_BPF_64_64: the address of a map in a load of 64 bits.
const MAP_ADDRESS: u32 = 1;

/// `struct bpf_map_def`: type, key, value, entries, flags, id, pinning.
type Definition = [u32; 7];

/// Compiles a policy to an object file.
///
/// # Errors
/// A program is too long.
pub fn compile(policy: &Policy) -> Result<Vec<u8>, String> {
    let programs = Programs::of(policy)?;
    let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    section(&mut object, "license", b"Apache-2.0\0", SectionKind::Data);
    let counters = counter::count(policy) as u32;
    let time = size_of::<u64>() as u32;
    let connections = [
        LRU_HASH,
        KEY_BYTES as u32,
        time,
        MAX_CONNECTIONS,
        0,
        0,
        PIN_BY_NAME,
    ];
    let counters = [PERCPU_ARRAY, 4, 8, counters, 0, 0, PIN_BY_NAME];
    let maps = maps(
        &mut object,
        [(CONNECTIONS, connections), (COUNTERS, counters)],
    );
    program(&mut object, FROM_GUEST, &programs.from_guest, maps)?;
    program(&mut object, TO_GUEST, &programs.to_guest, maps)?;
    object.write().map_err(|e| format!("object file: {e}"))
}

fn section(object: &mut Object<'_>, name: &str, data: &[u8], kind: SectionKind) -> SymbolSection {
    let id = object.add_section(Vec::new(), name.into(), kind);
    object.append_section_data(id, data, INSTRUCTION as u64);
    SymbolSection::Section(id)
}

fn symbol(section: SymbolSection, name: &str, value: u64, size: u64, kind: SymbolKind) -> Symbol {
    Symbol {
        name: name.into(),
        value,
        size,
        kind,
        scope: SymbolScope::Linkage,
        weak: false,
        section,
        flags: SymbolFlags::None,
    }
}

fn maps<const N: usize>(
    object: &mut Object<'_>,
    definitions: [(&str, Definition); N],
) -> [SymbolId; N] {
    let bytes: Vec<u8> = definitions
        .iter()
        .flat_map(|(_, definition)| definition.iter().flat_map(|word| word.to_le_bytes()))
        .collect();
    let section = section(object, "maps", &bytes, SectionKind::Data);
    let size = size_of::<Definition>() as u64;
    let mut at = 0;
    definitions.map(|(name, _)| {
        at += size;
        object.add_symbol(symbol(section, name, at - size, size, SymbolKind::Data))
    })
}

fn program(
    object: &mut Object<'_>,
    name: &str,
    program: &Program,
    maps: [SymbolId; 2],
) -> Result<(), String> {
    let code = program.code.as_flattened();
    let section = section(
        object,
        &format!("classifier/{name}"),
        code,
        SectionKind::Text,
    );
    let size = code.len() as u64;
    object.add_symbol(symbol(section, name, 0, size, SymbolKind::Text));
    let Some(id) = section.id() else {
        return Ok(());
    };
    for (at, map) in &program.maps {
        let symbol = match map {
            Map::Connections => maps[0],
            Map::Counters => maps[1],
        };
        let relocation = Relocation {
            offset: (at * INSTRUCTION) as u64,
            symbol,
            addend: 0,
            flags: RelocationFlags::Elf {
                r_type: MAP_ADDRESS,
            },
        };
        let added = object.add_relocation(id, relocation);
        added.map_err(|e| format!("object file: {e}"))?;
    }
    Ok(())
}
