//! The rows of the table, collected column by column.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{Gap, Record, Ticks, Trace, Value};

use super::BATCH_ROWS;
use super::columns::{CellPlace, Columns, FIRST_COLUMNS};
use crate::companions::Companions;
use crate::format::{Event, LOST, name_without_layout};

/// Collects rows.
pub struct Rows {
    schema: SchemaRef,
    places: Vec<Vec<CellPlace>>,
    companions: Companions,
    names: EventNames,
    rows: usize,
    processor: UInt32Builder,
    file: UInt32Builder,
    serial: UInt64Builder,
    time_ns: Int64Builder,
    time: UInt64Builder,
    event: Int32Builder,
    lost: UInt64Builder,
    fields: Vec<Cells>,
}

impl Rows {
    /// A collection without rows, with the columns of a trace.
    pub fn of(trace: &Trace) -> Rows {
        let Columns { schema, places, companions } = Columns::of(trace);
        let fields = schema.fields()[FIRST_COLUMNS..].iter().map(|field| Cells::of(field.data_type()));
        Rows {
            fields: fields.collect(),
            places,
            companions,
            names: EventNames::of(trace),
            rows: 0,
            processor: UInt32Builder::with_capacity(BATCH_ROWS),
            file: UInt32Builder::with_capacity(BATCH_ROWS),
            serial: UInt64Builder::with_capacity(BATCH_ROWS),
            time_ns: Int64Builder::with_capacity(BATCH_ROWS),
            time: UInt64Builder::with_capacity(BATCH_ROWS),
            event: Int32Builder::with_capacity(BATCH_ROWS),
            lost: UInt64Builder::with_capacity(BATCH_ROWS),
            schema,
        }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether it is time to [`take`](Rows::take) what is there.
    pub fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS
    }

    /// Takes from an event what it says about threads.
    pub fn learn(&mut self, record: &Record<'_>) {
        self.companions.learn(record);
    }

    /// Adds a row for an event.
    pub fn event(&mut self, event: &Event<'_>) {
        let record = &event.record;
        self.learn(record);
        self.first([record.processor, record.file], record.serial, event.time_ns, Some(record.time));
        self.event.append_value(self.names.key(record.event));
        self.lost.append_null();
        let places = event.layout.and_then(|_| self.places.get(usize::from(record.event)));
        for place in places.into_iter().flatten() {
            // A field beyond the end of a short record has no value, and its cell stays empty.
            if let Some(value) = place.content.value(record, &self.companions) {
                self.fields[place.column].put(self.rows, &value);
            }
        }
        self.rows += 1;
    }

    /// Adds a row for a gap.
    pub fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) {
        self.first([gap.processor, gap.file], gap.first_serial, after_ns, gap.after);
        self.event.append_value(self.names.lost);
        self.lost.append_value(gap.events);
        self.rows += 1;
    }

    fn first(&mut self, [processor, file]: [u32; 2], serial: u64, time_ns: Option<u64>, time: Option<Ticks>) {
        self.processor.append_value(processor);
        self.file.append_value(file);
        self.serial.append_value(serial);
        // Signed, because people subtract times. A time that does not fit is after the year 2262, and the
        // cell is empty.
        self.time_ns.append_option(time_ns.and_then(|ns| i64::try_from(ns).ok()));
        self.time.append_option(time.map(Ticks::get));
    }

    /// The rows so far; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`ArrowError`] if the columns do not fit together, which no trace can cause.
    pub fn take(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let rows = std::mem::take(&mut self.rows);
        // Every batch has the same dictionary, as the Arrow file format requires.
        let names = DictionaryArray::<Int32Type>::try_new(self.event.finish(), self.names.values())?;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.processor.finish()),
            Arc::new(self.file.finish()),
            Arc::new(self.serial.finish()),
            Arc::new(self.time_ns.finish()),
            Arc::new(self.time.finish()),
            Arc::new(names),
            Arc::new(self.lost.finish()),
        ];
        columns.extend(self.fields.iter_mut().map(|cells| cells.take(rows)));
        RecordBatch::try_new(self.schema(), columns).map(Some)
    }
}

/// The events' names as a dictionary, the same one for all rows.
struct EventNames {
    values: Arc<StringArray>,
    /// For each event, by its number, the position of its name.
    keys: Vec<i32>,
    unknown: i32,
    lost: i32,
}

