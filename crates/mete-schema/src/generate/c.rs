//! Encoders and decoders in C and C++, for programs. BPF C uses the same records.
//!
//! The file that includes this code defines where a record goes, by the macro `METE_EMIT(record, bytes)`: it
//! writes the serial number and the time stamp, and copies the record. `mete_recorder.h` of the recording
//! crate defines `METE_EMIT_EVENT` instead, which gets the event's name as well. With `METE_DISABLE`, a call
//! is checked but leaves no code behind, not even that of its arguments (paper §4.2).
//!
//! An event may have the same name as anything in this project's headers, in the system's headers, or in C++.
//! So its name stands only behind prefixes that nothing else has: `mete_record_`, `mete_encode_`,
//! `mete_decode_`, `mete_log_`, `mete_check_`, `METE_ID_` and `METE_FINGERPRINT_`. None of them is the
//! beginning of another one.

use std::fmt::Write;

use super::in_place;
use crate::schema::{Event, Field, Schema};
use crate::types::FieldType;

/// The header of a schema.
pub fn c(schema: &Schema) -> String {
    let guard = format!("METE_SCHEMA_{:016X}_H", schema.fingerprint());
    let mut text = format!(
        "/* Made from a schema by mete. Changes here are lost. */\n#ifndef {guard}\n#define {guard}\n\n"
    );
    text.push_str(PREAMBLE);
    records(&mut text, schema);
    text.push_str(TEXT_COPY);
    text.push_str(EMIT);
    text.push_str(KINDS);
    for event in &schema.events {
        encoder(&mut text, event);
        decoder(&mut text, event);
        call(&mut text, event);
    }
    text.push_str("#endif\n");
    text
}

pub(super) const PREAMBLE: &str = "\
#ifndef METE_RECORD_HEAD
#define METE_RECORD_HEAD
typedef __INT8_TYPE__ mete_s8;
typedef __INT16_TYPE__ mete_s16;
typedef __INT32_TYPE__ mete_s32;
typedef __INT64_TYPE__ mete_s64;
typedef __UINT8_TYPE__ mete_u8;
typedef __UINT16_TYPE__ mete_u16;
typedef __UINT32_TYPE__ mete_u32;
typedef __UINT64_TYPE__ mete_u64;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error records are little endian
#endif

#ifdef __cplusplus
typedef bool mete_bool;
#define METE_ASSERT_ static_assert
#else
typedef _Bool mete_bool;
#define METE_ASSERT_ _Static_assert
#endif

struct mete_head {
	mete_u16 type;
	mete_u16 bytes; /* of the record */
	mete_u32 serial; /* the recorder's */
	mete_u64 time; /* the recorder's */
};
#endif

";

/// Copies a text. A shorter text is filled up with zeros, and no byte behind its end is read.
const TEXT_COPY: &str = "\
#ifndef METE_COPY_TEXT
#define METE_COPY_TEXT
static inline void mete_copy_text(char *to, const char *from, unsigned int bytes)
{
	unsigned int at = 0;

	for (; at < bytes && from[at]; at++)
		to[at] = from[at];
	for (; at < bytes; at++)
		to[at] = 0;
}
#endif

";

const EMIT: &str = "\
#ifndef METE_EMIT_EVENT
#define METE_EMIT_EVENT(event, record, bytes) METE_EMIT(record, bytes)
#endif

";

