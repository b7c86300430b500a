//! Metadata of CTF 1.8.

use std::fmt::Write as _;

use super::CtfEnvironment;
use super::classes::{ClassField, CtfKind, EventClass, EventClasses};

/// The metadata.
pub fn metadata(classes: &EventClasses, about: &CtfEnvironment) -> String {
    let mut text = String::from("/* CTF 1.8 */\n\n");
    text.push_str(&trace(about));
    text.push_str(&environment(about));
    text.push_str(&clock(about));
    text.push_str(STREAM);
    classes.0.iter().for_each(|class| text.push_str(&event(class)));
    text
}

const STREAM: &str = "\
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := clock_t;

stream {
    id = 0;
    packet.context := struct {
        clock_t timestamp_begin;
        clock_t timestamp_end;
        u64 content_size;
        u64 packet_size;
        u64 events_discarded;
        u32 cpu_id;
    };
    event.header := struct {
        u16 id;
        clock_t timestamp;
    };
    event.context := struct {
        u64 _serial;
        u64 _time;
    };
};

";

fn trace(about: &CtfEnvironment) -> String {
    let mut text = String::new();
    for (size, name) in [(8, "u8"), (16, "u16"), (32, "u32"), (64, "u64")] {
        // Writing to a string cannot fail, here and below.
        let _ =
            writeln!(text, "typealias integer {{ size = {size}; align = 8; signed = false; }} := {name};");
    }
    let uuid = uuid_text(about.uuid);
    let _ = write!(
        text,
        "\ntrace {{\n    major = 1;\n    minor = 8;\n    uuid = \"{uuid}\";\n    byte_order = le;\n    \
         packet.header := struct {{\n        u32 magic;\n        u8 uuid[16];\n        u32 stream_id;\n    }};\n}};\n\n"
    );
    text
}

/// The number as groups of 8-4-4-4-12 digits.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn environment(about: &CtfEnvironment) -> String {
    let lines = about.environment.iter().map(|(name, value)| format!("    {name} = {};\n", quoted(value)));
    format!("env {{\n{}}};\n\n", lines.collect::<String>())
}

fn clock(about: &CtfEnvironment) -> String {
    let (description, offset) = match about.offset_ns {
        Some(offset) => ("CLOCK_MONOTONIC in nanoseconds", offset),
        None => ("ticks of the recording processors' counters; how long one lasts is not known", 0),
    };
    format!(
        "clock {{\n    name = monotonic;\n    description = \"{description}\";\n    freq = 1000000000;\n    \
         offset_s = {};\n    offset = {};\n    absolute = {};\n}};\n\n",
        offset.div_euclid(1_000_000_000),
        offset.rem_euclid(1_000_000_000),
        if about.offset_ns.is_some() { "TRUE" } else { "FALSE" },
    )
}

fn event(class: &EventClass) -> String {
    let (id, name) = (class.id, quoted(&class.name));
    let fields: String = class.fields.iter().map(field).collect();
    format!(
        "event {{\n    id = {id};\n    name = {name};\n    stream_id = 0;\n    fields := struct {{\n{fields}    }};\n}};\n\n"
    )
}

/// The declaration of a field. Its name begins with an underscore, which readers take off. So no name is a
/// word of the language.
fn field(field: &ClassField) -> String {
    let name = &field.name;
    let declared = match field.kind {
        CtfKind::Unsigned(bits) => integer(name, bits, "signed = false;"),
        CtfKind::Signed(bits) => integer(name, bits, "signed = true;"),
        CtfKind::Address => integer(name, 64, "signed = false; base = 16;"),
        // Version 1.8 has no truth values.
        CtfKind::Bool => integer(name, 8, "signed = false;"),
        CtfKind::Float(32) => format!("floating_point {{ exp_dig = 8; mant_dig = 24; align = 8; }} _{name}"),
        CtfKind::Float(_) => format!("floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} _{name}"),
        CtfKind::Text => format!("string {{ encoding = UTF8; }} _{name}"),
        CtfKind::Bytes(bytes) => format!("{}[{bytes}]", integer(name, 8, "signed = false; base = 16;")),
        CtfKind::Rest => format!("{}[_length]", integer(name, 8, "signed = false; base = 16;")),
    };
    format!("        {declared};\n")
}

fn integer(name: &str, bits: u16, more: &str) -> String {
    format!("integer {{ size = {bits}; align = 8; {more} }} _{name}")
}

/// A text as a string of C, in printable letters of ASCII. Other letters become their bytes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', byte.into()]),
            b'\n' => quoted.push_str("\\n"),
            b' '..=b'~' => quoted.push(byte.into()),
            // Always three digits, so that a digit that follows is not taken for a part of it.
            other => _ = write!(quoted, "\\{other:03o}"),
        }
    }
    quoted.push('"');
    quoted
}
