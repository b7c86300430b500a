//! Text, written quickly: a million events are some ten million numbers.

use std::io;

/// Collects text and hands it on in large pieces.
#[derive(Debug)]
pub struct Out<W> {
    buffer: Vec<u8>,
    to: W,
}

const PIECE: usize = 256 << 10;

impl<W: io::Write> Out<W> {
    pub fn new(to: W) -> Out<W> {
        Out { buffer: Vec::with_capacity(PIECE + 4096), to }
    }

    #[inline]
    pub fn text(&mut self, text: &str) -> &mut Out<W> {
        self.buffer.extend_from_slice(text.as_bytes());
        self
    }

    #[inline]
    pub fn number(&mut self, number: impl itoa::Integer) -> &mut Out<W> {
        self.buffer.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self
    }

    /// A number, nothing if there is none.
    #[inline]
    pub fn maybe(&mut self, number: Option<u64>) -> &mut Out<W> {
        if let Some(number) = number {
            self.number(number);
        }
        self
    }

    /// A number so short that it can be read back exactly.
    pub fn float(&mut self, number: f64) -> &mut Out<W> {
        self.text(&format!("{number:?}"))
    }

    pub fn hexadecimal(&mut self, bytes: &[u8]) -> &mut Out<W> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in bytes {
            let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
            self.buffer.extend_from_slice(&digits);
        }
        self
    }

    /// 0x and as many digits as it needs.
    pub fn address(&mut self, address: u64) -> &mut Out<W> {
        self.text(&format!("{address:#x}"))
    }

    /// Seconds with all nine digits behind the point.
    pub fn seconds(&mut self, ns: u64) -> &mut Out<W> {
        self.number(ns / 1_000_000_000);
        let at = self.buffer.len();
        // The digit before the fraction keeps its zeroes, and makes room for the point.
        self.number(ns % 1_000_000_000 + 1_000_000_000);
        self.buffer[at] = b'.';
        self
    }

    /// Ends a line or another whole; hands on what is there if it is enough.
    #[inline]
    pub fn end(&mut self, text: &str) -> io::Result<()> {
        self.text(text);
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        self.to.flush()
    }
}
