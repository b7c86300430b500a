//! Writes a trace of any size, with events of the shipped scheduler schema. It serves to measure readers of
//! traces.
//!
//!     cargo run --release -p mete-bench --example synthesise -- DIRECTORY [EVENTS] [PROCESSORS]

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |at| std::env::args().nth(at);
    let directory: PathBuf = argument(1).ok_or("which directory?")?.into();
    let events = argument(2).map_or(Ok(1_000_000), |text| text.parse())?;
    let processors = argument(3).map_or(Ok(2), |text| text.parse())?;
    Ok(mete_bench::synthetic::write_trace(&directory, events, processors)
        .map_err(|reason| reason.to_string())?)
}
