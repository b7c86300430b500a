//! Every converter takes what comes of any bytes in a trace's files, whatever its description says, and
//! passes on as many events as the others (NEW-6).
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mete_convert::{
    ArrowFile, Converted, Csv, Ctf, CtfVersion, Format, JsonLines, Parquet, Perfetto, Perl, Text, convert,
};
use mete_trace::{Description, Filter, Trace, TraceDescription};
use trace::{BLOCK_BYTES, Bytes};

mod trace;

/// The shipped scheduler's events, read once.
static SHIPPED: LazyLock<Option<TraceDescription>> = LazyLock::new(shipped);

/// The shipped description, or what the input says.
fn description(input: Option<&[u8]>) -> Option<TraceDescription> {
    match input {
        Some(input) => TraceDescription::parse(input).ok(),
        None => SHIPPED.clone(),
    }
}

fn shipped() -> Option<TraceDescription> {
    let source = mete_schema::shipped::by_name("scheduler")?.source();
    let schema = mete_schema::Schema::read(std::slice::from_ref(&source)).ok()?;
    let json = serde_json::json!({
        "format": "mete trace", "version": 1, "recording": "0".repeat(32), "finished": true,
        "block_bytes": BLOCK_BYTES, "files": [{ "processor": 0, "name": "processor-0.trace" }],
        "clock": { "source": "monotonic", "anchors": [] },
        "machine": { "kernel": "Linux 6.18", "architecture": "", "model": "", "processors": 1 },
        "circumstances": {
            "buffer_bytes": 0, "low_water_percent": 0, "not_locked": null, "flight_bytes": null, "flush_threads": [],
        },
        "completeness": [], "schema": "", "events": [],
    });
    let mut description = TraceDescription::parse(json.to_string().as_bytes()).ok()?;
    description.description = Description::of_schema(&schema, &[source]);
    Some(description)
}

/// The forms, by number.
fn format(number: u8, trace: &Trace, directory: &Path) -> Box<dyn Format> {
    let sink = std::io::sink;
    match number % 9 {
        0 => Box::new(Text::new(sink())),
        1 => Box::new(Csv::new(sink())),
        2 => Box::new(JsonLines::new(sink())),
        3 => Box::new(Perl::new(sink())),
        4 => Box::new(Perfetto::new(sink(), trace)),
        5 => Box::new(Parquet::new(sink(), trace).expect("nothing refuses to be written")),
        6 => Box::new(ArrowFile::new(sink(), trace).expect("nothing refuses to be written")),
        number => {
            let version = if number == 7 { CtfVersion::One } else { CtfVersion::Two };
            let folder = directory.join("ctf");
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).expect("a temporary folder");
            Box::new(Ctf::new(&folder, version, trace))
        }
    }
}

/// Writes one form; compares it with the shortest one.
fn convert_to(number: u8, directory: &Path) {
    let Ok(trace) = Trace::open(directory) else { return };
    let pass = |number| -> Converted {
        convert(&trace, Filter::default(), &mut *format(number, &trace, directory))
            .expect("nothing refuses to be written")
    };
    let events = pass(number).events;
    if number % 9 != 0 {
        assert_eq!(events, pass(0).events);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&number, input)) = input.split_first() else { return };
    // For the larger half of numbers, a description stands before the file.
    let (said, input) = match input.iter().position(|byte| *byte == 0) {
        Some(end) if number >= 128 => (Some(&input[..end]), &input[end + 1..]),
        _ => (None, input),
    };
    let directory = trace::directory();
    std::fs::write(directory.join("processor-0.trace"), trace::file(Bytes(input))).expect("a temporary file");
    if let Some(description) = description(said) {
        description.write(&directory).expect("a temporary file");
        convert_to(number, &directory);
    }
});
