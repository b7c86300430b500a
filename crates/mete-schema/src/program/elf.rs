//! Programs and libraries as files (ELF, 64 bits, little endian): their symbols, segments and notes.
//!
//! Only what a point can ask for is read, and only from its place in the file, because programs may be larger
//! than memory. Nothing is trusted: a part that lies outside of the file counts as missing.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The most bytes that are read of one file in all. The largest programs have a fifth of that. Without the
/// limit, sections that overlap could turn a small file into a large one.
const MAX_BYTES: u64 = 2 << 30;

const LOADED: u32 = 1;
const EXECUTABLE: u32 = 1;
const SYMBOLS: u32 = 2;
const NOTES: u32 = 7;
const DYNAMIC_SYMBOLS: u32 = 11;
const NO_BITS: u32 = 8;

const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SYMBOL_BYTES: usize = 24;

/// The kinds of symbol that a point can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymbolKind {
    /// A function that begins at the symbol's address.
    Function,
    /// A function that chooses one of several functions for this machine (`IFUNC`).
    Chooser,
    /// A function in a library.
    Imported,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'a> {
    pub name: &'a str,
    pub address: u64,
    pub kind: SymbolKind,
}

/// A part of the file that is mapped for execution.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// A table of symbols, with its names.
struct SymbolTable {
    symbols: Vec<u8>,
    names: Vec<u8>,
}

impl SymbolTable {
    fn symbols(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.symbols.chunks_exact(SYMBOL_BYTES).filter_map(|entry| symbol(entry, &self.names))
    }
}

/// The parts of a file that points can ask for.
pub(super) struct Elf {
    segments: Vec<Segment>,
    tables: Vec<SymbolTable>,
    /// The contents of each section of notes.
    pub notes: Vec<Vec<u8>>,
    /// Whether it has the symbols that `strip` removes.
    pub has_all_symbols: bool,
}

/// Why a file is not read.
pub(super) enum ElfRefusal {
    Read(io::Error),
    Format(&'static str),
}

#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    bytes: u64,
    link: u32,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The text that begins at this place and ends with a zero.
pub(super) fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()
}

/// A file, and the number of bytes that may still be read of it.
struct ElfFile<'a> {
    file: &'a File,
    length: u64,
    left: Cell<u64>,
}

impl ElfFile<'_> {
    fn new(file: &File) -> io::Result<ElfFile<'_>> {
        let length = file.metadata()?.len();
        Ok(ElfFile { file, length, left: Cell::new(MAX_BYTES) })
    }

    /// Reads this number of bytes; `None` if they are not all in the file.
    fn read(&self, offset: u64, bytes: u64) -> Option<Vec<u8>> {
        // Checked before memory is allocated, because a damaged file may ask for any number.
        let is_there = offset.checked_add(bytes)? <= self.length;
        self.left.set(self.left.get().checked_sub(bytes).filter(|_| is_there)?);
        let mut read = vec![0; bytes as usize];
        self.file.read_exact_at(&mut read, offset).ok()?;
        Some(read)
    }
}

impl Elf {
    pub(super) fn read(file: &File) -> Result<Elf, ElfRefusal> {
        let mut head = [0; 64];
        let length = file.read_at(&mut head, 0).map_err(ElfRefusal::Read)?;
        check_head(&head[..length]).map_err(ElfRefusal::Format)?;
        let file = &ElfFile::new(file).map_err(ElfRefusal::Read)?;
        let cut_off = || ElfRefusal::Format("its tables lie outside of it");
        let segments = segments(file, &head).ok_or_else(cut_off)?;
        let sections = sections(file, &head).ok_or_else(cut_off)?;
        let of = |kind| sections.iter().filter(move |section| section.kind == kind);
        // All symbols first: where `strip` has removed them, those that the program exports are left.
        let tables = of(SYMBOLS).chain(of(DYNAMIC_SYMBOLS));
        let tables = tables.filter_map(|section| table(file, section, &sections)).collect();
        let notes = of(NOTES).filter_map(|section| file.read(section.offset, section.bytes)).collect();
        Ok(Elf { segments, tables, notes, has_all_symbols: of(SYMBOLS).next().is_some() })
    }

