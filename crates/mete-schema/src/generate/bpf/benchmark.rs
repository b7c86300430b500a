//! Programs that log an event with dummy data, to measure what logging costs (paper §4.4).
//!
//! The kernel runs such a program a given number of times in a row, and reports how long that took. The
//! program writes the same record by the same code as the programs at the points. What those do before, to
//! find out what is to be logged, is not part of it.

use std::fmt::Write;

use super::super::c::padding;
use crate::schema::{Event, Field, Schema};
use crate::types::FieldType;

/// The name of the program for an event, by the event's index in [`Schema::events`].
pub fn benchmark(event: usize) -> String {
    format!("mete_benchmark_{event}")
}

pub(super) fn benchmarks(text: &mut String, schema: &Schema) {
    for (nth, event) in schema.events.iter().enumerate() {
        program(text, &benchmark(nth), event);
    }
}

/// The dummy is a number that the compiler cannot know: the length of the packet that the program is run on.
fn program(text: &mut String, name: &str, event: &Event) {
    let dummy = match event.fields.iter().all(|field| matches!(field.kind, FieldType::Text(_))) {
        // The compiler would warn of a variable that is not used.
        true => "",
        false => "\tmete_u32 dummy = *(mete_u32 *)ctx;\n",
    };
    let _ = writeln!(
        text,
        "SEC(\"socket\")\nint {name}(void *ctx)\n{{\n{dummy}\tstruct mete_here here = {{}};\n\tstruct mete_place place;\n\
         \tstruct mete_record_{event} *record = METE_BEGIN(&place, &here, METE_ID_{event}, sizeof(*record));\n\n\
         \tif (record) {{",
        event = event.name
    );
    text.push_str(&padding(event, "\t\t"));
    for Field { name, kind, .. } in &event.fields {
        let _ = match kind {
            FieldType::Text(letters) => {
                writeln!(text, "\t\t__builtin_memset(record->f_{name}, 0, {letters});")
            }
            _ => writeln!(text, "\t\trecord->f_{name} = dummy;"),
        };
    }
    let _ = writeln!(
        text,
        "\t\tMETE_END(&place, record, METE_ID_{event}, sizeof(*record));\n\t}}\n\treturn 0;\n}}\n",
        event = event.name
    );
}
