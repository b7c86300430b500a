//! Programs for the kernel: one for each place, straight-line except for the schema's own conditions.
//!
//! The file that includes this code first describes the buffer, by structures and macros:
//!
//! | name | meaning |
//! |---|---|
//! | `struct mete_place` | state of a record between its beginning and its end |
//! | `struct mete_here` | state that the records of one run of a program share, all 0 at first: the buffer, the time |
//! | `METE_BEGIN(place, here, id, bytes)` | room for a record of this event and constant size, or NULL |
//! | `METE_END(place, record, id, bytes)` | completes a record with all its fields: writes its header, and commits it |
//! | `METE_PARAMETER(ctx, n)`, `METE_RETURNED(ctx)` | argument n of a call, from 0; the value that a call returns |
//! | `METE_STATIC_ARGUMENT(ctx, n)` | value n of a static probe, from 0; defined in `usdt.h` |
//! | `METE_TIME()`, `METE_DOMAIN()`, `METE_COUNTER(n)` | the values of these names |
//!
//! `METE_BEGIN` gives NULL if there is no room, or if the event is off. Only schemata with static probes
//! include `usdt.h`.
//!
//! That file also includes `<bpf/bpf_helpers.h>` and `<bpf/bpf_core_read.h>`. Structures of the kernel are
//! declared with only those members that are read. The loader finds where the members lie (CO-RE).
//!
//! Programs do not write the header: a reader of the buffer takes its first word as the sign that the record
//! is complete.

mod benchmark;
mod spare;
mod structures;
mod value;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use super::c::{PREAMBLE, padding, records};
use super::in_place;
use crate::kernel::{KernelTypes, Type, Typed};
use crate::problem::{Problem, Problems};
use crate::schema::{Event, Point, Schema, Target};
use crate::types::FieldType;
use crate::typing::{Checked, CheckedLog, CheckedPoint, Node};
pub use benchmark::benchmark;
use structures::Structures;
use value::Writer;

/// The programs of a schema that was checked against this kernel.
///
/// # Errors
///
/// Points for which no program can be made: `probe`, which is not a place in the kernel, and tracepoints
/// whose records were not described. Values that lie behind too many pointers.
pub fn bpf(schema: &Schema, checked: &Checked, kernel: &dyn KernelTypes) -> Result<String, Problems> {
    let points = schema.points.iter().zip(&checked.points);
    let refused = points.filter_map(|(point, checked)| refusal(point, checked));
    Problems::unless_none(refused.collect())?;
    Problems::unless_none(too_far(schema, checked, kernel))?;
    let checked = &spare::spare(schema, checked, kernel);
    let mut text = "/* Made from a schema by mete. Changes here are lost. */\n".to_owned();
    if schema.points.iter().any(|point| matches!(point.target, Target::Usdt { .. })) {
        text.push_str("#include \"usdt.h\"\n\n");
    }
    text.push_str(PREAMBLE);
    text.push_str(QUIET);
    records(&mut text, schema);
    text.push_str(&Structures::of(checked, kernel).text());
    for (nth, (target, points)) in by_target(schema).into_iter().enumerate() {
        let points: Vec<_> = points.into_iter().map(|nth| (nth, &checked.points[nth])).collect();
        program(&mut text, &name(nth), target, &points, schema, kernel);
    }
    benchmark::benchmarks(&mut text, schema);
    Ok(text)
}

fn refusal(point: &Point, checked: &CheckedPoint) -> Option<Problem> {
    let (label, help) = match (&point.target, &checked.arguments) {
        (Target::Probe(_), _) => (
            "a probe point of a program belongs to the log facility, not to the kernel",
            "leave the point out, and read the program's rows instead, as mete record does",
        ),
        (_, None) => (
            "its record is described in the tracing file system only",
            "this process may not read that file system: run as root",
        ),
        (_, Some(_)) => return None,
    };
    let title = format!("no program can be made for {}", point.target);
    Some(Problem::new(point.span, title, label).help(help.to_owned()))
}

/// The most pointers that the loader library's macro follows, where the kernel does not let a program follow
/// them itself.
const MOST_POINTERS: usize = 9;

