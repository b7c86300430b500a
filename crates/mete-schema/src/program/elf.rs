//! Programs and libraries as files (ELF, 64 bits, little endian): their symbols, segments and notes.
//!
//! Only what a point can ask for, read from where it lies: programs may be larger than memory. Nothing is trusted;
//! what lies outside of the file is not there.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// All that is read of a file may have so many bytes; the largest programs have a fifth. Sections that lie in each other
/// would otherwise make a small file a large one.
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

/// What kind of symbol it is, of those that a point can be put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It begins at this address.
    Function,
    /// A library asks it which of several functions is best for this machine.
    Chooser,
    /// It is in a library.
    Imported,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'a> {
    pub name: &'a str,
    pub address: u64,
    pub kind: Kind,
}

/// A part of the file that is mapped for execution.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// A table of symbols, with its names.
struct Table {
    symbols: Vec<u8>,
    names: Vec<u8>,
}

impl Table {
    fn symbols(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.symbols.chunks_exact(SYMBOL_BYTES).filter_map(|entry| symbol(entry, &self.names))
    }
}

/// What was read of a file.
pub(super) struct Elf {
    segments: Vec<Segment>,
    tables: Vec<Table>,
    /// The contents of each section of notes.
    pub notes: Vec<Vec<u8>>,
    /// Whether it has the symbols that `strip` takes away.
    pub has_all_symbols: bool,
}

/// Why a file is not read.
pub(super) enum Refused {
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

/// A file, and how much of it may still be read.
struct Source<'a> {
    file: &'a File,
    length: u64,
    left: Cell<u64>,
}

impl Source<'_> {
    fn new(file: &File) -> io::Result<Source<'_>> {
        let length = file.metadata()?.len();
        Ok(Source { file, length, left: Cell::new(MAX_BYTES) })
    }

    /// So many bytes, none if they are not all there.
    fn read(&self, offset: u64, bytes: u64) -> Option<Vec<u8>> {
        let is_there = offset.checked_add(bytes)? <= self.length;
        self.left.set(self.left.get().checked_sub(bytes).filter(|_| is_there)?);
        let mut read = vec![0; bytes as usize];
        self.file.read_exact_at(&mut read, offset).ok()?;
        Some(read)
    }
}

impl Elf {
    pub(super) fn read(file: &File) -> Result<Elf, Refused> {
        let mut head = [0; 64];
        let length = file.read_at(&mut head, 0).map_err(Refused::Read)?;
        check_head(&head[..length]).map_err(Refused::Format)?;
        let file = &Source::new(file).map_err(Refused::Read)?;
        let cut_off = || Refused::Format("its tables lie outside of it");
        let segments = segments(file, &head).ok_or_else(cut_off)?;
        let sections = sections(file, &head).ok_or_else(cut_off)?;
        let of = |kind| sections.iter().filter(move |section| section.kind == kind);
        let tables = of(SYMBOLS).chain(of(DYNAMIC_SYMBOLS));
        let tables = tables.filter_map(|section| table(file, section, &sections)).collect();
        let notes = of(NOTES).filter_map(|section| file.read(section.offset, section.bytes)).collect();
        Ok(Elf { segments, tables, notes, has_all_symbols: of(SYMBOLS).next().is_some() })
    }

    /// All symbols that a point may mean.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.tables.iter().flat_map(Table::symbols)
    }

    /// Where in the file the code of this address lies.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| {
            address.checked_sub(segment.address).is_some_and(|distance| distance < segment.bytes)
        })?;
        (address - segment.address).checked_add(segment.offset)
    }
}

fn check_head(head: &[u8]) -> Result<(), &'static str> {
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    match head {
        [b'#', b'!', ..] => Err("it is a script: put the point on the program that runs it"),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] if head.len() == 64 => match u16_at(head, 18) {
            Some(found) if found == machine => Ok(()),
            _ => Err("it is for another kind of machine"),
        },
        [0x7f, b'E', b'L', b'F', ..] => Err("it is for another kind of machine, or cut off"),
        _ => Err("it is no program and no library (ELF)"),
    }
}

fn segments(file: &Source<'_>, head: &[u8]) -> Option<Vec<Segment>> {
    let count = u16_at(head, 56)?;
    let table = file.read(u64_at(head, 32)?, u64::from(count) * SEGMENT_BYTES as u64)?;
    let segment = |entry: &[u8]| {
        let is_code = u32_at(entry, 0)? == LOADED && u32_at(entry, 4)? & EXECUTABLE != 0;
        let found =
            Segment { offset: u64_at(entry, 8)?, address: u64_at(entry, 16)?, bytes: u64_at(entry, 32)? };
        is_code.then_some(found)
    };
    Some(table.chunks_exact(SEGMENT_BYTES).filter_map(segment).collect())
}

fn sections(file: &Source<'_>, head: &[u8]) -> Option<Vec<Section>> {
    let count = u16_at(head, 60)?;
    let table = file.read(u64_at(head, 40)?, u64::from(count) * SECTION_BYTES as u64)?;
    let section = |entry: &[u8]| {
        let kind = u32_at(entry, 4)?;
        let bytes = if kind == NO_BITS { 0 } else { u64_at(entry, 32)? };
        Some(Section { kind, offset: u64_at(entry, 24)?, bytes, link: u32_at(entry, 40)? })
    };
    table.chunks_exact(SECTION_BYTES).map(section).collect()
}

fn table(file: &Source<'_>, section: &Section, sections: &[Section]) -> Option<Table> {
    let names = sections.get(section.link as usize)?;
    let symbols = file.read(section.offset, section.bytes)?;
    Some(Table { symbols, names: file.read(names.offset, names.bytes)? })
}

fn symbol<'a>(entry: &[u8], names: &'a [u8]) -> Option<Symbol<'a>> {
    const FUNCTION: u8 = 2;
    const CHOOSER: u8 = 10;
    let is_elsewhere = u16_at(entry, 6)? == 0;
    let kind = match entry.get(4)? & 15 {
        FUNCTION | CHOOSER | 0 if is_elsewhere => Kind::Imported,
        FUNCTION => Kind::Function,
        CHOOSER => Kind::Chooser,
        _ => return None,
    };
    let name = text_at(names, u32_at(entry, 0)? as usize).filter(|name| !name.is_empty())?;
    Some(Symbol { name, address: u64_at(entry, 8)?, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_8_sections_that_lie_in_each_other_are_not_read_without_end() -> io::Result<()> {
        let file = File::open("/proc/self/exe")?;
        let source = Source { left: Cell::new(100), ..Source::new(&file)? };
        assert_eq!(source.read(0, 64).map(|bytes| bytes.len()), Some(64));
        assert_eq!(source.read(0, 64), None);
        assert_eq!(source.read(0, 36).map(|bytes| bytes.len()), Some(36));
        assert_eq!(source.read(source.length, 1), None);
        Ok(())
    }
}
