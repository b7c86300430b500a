//! Names and processes beside the numbers of threads (NEW-6): the same columns with the same values in every
//! format.

use std::collections::BTreeMap;

use crate::common::{Scratch, record, trace_description, write_file};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use mete_convert::{ArrowFile, Csv, JsonLines, Parquet, Text, convert};
use mete_schema::{Schema, Source};
use mete_trace::{Description, Filter, ThreadName, Trace};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// One field has the name that a companion of another field would get.
const SCHEMA: &str = "
event IN { int pid  int tgid  u8 pid_process }
event FORK { int parent  int pid  int tgid  char comm[16] }
event RENAME { int pid  char comm[16] }
at tp_btf:sched_switch log IN(next.pid, next.tgid, 7)
at tp_btf:sched_process_fork log FORK(parent.pid, child.pid, child.tgid, child.comm)
at tp_btf:task_rename log RENAME(pid, comm)
";
const IN: u16 = 16;
const FORK: u16 = 17;
const RENAME: u16 = 18;

/// A row: its cells by their columns, without the empty ones.
type Row = BTreeMap<String, String>;

/// Names that some format must escape, names that are cut short, and names that are bytes and no text.
const NAMES: [(&[u8], &str); 7] = [
    (b"plain", "plain"),
    (b"a,\"b\"\r\nc", "a,\"b\"\r\nc"),
    (b"\xff\xc3\x28", "\\xff\\xc3("),
    ("Привет, м".as_bytes().split_at(15).0, "Привет, \\xd0"),
    (b"back\\slash", "back\\\\slash"),
    (b"\x1b[2J\x7f", "\u{1b}[2J\u{7f}"),
    ("\u{202e}gnp \u{1f980}".as_bytes(), "\u{202e}gnp \u{1f980}"),
];

/// The fields of an event as words, from pairs of an offset and the value there.
fn fields(cells: &[(usize, &[u8])]) -> Vec<u64> {
    let mut bytes = [0_u8; 48];
    cells.iter().for_each(|(at, cell)| bytes[at - 16..at - 16 + cell.len()].copy_from_slice(cell));
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn event(description: &Description, event: u16, serial: u64, cells: &[(&str, &[u8])]) -> (u64, Vec<u64>) {
    let layout = description.events.iter().find(|of| of.id == event).unwrap();
    let offset = |name: &str| usize::from(layout.fields.iter().find(|of| of.name == name).unwrap().offset);
    let cells: Vec<_> = cells.iter().map(|(name, cell)| (offset(name), *cell)).collect();
    (serial, record(event, serial, 1000 + serial, &fields(&cells)))
}

fn living(thread: u32, process: u32, name: &str) -> ThreadName {
    ThreadName { thread, process, name: name.to_owned() }
}

/// Thread 5 of process 4 has each of the names in turn. Number 6 was another thread at first. Nothing tells
/// of thread 9.
fn trace(scratch: &Scratch) -> Trace {
    let source = Source::new("test", SCHEMA);
    let schema = Schema::read(std::slice::from_ref(&source)).unwrap_or_else(|_| panic!("it is right"));
    let mut description = trace_description(1);
    description.description = Description::of_schema(&schema, &[source]);
    description.machine.threads = vec![living(4, 4, "ma,ke"), living(6, 6, "at last")];
    description.machine.threads_before = vec![living(6, 4, "at first")];
    description.write(scratch.path()).unwrap();
    let own = &description.description;
    let number = |number: i32| number.to_le_bytes();
    let mut records = Vec::new();
    let mut add =
        |of: u16, cells: &[(&str, &[u8])]| records.push(event(own, of, records.len() as u64, cells));
    add(IN, &[("pid", &number(9)), ("pid_process", &[7])]);
    add(IN, &[("pid", &number(6)), ("tgid", &number(4)), ("pid_process", &[7])]);
    add(FORK, &[("parent", &number(6)), ("pid", &number(5)), ("tgid", &number(4)), ("comm", b"forked")]);
    for (name, _) in NAMES {
        add(RENAME, &[("pid", &number(5)), ("comm", name)]);
        add(IN, &[("pid", &number(5)), ("tgid", &number(4)), ("pid_process", &[7])]);
    }
    // The kernel gives the number out again, in another process.
    add(FORK, &[("parent", &number(9)), ("pid", &number(6)), ("tgid", &number(6)), ("comm", b"reused")]);
    add(IN, &[("pid", &number(-1)), ("tgid", &number(6)), ("pid_process", &[7])]);
    let occurred = records.len() as u64;
    write_file(scratch.path(), 0, &records, occurred);
    Trace::open(scratch.path()).unwrap()
}

fn json(trace: &Trace, filter: &Filter) -> Vec<Row> {
    let mut out = Vec::new();
    convert(trace, filter.clone(), &mut JsonLines::new(&mut out)).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let row = |line: serde_json::Value| {
        let fields = line["fields"].as_object().unwrap();
        let fixed = ["processor", "file", "serial", "time_ns", "time", "event"].map(|key| (key, &line[key]));
        let all = fixed.into_iter().chain(fields.iter().map(|(name, value)| (name.as_str(), value)));
        let said = all.filter(|(_, value)| !value.is_null());
        said.map(|(name, value)| {
            (name.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect()
    };
    lines.filter(|line| line["kind"] == "event").map(row).collect()
}

/// The cells of CSV according to RFC 4180.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => cell.push(letters.next().unwrap()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    rows
}

fn csv(trace: &Trace, filter: &Filter) -> (Vec<String>, Vec<Row>) {
    let mut out = Vec::new();
    convert(trace, filter.clone(), &mut Csv::new(&mut out)).unwrap();
    let mut all = cells(&String::from_utf8(out).unwrap()).into_iter();
    let names = all.next().unwrap();
    let row = |cells: Vec<String>| {
        assert_eq!(cells.len(), names.len());
        names.iter().cloned().zip(cells).filter(|(_, cell)| !cell.is_empty()).collect()
    };
    (names.clone(), all.map(row).collect())
}

fn table(batches: &[RecordBatch]) -> (Vec<String>, Vec<Row>) {
    let schema = batches[0].schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |at: usize| Some((names[at].clone(), cell(batch.column(at), row)?));
            rows.push((0..names.len()).filter_map(cell).collect());
        }
    }
    (names, rows)
}

fn cell(column: &dyn Array, row: usize) -> Option<String> {
    use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).to_string(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        _ => {
            let names = column.as_dictionary::<Int32Type>();
            names.values().as_string::<i32>().value(names.keys().value(row) as usize).to_owned()
        }
    })
}

