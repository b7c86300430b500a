//! The columns of a trace's table.
//!
//! Fields of the same name and type share a column, so that `pid` is `pid` in all events. A field is called
//! `EVENT.field` if its name has another type in another event, or belongs to one of the first columns. After
//! the number of a thread or a process stand [its companions](crate::companions).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use mete_trace::{EventLayout, FieldKind, FieldLayout, Record, Trace, Value};

use super::{DESCRIPTION, DOC};
use crate::companions::{Companion, CompanionKind, Companions};

/// The columns with which each table begins: name, type, whether a cell may be empty, and what it holds.
const FIRST: [(&str, DataType, bool, &str); 6] = [
    ("processor", DataType::UInt32, false, "the processor that recorded it"),
    (
        "file",
        DataType::UInt32,
        false,
        "the file that it is in: the processor's number, or behind these, of programs' own events beside the kernel's",
    ),
    (
        "serial",
        DataType::UInt64,
        false,
        "its number in this file, lost ones counted; of a gap, that of the first lost event",
    ),
    (
        "time_ns",
        DataType::Int64,
        true,
        "CLOCK_MONOTONIC in nanoseconds; of a gap, that of the event before it",
    ),
    ("time", DataType::UInt64, true, "the time stamp as it was recorded, in ticks of the trace's clock"),
    ("lost", DataType::UInt64, true, "of a gap, how many events are missing; else nothing"),
];
/// The column that stands before `lost`.
const EVENT: &str = "event";

/// The content of a cell.
#[derive(Clone, Debug)]
pub enum CellContent {
    /// A field.
    Field(FieldLayout),
    /// A companion of a field.
    Companion(Companion),
}

impl CellContent {
    /// The value in a record; `None` if the record or the trace does not tell it.
    #[inline]
    pub fn value<'a>(&self, record: &Record<'a>, companions: &'a Companions) -> Option<Value<'a>> {
        match self {
            CellContent::Field(field) => field.value(record.bytes),
            CellContent::Companion(companion) => companions.value(companion, record),
        }
    }
}

/// The column of a field or a companion.
#[derive(Clone, Debug)]
pub struct CellPlace {
    /// The content of the cell.
    pub content: CellContent,
    /// The column, counted after the first ones.
    pub column: usize,
}

/// The columns of a table, and the fields that they hold.
#[derive(Debug)]
pub struct Columns {
    /// All columns.
    pub schema: SchemaRef,
    /// For each event, by its number, the columns of its fields.
    pub places: Vec<Vec<CellPlace>>,
    /// The companions of fields.
    pub companions: Companions,
}

impl Columns {
    /// The columns of a trace's events.
    pub fn of(trace: &Trace) -> Columns {
        let events = &trace.description().description.events;
        let shared = SharedNames::of(events);
        let mut found = ColumnsSoFar::default();
        let most = events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let mut places = vec![Vec::new(); most];
        let companions = Companions::of(trace, &first_names());
        for event in events {
            let own = &mut places[usize::from(event.id)];
            for (nth, field) in event.fields.iter().enumerate() {
                let (name, kind) = (shared.name(event, field), data_type(field));
                let column = found.column(&name, kind, (&event.name, &field.doc), own);
                own.push(CellPlace { content: CellContent::Field(field.clone()), column });
                for companion in companions.of_field(event.id, nth) {
                    let doc = companion.kind.doc(&field.name);
                    let column =
                        found.column(&companion.name, type_beside(companion), (&event.name, &doc), own);
                    own.push(CellPlace { content: CellContent::Companion(companion.clone()), column });
                }
            }
        }
        Columns { schema: found.schema(trace), places, companions }
    }

    /// The number of columns after the first ones.
    pub fn fields(&self) -> usize {
        self.schema.fields().len() - FIRST_COLUMNS
    }
}

/// The number of columns before the fields.
pub const FIRST_COLUMNS: usize = FIRST.len() + 1;

/// Names that no field's column has.
pub fn first_names() -> Vec<&'static str> {
    FIRST.iter().map(|(name, ..)| *name).chain([EVENT]).collect()
}

fn type_beside(companion: &Companion) -> DataType {
    match companion.kind {
        CompanionKind::Name | CompanionKind::ProcessName => DataType::Utf8,
        CompanionKind::Process => DataType::Int32,
    }
}

/// The names that fields of several events may share: those that have one type.
struct SharedNames<'a>(HashMap<&'a str, Option<DataType>>);

