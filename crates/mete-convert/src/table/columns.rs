//! Which columns a trace has.
//!
//! Fields of the same name and type share a column, so that `pid` is `pid` whatever happened. A field whose
//! name has another type in another event, or is that of one of the first columns, is called `EVENT.field`. Behind
//! the number of a thread or a process stands [what is told of it](crate::beside).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use mete_trace::{EventLayout, FieldKind, FieldLayout, Trace};

use super::{DESCRIPTION, DOC};
use crate::beside::{Beside, Company, Told};

/// The columns that each table begins with: name, type, whether there may be nothing in it, what it holds.
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

/// What a cell holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// A field.
    Field(FieldLayout),
    /// What is told of a number.
    Beside(Beside),
}

/// Where a field goes, or what is told of one.
#[derive(Clone, Debug)]
pub struct Place {
    /// What goes there.
    pub content: Content,
    /// The column, counted behind the first ones.
    pub column: usize,
}

/// The columns behind the first ones, and which fields go there.
#[derive(Debug)]
pub struct Columns {
    /// All columns.
    pub schema: SchemaRef,
    /// Of each event by its number where its fields go.
    pub places: Vec<Vec<Place>>,
    /// What is known of threads.
    pub company: Company,
}

impl Columns {
    /// The columns of a trace's events.
    pub fn of(trace: &Trace) -> Columns {
        let events = &trace.description().description.events;
        let shared = Shared::of(events);
        let mut found = Found::default();
        let most = events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let mut places = vec![Vec::new(); most];
        let company = Company::of(trace, &first_names());
        for event in events {
            let own = &mut places[usize::from(event.id)];
            for (nth, field) in event.fields.iter().enumerate() {
                let (name, kind) = (shared.name(event, field), data_type(field));
                let column = found.column(&name, kind, (&event.name, &field.doc), own);
                own.push(Place { content: Content::Field(field.clone()), column });
                for beside in company.beside(event.id, nth) {
                    let doc = beside.told.doc(&field.name);
                    let column = found.column(&beside.name, type_beside(beside), (&event.name, &doc), own);
                    own.push(Place { content: Content::Beside(beside.clone()), column });
                }
            }
        }
        Columns { schema: found.schema(trace), places, company }
    }

    /// How many columns there are behind the first ones.
    pub fn fields(&self) -> usize {
        self.schema.fields().len() - FIRST_COLUMNS
    }
}

/// How many columns stand before the fields.
pub const FIRST_COLUMNS: usize = FIRST.len() + 1;

/// The names that no field's column has.
pub fn first_names() -> Vec<&'static str> {
    FIRST.iter().map(|(name, ..)| *name).chain([EVENT]).collect()
}

fn type_beside(beside: &Beside) -> DataType {
    match beside.told {
        Told::Name | Told::ProcessName => DataType::Utf8,
        Told::Process => DataType::Int32,
    }
}

/// The names that may be shared: those that mean one type.
struct Shared<'a>(HashMap<&'a str, Option<DataType>>);

impl<'a> Shared<'a> {
    fn of(events: &'a [EventLayout]) -> Shared<'a> {
        let mut types: HashMap<&str, Option<DataType>> = HashMap::new();
        for field in events.iter().flat_map(|event| &event.fields) {
            let kind = data_type(field);
            let known = types.entry(&field.name).or_insert_with(|| Some(kind.clone()));
            if known.as_ref() != Some(&kind) {
                *known = None;
            }
        }
        for taken in first_names() {
            types.insert(taken, None);
        }
        Shared(types)
    }

    fn name(&self, event: &EventLayout, field: &FieldLayout) -> String {
        match self.0.get(field.name.as_str()) {
            Some(Some(_)) => field.name.clone(),
            _ => format!("{}.{}", event.name, field.name),
        }
    }
}

/// A column and each event's own words on it.
struct Column {
    name: String,
    kind: DataType,
    docs: Vec<(String, String)>,
}

/// The columns so far.
#[derive(Default)]
struct Found {
    columns: Vec<Column>,
    places: HashMap<String, usize>,
}

impl Found {
    /// The column of this name and type. Where another one has the name, or the event has a field there already,
    /// which the language does not allow but a description could, it gets a number.
    fn column(&mut self, name: &str, kind: DataType, doc: (&str, &str), own: &[Place]) -> usize {
        let is_free = |index: usize| own.iter().all(|place| place.column != index);
        let (mut numbered, mut nth) = (name.to_owned(), 1);
        loop {
            match self.places.get(&numbered) {
                None => {
                    self.places.insert(numbered.clone(), self.columns.len());
                    self.columns.push(Column { name: numbered, kind, docs: Vec::new() });
                    return self.add(self.columns.len() - 1, doc);
                }
                Some(index) if self.columns[*index].kind == kind && is_free(*index) => {
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

/// What several events say of a column: once if they agree, else line by line.
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
