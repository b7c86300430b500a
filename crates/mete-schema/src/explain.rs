//! What a schema records, in words for people.

use std::fmt::Write;

use crate::counter::Perf;
use crate::format::expression;
use crate::kernel::Type;
use crate::layout::HEADER_BYTES;
use crate::schema::{Binding, Event, Point, Schema};
use crate::typing::Checked;

/// Describes the events with each byte of their records, the counters and the points. If the schema has been
/// checked against a kernel, the description includes the arguments of the points and their types.
pub fn explain(schema: &Schema, checked: Option<&Checked>) -> String {
    let mut text = String::new();
    for event in &schema.events {
        self::event(&mut text, event, schema);
        text.push('\n');
    }
    counters(&mut text, schema);
    for (nth, point) in schema.points.iter().enumerate() {
        let arguments = checked.and_then(|checked| checked.points.get(nth)?.arguments.as_ref());
        self::point(&mut text, point, schema);
        if let Some(arguments) = arguments {
            let names =
                arguments.iter().map(|argument| format!("{} {}", brief(&argument.kind), argument.name));
            let names = names.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "    arguments: {}", if names.is_empty() { "none" } else { &names });
        }
        text.push('\n');
    }
    // One line break at the end, whichever part came last.
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn docs(text: &mut String, docs: &str, indent: &str) {
    for line in docs.lines() {
        let _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
    }
}

fn event(text: &mut String, event: &Event, schema: &Schema) {
    let _ =
        writeln!(text, "event {} (number {}): {} bytes a record", event.name, event.id, event.layout.size);
    docs(text, &event.docs, "    ");
    let width = event.fields.iter().map(|field| field.name.len()).max().unwrap_or(0).max("serial".len());
    // A row is one line, even if the documentation has several.
    let mut row = |offset: usize, bytes: usize, kind: &str, name: &str, about: &str| {
        let line =
            format!("    {offset:>4} {bytes:>4}  {kind:<10} {name:<width$}  {}", about.replace('\n', " "));
        let _ = writeln!(text, "{}", line.trim_end());
    };
    row(0, 2, "u16", "type", &format!("{} in all its records", event.id));
    row(2, 2, "u16", "bytes", &format!("{}, the whole record", event.layout.size));
    let serial = "one more than the record before it on the same processor, lost ones included";
    row(4, 4, "u32", "serial", serial);
    row(8, 8, "u64", "time", "time stamp");
    // The rows are in the order of the record, which may differ from the order of the arguments.
    let mut order: Vec<usize> = (0..event.fields.len()).collect();
    order.sort_by_key(|nth| event.layout.offsets[*nth]);
    for nth in order {
        let field = &event.fields[nth];
        row(event.layout.offsets[nth], field.kind.size(), &field.shown(), &field.name, &field.docs);
    }
    if event.layout.padding > 0 {
        let end = event.layout.size - event.layout.padding;
        row(end, event.layout.padding, "zero", "", "to whole words");
    }
    let points = schema
        .points
        .iter()
        .filter(|point| point.logs.iter().any(|log| schema.events[log.event].id == event.id));
    let points: Vec<_> = points.map(|point| point.target.to_string()).collect();
    let by =
        if points.is_empty() { "programs, by a call of its encoder".to_owned() } else { points.join(", ") };
    let _ = writeln!(text, "    logged by {by}");
}

fn counters(text: &mut String, schema: &Schema) {
    for Binding { arch, number, counter, docs: about } in &schema.bindings {
        let how = match counter.perf {
            Perf::Everywhere(name) => format!("`{name}`"),
            Perf::ByMaker { amd, intel } => format!("`{amd}` on AMD's processors, `{intel}` on Intel's"),
        };
        let _ = writeln!(text, "counter{number} on {arch}: {}, asked for as {how}", counter.name);
        docs(text, about, "    ");
    }
    if !schema.bindings.is_empty() {
        text.push('\n');
    }
}

fn point(text: &mut String, point: &Point, schema: &Schema) {
    let _ = writeln!(text, "at {}", point.target);
    docs(text, &point.docs, "    ");
    if let Some(condition) = &point.when {
        let _ = writeln!(text, "    only when {}", expression(condition));
    }
    for log in &point.logs {
        let event = &schema.events[log.event];
        let condition = log.condition.as_ref().map(|condition| format!(" if {}", expression(condition)));
        let _ = writeln!(text, "    logs {}{}", event.name, condition.unwrap_or_default());
        for (field, argument) in event.fields.iter().zip(&log.arguments) {
            let _ = writeln!(text, "        {} = {}", field.name, expression(argument));
        }
    }
}

/// A type in a word or two.
fn brief(kind: &Type) -> String {
    match kind {
        Type::Unknown => "?".to_owned(),
        Type::Truth => "bool".to_owned(),
        Type::Int(int) => int.to_string(),
        Type::Text(letters) => format!("char[{letters}]"),
        Type::Pointer(_) => "pointer".to_owned(),
        Type::Record(_) => "structure".to_owned(),
        Type::Array(_, count) => format!("array[{count}]"),
        Type::Other(what) => format!("({what})"),
    }
}

const _: () = assert!(HEADER_BYTES == 16, "the rows of the header above have 16 bytes");
