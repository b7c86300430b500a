//! Schema files as they were read, and places in them.

use std::ops::Range;

/// A file of a schema: its name in messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name that messages show.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

impl Source {
    /// A file of this name with this text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// Line and column of a byte, both from 1; columns count letters.
    pub fn line_and_column(&self, byte: usize) -> (usize, usize) {
        let before = &self.text.as_bytes()[..byte.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // The byte may lie within a letter, which counts as one then.
        (line, String::from_utf8_lossy(&before[begin..]).chars().count() + 1)
    }
}

/// A range of bytes in one file. A file has at most 2^20 bytes, so that 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The index of the file in the schema.
    pub file: u32,
    /// The first byte.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// The span of these bytes in this file.
    pub fn new(file: u32, bytes: Range<usize>) -> Span {
        Span { file, start: bytes.start as u32, end: bytes.end as u32 }
    }

    /// The span from the beginning of this one to the end of `last`.
    pub fn to(self, last: Span) -> Span {
        Span { end: last.end.max(self.start), ..self }
    }

    /// The range of bytes.
    pub fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