/// Values that lie behind too many pointers.
fn too_far(schema: &Schema, checked: &Checked, kernel: &dyn KernelTypes) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (point, checked) in schema.points.iter().zip(&checked.points) {
        let writer = Writer { kernel, is_direct: is_direct(&way(&point.target, kernel)) };
        for value in checked.values() {
            value.walk(&mut |value| {
                // Not `>`, so that a value that lies still farther away is reported once.
                if writer.pointers_to(value) == MOST_POINTERS + 1 {
                    let title = format!("{} cannot follow so many pointers", point.target);
                    let label = format!("at most {MOST_POINTERS} on the way to a value");
                    let help = match point.target {
                        Target::TpBtf(_) => "it is a module's, whose addresses are followed by a helper",
                        _ => "a `tp_btf:` of the same tracepoint can, unless it is a module's",
                    };
                    problems.push(Problem::new(value.span, title, label).help(help.to_owned()));
                }
            });
        }
    }
    problems
}

/// A program that [`bpf`] writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its function.
    pub name: String,
    /// Where it runs.
    pub target: Target,
    /// The indexes in [`Schema::events`] of the events that it may log, one for each `log` of an event.
    pub events: Vec<usize>,
}

impl Program {
    /// Whether it may log any of these events.
    pub fn logs_any(&self, events: &[usize]) -> bool {
        self.events.iter().any(|event| events.contains(event))
    }
}

/// The programs that [`bpf`] writes for a schema, in their order.
pub fn programs(schema: &Schema) -> Vec<Program> {
    let places = by_target(schema).into_iter().enumerate();
    let programs = places.map(|(nth, (target, points))| {
        let logs = points.iter().flat_map(|point| &schema.points[*point].logs);
        Program { name: name(nth), target: target.clone(), events: logs.map(|log| log.event).collect() }
    });
    programs.collect()
}

fn name(nth: usize) -> String {
    format!("mete_at_{nth}")
}

/// Switches off the warnings that a user's expressions may cause. The expressions have been checked, and
/// their style is the user's choice.
const QUIET: &str = "\
#pragma clang diagnostic ignored \"-Wparentheses-equality\"
#pragma clang diagnostic ignored \"-Wtautological-compare\"
#pragma clang diagnostic ignored \"-Wconstant-logical-operand\"

";

/// The indexes of the points at each place. They share one program, because a second program at the same
/// place would cost more than the work of the first one.
fn by_target(schema: &Schema) -> Vec<(&Target, Vec<usize>)> {
    // In the schema's order, so that the same schema always gives the same text.
    let mut order: Vec<(&Target, Vec<usize>)> = Vec::new();
    for (nth, point) in schema.points.iter().enumerate() {
        match order.iter_mut().find(|(target, _)| **target == point.target) {
            Some((_, points)) => points.push(nth),
            None => order.push((&point.target, vec![nth])),
        }
    }
    order
}

/// The section, which tells the loader the kind of program. It has no path and no symbol of a user's program:
/// the recorder attaches there itself, so that code that was compiled for one program serves for all.
fn section(target: &Target) -> Option<String> {
    match target {
        Target::TpBtf(name) => Some(format!("tp_btf/{name}")),
        Target::RawTracepoint(name) => Some(format!("raw_tp/{name}")),
        Target::Tracepoint { group, name } => Some(format!("tracepoint/{group}/{name}")),
        Target::Fentry(name) => Some(format!("fentry/{name}")),
        Target::Fexit(name) => Some(format!("fexit/{name}")),
        Target::Kprobe(name) => Some(format!("kprobe/{name}")),
        Target::Uprobe { .. } => Some("uprobe".to_owned()),
        Target::Uretprobe { .. } => Some("uretprobe".to_owned()),
        Target::Usdt { .. } => Some("usdt".to_owned()),
        Target::Probe(_) => None,
    }
}

/// The kind of program that runs at a place. Newer kernels (6.12.117 is one) assume that an address which a
/// module's tracepoint passes may be NULL, and refuse programs that follow it without a check. So programs at
/// such a tracepoint read by a helper, which gives 0 for NULL.
fn way<'a>(target: &'a Target, kernel: &dyn KernelTypes) -> Cow<'a, Target> {
    match target {
        Target::TpBtf(name) if kernel.is_of_module(name) => Cow::Owned(Target::RawTracepoint(name.clone())),
        target => Cow::Borrowed(target),
    }
}

/// Whether the kernel knows the types of a program's arguments, and lets the program follow them by plain
/// loads.
fn is_direct(target: &Target) -> bool {
    matches!(target, Target::TpBtf(_) | Target::Fentry(_) | Target::Fexit(_))
}