impl EventNames {
    fn of(trace: &Trace) -> EventNames {
        let events = &trace.description().description.events;
        let own = [
            name_without_layout(0xffff),
            LOST,
            name_without_layout(DUMP_BEGIN),
            name_without_layout(DUMP_FINISH),
        ];
        // The keys below, 0 to 3, are positions in this list.
        let mut values: Vec<&str> = own.to_vec();
        let mut keys = Vec::new();
        for event in events {
            let id = usize::from(event.id);
            // Numbers without an event get 0, the key of `UNKNOWN`.
            keys.resize(keys.len().max(id + 1), 0);
            keys[id] = values.len() as i32;
            values.push(&event.name);
        }
        EventNames { values: Arc::new(StringArray::from(values)), keys, unknown: 0, lost: 1 }
    }

    fn key(&self, event: u16) -> i32 {
        match event {
            DUMP_BEGIN => 2,
            DUMP_FINISH => 3,
            event => self.keys.get(usize::from(event)).copied().unwrap_or(self.unknown),
        }
    }

    fn values(&self) -> ArrayRef {
        Arc::<StringArray>::clone(&self.values)
    }
}

/// The cells of one field. Empty cells for rows of other events are added when the next cell comes.
enum Cells {
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    I8(Int8Builder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

/// Does the same for every kind of builder.
macro_rules! with {
    ($cells:expr, $builder:ident => $do:expr) => {
        match $cells {
            Cells::U8($builder) => $do,
            Cells::U16($builder) => $do,
            Cells::U32($builder) => $do,
            Cells::U64($builder) => $do,
            Cells::I8($builder) => $do,
            Cells::I16($builder) => $do,
            Cells::I32($builder) => $do,
            Cells::I64($builder) => $do,
            Cells::F32($builder) => $do,
            Cells::F64($builder) => $do,
            Cells::Bool($builder) => $do,
            Cells::Text($builder) => $do,
            Cells::Bytes($builder) => $do,
        }
    };
}

impl Cells {
    fn of(kind: &DataType) -> Cells {
        match kind {
            DataType::UInt8 => Cells::U8(UInt8Builder::new()),
            DataType::UInt16 => Cells::U16(UInt16Builder::new()),
            DataType::UInt32 => Cells::U32(UInt32Builder::new()),
            DataType::UInt64 => Cells::U64(UInt64Builder::new()),
            DataType::Int8 => Cells::I8(Int8Builder::new()),
            DataType::Int16 => Cells::I16(Int16Builder::new()),
            DataType::Int32 => Cells::I32(Int32Builder::new()),
            DataType::Int64 => Cells::I64(Int64Builder::new()),
            DataType::Float32 => Cells::F32(Float32Builder::new()),
            DataType::Float64 => Cells::F64(Float64Builder::new()),
            DataType::Boolean => Cells::Bool(BooleanBuilder::new()),
            DataType::Utf8 => Cells::Text(StringBuilder::new()),
            _ => Cells::Bytes(BinaryBuilder::new()),
        }
    }

    fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        with!(self, builder => builder.len())
    }

    fn fill_up(&mut self, rows: usize) {
        let missing = rows - self.len();
        if missing > 0 {
            with!(self, builder => builder.append_nulls(missing));
        }
    }

    /// Puts a value into the cell of this row. Columns have the types of their fields. A value of another
    /// type leaves its cell empty.
    fn put(&mut self, row: usize, value: &Value<'_>) {
        self.fill_up(row);
        match (self, value) {
            (Cells::U8(cells), Value::Unsigned(number)) => cells.append_value(*number as u8),
            (Cells::U16(cells), Value::Unsigned(number)) => cells.append_value(*number as u16),
            (Cells::U32(cells), Value::Unsigned(number)) => cells.append_value(*number as u32),
            (Cells::U64(cells), Value::Unsigned(number) | Value::Address(number)) => {
                cells.append_value(*number)
            }
            (Cells::I8(cells), Value::Signed(number)) => cells.append_value(*number as i8),
            (Cells::I16(cells), Value::Signed(number)) => cells.append_value(*number as i16),
            (Cells::I32(cells), Value::Signed(number)) => cells.append_value(*number as i32),
            (Cells::I64(cells), Value::Signed(number)) => cells.append_value(*number),
            (Cells::F32(cells), Value::Float(number)) => cells.append_value(*number as f32),
            (Cells::F64(cells), Value::Float(number)) => cells.append_value(*number),
            (Cells::Bool(cells), Value::Bool(truth)) => cells.append_value(*truth),
            (Cells::Text(cells), Value::Text(text)) => cells.append_value(text),
            (Cells::Bytes(cells), Value::Bytes(bytes)) => cells.append_value(bytes),
            _ => {}
        }
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        self.fill_up(rows);
        with!(self, builder => Arc::new(builder.finish()))
    }
}
