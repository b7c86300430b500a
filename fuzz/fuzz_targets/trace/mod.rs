//! A processor's file from an input, for the targets that read or convert traces.
//!
//! Half of the inputs are calls that build whole blocks, of which bytes are then changed: no fuzzer finds a
//! block's header and checksum by chance, and what lies behind them would not be reached. The other half are
//! a file's bytes.

use std::path::PathBuf;

use mete_trace::block::{Builder, HEADER_BYTES, checksum, offset};
use mete_trace::record::Head;

pub const BLOCK_BYTES: usize = 8192;
const RECORDING: [u8; 16] = [0; 16];

/// The input, read from the front; zeros once it is used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// A directory of this process for its files. It stays from input to input, because making one takes longer
/// than reading.
pub fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("mete-fuzz-trace-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary folder");
    directory
}

/// The bytes of a file: built as the input says, or the input itself.
pub fn file(mut input: Bytes<'_>) -> Vec<u8> {
    let kind = input.byte();
    let mut file = if kind & 1 == 0 { built(&mut input) } else { input.0.to_vec() };
    if kind & 2 == 0 {
        with_checksums(&mut file);
    }
    file
}

/// Blocks that calls of the builder make, with some bytes changed.
fn built(input: &mut Bytes<'_>) -> Vec<u8> {
    let mut builder = Builder::new(RECORDING, 0, BLOCK_BYTES as u32);
    let (mut serial, mut time, mut file) = (0, 0, Vec::new());
    let changes = input.byte() % 8;
    let changes: Vec<_> = (0..changes).map(|_| (input.word() as usize, input.byte())).collect();
    while !input.0.is_empty() {
        let step = input.byte();
        serial += u64::from(step >> 6);
        time = next_time(time, input);
        let words = 2 + usize::from(input.byte() % 32);
        let event = u16::from(input.byte() % 16) | if step & 1 == 0 { 0 } else { 0xfff0 };
        let head = Head { event, bytes: 8 * words as u16, serial: serial as u32 };
        let mut record = vec![head.to_word(), time];
        record.extend((2..words).map(|_| input.word()));
        if step & 0x3e == 0 || !builder.push(serial, &record) {
            push_block(&mut file, &builder.seal().bytes);
            continue;
        }
        serial += 1;
    }
    push_block(&mut file, &builder.seal_last(serial).bytes);
    for (at, byte) in changes {
        let at = at % file.len();
        file[at] = byte;
    }
    file
}

/// Mostly later, now and then anything.
fn next_time(time: u64, input: &mut Bytes<'_>) -> u64 {
    match input.byte() {
        255 => input.word(),
        254 => time.wrapping_sub(input.byte().into()),
        later => time.wrapping_add(u64::from(later) << (later % 40)),
    }
}

fn push_block(file: &mut Vec<u8>, block: &[u8]) {
    file.extend(block);
    file.resize(file.len().next_multiple_of(BLOCK_BYTES), 0);
}

/// Makes the checksums right.
fn with_checksums(file: &mut [u8]) {
    for block in file.chunks_mut(BLOCK_BYTES) {
        if block.len() < HEADER_BYTES {
            return;
        }
        let used = u32::from_le_bytes([84, 85, 86, 87].map(|at| block[at])) as usize;
        if let Some(written) = block.get(..HEADER_BYTES.saturating_add(used)) {
            let sum = checksum(written);
            block[offset::CHECKSUM..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
    }
}
