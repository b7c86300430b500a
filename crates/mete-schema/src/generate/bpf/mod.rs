//! Programs for the kernel: one for each place, straight-line but for the schema's own conditions.
//!
//! The includer says beforehand what the buffer is like, by macros:
//!
//! | macro | is |
//! |---|---|
//! | `METE_BEGIN(bytes)` | room for a record of this constant size, or NULL where there is none |
//! | `METE_END(record, bytes)` | the record is complete: serial number and time stamp are written, and it is committed |
//! | `METE_TIME()`, `METE_DOMAIN()`, `METE_COUNTER(n)` | the values of these names |
//!
//! and includes `<bpf/bpf_helpers.h>` and `<bpf/bpf_core_read.h>`. Structures of the kernel are declared with the
//! members that are read and no others; where those lie is found when the programs are loaded (CO-RE).

mod structures;
mod value;

use std::collections::BTreeMap;
use std::fmt::Write;

use super::c::{PREAMBLE, frame, records};
use super::in_place;
use crate::kernel::{KernelTypes, Type, Typed};
use crate::problem::{Problem, Problems};
use crate::schema::{Event, Schema, Target};
use crate::types::FieldType;
use crate::typing::{Checked, CheckedLog, CheckedPoint, Value};
use structures::Structures;
use value::Writer;

/// The programs of a schema that was checked against this kernel.
///
/// # Errors
///
/// Points that are none of `tp_btf`, `raw_tp`, `fentry` and `fexit`: their programs are made another way.
pub fn bpf(schema: &Schema, checked: &Checked, kernel: &dyn KernelTypes) -> Result<String, Problems> {
    let refused = schema.points.iter().zip(&checked.points).filter_map(|(point, checked)| {
        let is_made = section(&point.target).is_some() && checked.arguments.is_some();
        let title = format!("no program can be made for {}", point.target);
        let label = "expected `tp_btf`, `raw_tp`, `fentry` or `fexit`";
        (!is_made).then(|| Problem::new(point.span, title, label))
    });
    Problems::unless_none(refused.collect())?;
    let mut text = "/* Made from a schema by mete. Changes here are lost. */\n".to_owned();
    text.push_str(PREAMBLE);
    records(&mut text, schema);
    text.push_str(&Structures::of(checked, kernel).text());
    for (nth, (target, points)) in by_target(schema, checked).into_iter().enumerate() {
        program(&mut text, nth, target, &points, schema, kernel);
    }
    Ok(text)
}

/// A second program on the same place would cost more than the first one's work.
fn by_target<'a>(
    schema: &'a Schema,
    checked: &'a Checked,
) -> Vec<(&'a Target, Vec<(usize, &'a CheckedPoint)>)> {
    let mut order: Vec<(&Target, Vec<(usize, &CheckedPoint)>)> = Vec::new();
    for (nth, (point, checked)) in schema.points.iter().zip(&checked.points).enumerate() {
        match order.iter_mut().find(|(target, _)| **target == point.target) {
            Some((_, points)) => points.push((nth, checked)),
            None => order.push((&point.target, vec![(nth, checked)])),
        }
    }
    order
}

fn section(target: &Target) -> Option<String> {
    match target {
        Target::TpBtf(name) => Some(format!("tp_btf/{name}")),
        Target::RawTracepoint(name) => Some(format!("raw_tp/{name}")),
        Target::Fentry(name) => Some(format!("fentry/{name}")),
        Target::Fexit(name) => Some(format!("fexit/{name}")),
        _ => None,
    }
}

fn program(
    text: &mut String,
    nth: usize,
    target: &Target,
    points: &[(usize, &CheckedPoint)],
    schema: &Schema,
    kernel: &dyn KernelTypes,
) {
    let writer = Writer { kernel, is_direct: !matches!(target, Target::RawTracepoint(_)) };
    let section = section(target).unwrap_or_default();
    let _ = writeln!(text, "SEC(\"{section}\")\nint mete_at_{nth}(mete_u64 *ctx)\n{{");
    let arguments = points.first().and_then(|(_, point)| point.arguments.as_deref()).unwrap_or_default();
    let used = used_arguments(points);
    for (place, argument) in
        arguments.iter().enumerate().filter(|(_, argument)| used.contains_key(argument.name.as_str()))
    {
        let _ = writeln!(text, "\t{};", loaded(&writer, place, argument));
    }
    for (nth, point) in points {
        self::point(text, point, &schema.points[*nth].logs, schema, &writer);
    }
    text.push_str("\treturn 0;\n}\n\n");
}

/// An argument as a variable of its type. Of a small one, the upper bits of its word are anything.
fn loaded(writer: &Writer<'_>, place: usize, argument: &Typed) -> String {
    let Typed { name, kind } = argument;
    match kind {
        Type::Truth => format!("_Bool a_{name} = (mete_u8)ctx[{place}]"),
        Type::Pointer(_) => format!("{}a_{name} = (void *)ctx[{place}]", writer.c_type(kind)),
        kind => format!("{} a_{name} = ctx[{place}]", writer.c_type(kind)),
    }
}

fn used_arguments<'a>(points: &[(usize, &'a CheckedPoint)]) -> BTreeMap<&'a str, ()> {
    let mut used = BTreeMap::new();
    for (_, point) in points {
        for value in values(point) {
            value.walk(&mut |value| {
                if let crate::typing::Node::Argument(name) = &value.node {
                    used.insert(name.as_str(), ());
                }
            });
        }
    }
    used
}

/// All expressions of a point.
fn values(point: &CheckedPoint) -> impl Iterator<Item = &Value> {
    let logs = point.logs.iter().flat_map(|log| log.condition.iter().chain(&log.values));
    point.when.iter().chain(logs)
}

fn point(
    text: &mut String,
    point: &CheckedPoint,
    logs: &[crate::schema::Log],
    schema: &Schema,
    writer: &Writer<'_>,
) {
    let when = point.when.as_ref().map_or_else(|| "1".to_owned(), |condition| writer.value(condition));
    let _ = writeln!(text, "\tif ({when}) {{");
    for (log, checked) in logs.iter().zip(&point.logs) {
        self::log(text, &schema.events[log.event], checked, writer);
    }
    text.push_str("\t}\n");
}

fn log(text: &mut String, event: &Event, log: &CheckedLog, writer: &Writer<'_>) {
    let name = &event.name;
    let condition =
        log.condition.as_ref().map_or_else(|| "1".to_owned(), |condition| writer.value(condition));
    let _ = writeln!(
        text,
        "\t\tif ({condition}) {{\n\t\t\tstruct mete_{name} *record = METE_BEGIN(sizeof(*record));\n"
    );
    let _ = writeln!(text, "\t\t\tif (record) {{\n{}", frame(event, "\t\t\t\t").trim_end());
    let places = in_place(event);
    for (_, field) in places {
        let Some(nth) = event.fields.iter().position(|it| it.name == field.name) else { continue };
        let Some(value) = log.values.get(nth) else { continue };
        let statement = match field.kind {
            FieldType::Text(letters) => writer.text(&field.name, letters, value),
            _ => format!("record->f_{} = {};", field.name, writer.word(value)),
        };
        let _ = writeln!(text, "\t\t\t\t{statement}");
    }
    text.push_str("\t\t\t\tMETE_END(record, sizeof(*record));\n\t\t\t}\n\t\t}\n");
}
