//! How long each format takes for a trace: nanoseconds of processor time for each event, and the most memory
//! so far. The output is thrown away, so that no disk is measured.
//!
//!     cargo run --release -p mete-convert --example pace -- DIRECTORY [FORM,…]

use std::error::Error;
use std::io::sink;

use mete_base::processors::thread_time_ns;
use mete_convert::{ArrowFile, Csv, Format, JsonLines, Parquet, Perfetto, Perl, Text, convert};
use mete_trace::{Filter, Trace};

const FORMS: &str = "text,csv,json,perl,perfetto,parquet,arrow";

fn format(form: &str, trace: &Trace) -> Result<Box<dyn Format>, Box<dyn Error>> {
    Ok(match form {
        "text" => Box::new(Text::new(sink())),
        "csv" => Box::new(Csv::new(sink())),
        "json" => Box::new(JsonLines::new(sink())),
        "perl" => Box::new(Perl::new(sink())),
        "perfetto" => Box::new(Perfetto::new(sink(), trace)),
        "parquet" => Box::new(Parquet::new(sink(), trace)?),
        "arrow" => Box::new(ArrowFile::new(sink(), trace)?),
        other => return Err(format!("there is no form {other:?}; there are {FORMS}").into()),
    })
}

/// The most memory that this process has had, in KiB, as the kernel counts it.
fn most_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let forms = std::env::args().nth(2).unwrap_or_else(|| FORMS.to_owned());
    let trace = Trace::open(directory)?;
    for form in forms.split(',') {
        let mut format = format(form, &trace)?;
        let before = thread_time_ns();
        let done = convert(&trace, Filter::default(), &mut *format)?;
        let ns = (thread_time_ns() - before) as f64 / done.events as f64;
        let memory = most_memory_kib().unwrap_or(0) / 1024;
        println!("{form:10} {ns:7.1} ns an event, {} events, at most {memory} MiB so far", done.events);
    }
    Ok(())
}
