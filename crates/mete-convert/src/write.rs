//! Writes text quickly: a million events have some ten million numbers. Most pieces of text are a few letters
//! long. So, where possible, they are copied with a length that the compiler knows.

use std::io;

/// Collects text and hands it on in large pieces.
#[derive(Debug)]
pub struct TextWriter<W> {
    /// All of it is initialised and written in place. The bytes from `at` on are left over from earlier text.
    buffer: Vec<u8>,
    at: usize,
    to: W,
}

const PIECE: usize = 256 << 10;
/// Digits of the longest number.
const MOST_DIGITS: usize = 20;

/// All numbers of two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The smallest numbers with 1, 2, … digits, except for the first entry, which is 0.
const LEAST: [u64; MOST_DIGITS] = {
    let mut least = [0; MOST_DIGITS];
    let (mut digits, mut power) = (1, 1_u64);
    while digits < MOST_DIGITS {
        power *= 10;
        least[digits] = power;
        digits += 1;
    }
    least
};

/// A text that is written often. A short one is copied as a block of fixed length.
#[derive(Clone, Debug)]
pub struct TextPiece {
    begin: [u8; TextPiece::SHORT],
    short: usize,
    rest: Box<[u8]>,
}

impl TextPiece {
    const SHORT: usize = 32;

    /// A piece with this text.
    pub fn new(text: &str) -> TextPiece {
        let (begin, rest) = text.as_bytes().split_at(text.len().min(TextPiece::SHORT));
        let mut piece = TextPiece { begin: [0; TextPiece::SHORT], short: begin.len(), rest: rest.into() };
        piece.begin[..begin.len()].copy_from_slice(begin);
        piece
    }
}

impl<W: io::Write> TextWriter<W> {
    pub fn new(to: W) -> TextWriter<W> {
        TextWriter { buffer: vec![0; PIECE + 4096], at: 0, to }
    }

    #[inline]
    fn make_room(&mut self, bytes: usize) {
        if self.buffer.len() - self.at < bytes {
            self.buffer.resize(self.at + bytes + 4096, 0);
        }
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    pub fn text(&mut self, text: &str) -> &mut TextWriter<W> {
        self.bytes(text.as_bytes());
        self
    }

    #[inline]
    pub fn piece(&mut self, piece: &TextPiece) -> &mut TextWriter<W> {
        self.make_room(TextPiece::SHORT);
        // All 32 bytes, whatever the length: the next text overwrites what is too much.
        self.buffer[self.at..self.at + TextPiece::SHORT].copy_from_slice(&piece.begin);
        self.at += piece.short;
        if !piece.rest.is_empty() {
            self.bytes(&piece.rest);
        }
        self
    }

    #[inline]
    pub fn number(&mut self, number: impl Into<u64>) -> &mut TextWriter<W> {
        let number = number.into();
        // 1233/4096 is almost log10(2). The guess is the number of digits, or one less.
        let guess = ((64 - (number | 1).leading_zeros() as usize) * 1233) >> 12;
        let digits = guess + usize::from(number >= LEAST[guess] || guess == 0);
        self.digits(number, digits)
    }

    /// Writes this number of digits of a number, with zeroes in front.
    #[inline]
    fn digits(&mut self, mut number: u64, digits: usize) -> &mut TextWriter<W> {
        self.make_room(MOST_DIGITS);
        let place = &mut self.buffer[self.at..self.at + digits];
        let mut pairs = place.rchunks_exact_mut(2);
        for pair in &mut pairs {
            pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        // An odd number of digits leaves the first one alone.
        if let [first] = pairs.into_remainder() {
            *first = b'0' + (number % 10) as u8;
        }
        self.at += digits;
        self
    }

    #[inline]
    pub fn signed(&mut self, number: i64) -> &mut TextWriter<W> {
        if number < 0 {
            self.text("-");
        }
        self.number(number.unsigned_abs())
    }

    /// Writes a number, or nothing if there is none.
    #[inline]
    pub fn maybe(&mut self, number: Option<impl Into<u64>>) -> &mut TextWriter<W> {
        if let Some(number) = number {
            self.number(number);
        }
        self
    }

    /// Writes a floating-point number with as few digits as are needed to read it back exactly.
    pub fn float(&mut self, number: f64) -> &mut TextWriter<W> {
        self.text(&format!("{number:?}"))
    }

    pub fn hexadecimal(&mut self, bytes: &[u8]) -> &mut TextWriter<W> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in bytes {
            self.bytes(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self
    }

    /// Writes 0x and as many digits as the address needs.
    pub fn address(&mut self, address: u64) -> &mut TextWriter<W> {
        self.text(&format!("{address:#x}"))
    }

    /// Writes seconds with all nine digits after the point.
    #[inline]
    pub fn seconds(&mut self, ns: u64) -> &mut TextWriter<W> {
        self.number(ns / 1_000_000_000).text(".").digits(ns % 1_000_000_000, 9)
    }

    /// Ends a line or another unit. Hands on the collected text if there is enough of it.
    #[inline]
    pub fn end(&mut self, text: &str) -> io::Result<()> {
        self.text(text);
        if self.at >= PIECE { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer[..self.at])?;
        self.at = 0;
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.hand_on()?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut TextWriter<&mut Vec<u8>>)) -> String {
        let mut text = Vec::new();
        let mut out = TextWriter::new(&mut text);
        write(&mut out);
        out.flush().unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn new_6_numbers_of_every_length_are_written_as_they_are() {
        for digits in 0..20 {
            let power = 10_u64.pow(digits);
            for number in [power - 1, power, power + 1, u64::MAX - power, u64::MAX / power] {
                assert_eq!(written(|out| _ = out.number(number)), number.to_string());
                let signed = number as i64;
                assert_eq!(written(|out| _ = out.signed(signed)), signed.to_string());
            }
        }
        assert_eq!(written(|out| _ = out.number(u64::MAX)), u64::MAX.to_string());
        assert_eq!(written(|out| _ = out.signed(i64::MIN)), i64::MIN.to_string());
        assert_eq!(written(|out| _ = out.seconds(1_000_000_020)), "1.000000020");
    }

    #[test]
    fn new_6_texts_of_every_length_are_written_as_they_are() {
        for length in 0..100 {
            let text = "abc".repeat(length)[..length].to_owned();
            assert_eq!(
                written(|out| _ = out.piece(&TextPiece::new(&text)).piece(&TextPiece::new("|"))),
                text.clone() + "|"
            );
        }
        let long = "x".repeat(3 * PIECE);
        assert_eq!(written(|out| _ = out.text(&long).text("y")).len(), long.len() + 1);
    }
}