impl<'a> SharedNames<'a> {
    fn of(events: &'a [EventLayout]) -> SharedNames<'a> {
        let mut types: HashMap<&str, Option<DataType>> = HashMap::new();
        for field in events.iter().flat_map(|event| &event.fields) {
            let kind = data_type(field);
            let known = types.entry(&field.name).or_insert_with(|| Some(kind.clone()));
            if known.as_ref() != Some(&kind) {
                *known = None;
            }
        }
        // Fields with the names of the first columns are always called `EVENT.field`.
        for taken in first_names() {
            types.insert(taken, None);
        }
        SharedNames(types)
    }

    fn name(&self, event: &EventLayout, field: &FieldLayout) -> String {
        match self.0.get(field.name.as_str()) {
            Some(Some(_)) => field.name.clone(),
            _ => format!("{}.{}", event.name, field.name),
        }
    }
}

/// A column, and what each event's schema says about it.
struct Column {
    name: String,
    kind: DataType,
    docs: Vec<(String, String)>,
}

/// The columns so far.
#[derive(Default)]
struct ColumnsSoFar {
    columns: Vec<Column>,
    places: HashMap<String, usize>,
}

impl ColumnsSoFar {
    /// The column of this name and type. The name gets a number in two cases: another column has it, or the
    /// event already has a field in that column. The schema language does not allow the latter, but a
    /// description could have it.
    fn column(&mut self, name: &str, kind: DataType, doc: (&str, &str), own: &[CellPlace]) -> usize {
        let (mut numbered, mut nth) = (name.to_owned(), 1);
        loop {
            match self.places.get(&numbered) {
                None => {
                    self.places.insert(numbered.clone(), self.columns.len());
                    self.columns.push(Column { name: numbered, kind, docs: Vec::new() });
                    return self.add(self.columns.len() - 1, doc);
                }
                Some(index)
                    if self.columns[*index].kind == kind
                        && own.iter().all(|place| place.column != *index) =>
                {
                    return self.add(*index, doc);
                }
                Some(_) => nth += 1,
            }
            numbered = format!("{name}_{nth}");
        }
    }

    fn add(&mut self, index: usize, (event, doc): (&str, &str)) -> usize {
        if !doc.is_empty() {
            self.columns[index].docs.push((event.to_owned(), doc.to_owned()));
        }
        index
    }

    fn schema(self, trace: &Trace) -> SchemaRef {
        let mut fields: Vec<Field> = FIRST.into_iter().map(first).collect();
        let names = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        // After the first five columns of `FIRST`, and before `lost`.
        fields.insert(
            5,
            documented(Field::new(EVENT, names, false), "the event's name; LOST for a gap".into()),
        );
        let columns = self.columns.into_iter();
        fields.extend(columns.map(|it| documented(Field::new(it.name, it.kind, true), joined(&it.docs))));
        let description = serde_json::to_string(trace.description()).unwrap_or_default();
        Arc::new(Schema::new(fields).with_metadata([(DESCRIPTION.to_owned(), description)].into()))
    }
}

fn first((name, kind, may_be_null, doc): (&str, DataType, bool, &str)) -> Field {
    documented(Field::new(name, kind, may_be_null), doc.to_owned())
}

fn documented(field: Field, doc: String) -> Field {
    if doc.is_empty() { field } else { field.with_metadata([(DOC.to_owned(), doc)].into()) }
}

/// The documentation of a column: one text if all events agree, else one line for each event.
fn joined(docs: &[(String, String)]) -> String {
    let Some((_, first)) = docs.first() else { return String::new() };
    if docs.iter().all(|(_, doc)| doc == first) {
        return first.clone();
    }
    docs.iter().map(|(event, doc)| format!("{event}: {doc}")).collect::<Vec<_>>().join("\n")
}

fn data_type(field: &FieldLayout) -> DataType {
    match (field.kind, field.bytes) {
        (FieldKind::Unsigned, 1) => DataType::UInt8,
        (FieldKind::Unsigned, 2) => DataType::UInt16,
        (FieldKind::Unsigned, 4) => DataType::UInt32,
        (FieldKind::Unsigned, _) | (FieldKind::Address, _) => DataType::UInt64,
        (FieldKind::Signed, 1) => DataType::Int8,
        (FieldKind::Signed, 2) => DataType::Int16,
        (FieldKind::Signed, 4) => DataType::Int32,
        (FieldKind::Signed, _) => DataType::Int64,
        (FieldKind::Float, 4) => DataType::Float32,
        (FieldKind::Float, _) => DataType::Float64,
        (FieldKind::Bool, _) => DataType::Boolean,
        (FieldKind::Text, _) => DataType::Utf8,
        (FieldKind::Bytes, _) => DataType::Binary,
    }
}
