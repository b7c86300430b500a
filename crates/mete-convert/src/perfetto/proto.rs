//! Writes protocol buffers: tags, varints, and messages whose length is filled in afterwards.

/// Bytes for the length of a message. A varint may have more bytes than it needs, so the space can be
/// reserved before the length is known.
const LENGTH_BYTES: usize = 4;
/// The length of a message is below this: seven bits in each of these bytes.
pub const MAX_BYTES: usize = 1 << (7 * LENGTH_BYTES);

/// The fields of a message, encoded.
#[derive(Debug, Default)]
pub struct Proto(Vec<u8>);

impl Proto {
    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number of bytes so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Begins again.
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

    /// Adds an integer that is never negative, or a truth value.
    #[inline]
    pub fn uint(&mut self, field: u32, number: u64) -> &mut Proto {
        self.varint(u64::from(field) << 3);
        self.varint(number);
        self
    }

    /// Adds an integer. A negative one takes ten bytes.
    #[inline]
    pub fn int(&mut self, field: u32, number: i64) -> &mut Proto {
        self.uint(field, number as u64)
    }

    /// Adds a floating-point number.
    pub fn double(&mut self, field: u32, number: f64) -> &mut Proto {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds text, or a finished message.
    #[inline]
    pub fn bytes_of(&mut self, field: u32, bytes: &[u8]) -> &mut Proto {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds text.
    #[inline]
    pub fn text(&mut self, field: u32, text: &str) -> &mut Proto {
        self.bytes_of(field, text.as_bytes())
    }

    /// Adds a message inside this one. It must be shorter than [`MAX_BYTES`].
    #[inline]
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Proto)) -> &mut Proto {
        self.varint(u64::from(field) << 3 | 2);
        let at = self.0.len();
        self.0.extend_from_slice(&[0; LENGTH_BYTES]);
        write(self);
        let length = self.0.len() - at - LENGTH_BYTES;
        debug_assert!(length < MAX_BYTES);
        for (nth, byte) in self.0[at..at + LENGTH_BYTES].iter_mut().enumerate() {
            // All bytes but the last say that another one follows.
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
