//! Encoders and decoders in Rust.
//!
//! `mete_log!(emit, SCHEDIN(pid, misses))` passes the bytes of a record to `emit`, which writes the serial
//! number and the time stamp. With `--cfg mete_disable`, the call is checked but leaves no code behind, not
//! even that of its arguments.

use std::fmt::Write;

use super::in_place;
use crate::schema::{Event, Schema};
use crate::types::FieldType;

/// A module for a schema.
pub fn rust(schema: &Schema) -> String {
    let mut text = HEAD.to_owned();
    list(&mut text, schema);
    for event in &schema.events {
        self::event(&mut text, event);
    }
    text
}

/// The list `EVENTS`. An event may have that name, too: a structure with braces is not a value, so that the
/// names do not collide.
fn list(text: &mut String, schema: &Schema) {
    let _ = writeln!(
        text,
        "\n/// Numbers and fingerprints of all events.\n#[allow(dead_code)]\n\
         pub const EVENTS: [(::core::primitive::u16, ::core::primitive::u64); {}] = [",
        schema.events.len()
    );
    for event in &schema.events {
        let name = name(&event.name);
        let _ = writeln!(text, "    ({name}::ID, {name}::FINGERPRINT),");
    }
    text.push_str("];\n");
}

const HEAD: &str = r#"// Made from a schema by mete. Changes here are lost.

/// Logs an event: `mete_log!(emit, SCHEDIN(pid, misses))`, where `emit` takes the bytes of a record.
#[allow(unused_macros)]
macro_rules! mete_log {
    ($emit:expr, $event:ident($($value:expr),* $(,)?)) => {{
        #[allow(unexpected_cfgs)]
        if cfg!(mete_disable) {
            let _ = || $event::new($($value),*);
        } else {
            $emit(&$event::new($($value),*).encode());
        }
    }};
}
"#;

/// Keywords of Rust that are not keywords of C. `r#` turns them into names.
const KEYWORDS: [&str; 35] = [
    "abstract", "as", "async", "await", "become", "box", "dyn", "false", "final", "fn", "gen", "impl", "in",
    "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "yield",
];