fn parquet(trace: &Trace, scratch: &Scratch, filter: &Filter) -> (Vec<String>, Vec<Row>) {
    let path = scratch.path().join("out.parquet");
    let file = std::fs::File::create(&path).unwrap();
    convert(trace, filter.clone(), &mut Parquet::new(file, trace).unwrap()).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    table(&reader.build().unwrap().map(Result::unwrap).collect::<Vec<_>>())
}

fn arrow(trace: &Trace, scratch: &Scratch, filter: &Filter) -> (Vec<String>, Vec<Row>) {
    let path = scratch.path().join("out.arrow");
    let file = std::fs::File::create(&path).unwrap();
    convert(trace, filter.clone(), &mut ArrowFile::new(file, trace).unwrap()).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(std::fs::File::open(path).unwrap(), None).unwrap();
    table(&reader.map(Result::unwrap).collect::<Vec<_>>())
}

/// The rows, which are the same in every format.
fn rows(scratch: &Scratch, filter: &Filter) -> Vec<Row> {
    let trace = trace(scratch);
    let rows = json(&trace, filter);
    let (names, of_csv) = csv(&trace, filter);
    let forms = [(names.clone(), of_csv), parquet(&trace, scratch, filter), arrow(&trace, scratch, filter)];
    for form in forms {
        assert_eq!(form.0, names, "the same columns in the same order");
        assert_eq!(form.1, rows);
    }
    rows
}

fn said<'a>(row: &'a Row, columns: &[&str]) -> Vec<&'a str> {
    columns.iter().map(|column| row.get(*column).map_or("", String::as_str)).collect()
}

const OF_PID: [&str; 4] = ["pid", "pid_name", "pid_process_2", "pid_process_name"];

#[test]
fn new_6_names_and_processes_stand_beside_numbers_in_the_same_way_in_every_format() {
    let scratch = Scratch::new("names-alike");
    let rows = rows(&scratch, &Filter::default());
    assert_eq!(said(&rows[0], &OF_PID), ["9", "", "", ""], "what the trace does not tell is empty");
    assert_eq!(rows[0]["pid_process"], "7", "a field keeps its name");
    assert_eq!(said(&rows[1], &OF_PID), ["6", "at first", "4", "ma,ke"]);
    assert_eq!(said(&rows[1], &["tgid", "tgid_name"]), ["4", "ma,ke"]);
    let of_parent = ["parent", "parent_name", "parent_process", "parent_process_name"];
    assert_eq!(said(&rows[2], &of_parent), ["6", "at first", "4", "ma,ke"]);
    assert_eq!(said(&rows[2], &OF_PID), ["5", "forked", "4", "ma,ke"], "from the event itself on");
    for (nth, (_, name)) in NAMES.iter().enumerate() {
        for row in [&rows[3 + 2 * nth], &rows[4 + 2 * nth]] {
            assert_eq!(said(row, &OF_PID), ["5", name, "4", "ma,ke"]);
        }
    }
    let [fork, last] = rows.last_chunk::<2>().unwrap();
    assert_eq!(said(fork, &OF_PID), ["6", "reused", "6", "reused"]);
    assert_eq!(said(last, &OF_PID), ["-1", "", "", ""]);
    assert_eq!(said(last, &["tgid", "tgid_name"]), ["6", "reused"]);
}

#[test]
fn new_6_events_that_are_not_chosen_tell_names_too() {
    let scratch = Scratch::new("names-chosen");
    let rows = rows(&scratch, &Filter::default().events([IN]));
    assert_eq!(rows.len(), 2 + NAMES.len() + 1);
    for (row, (_, name)) in rows[2..].iter().zip(NAMES) {
        assert_eq!(said(row, &OF_PID), ["5", name, "4", "ma,ke"]);
    }
    let mut out = Vec::new();
    convert(&Trace::open(scratch.path()).unwrap(), Filter::default().events([IN]), &mut Text::new(&mut out))
        .unwrap();
    assert!(String::from_utf8(out).unwrap().contains(" pid=5(plain) "));
}

#[test]
fn new_6_companions_stand_after_their_number() {
    let scratch = Scratch::new("names-order");
    let trace = trace(&scratch);
    let (names, _) = csv(&trace, &Filter::default());
    let expected = [
        "processor",
        "file",
        "serial",
        "time_ns",
        "time",
        "event",
        "lost",
        "pid",
        "pid_name",
        "pid_process_2",
        "pid_process_name",
        "tgid",
        "tgid_name",
        "pid_process",
        "parent",
        "parent_name",
        "parent_process",
        "parent_process_name",
    ];
    assert_eq!(names[..expected.len()], expected);
}
