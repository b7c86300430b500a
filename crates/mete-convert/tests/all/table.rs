//! Parquet and Arrow (NEW-6, NEW-2): readers of other projects read the files back, value by value.

use std::process::Command;

use crate::common::{self, NASTY, Scratch, record, trace_description, write_file};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use mete_convert::{ArrowFile, Format, Parquet, convert};
use mete_trace::record::DUMP_BEGIN;
use mete_trace::{EventLayout, FieldKind, FieldLayout, Filter, Trace};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// An event that has a `pid` of another type, and fields with the names of the first columns.
fn other_event() -> EventLayout {
    let field = |name: &str, kind, offset, bytes, doc: &str| FieldLayout {
        name: name.to_owned(),
        kind,
        offset,
        bytes,
        doc: doc.to_owned(),
    };
    let fields = vec![
        field("pid", FieldKind::Unsigned, 16, 8, "Another pid."),
        field("L2_cache_misses", FieldKind::Unsigned, 24, 8, "Misses."),
        field("time", FieldKind::Signed, 32, 1, ""),
    ];
    EventLayout { id: 2, name: "OTHER".to_owned(), doc: String::new(), fields }
}

fn trace(scratch: &Scratch) -> Trace {
    let text = |at: usize| u64::from_le_bytes(NASTY[at..at + 8].try_into().unwrap());
    let fields = [text(0), text(8), 0.1_f64.to_bits(), 0x1_dead_beef, 0xffff_8880_0000_1000];
    let records = [
        (119, record(0, 119, 103_207_175_760, &[1073, 35_678_014])),
        (120, record(1, 120, 103_207_175_770, &fields)),
        (125, record(DUMP_BEGIN, 125, 103_207_175_780, &[])),
        (126, record(0, 126, 103_207_175_790, &[u64::MAX, u64::MAX])),
        (127, record(0, 127, 103_207_175_800, &[])),
        (128, record(2, 128, 103_207_175_810, &[7, 8, 0xfe])),
        (129, record(77, 129, 103_207_175_820, &[9])),
    ];
    let mut description = trace_description(1);
    description.description.events.push(other_event());
    description.write(scratch.path()).unwrap();
    write_file(scratch.path(), 0, &records, 131);
    Trace::open(scratch.path()).unwrap()
}

fn write(trace: &Trace, format: &mut dyn Format) {
    assert_eq!(convert(trace, Filter::default(), format).unwrap().events, 7);
}

fn parquet_file(scratch: &Scratch) -> std::path::PathBuf {
    let path = scratch.path().join("out.parquet");
    let trace = trace(scratch);
    write(&trace, &mut Parquet::new(std::fs::File::create(&path).unwrap(), &trace).unwrap());
    path
}

fn arrow_file(scratch: &Scratch) -> std::path::PathBuf {
    let path = scratch.path().join("out.arrow");
    let trace = trace(scratch);
    write(&trace, &mut ArrowFile::new(std::fs::File::create(&path).unwrap(), &trace).unwrap());
    path
}

/// Checks what both formats must hold.
fn check(batch: &RecordBatch) {
    let column =
        |name: &str| batch.column_by_name(name).unwrap_or_else(|| panic!("{name}: {:?}", batch.schema()));
    let names = column("event").as_dictionary::<Int32Type>();
    let names = names.downcast_dict::<arrow_array::StringArray>().unwrap();
    let names: Vec<_> = names.into_iter().map(Option::unwrap).collect();
    let expected =
        ["LOST", "SCHEDIN", "TEXT", "LOST", "DUMP_BEGIN", "SCHEDIN", "SCHEDIN", "OTHER", "UNKNOWN", "LOST"];
    assert_eq!(names, expected);
    let numbers =
        |name: &str| -> Vec<Option<u64>> { column(name).as_primitive::<UInt64Type>().iter().collect() };
    let serials = [0, 119, 120, 121, 125, 126, 127, 128, 129, 130].map(Some);
    assert_eq!(numbers("serial"), serials);
    let lost: Vec<_> = numbers("lost");
    assert_eq!((lost[0], lost[1], lost[3], lost[9]), (Some(119), None, Some(4), Some(1)));
    assert_eq!(
        numbers("time")[..4],
        [None, Some(103_207_175_760), Some(103_207_175_770), Some(103_207_175_770)]
    );
    let ns: Vec<_> = column("time_ns").as_primitive::<Int64Type>().iter().collect();
    assert_eq!((ns[0], ns[1], ns[8]), (None, Some(103_207_175_760), Some(103_207_175_820)));
    assert!(column("processor").as_primitive::<UInt32Type>().iter().all(|it| it == Some(0)));
    // Fields of the same name and type have one column. With another type, or a name that is taken, the
    // event's name stands before the field's.
    let misses = numbers("L2_cache_misses");
    assert_eq!(
        (misses[1], misses[2], misses[5], misses[6], misses[7]),
        (Some(35_678_014), None, Some(u64::MAX), None, Some(8))
    );
    let pid: Vec<_> = column("SCHEDIN.pid").as_primitive::<Int32Type>().iter().collect();
    assert_eq!((pid[1], pid[5], pid[6], pid[7]), (Some(1073), Some(-1), None, None));
    assert_eq!(numbers("OTHER.pid")[7], Some(7));
    assert_eq!(column("OTHER.time").data_type(), &DataType::Int8);
    assert_eq!(column("comm").as_string::<i32>().value(2), String::from_utf8_lossy(NASTY));
    assert_eq!(column("ratio").as_primitive::<Float64Type>().value(2), 0.1);
    assert_eq!(column("raw").as_binary::<i32>().value(2), [0xef, 0xbe, 0xad, 0xde]);
    assert!(column("is_set").as_boolean().value(2) && column("is_set").is_null(3));
    assert_eq!(numbers("at")[2], Some(0xffff_8880_0000_1000));
    assert_eq!(batch.num_columns(), 7 + 9 + 3 + 1, "{:?}", batch.schema());
    let schema = batch.schema();
    let doc = |name: &str| schema.field_with_name(name).unwrap().metadata().get("mete.doc").cloned();
    assert_eq!(doc("OTHER.pid").as_deref(), Some("Another pid."));
    assert!(doc("serial").is_some() && doc("ratio").is_none());
}

