//! CTF (NEW-6): babeltrace2 reads version 1.8 and finds every event, value and loss. A decoder that knows
//! only the metadata of version 2 finds the same in its streams.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{NASTY, Scratch, record, trace_description, write_file};
use mete_convert::{Ctf, CtfVersion, convert};
use mete_trace::description::ClockAnchor;
use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{EventLayout, FieldKind, FieldLayout, Filter, Ticks, Trace};
use serde_json::{Value, json};

/// Every kind and size of field, names that are words of the metadata, and documentation that would be code.
fn kinds() -> Vec<EventLayout> {
    let field = |name: &str, kind, offset, bytes| FieldLayout {
        name: name.to_owned(),
        kind,
        offset,
        bytes,
        doc: "A \"doc\"; }; env {\n".to_owned(),
    };
    let numbers = vec![
        field("event", FieldKind::Unsigned, 16, 1),
        field("string", FieldKind::Signed, 17, 1),
        field("_id", FieldKind::Unsigned, 18, 2),
        field("a_b", FieldKind::Signed, 20, 4),
        field("a_b", FieldKind::Signed, 24, 8),
        field("align", FieldKind::Float, 32, 4),
    ];
    let doc = "Of all kinds.".to_owned();
    vec![
        EventLayout { id: 30, name: "NUMBERS".to_owned(), doc: doc.clone(), fields: numbers },
        EventLayout { id: 31, name: "env".to_owned(), doc, fields: Vec::new() },
    ]
}

fn trace(scratch: &Scratch) -> Trace {
    let text = |at: usize| u64::from_le_bytes(NASTY[at..at + 8].try_into().unwrap());
    let nasty = [text(0), text(8), 0.1_f64.to_bits(), 0x1_dead_beef, 0xffff_8880_0000_1000];
    let numbers = [0xffff_fff6_0203_fe07, u64::MAX - 4, u64::from(1.5_f32.to_bits())];
    let on_0 = [
        (119, record(0, 119, 5_000_000_000, &[1073, 35_678_014])),
        (120, record(1, 120, 5_000_000_100, &nasty)),
        (125, record(DUMP_BEGIN, 125, 5_000_000_200, &[])),
        (126, record(DUMP_FINISH, 126, 5_000_000_300, &[])),
        (127, record(0, 127, 5_000_000_400, &[u64::MAX, u64::MAX])),
        (128, record(0, 128, 5_000_000_500, &[])),
    ];
    let on_1 = [
        (0, record(30, 0, 5_000_000_050, &numbers)),
        // The clock went back.
        (1, record(31, 1, 5_000_000_040, &[])),
        (2, record(77, 2, 5_000_000_060, &[9])),
    ];
    let mut description = trace_description(2);
    description.description.events.extend(kinds());
    let (ticks, realtime_ns) = (Ticks::new(0), 1_700_000_000_123_456_789);
    let anchor = ClockAnchor { processor: 0, ticks, monotonic_ns: 0, realtime_ns };
    description.clock.anchors = vec![anchor];
    description.write(scratch.path()).unwrap();
    write_file(scratch.path(), 0, &on_0, 131);
    write_file(scratch.path(), 1, &on_1, 3);
    Trace::open(scratch.path()).unwrap()
}

fn write(scratch: &Scratch, version: CtfVersion) -> PathBuf {
    let directory = scratch.path().join("ctf");
    std::fs::create_dir(&directory).unwrap();
    let trace = trace(scratch);
    let done = convert(&trace, Filter::default(), &mut Ctf::new(&directory, version, &trace)).unwrap();
    assert_eq!(done.events, 9);
    directory
}

/// What each reader must find: processor, time, serial number, time stamp, name, fields.
fn expected(nasty: &str) -> Vec<Value> {
    let raw = |event: u16, bytes: u16, serial: u32, time: u64, fields: &[u64]| -> Vec<u8> {
        let head = u64::from(event) | u64::from(bytes) << 16 | u64::from(serial) << 32;
        [&[head, time], fields].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
    };
    let short = raw(0, 16, 128, 5_000_000_500, &[]);
    let unknown = raw(77, 24, 2, 5_000_000_060, &[9]);
    let event = |processor: u32, time: u64, serial: u64, stamp: u64, name: &str, fields: Value| {
        json!([processor, time, serial, stamp, name, fields])
    };
    let numbers =
        json!([["event", 7], ["string", -2], ["_id", 515], ["a_b", -10], ["a_b_2", -5], ["align", 1.5]]);
    let nasty = json!([
        ["comm", nasty],
        ["ratio", 0.1],
        ["raw", [0xef, 0xbe, 0xad, 0xde]],
        ["is_set", 1],
        ["at", 0xffff_8880_0000_1000_u64]
    ]);
    let numbered =
        |number: u16, bytes: &[u8]| json!([["number", number], ["length", bytes.len()], ["bytes", bytes]]);
    let schedin = |pid: i64, misses: u64| json!([["pid", pid], ["L2_cache_misses", misses]]);
    let (at, none) = (|ns: u64| 5_000_000_000 + ns, json!([]));
    vec![
        event(0, at(0), 119, at(0), "SCHEDIN", schedin(1073, 35_678_014)),
        event(1, at(50), 0, at(50), "NUMBERS", numbers),
        event(1, at(50), 1, at(40), "env", none.clone()),
        event(1, at(60), 2, at(60), "UNKNOWN", numbered(77, &unknown)),
        event(0, at(100), 120, at(100), "TEXT", nasty),
        event(0, at(200), 125, at(200), "DUMP_BEGIN", none.clone()),
        event(0, at(300), 126, at(300), "DUMP_FINISH", none),
        event(0, at(400), 127, at(400), "SCHEDIN", schedin(-1, u64::MAX)),
        event(0, at(500), 128, at(500), "UNKNOWN", numbered(0, &short)),
    ]
}