/// The name as Rust accepts it.
fn name(name: &str) -> String {
    match name.trim_end_matches('_') {
        // Not even `r#` turns these into names, so they get an underscore. To stay distinct from them, names
        // that end with underscores already get one more.
        "Self" | "self" | "super" | "crate" | "" => format!("{name}_"),
        _ if KEYWORDS.contains(&name) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// Types by their full paths, because an event may be called `u8`.
fn rust_type(kind: FieldType) -> String {
    match kind {
        FieldType::Int(int) => {
            format!("::core::primitive::{}{}", if int.is_signed { 'i' } else { 'u' }, int.bits)
        }
        FieldType::Bool => "::core::primitive::bool".to_owned(),
        FieldType::Address => "::core::primitive::u64".to_owned(),
        FieldType::Text(letters) => format!("[::core::primitive::u8; {letters}]"),
    }
}

fn docs(text: &mut String, docs: &str, indent: &str) {
    if !docs.is_empty() {
        // As a quoted text, which no documentation can end: its quotes are escaped.
        let _ = writeln!(text, "{indent}#[doc = {docs:?}]");
    }
}

fn event(text: &mut String, event: &Event) {
    let name = self::name(&event.name);
    text.push('\n');
    docs(text, &event.docs, "");
    let _ = writeln!(text, "#[allow(non_camel_case_types, non_snake_case)]");
    let _ = writeln!(text, "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct {name} {{");
    for field in &event.fields {
        docs(text, &field.docs, "    ");
        let _ = writeln!(text, "    pub {}: {},", self::name(&field.name), rust_type(field.kind));
    }
    let _ = writeln!(
        text,
        "}}\n\n#[allow(dead_code, non_snake_case, clippy::too_many_arguments)]\nimpl {name} {{"
    );
    constants(text, event);
    constructor(text, event);
    encoder(text, event);
    decoder(text, event);
    text.push_str("}\n");
}

fn constants(text: &mut String, event: &Event) {
    let (name, id, size, fingerprint) = (&event.name, event.id, event.layout.size, event.fingerprint());
    let _ = writeln!(
        text,
        "    /// Its name.\n    pub const NAME: &'static ::core::primitive::str = {name:?};\n    \
         /// Its number in this schema.\n    pub const ID: ::core::primitive::u16 = {id};\n    \
         /// Bytes of a record.\n    pub const BYTES: ::core::primitive::usize = {size};\n    \
         /// Changes with its name and fields.\n    pub const FINGERPRINT: ::core::primitive::u64 = 0x{fingerprint:016x};\n"
    );
}

fn constructor(text: &mut String, event: &Event) {
    let fields = event.fields.iter();
    // Without the prefix, a parameter with the name of a constant, such as `None` or `EVENTS`, would be a
    // pattern.
    let parameters: Vec<_> =
        fields.clone().map(|field| format!("v_{}: {}", field.name, rust_type(field.kind))).collect();
    let names: Vec<_> = fields.map(|field| format!("{}: v_{}", name(&field.name), field.name)).collect();
    let _ = writeln!(
        text,
        "    /// An event of these values.\n    #[inline(always)]\n    pub const fn new({}) -> Self {{\n        Self {{ {} }}\n    }}\n",
        parameters.join(", "),
        names.join(", ")
    );
}

fn encoder(text: &mut String, event: &Event) {
    let size = event.layout.size;
    let _ = writeln!(
        text,
        "    /// Its record. The recorder fills in the serial number and the time stamp, bytes 4 to 15.\n    #[inline(always)]\n    \
         pub fn encode(&self) -> [::core::primitive::u8; {size}] {{\n        let mut record = [0; {size}];\n        \
         record[0..2].copy_from_slice(&Self::ID.to_le_bytes());\n        \
         record[2..4].copy_from_slice(&{size}_u16.to_le_bytes());"
    );
    for (offset, field) in in_place(event) {
        let end = offset + field.kind.size();
        let member = name(&field.name);
        let _ = match field.kind {
            FieldType::Text(_) => {
                writeln!(text, "        record[{offset}..{end}].copy_from_slice(&self.{member});")
            }
            FieldType::Bool => {
                writeln!(text, "        record[{offset}] = self.{member} as ::core::primitive::u8;")
            }
            _ => writeln!(
                text,
                "        record[{offset}..{end}].copy_from_slice(&self.{member}.to_le_bytes());"
            ),
        };
    }
    text.push_str("        record\n    }\n\n");
}

fn decoder(text: &mut String, event: &Event) {
    let size = event.layout.size;
    let _ = writeln!(
        text,
        "    /// The event in a record of this size. The number is not checked: only the trace says what it means.\n    \
         pub fn decode(record: &[::core::primitive::u8]) -> ::core::option::Option<Self> {{\n        \
         let record: &[::core::primitive::u8; {size}] = record.first_chunk()?;\n        \
         if [record[2], record[3]] != {size}_u16.to_le_bytes() {{\n            return ::core::option::Option::None;\n        }}\n        \
         ::core::option::Option::Some(Self {{"
    );
    for (offset, field) in event.layout.offsets.iter().zip(&event.fields) {
        let member = name(&field.name);
        // Single bytes of an array of known size, so that nothing can fail or panic.
        let bytes = (*offset..offset + field.kind.size())
            .map(|at| format!("record[{at}]"))
            .collect::<Vec<_>>()
            .join(", ");
        let _ = match field.kind {
            FieldType::Text(_) => writeln!(text, "            {member}: [{bytes}],"),
            FieldType::Bool => writeln!(text, "            {member}: {bytes} != 0,"),
            kind => writeln!(text, "            {member}: {}::from_le_bytes([{bytes}]),", rust_type(kind)),
        };
    }
    text.push_str("        })\n    }\n");
}