    /// All symbols that a point may mean.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.tables.iter().flat_map(SymbolTable::symbols)
    }

    /// The offset in the file of the code at this address.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| {
            address.checked_sub(segment.address).is_some_and(|distance| distance < segment.bytes)
        })?;
        (address - segment.address).checked_add(segment.offset)
    }
}

fn check_head(head: &[u8]) -> Result<(), &'static str> {
    // The numbers of AArch64 and of x86-64.
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    match head {
        [b'#', b'!', ..] => Err("it is a script: put the point on the program that runs it"),
        // 2 means 64 bits, and 1 little endian.
        [0x7f, b'E', b'L', b'F', 2, 1, ..] if head.len() == 64 => match u16_at(head, 18) {
            Some(found) if found == machine => Ok(()),
            _ => Err("it is for another kind of machine"),
        },
        [0x7f, b'E', b'L', b'F', ..] => Err("it is for another kind of machine, or cut off"),
        _ => Err("it is no program and no library (ELF)"),
    }
}

fn segments(file: &ElfFile<'_>, head: &[u8]) -> Option<Vec<Segment>> {
    let count = u16_at(head, 56)?;
    let table = file.read(u64_at(head, 32)?, u64::from(count) * SEGMENT_BYTES as u64)?;
    Some(table.chunks_exact(SEGMENT_BYTES).filter_map(code_segment).collect())
}

/// A segment of a table's entry, if it is mapped for execution.
fn code_segment(entry: &[u8]) -> Option<Segment> {
    let is_code = u32_at(entry, 0)? == LOADED && u32_at(entry, 4)? & EXECUTABLE != 0;
    let segment =
        Segment { offset: u64_at(entry, 8)?, address: u64_at(entry, 16)?, bytes: u64_at(entry, 32)? };
    is_code.then_some(segment)
}

fn sections(file: &ElfFile<'_>, head: &[u8]) -> Option<Vec<Section>> {
    let count = u16_at(head, 60)?;
    let table = file.read(u64_at(head, 40)?, u64::from(count) * SECTION_BYTES as u64)?;
    table.chunks_exact(SECTION_BYTES).map(section).collect()
}

fn section(entry: &[u8]) -> Option<Section> {
    let kind = u32_at(entry, 4)?;
    // Such a section has a size in memory, but no bytes in the file.
    let bytes = if kind == NO_BITS { 0 } else { u64_at(entry, 32)? };
    Some(Section { kind, offset: u64_at(entry, 24)?, bytes, link: u32_at(entry, 40)? })
}

fn table(file: &ElfFile<'_>, section: &Section, sections: &[Section]) -> Option<SymbolTable> {
    // A table of symbols is linked to the section with their names.
    let names = sections.get(section.link as usize)?;
    let symbols = file.read(section.offset, section.bytes)?;
    Some(SymbolTable { symbols, names: file.read(names.offset, names.bytes)? })
}

fn symbol<'a>(entry: &[u8], names: &'a [u8]) -> Option<Symbol<'a>> {
    const FUNCTION: u8 = 2;
    const CHOOSER: u8 = 10;
    // Section 0 means that the symbol is defined elsewhere.
    let is_elsewhere = u16_at(entry, 6)? == 0;
    // The lower half of the byte is the type; the type of a symbol that is defined elsewhere may be unknown
    // (0).
    let kind = match entry.get(4)? & 15 {
        FUNCTION | CHOOSER | 0 if is_elsewhere => SymbolKind::Imported,
        FUNCTION => SymbolKind::Function,
        CHOOSER => SymbolKind::Chooser,
        _ => return None,
    };
    let name = text_at(names, u32_at(entry, 0)? as usize).filter(|name| !name.is_empty())?;
    Some(Symbol { name, address: u64_at(entry, 8)?, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_8_sections_that_overlap_are_not_read_without_end() -> io::Result<()> {
        let file = File::open("/proc/self/exe")?;
        let source = ElfFile { left: Cell::new(100), ..ElfFile::new(&file)? };
        assert_eq!(source.read(0, 64).map(|bytes| bytes.len()), Some(64));
        assert_eq!(source.read(0, 64), None);
        assert_eq!(source.read(0, 36).map(|bytes| bytes.len()), Some(36));
        assert_eq!(source.read(source.length, 1), None);
        Ok(())
    }
}