#[test]
fn new_6_babeltrace2_finds_every_event_value_and_loss() {
    let test = "babeltrace2 finds every event, value and loss";
    let scratch = Scratch::new("babeltrace");
    let directory = write(&scratch, CtfVersion::One);
    let Ok(output) =
        Command::new("babeltrace2").arg("--clock-seconds").arg("--names=all").arg(&directory).output()
    else {
        return println!("SKIPPED: {test}: no babeltrace2 here; scripts/setup.sh readers installs it");
    };
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let lines: Vec<_> = out.lines().collect();
    let expected = expected("?");
    assert_eq!(lines.len(), expected.len(), "{out}");
    for (line, event) in lines.iter().zip(&expected) {
        check_line(line, event);
    }
    let lost: Vec<_> = said.lines().filter_map(|line| line.split("discarded ").nth(1)).collect();
    let between = |line: &&str| line.split(' ').next().unwrap().to_owned();
    assert_eq!(lost.iter().map(between).collect::<Vec<_>>(), ["119", "4", "2"], "{said}");
}

/// A line of babeltrace2: time, processor, serial number, time stamp, and each value, as it prints them.
fn check_line(line: &str, event: &Value) {
    let seconds = |ns: u64| format!("{}.{:09},", ns / 1_000_000_000, ns % 1_000_000_000);
    let real = event[1].as_u64().unwrap() + 1_700_000_000_123_456_789;
    let name = event[4].as_str().unwrap();
    let has = |part: &str| assert!(line.contains(part), "{part:?} is not in {line}");
    has(&seconds(real));
    has(&format!("cpu_id = {}", event[0]));
    has(&format!("serial = {}, time = {}", event[2], event[3]));
    has(&format!("name = {name},"));
    for field in event[5].as_array().unwrap() {
        let (name, value) = (field[0].as_str().unwrap(), &field[1]);
        match value {
            Value::Array(bytes) => bytes.iter().enumerate().for_each(|(nth, byte)| {
                has(&format!("[{nth}] = 0x{:X}", byte.as_u64().unwrap()));
            }),
            // Bytes that are no letters are not compared: babeltrace2 prints them in its own way.
            Value::String(_) => has(&format!("{name} = \"a\\\"$x @{{[1]}}\\\\\\n,")),
            Value::Number(number) if name == "at" => has(&format!("at = 0x{:X}", number.as_u64().unwrap())),
            number => has(&format!("{name} = {number}")),
        }
    }
}

#[test]
fn new_6_a_decoder_that_knows_only_the_metadata_of_ctf_2_finds_every_event_value_and_loss() {
    let scratch = Scratch::new("ctf2");
    let directory = write(&scratch, CtfVersion::Two);
    let metadata = Metadata::read(&directory);
    let mut events = Vec::new();
    let mut lost = Vec::new();
    for processor in 0..2 {
        let bytes = std::fs::read(directory.join(format!("processor-{processor}"))).unwrap();
        metadata.decode(&bytes, &mut events, &mut lost);
    }
    events.sort_by_key(|event| (event[1].as_u64(), event[0].as_u64()));
    let mut expected = expected(&String::from_utf8_lossy(NASTY));
    expected.sort_by_key(|event| (event[1].as_u64(), event[0].as_u64()));
    assert_eq!(events, expected);
    let at = |ns: u64| 5_000_000_000 + ns;
    let all = [(at(0), at(0), 119), (at(100), at(200), 4), (at(500), at(500), 2)];
    assert_eq!(lost, all, "the beginning, end and number of each loss");
    let environment = &metadata.trace["environment"];
    let completeness: Value =
        serde_json::from_str(environment["completeness_of_file_0"].as_str().unwrap()).unwrap();
    assert_eq!((&completeness["records"], &completeness["lost"]), (&json!(6), &json!(125)));
    let clock = &metadata.clock["offset-from-origin"];
    assert_eq!((&clock["seconds"], &clock["cycles"]), (&json!(1_700_000_000), &json!(123_456_789)));
}

