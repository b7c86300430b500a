//! Any bytes in a processor's file are good records or an error that names the place; the account
//! agrees with what was handed out (NEW-2); every converter takes what comes of them, whatever the description says
//! (NEW-6).
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mete_convert::{
    ArrowFile, Converted, Csv, Ctf, CtfVersion, Format, JsonLines, Parquet, Perfetto, Perl, Text, convert,
};
use mete_trace::block::{HEADER_BYTES, checksum, offset};
use mete_trace::file::BlockFile;
use mete_trace::reader::Step;
use mete_trace::{Description, Filter, Item, Merge, ProcessorReader, Trace, TraceDescription};

const BLOCK_BYTES: usize = 8192;

/// With right checksums, so that what lies behind them is reached, too.
fn with_checksums(file: &mut [u8]) {
    for block in file.chunks_mut(BLOCK_BYTES) {
        if block.len() < HEADER_BYTES {
            return;
        }
        let used = u32::from_le_bytes([84, 85, 86, 87].map(|at| block[at])) as usize;
        if let Some(written) = block.get(..HEADER_BYTES.saturating_add(used)) {
            let sum = checksum(written);
            block[offset::CHECKSUM..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

fn read(path: &Path) {
    let open = || BlockFile::open(path, 0, BLOCK_BYTES as u32, [0; 16]).expect("the file is there");
    let mut reader = ProcessorReader::new(open());
    let (mut records, mut lost) = (0, 0);
    while let Some(step) = reader.step() {
        match step {
            Step::Record => records += u64::from(reader.record().bytes.len() >= 16),
            Step::Lost(gap) => lost += gap.events,
            Step::Unreadable(error) => assert!(error.to_string().contains("block")),
        }
    }
    let account = reader.account();
    assert_eq!((account.records, account.lost), (records, lost));
    let filter = Filter::default().from(5).until(1 << 40);
    let reader = ProcessorReader::between(open(), filter.from, filter.until);
    let mut merged = Merge::new(vec![reader], Vec::new(), filter);
    while let Some(item) = merged.next() {
        if let Ok(Item::Record(record)) = item {
            assert!((5..=1 << 40).contains(&record.time));
        }
    }
}

/// The shipped scheduler's events, or what the input says.
fn description(input: Option<&[u8]>) -> Option<TraceDescription> {
    if let Some(input) = input {
        return TraceDescription::parse(input).ok();
    }
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

fn convert_all(directory: &Path) {
    let Ok(trace) = Trace::open(directory) else { return };
    let folder = directory.join("ctf");
    let sink = std::io::sink;
    let mut formats: Vec<Box<dyn Format>> = vec![
        Box::new(Text::new(sink())),
        Box::new(Csv::new(sink())),
        Box::new(JsonLines::new(sink())),
        Box::new(Perl::new(sink())),
        Box::new(Perfetto::new(sink(), &trace)),
        Box::new(Parquet::new(sink(), &trace).expect("nothing refuses to be written")),
        Box::new(ArrowFile::new(sink(), &trace).expect("nothing refuses to be written")),
    ];
    for version in [CtfVersion::One, CtfVersion::Two] {
        let own = folder.join(format!("{version:?}"));
        std::fs::create_dir_all(&own).expect("a temporary folder");
        formats.push(Box::new(Ctf::new(&own, version, &trace)));
    }
    let pass = |format: &mut Box<dyn Format>| -> Converted {
        convert(&trace, Filter::default(), &mut **format).expect("nothing refuses to be written")
    };
    let events: Vec<_> = formats.iter_mut().map(|format| pass(format).events).collect();
    assert!(events.iter().all(|number| *number == events[0]));
    let _ = std::fs::remove_dir_all(folder);
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    // With the second bit, a description stands before the file.
    let (said, input) = match input.iter().position(|byte| *byte == 0) {
        Some(end) if kind & 2 != 0 => (Some(&input[..end]), &input[end + 1..]),
        _ => (None, input),
    };
    let mut file = input.to_vec();
    if kind & 1 == 0 {
        with_checksums(&mut file);
    }
    let directory = std::env::temp_dir().join(format!("mete-fuzz-trace-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary folder");
    let path = directory.join("processor-0.trace");
    std::fs::write(&path, &file).expect("a temporary file");
    read(&path);
    if let Some(description) = description(said) {
        description.write(&directory).expect("a temporary file");
        convert_all(&directory);
    }
    let _ = std::fs::remove_dir_all(&directory);
});
