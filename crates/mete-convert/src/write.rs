//! Text, written quickly: a million events are some ten million numbers. Nothing is copied by a call whose length
//! is known only when it runs, where that can be had: most pieces of text are a few letters long.

use std::io;

/// Collects text and hands it on in large pieces.
#[derive(Debug)]
pub struct Out<W> {
    /// Always written in place: what is behind `at` is left over from before.
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

/// The least numbers with 1, 2, … digits but for the first, which stands for 0, too.
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

/// A text that is written often: short ones are copied as a whole, in one go.
#[derive(Clone, Debug)]
pub struct Piece {
    begin: [u8; Piece::SHORT],
    short: usize,
    rest: Box<[u8]>,
}

impl Piece {
    const SHORT: usize = 32;

    /// This text.
    pub fn new(text: &str) -> Piece {
        let (begin, rest) = text.as_bytes().split_at(text.len().min(Piece::SHORT));
        let mut piece = Piece { begin: [0; Piece::SHORT], short: begin.len(), rest: rest.into() };
        piece.begin[..begin.len()].copy_from_slice(begin);
        piece
    }
}

impl<W: io::Write> Out<W> {
    pub fn new(to: W) -> Out<W> {
        Out { buffer: vec![0; PIECE + 4096], at: 0, to }
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
    pub fn text(&mut self, text: &str) -> &mut Out<W> {
        self.bytes(text.as_bytes());
        self
    }

    #[inline]
    pub fn piece(&mut self, piece: &Piece) -> &mut Out<W> {
        self.make_room(Piece::SHORT);
        self.buffer[self.at..self.at + Piece::SHORT].copy_from_slice(&piece.begin);
        self.at += piece.short;
        if !piece.rest.is_empty() {
            self.bytes(&piece.rest);
        }
        self
    }

    #[inline]
    pub fn number(&mut self, number: impl Into<u64>) -> &mut Out<W> {
        let number = number.into();
        // Three binary digits are not quite one decimal digit: one too many at most.
        let guess = ((64 - (number | 1).leading_zeros() as usize) * 1233) >> 12;
        let digits = guess + usize::from(number >= LEAST[guess] || guess == 0);
        self.digits(number, digits)
    }

    /// So many digits of a number, zeroes in front.
    #[inline]
    fn digits(&mut self, mut number: u64, digits: usize) -> &mut Out<W> {
        self.make_room(MOST_DIGITS);
        let place = &mut self.buffer[self.at..self.at + digits];
        let mut pairs = place.rchunks_exact_mut(2);
        for pair in &mut pairs {
            pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        if let [first] = pairs.into_remainder() {
            *first = b'0' + (number % 10) as u8;
        }
        self.at += digits;
        self
    }

    #[inline]
    pub fn signed(&mut self, number: i64) -> &mut Out<W> {
        if number < 0 {
            self.text("-");
        }
        self.number(number.unsigned_abs())
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
            self.bytes(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self
    }

    /// 0x and as many digits as it needs.
    pub fn address(&mut self, address: u64) -> &mut Out<W> {
        self.text(&format!("{address:#x}"))
    }

    /// Seconds with all nine digits behind the point.
    #[inline]
    pub fn seconds(&mut self, ns: u64) -> &mut Out<W> {
        self.number(ns / 1_000_000_000).text(".").digits(ns % 1_000_000_000, 9)
    }

    /// Ends a line or another whole; hands on what is there if it is enough.
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

    fn written(write: impl FnOnce(&mut Out<&mut Vec<u8>>)) -> String {
        let mut text = Vec::new();
        let mut out = Out::new(&mut text);
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
                written(|out| _ = out.piece(&Piece::new(&text)).piece(&Piece::new("|"))),
                text.clone() + "|"
            );
        }
        let long = "x".repeat(3 * PIECE);
        assert_eq!(written(|out| _ = out.text(&long).text("y")).len(), long.len() + 1);
    }
}