/// The C expression of the word that an argument comes in.
fn word(target: &Target, place: usize, argument: &Typed) -> String {
    match target {
        Target::Tracepoint { .. } => field(argument),
        Target::Kprobe(_) | Target::Uprobe { .. } => format!("METE_PARAMETER(ctx, {place})"),
        Target::Uretprobe { .. } => "METE_RETURNED(ctx)".to_owned(),
        Target::Usdt { .. } => format!("METE_STATIC_ARGUMENT(ctx, {place})"),
        _ => format!("ctx[{place}]"),
    }
}

/// A field of a tracepoint's record. It lies where the kernel that the schema was checked against has it.
fn field(argument: &Typed) -> String {
    let place = argument.place.unwrap_or(0);
    match argument.kind {
        Type::Int(int) => format!("*(mete_{int} *)((char *)ctx + {place})"),
        Type::Truth => format!("*(mete_u8 *)((char *)ctx + {place})"),
        Type::Text(_) => format!("(char *)ctx + {place}"),
        _ => format!("*(mete_u64 *)((char *)ctx + {place})"),
    }
}

/// All events that one run of a program logs share one time stamp, because reading a clock costs as much as a
/// record.
const HERE: &str = "\tstruct mete_here here = {};\n\n";

fn program(
    text: &mut String,
    name: &str,
    target: &Target,
    points: &[(usize, &CheckedPoint)],
    schema: &Schema,
    kernel: &dyn KernelTypes,
) {
    let target = &*way(target, kernel);
    let writer = Writer { kernel, is_direct: is_direct(target) };
    // `refusal` has refused points whose target has no section.
    let section = section(target).unwrap_or_default();
    let _ = writeln!(text, "SEC(\"{section}\")\nint {name}(mete_u64 *ctx)\n{{");
    // All points of one place have the same arguments.
    let arguments = points.first().and_then(|(_, point)| point.arguments.as_deref()).unwrap_or_default();
    // The compiler would warn of variables that are not used.
    let used = used_arguments(points);
    for (place, argument) in
        arguments.iter().enumerate().filter(|(_, argument)| used.contains(argument.name.as_str()))
    {
        let _ = writeln!(text, "\t{};", loaded(&writer, &word(target, place, argument), argument));
    }
    text.push_str(HERE);
    for (nth, point) in points {
        self::point(text, point, &schema.points[*nth].logs, schema, &writer);
    }
    text.push_str("\treturn 0;\n}\n\n");
}

/// An argument as a variable of its type, which cuts off the upper bits of the word: those of a small
/// argument are undefined.
fn loaded(writer: &Writer<'_>, word: &str, argument: &Typed) -> String {
    let Typed { name, kind, .. } = argument;
    match kind {
        Type::Truth => format!("_Bool a_{name} = (mete_u8)({word})"),
        Type::Text(_) => format!("const char *a_{name} = {word}"),
        Type::Pointer(_) => format!("{}a_{name} = (void *)({word})", writer.c_type(kind)),
        kind => format!("{} a_{name} = {word}", writer.c_type(kind)),
    }
}

fn used_arguments<'a>(points: &[(usize, &'a CheckedPoint)]) -> BTreeSet<&'a str> {
    let mut used = BTreeSet::new();
    for value in points.iter().flat_map(|(_, point)| point.values()) {
        value.walk(&mut |value| {
            if let Node::Argument(name) = &value.node {
                used.insert(name.as_str());
            }
        });
    }
    used
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
        "\t\tif ({condition}) {{\n\t\t\tstruct mete_place place;\n\
         \t\t\tstruct mete_record_{name} *record = METE_BEGIN(&place, &here, METE_ID_{name}, sizeof(*record));\n\n\
         \t\t\tif (record) {{"
    );
    text.push_str(&padding(event, "\t\t\t\t"));

    for (_, field) in in_place(event) {
        let Some(nth) = event.fields.iter().position(|it| it.name == field.name) else { continue };
        let Some(value) = log.values.get(nth) else { continue };
        let statement = match field.kind {
            FieldType::Text(letters) => writer.text(&field.name, letters, value),
            _ => format!("record->f_{} = {};", field.name, writer.word(value)),
        };
        let _ = writeln!(text, "\t\t\t\t{statement}");
    }
    let _ = writeln!(
        text,
        "\t\t\t\tMETE_END(&place, record, METE_ID_{name}, sizeof(*record));\n\t\t\t}}\n\t\t}}"
    );
}