/// Fragments of the metadata stream (CTF2-SPEC-2.0 §5).
struct Metadata {
    trace: Value,
    clock: Value,
    stream: Value,
    events: HashMap<u64, Value>,
}

impl Metadata {
    fn read(directory: &Path) -> Metadata {
        let text = std::fs::read_to_string(directory.join("metadata")).unwrap();
        let fragments: Vec<Value> =
            text.split('\u{1e}').skip(1).map(|fragment| serde_json::from_str(fragment).unwrap()).collect();
        assert_eq!((&fragments[0]["type"], &fragments[0]["version"]), (&json!("preamble"), &json!(2)));
        let of = |kind: &str| fragments.iter().filter(|it| it["type"] == kind).cloned().collect::<Vec<_>>();
        let [trace, clock, stream] =
            ["trace-class", "clock-class", "data-stream-class"].map(|kind| of(kind).remove(0));
        assert_eq!(stream["default-clock-class-id"], clock["id"]);
        let events = of("event-record-class").into_iter().map(|it| (it["id"].as_u64().unwrap(), it));
        Metadata { trace, clock, stream, events: events.collect() }
    }

    fn decode(&self, mut stream: &[u8], events: &mut Vec<Value>, lost: &mut Vec<(u64, u64, u64)>) {
        let (mut lost_before, mut end_before) = (0, None);
        while !stream.is_empty() {
            let whole = stream;
            let header = structure(&self.trace["packet-header-field-class"], &mut stream);
            assert_eq!(field(&header, "magic"), 0xc1fc_1fc1_u64);
            let context = structure(&self.stream["packet-context-field-class"], &mut stream);
            let number = |name: &str| field(&context, name).as_u64().unwrap();
            let mut records = &whole[whole.len() - stream.len()..(number("content_size") / 8) as usize];
            while !records.is_empty() {
                events.push(self.event(number("cpu_id"), &mut records));
            }
            if number("events_discarded") > lost_before {
                let since = end_before.unwrap_or_else(|| number("timestamp_begin"));
                lost.push((since, number("timestamp_end"), number("events_discarded") - lost_before));
            }
            (lost_before, end_before) = (number("events_discarded"), Some(number("timestamp_end")));
            stream = &whole[(number("packet_size") / 8) as usize..];
        }
    }

    fn event(&self, processor: u64, records: &mut &[u8]) -> Value {
        let header = structure(&self.stream["event-record-header-field-class"], records);
        let context = structure(&self.stream["event-record-common-context-field-class"], records);
        let class = &self.events[&field(&header, "id").as_u64().unwrap()];
        let payload = structure(&class["payload-field-class"], records);
        json!([
            processor,
            field(&header, "timestamp"),
            field(&context, "serial"),
            field(&context, "time"),
            class["name"],
            payload
        ])
    }
}

fn field(fields: &Value, name: &str) -> Value {
    fields.as_array().unwrap().iter().find(|field| field[0] == name).unwrap()[1].clone()
}

fn take<'a>(from: &mut &'a [u8], bytes: usize) -> &'a [u8] {
    let (taken, rest) = from.split_at(bytes);
    *from = rest;
    taken
}

fn structure(class: &Value, from: &mut &[u8]) -> Value {
    let mut fields = Vec::new();
    for member in class["member-classes"].as_array().unwrap() {
        let value = one(&member["field-class"], from, &fields);
        fields.push(json!([member["name"], value]));
    }
    Value::Array(fields)
}

fn one(class: &Value, from: &mut &[u8], before: &[Value]) -> Value {
    let bytes = class["length"].as_u64().map_or(0, |bits| (bits / 8) as usize);
    let word = |taken: &[u8]| taken.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    match class["type"].as_str().unwrap() {
        "fixed-length-unsigned-integer" | "fixed-length-boolean" => json!(word(take(from, bytes))),
        "fixed-length-signed-integer" => {
            let unused = 64 - 8 * bytes as u32;
            json!((word(take(from, bytes)) << unused) as i64 >> unused)
        }
        "fixed-length-floating-point-number" if bytes == 4 => {
            json!(f32::from_bits(word(take(from, 4)) as u32))
        }
        "fixed-length-floating-point-number" => json!(f64::from_bits(word(take(from, 8)))),
        "null-terminated-string" => {
            let length = from.iter().position(|byte| *byte == 0).unwrap();
            let text = take(from, length + 1);
            json!(std::str::from_utf8(&text[..length]).unwrap())
        }
        "static-length-blob" => json!(take(from, class["length"].as_u64().unwrap() as usize)),
        "dynamic-length-blob" => {
            let path = class["length-field-location"]["path"][0].as_str().unwrap();
            let length = field(&Value::Array(before.to_vec()), path).as_u64().unwrap();
            json!(take(from, length as usize))
        }
        other => panic!("{other} is no field class that is written"),
    }
}
