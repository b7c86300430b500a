//! Types of fields: KLogger's words (paper §4.1), and words that contain the size, such as `u32`.

use std::fmt;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A whole number.
    Int(Int),
    /// 0 or 1, in one byte.
    Bool,
    /// An address of the kernel or of a program: 64 bits, shown as a symbol where one is known.
    Address,
    /// A text of this number of letters. A shorter text ends with a zero.
    Text(u16),
}

/// A whole number's size and sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Int {
    /// 8, 16, 32 or 64.
    pub bits: u8,
    /// Whether it can be negative.
    pub is_signed: bool,
}

impl Int {
    /// A number that cannot be negative.
    pub const fn unsigned(bits: u8) -> Int {
        Int { bits, is_signed: false }
    }

    /// A number that can be negative.
    pub const fn signed(bits: u8) -> Int {
        Int { bits, is_signed: true }
    }

    /// Whether each value of the type `other` is a value of this type, too.
    pub fn holds(self, other: Int) -> bool {
        match (self.is_signed, other.is_signed) {
            // The sign takes one bit.
            (true, false) => other.bits < self.bits,
            (false, true) => false,
            _ => other.bits <= self.bits,
        }
    }

    /// Whether the number of this magnitude and sign is a value of this type.
    pub fn holds_value(self, magnitude: u64, is_negative: bool) -> bool {
        // A shift by 64 would panic; bit fields have between 1 and 64 bits.
        let most = u64::MAX >> (64 - self.bits.clamp(1, 64));
        match (self.is_signed, is_negative && magnitude != 0) {
            (false, is_negative) => !is_negative && magnitude <= most,
            (true, false) => magnitude <= most >> 1,
            // There is one negative number more than positive ones.
            (true, true) => magnitude <= (most >> 1) + 1,
        }
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_signed { 's' } else { 'u' }, self.bits)
    }
}

/// The word for a letter, of which alone there are arrays.
pub const LETTER: &str = "char";

/// All words for types, and what each means. `long` has 64 bits on every machine, because a trace may be read
/// on another machine than the one that recorded it.
pub const WORDS: [(&str, FieldType); 20] = [
    (LETTER, FieldType::Int(Int::signed(8))),
    ("uchar", FieldType::Int(Int::unsigned(8))),
    ("short", FieldType::Int(Int::signed(16))),
    ("ushort", FieldType::Int(Int::unsigned(16))),
    ("int", FieldType::Int(Int::signed(32))),
    ("uint", FieldType::Int(Int::unsigned(32))),
    ("long", FieldType::Int(Int::signed(64))),
    ("ulong", FieldType::Int(Int::unsigned(64))),
    ("longlong", FieldType::Int(Int::signed(64))),
    ("ulonglong", FieldType::Int(Int::unsigned(64))),
    ("s8", FieldType::Int(Int::signed(8))),
    ("u8", FieldType::Int(Int::unsigned(8))),
    ("s16", FieldType::Int(Int::signed(16))),
    ("u16", FieldType::Int(Int::unsigned(16))),
    ("s32", FieldType::Int(Int::signed(32))),
    ("u32", FieldType::Int(Int::unsigned(32))),
    ("s64", FieldType::Int(Int::signed(64))),
    ("u64", FieldType::Int(Int::unsigned(64))),
    ("bool", FieldType::Bool),
    ("address", FieldType::Address),
];

impl FieldType {
    /// The type that a word means.
    pub fn by_word(word: &str) -> Option<FieldType> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Bytes of the field.
    pub fn size(self) -> usize {
        match self {
            FieldType::Int(int) => usize::from(int.bits / 8),
            FieldType::Bool => 1,
            FieldType::Address => 8,
            FieldType::Text(letters) => usize::from(letters),
        }
    }

    /// The number of bytes that the field's offset is a multiple of.
    pub fn alignment(self) -> usize {
        // A text is copied byte by byte.
        if matches!(self, FieldType::Text(_)) { 1 } else { self.size() }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldType::Int(int) => int.fmt(f),
            FieldType::Bool => f.write_str("bool"),
            FieldType::Address => f.write_str("address"),
            FieldType::Text(letters) => write!(f, "char[{letters}]"),
        }
    }
}

/// What an author may have meant by a word that is no type.
pub fn other_word(word: &str) -> Option<&'static str> {
    Some(match word {
        "float" | "double" | "f32" | "f64" => "events hold whole numbers: log it scaled, as in nanoseconds",
        "string" | "str" => "a text has a fixed size: `char name[16]`",
        "pointer" | "ptr" | "void" | "kernel_ptr" | "usize" => "an address is an `address`",
        "size_t" | "uintptr_t" | "uint64_t" | "__u64" => "did you mean `u64`?",
        "ssize_t" | "int64_t" | "__s64" | "i64" => "did you mean `s64`?",
        "uint32_t" | "__u32" | "gid_t" | "uid_t" | "dev_t" | "unsignedint" => "did you mean `u32`?",
        "int32_t" | "__s32" | "i32" | "pid_t" | "integer" => "did you mean `int`?",
        "uint16_t" | "__u16" => "did you mean `u16`?",
        "int16_t" | "__s16" | "i16" => "did you mean `s16`?",
        "uint8_t" | "__u8" | "byte" => "did you mean `u8`?",
        "int8_t" | "__s8" | "i8" => "did you mean `s8`?",
        "boolean" | "_Bool" => "did you mean `bool`?",
        "time" | "timestamp" => "each event has its time in its header; another one is a `u64`",
        _ => return None,
    })
}
