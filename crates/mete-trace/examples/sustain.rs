//! What recording costs on this machine: two processors, each with a producer of 32-byte events at a steady
//! rate, and buffers of the default size. Prints losses and the processor time of the flush threads.
//!
//!     cargo run --release -p mete-trace --example sustain -- [EVENTS_A_SECOND] [SECONDS] [BLOCK_BYTES] [DIRECTORY]
//!
//! The rate is for both processors together. The directory's file system is a part of what is measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mete_trace::{
    Buffers, ClockSource, Description, EventLayout, FieldKind, FieldLayout, Memory, Options, Outcome,
    Producer, Recorder, layout,
};

const PROCESSORS: u64 = 2;

fn argument<T: std::str::FromStr>(at: usize, otherwise: T) -> T {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn description() -> Description {
    let field = |name: &str, offset| FieldLayout {
        name: name.to_owned(),
        kind: FieldKind::Unsigned,
        offset,
        bytes: 8,
        doc: String::new(),
    };
    let fields = vec![field("number", 16), field("processor", 24)];
    let event = EventLayout { id: 0, name: "STEADY".to_owned(), doc: String::new(), fields };
    Description { schema: String::new(), events: vec![event] }
}

/// Records in portions, a thousand a second. Returns the number of events, and the cost of one in
/// nanoseconds.
fn produce(memory: &Memory, processor: u64, rate: u64, time: Duration) -> (u64, f64) {
    mete_trace::thread::bind(processor as u32);
    let producer = Producer::new(memory.buffer(processor as usize));
    let begun = Instant::now();
    let (mut events, mut busy) = (0, Duration::ZERO);
    while begun.elapsed() < time {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        let portion = Instant::now();
        while events < due {
            let outcome = producer.record(0, &[events, processor], || ClockSource::Counter.now());
            if outcome == Outcome::WrittenAtMark {
                producer.call_flush();
            }
            events += 1;
        }
        busy += portion.elapsed();
        std::thread::sleep(Duration::from_millis(1));
    }
    (events, busy.as_nanos() as f64 / events as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rate: u64 = argument(1, 1_000_000);
    let time = Duration::from_secs(argument(2, 5));
    let own = std::env::temp_dir().join(format!("mete-sustain-{}", std::process::id()));
    let directory: PathBuf = argument(4, own);
    let low_water = layout::DEFAULT_LOW_WATER_PERCENT;
    let memory = Arc::new(Memory::new(PROCESSORS as usize, layout::DEFAULT_SIZE_LOG2, low_water)?);
    let mut options = Options::directory(&directory);
    options.block_bytes = argument(3, options.block_bytes);
    let recorder = Recorder::start(Arc::clone(&memory), description(), options)?;
    let begun = Instant::now();
    let produced: Vec<_> = std::thread::scope(|scope| {
        let memory = &*memory;
        let start = |processor| scope.spawn(move || produce(memory, processor, rate / PROCESSORS, time));
        let threads: Vec<_> = (0..PROCESSORS).map(start).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let reports = recorder.reports();
    let passed = begun.elapsed();
    let trace = recorder.stop()?;
    for (((events, cost), report), account) in produced.iter().zip(&reports).zip(&trace.completeness) {
        let percent = report.processor_time_ns as f64 * 100.0 / passed.as_nanos() as f64;
        println!(
            "processor {}: {events} events, {} lost; {:.1} MB in {} flushes; flush thread {percent:.2} % of a processor ({}); an event {cost:.1} ns",
            account.processor,
            account.lost,
            report.bytes as f64 / 1e6,
            report.flushes,
            trace.circumstances.flush_threads[account.processor as usize].scheduling,
        );
    }
    let all: u64 = reports.iter().map(|report| report.processor_time_ns).sum();
    println!(
        "flush threads together: {:.2} % of one processor",
        all as f64 * 100.0 / passed.as_nanos() as f64
    );
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