/// Macros that compile only for numbers, and only for texts. Without them, C would accept an address as a
/// number with a mere warning, and C++ would accept it as a truth value. Each macro evaluates its argument
/// once. `METE_QUIET_` silences clang's warning about expressions that are never evaluated.
const KINDS: &str = "\
#ifndef METE_NUMBER_
#ifdef __clang__
#define METE_QUIET_ \\
	_Pragma(\"clang diagnostic push\") _Pragma(\"clang diagnostic ignored \\\"-Wunevaluated-expression\\\"\")
#define METE_LOUD_ _Pragma(\"clang diagnostic pop\")
#else
#define METE_QUIET_
#define METE_LOUD_
#endif
#define METE_TRUTH_(value) ((value) * 1 != 0)
#ifdef __cplusplus
#define METE_NUMBER_(value) (value)
#define METE_TEXT_(value) (value)
#else
#define METE_NUMBER_(value) (+(value))
#define METE_TEXT_(value) \\
	(METE_QUIET_ (void)_Generic(&*(value), char *: 0, const char *: 0) METE_LOUD_, (value))
#endif
#endif

";

/// Documentation as a comment, which the documentation cannot end.
fn comment(text: &mut String, docs: &str, indent: &str) {
    if docs.is_empty() {
        return;
    }
    let safe = docs.replace("*/", "* /").replace("/*", "/ *");
    let lines: Vec<_> = safe.lines().map(str::trim_end).collect();
    let _ = writeln!(text, "{indent}/* {} */", lines.join(&format!("\n{indent} * ")));
}

fn c_type(kind: FieldType) -> String {
    match kind {
        FieldType::Int(int) => format!("mete_{int}"),
        FieldType::Bool => "mete_bool".to_owned(),
        FieldType::Address => "mete_u64".to_owned(),
        FieldType::Text(_) => "char".to_owned(),
    }
}

/// The type of a record's member. In a record a truth value is a byte, whatever size the compiler gives it.
fn member_type(kind: FieldType) -> String {
    if kind == FieldType::Bool { "mete_u8".to_owned() } else { c_type(kind) }
}

/// The records, with numbers and fingerprints.
pub(super) fn records(text: &mut String, schema: &Schema) {
    for event in &schema.events {
        comment(text, &event.docs, "");
        let name = &event.name;
        let _ = writeln!(text, "struct mete_record_{name} {{\n\tstruct mete_head head;");
        for (_, field) in in_place(event) {
            comment(text, &field.docs, "\t");
            let length = if let FieldType::Text(letters) = field.kind {
                format!("[{letters}]")
            } else {
                String::new()
            };
            let _ = writeln!(text, "\t{} f_{}{length};", member_type(field.kind), field.name);
        }
        if event.layout.padding > 0 {
            let _ = writeln!(text, "\tmete_u8 padding[{}];", event.layout.padding);
        }
        let _ = writeln!(text, "}};\n\n#define METE_ID_{name} {}", event.id);
        let _ = writeln!(text, "#define METE_FINGERPRINT_{name} 0x{:016x}ull", event.fingerprint());
        let size = event.layout.size;
        let _ =
            writeln!(text, "METE_ASSERT_(sizeof(struct mete_record_{name}) == {size}, \"size of {name}\");");
        // The compiler confirms that it places members where decoders look for them.
        for (offset, Field { name: field, .. }) in in_place(event) {
            let _ = writeln!(
                text,
                "METE_ASSERT_(__builtin_offsetof(struct mete_record_{name}, f_{field}) == {offset}, \"place of {name}.{field}\");"
            );
        }
        text.push('\n');
    }
}

/// The constant part of the header, and the zeros at the end.
fn frame(event: &Event, indent: &str) -> String {
    let (name, size) = (&event.name, event.layout.size);
    format!(
        "{indent}record->head.type = METE_ID_{name};\n{indent}record->head.bytes = {size};\n{}",
        padding(event, indent)
    )
}

/// The zeros at the end.
pub(super) fn padding(event: &Event, indent: &str) -> String {
    match event.layout.padding {
        0 => String::new(),
        _ => format!("{indent}__builtin_memset(record->padding, 0, sizeof(record->padding));\n"),
    }
}

/// `mete_s32 v_pid, const char *v_name`
fn parameters(event: &Event) -> String {
    event.fields.iter().map(parameter).collect::<Vec<_>>().join(", ")
}

fn parameter(field: &Field) -> String {
    match field.kind {
        FieldType::Text(_) => format!("const char *v_{}", field.name),
        kind => format!("{} v_{}", c_type(kind), field.name),
    }
}

fn encoder(text: &mut String, event: &Event) {
    let separator = if event.fields.is_empty() { "" } else { ", " };
    let name = &event.name;
    let _ = writeln!(
        text,
        "static inline __attribute__((always_inline)) void mete_encode_{name}(struct mete_record_{name} *record{separator}{})\n{{",
        parameters(event)
    );
    let _ = writeln!(
        text,
        "{}\n\trecord->head.serial = 0;\n\trecord->head.time = 0;",
        frame(event, "\t").trim_end()
    );
    for (_, Field { name, kind, .. }) in in_place(event) {
        let _ = match kind {
            FieldType::Text(letters) => {
                writeln!(text, "\tmete_copy_text(record->f_{name}, v_{name}, {letters});")
            }
            _ => writeln!(text, "\trecord->f_{name} = v_{name};"),
        };
    }
    text.push_str("}\n\n");
}

fn decoder(text: &mut String, event: &Event) {
    let name = &event.name;
    let _ = writeln!(
        text,
        "/* Whether these bytes begin with a record of this size. The number is not checked: only the trace says what it means. */\n\
         static inline int mete_decode_{name}(struct mete_record_{name} *record, const void *bytes, unsigned long size)\n{{\n\
         \tif (size < sizeof(*record))\n\t\treturn 0;\n\
         \t__builtin_memcpy(record, bytes, sizeof(*record));\n\
         \treturn record->head.bytes == sizeof(*record);\n}}\n"
    );
}

/// A macro of the function's name, whose values must be of the right kinds. C does not expand a macro within
/// its own text, so the macro calls the function. C++ checks most kinds by itself, and keeps the plain
/// function: the commas between a template's arguments would separate arguments of the macro.
fn checked(text: &mut String, function: &str, event: &Event) {
    let names: Vec<_> = event.fields.iter().map(|field| format!("v_{}", field.name)).collect();
    let values: Vec<_> = event.fields.iter().map(checked_value).collect();
    let (names, values) = (names.join(", "), values.join(", "));
    let define = format!("#define {function}({names}) {function}({values})\n");
    // C++ would turn an address into a truth value, so that it needs the macro, too.
    let is_for_both = event.fields.iter().any(|field| field.kind == FieldType::Bool);
    match (event.fields.is_empty(), is_for_both) {
        (true, _) => {}
        (false, true) => text.push_str(&define),
        (false, false) => _ = write!(text, "#ifndef __cplusplus\n{define}#endif\n"),
    }
}

fn checked_value(field: &Field) -> String {
    let check = match field.kind {
        FieldType::Bool => "TRUTH",
        FieldType::Text(_) => "TEXT",
        FieldType::Int(_) | FieldType::Address => "NUMBER",
    };
    format!("METE_{check}_(v_{})", field.name)
}

fn call(text: &mut String, event: &Event) {
    // `()` would declare a function of any arguments in C.
    let name = &event.name;
    let parameters = if event.fields.is_empty() { "void".to_owned() } else { parameters(event) };
    let values: String = event.fields.iter().map(|field| format!(", v_{}", field.name)).collect();
    let _ = writeln!(
        text,
        "#ifdef METE_DISABLE\nchar mete_check_{name}({parameters}); /* is defined nowhere: the compiler only checks calls */"
    );
    checked(text, &format!("mete_check_{name}"), event);
    // The compiler checks a call within `sizeof`, but makes no code of it.
    let _ = writeln!(
        text,
        "#define mete_log_{name}(...) (METE_QUIET_ (void)sizeof(mete_check_{name}(__VA_ARGS__)) METE_LOUD_)\n#else\n\
         static inline __attribute__((always_inline)) void mete_log_{name}({parameters})\n{{\n\
         \tstruct mete_record_{name} record;\n\n\tmete_encode_{name}(&record{values});\n\
         \tMETE_EMIT_EVENT({name}, &record, sizeof(record));\n}}"
    );
    checked(text, &format!("mete_log_{name}"), event);
    text.push_str("#endif\n\n");
}
