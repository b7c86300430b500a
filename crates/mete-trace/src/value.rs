//! A record's fields as values.

use std::borrow::Cow;

use crate::description::{EventLayout, FieldKind, FieldLayout};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// An integer that is never negative.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// An address in memory. The text formats show it as 0x and hexadecimal digits.
    Address(u64),
    /// Text. Bytes that are not UTF-8 are replaced.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl FieldLayout {
    /// The field's value in a record; `None` if the record ends before the field does.
    #[inline]
    pub fn value<'a>(&self, record: &'a [u8]) -> Option<Value<'a>> {
        let at = usize::from(self.offset);
        let bytes = record.get(at..at + usize::from(self.bytes))?;
        Some(match self.kind {
            FieldKind::Unsigned => Value::Unsigned(integer(bytes)),
            FieldKind::Signed => Value::Signed(signed(bytes)),
            FieldKind::Float if bytes.len() == 4 => {
                Value::Float(f32::from_bits(integer(bytes) as u32).into())
            }
            FieldKind::Float => Value::Float(f64::from_bits(integer(bytes))),
            FieldKind::Bool => Value::Bool(bytes.iter().any(|byte| *byte != 0)),
            FieldKind::Address => Value::Address(integer(bytes)),
            FieldKind::Text => Value::Text(String::from_utf8_lossy(until_zero(bytes))),
            FieldKind::Bytes => Value::Bytes(bytes),
        })
    }

    /// The bytes of a text field, as they were recorded; `None` for other kinds, and if the record ends
    /// before the field does.
    #[inline]
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let at = usize::from(self.offset);
        let bytes = record.get(at..at + usize::from(self.bytes)).filter(|_| self.kind == FieldKind::Text);
        bytes.map(until_zero)
    }
}

impl EventLayout {
    /// Every field's name and value in a record.
    pub fn values<'a>(&'a self, record: &'a [u8]) -> impl Iterator<Item = (&'a str, Option<Value<'a>>)> {
        self.fields.iter().map(|field| (field.name.as_str(), field.value(record)))
    }
}

/// The number in up to eight bytes, the lowest first. The sizes that fields usually have take one load each.
#[inline]
fn integer(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline]
fn signed(bytes: &[u8]) -> i64 {
    // Shifted up and down again: the second shift is arithmetic and repeats the sign.
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    (integer(bytes) << unused) as i64 >> unused
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: FieldKind, bytes: &[u8]) -> Option<Value<'_>> {
        let length = bytes.len() as u16;
        FieldLayout { name: String::new(), kind, offset: 0, bytes: length, doc: String::new() }.value(bytes)
    }

    #[test]
    fn klog_2_fields_of_every_kind_and_size_are_decoded() {
        assert_eq!(value(FieldKind::Unsigned, &[0xff]), Some(Value::Unsigned(255)));
        assert_eq!(value(FieldKind::Signed, &[0xfe, 0xff]), Some(Value::Signed(-2)));
        assert_eq!(value(FieldKind::Signed, &i64::MIN.to_le_bytes()), Some(Value::Signed(i64::MIN)));
        assert_eq!(value(FieldKind::Float, &1.5_f32.to_le_bytes()), Some(Value::Float(1.5)));
        assert_eq!(value(FieldKind::Float, &(-2.5_f64).to_le_bytes()), Some(Value::Float(-2.5)));
        assert_eq!(value(FieldKind::Bool, &[2]), Some(Value::Bool(true)));
        assert_eq!(value(FieldKind::Address, &7_u64.to_le_bytes()), Some(Value::Address(7)));
        assert_eq!(value(FieldKind::Text, b"ab\0c"), Some(Value::Text("ab".into())));
        assert_eq!(value(FieldKind::Text, b"\xffb"), Some(Value::Text("\u{fffd}b".into())));
        assert_eq!(value(FieldKind::Bytes, &[1, 2]), Some(Value::Bytes(&[1, 2])));
        let text = |kind| FieldLayout { name: String::new(), kind, offset: 1, bytes: 3, doc: String::new() };
        assert_eq!(text(FieldKind::Text).text(b" \xffb\0"), Some(&b"\xffb"[..]));
        assert_eq!(text(FieldKind::Bytes).text(b" \xffb\0").or(text(FieldKind::Text).text(b"abc")), None);
    }

    #[test]
    fn klog_2_a_field_behind_the_end_of_a_record_has_no_value() {
        let layout = FieldLayout {
            name: String::new(),
            kind: FieldKind::Unsigned,
            offset: 16,
            bytes: 8,
            doc: String::new(),
        };
        assert_eq!(layout.value(&[0; 23]), None);
        assert_eq!(layout.value(&[0; 24]), Some(Value::Unsigned(0)));
    }
}
