//! A small program as a file.

/// Bytes of the header, of a segment's and of a section's entry.
const HEAD: u64 = 64;
const SEGMENT: u64 = 56;
const SECTION: u64 = 64;
/// Where its code lies in the file, and where in memory.
pub const CODE_OFFSET: u64 = 0x1000;
pub const CODE_ADDRESS: u64 = 0x40_1000;
const CODE_BYTES: u64 = 0x100;

const FUNCTION: u8 = 0x12;
const CHOOSER: u8 = 0x1a;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A symbol's entry; the name is appended to `names`.
fn symbol(names: &mut Vec<u8>, name: &str, info: u8, section: u16, address: u64) -> Vec<u8> {
    let at = names.len() as u32;
    names.extend([name.as_bytes(), b"\0"].concat());
    let head = halves(at, u32::from(info) | u32::from(section) << 16);
    words(&[head, address, 0])
}

/// A static probe's note.
fn note(provider: &str, name: &str, arguments: &str) -> Vec<u8> {
    let texts = [provider, name, arguments].map(|text| format!("{text}\0")).concat();
    let mut note = [8, 24 + texts.len() as u32, 3].map(u32::to_le_bytes).concat();
    note.extend(b"stapsdt\0");
    note.extend(words(&[CODE_ADDRESS, 0, 0]));
    note.extend(texts.as_bytes());
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// A program with the functions `serve` and `_ZN4core4mainE`, with `malloc` from a library, with `copy`,
/// which stands for several functions, and with the static probe `store:request`, which passes two values.
pub fn program() -> Vec<u8> {
    let mut names = vec![0];
    let symbols = [
        symbol(&mut names, "serve", FUNCTION, 1, CODE_ADDRESS + 0x20),
        symbol(&mut names, "_ZN4core4mainE", FUNCTION, 1, CODE_ADDRESS),
        symbol(&mut names, "malloc", FUNCTION, 0, 0),
        symbol(&mut names, "copy", CHOOSER, 1, CODE_ADDRESS + 0x40),
        symbol(&mut names, "copy", FUNCTION, 1, CODE_ADDRESS + 0x60),
    ]
    .concat();
    let notes = note("store", "request", "-4@%edi 8@-8(%rbp)");
    let tables = HEAD + SEGMENT;
    let symbols_at = tables + 4 * SECTION;
    let names_at = symbols_at + symbols.len() as u64;
    let notes_at = names_at + names.len() as u64;
    let section = |kind, offset, bytes, link| words(&[halves(0, kind), 0, 0, offset, bytes, link, 0, 0]);
    let machine: u32 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let file = [
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
        words(&[halves(2 | machine << 16, 1), 0, HEAD, tables, halves(0, HEAD as u32 | 56 << 16), 0]),
    ];
    let mut file = file.concat();
    file[56..64].copy_from_slice(&[1_u16, 64, 4, 0].map(u16::to_le_bytes).concat());
    file.extend(words(&[halves(1, 5), CODE_OFFSET, CODE_ADDRESS, 0, CODE_BYTES, CODE_BYTES, 0x1000]));
    file.extend(section(0, 0, 0, 0));
    file.extend(section(2, symbols_at, symbols.len() as u64, 2));
    file.extend(section(3, names_at, names.len() as u64, 0));
    file.extend(section(7, notes_at, notes.len() as u64, 0));
    file.extend([symbols, names, notes].concat());
    file
}
