//! Protocol buffers, written: tags, varints, and messages whose length is filled in behind them.

/// Bytes that the length of a message takes. Varints may have more bytes than they need, so that the place
/// can be kept before the length is known.
const LENGTH_BYTES: usize = 4;
/// A message is shorter than what seven bits in each of these bytes can say.
pub const MAX_BYTES: usize = 1 << (7 * LENGTH_BYTES);

/// The fields of a message, as they are written.
#[derive(Debug, Default)]
pub struct Proto(Vec<u8>);

impl Proto {
    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A whole number that is never negative, or a truth.
    #[inline]
    pub fn uint(&mut self, field: u32, number: u64) -> &mut Proto {
        self.varint(u64::from(field) << 3);
        self.varint(number);
        self
    }

    /// A whole number; a negative one takes ten bytes.
    #[inline]
    pub fn int(&mut self, field: u32, number: i64) -> &mut Proto {
        self.uint(field, number as u64)
    }

    /// A floating-point number.
    pub fn double(&mut self, field: u32, number: f64) -> &mut Proto {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Text, or a message that is ready.
    #[inline]
    pub fn bytes_of(&mut self, field: u32, bytes: &[u8]) -> &mut Proto {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Text.
    #[inline]
    pub fn text(&mut self, field: u32, text: &str) -> &mut Proto {
        self.bytes_of(field, text.as_bytes())
    }

    /// A message in this one, shorter than [`MAX_BYTES`].
    #[inline]
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Proto)) -> &mut Proto {
        self.varint(u64::from(field) << 3 | 2);
        let at = self.0.len();
        self.0.extend_from_slice(&[0; LENGTH_BYTES]);
        write(self);
        let length = self.0.len() - at - LENGTH_BYTES;
        debug_assert!(length < MAX_BYTES);
        for (nth, byte) in self.0[at..at + LENGTH_BYTES].iter_mut().enumerate() {
            let more = if nth + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            *byte = (length >> (7 * nth)) as u8 & 0x7f | more;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_6_numbers_and_messages_have_the_bytes_of_the_wire_format() {
        let mut proto = Proto::default();
        proto.uint(1, 150).int(2, -1).text(15, "ab").message(16, |inner| {
            inner.uint(1, 0);
        });
        let negative = [&[0x10][..], &[0xff; 9], &[0x01]].concat();
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &negative,
            &[0x7a, 2, b'a', b'b'],
            &[0x82, 0x01, 0x82, 0x80, 0x80, 0, 8, 0],
        ];
        assert_eq!(proto.bytes(), expected.concat());
    }
}