fn check_statement(text: &str) {
    let statement: serde_json::Value = serde_json::from_str(text).unwrap();
    let processor = &statement["processors"][0];
    assert_eq!(
        (&processor["records"], &processor["lost"], &processor["ended"]),
        (&7.into(), &124.into(), &true.into())
    );
    assert_eq!(processor["first_time"], 103_207_175_760_u64);
    assert_eq!((&statement["missed_runs"], &statement["unreadable_parts"]), (&0.into(), &0.into()));
}

#[test]
fn new_6_parquet_is_read_back_value_by_value_and_tells_what_is_missing() {
    let scratch = Scratch::new("parquet");
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(parquet_file(&scratch)).unwrap());
    let reader = reader.unwrap();
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
    let value = |key: &str| metadata.iter().find(|it| it.key == key).unwrap().value.clone().unwrap();
    check_statement(&value("mete.completeness"));
    let description: serde_json::Value = serde_json::from_str(&value("mete.description")).unwrap();
    assert_eq!(description["events"][0]["name"], "SCHEDIN");
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    check(&batches[0]);
}

#[test]
fn new_6_arrow_is_read_back_value_by_value_and_tells_what_is_missing() {
    let scratch = Scratch::new("arrow");
    let file = std::fs::File::open(arrow_file(&scratch)).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    check_statement(&reader.custom_metadata()["mete.completeness"]);
    assert!(reader.schema().metadata()["mete.description"].contains("SCHEDIN"));
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    check(&batches[0]);
}

#[test]
fn new_6_a_table_of_many_batches_holds_every_row() {
    let scratch = Scratch::new("batches");
    trace_description(2).write(scratch.path()).unwrap();
    for processor in 0..2 {
        let records: Vec<_> = (0..30_000)
            .map(|n| (n, record(0, n, 1000 + 2 * n + u64::from(processor), &[n, n * n])))
            .collect();
        write_file(scratch.path(), processor, &records, 30_000);
    }
    let trace = Trace::open(scratch.path()).unwrap();
    let path = scratch.path().join("many.parquet");
    let mut format = Parquet::new(std::fs::File::create(&path).unwrap(), &trace).unwrap();
    assert_eq!(convert(&trace, Filter::default(), &mut format).unwrap().events, 60_000);
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    let mut next = 0_u64;
    for batch in reader.build().unwrap().map(Result::unwrap) {
        let time = batch.column_by_name("time").unwrap().as_primitive::<UInt64Type>().clone();
        let misses = batch.column_by_name("L2_cache_misses").unwrap().as_primitive::<UInt64Type>().clone();
        for row in 0..batch.num_rows() {
            assert_eq!((time.value(row), misses.value(row)), (1000 + next, (next / 2) * (next / 2)));
            next += 1;
        }
    }
    assert_eq!(next, 60_000);
}

#[test]
fn new_6_pyarrow_reads_both_files() {
    let Some(python) = common::python_with("pyarrow") else {
        return println!(
            "SKIPPED: pyarrow reads both files: no python3 with pyarrow; {}",
            common::HOW_TO_GET_IT
        );
    };
    let program = r#"
import json, sys
import pyarrow as pa, pyarrow.ipc, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
statement = json.loads(pq.read_metadata(sys.argv[1]).metadata[b"mete.completeness"])
assert statement["processors"][0]["lost"] == 124, statement
assert json.loads(table.schema.metadata[b"mete.description"])["events"][0]["name"] == "SCHEDIN"
assert table.schema.field("OTHER.pid").metadata[b"mete.doc"] == b"Another pid.", table.schema.field("OTHER.pid").metadata
reader = pa.ipc.open_file(sys.argv[2])
other = reader.read_all()
assert table.to_pylist() == other.to_pylist()
row = table.to_pylist()[2]
print(table.num_rows, table.column("event").type, hex(row["at"]), row["raw"].hex(), row["ratio"], table.to_pylist()[5]["SCHEDIN.pid"])
"#;
    let scratches = [Scratch::new("pyarrow-parquet"), Scratch::new("pyarrow-arrow")];
    let files = [parquet_file(&scratches[0]), arrow_file(&scratches[1])];
    let output = Command::new(python).args(["-c", program]).args(files).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let expected =
        "10 dictionary<values=string, indices=int32, ordered=0> 0xffff888000001000 efbeadde 0.1 -1\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
