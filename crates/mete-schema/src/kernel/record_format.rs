//! The fields of a tracepoint's record, as the tracing file system describes them.

use super::{Type, Typed};
use crate::types::Int;

/// The most fields that are read. No tracepoint has more.
const MAX_FIELDS: usize = 256;

/// The fields in the text of a `format` file, without those that every record has.
pub fn record_fields(text: &str) -> Vec<Typed> {
    let fields = text.lines().filter_map(|line| line.trim().strip_prefix("field:")).filter_map(field);
    fields.filter(|field| !field.name.starts_with("common_")).take(MAX_FIELDS).collect()
}

/// `unsigned short common_type; offset:0; size:2; signed:0;`
fn field(line: &str) -> Option<Typed> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut size, mut place) = (None, None);
    let mut is_signed = false;
    for part in parts {
        match part.split_once(':') {
            Some(("offset", byte)) => place = byte.parse::<u32>().ok(),
            Some(("size", bytes)) => size = bytes.parse::<u32>().ok(),
            Some(("signed", sign)) => is_signed = sign == "1",
            _ => {}
        }
    }
    // A star may stand before the name without a space between them.
    let (kind, name) = declaration.rsplit_once(|letter: char| letter.is_whitespace() || letter == '*')?;
    let (name, is_array) = name.split_once('[').map_or((name, false), |(name, _)| (name, true));
    let kind = type_of(declaration, kind.trim(), is_array, size?, is_signed);
    Some(Typed { name: name.to_owned(), kind, place })
}

const VARYING: Type = Type::Other("of varying length");

fn type_of(declaration: &str, kind: &str, is_array: bool, size: u32, is_signed: bool) -> Type {
    // Such a field holds only the place and the length of its value.
    if kind.starts_with("__data_loc") || kind.starts_with("__rel_loc") {
        return VARYING;
    }
    if is_array {
        return if kind == "char" { Type::Text(size) } else { Type::Other("an array of numbers") };
    }
    if declaration.contains('*') {
        return Type::Pointer(None);
    }
    match size {
        _ if kind == "bool" => Type::Truth,
        1 | 2 | 4 | 8 => Type::Int(Int { bits: 8 * size as u8, is_signed }),
        _ => Type::Other("a structure in a record"),
    }
}

/// A member of the record's structure, as a field. The member of a field that varies in length only says
/// where that lies.
pub(super) fn varying(member: Typed) -> Typed {
    match member.name.strip_prefix("__data_loc_") {
        Some(name) => Typed { name: name.to_owned(), kind: VARYING, ..member },
        None => member,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_record_are_read_with_size_and_sign() {
        let text = "name: sched_wakeup\nID: 318\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:const char * file;\toffset:32;\tsize:8;\tsigned:0;\n\
            \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\"\n";
        let fields = record_fields(text);
        assert_eq!(fields[1].place, Some(24));
        let found: Vec<_> = fields.into_iter().map(|field| (field.name, field.kind)).collect();
        let expected = [
            ("comm", Type::Text(16)),
            ("pid", Type::Int(Int::signed(32))),
            ("file", Type::Pointer(None)),
            ("name", VARYING),
        ];
        assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
}
