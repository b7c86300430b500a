//! A log file with a writer on one processor, which a reader on another processor analyses.

use std::time::{Duration, Instant};

use mete_bench::user::loops::{self, Work};
use mete_bench::user::scheduler::Scheduler;
use mete_bench::user::writer::{Pace, Writer};
use mete_log::{Control, Entries, FileId, FileSpec, Stamp, clock, ring};
use mete_measure::{Reason, processor};

use super::reader::{ROW_BYTES, Reader};
use super::result::{Load, ReaderResult, Scheme};

/// Analyses of one size by one reader. The thesis has 100,000, for which large files would take too long.
const ANALYSES: usize = 20_000;
/// The longest time for the writer to fill a file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time of a message in the thesis' ping-pong: 480 cycles at 2.2 GHz.
pub(super) const THESIS_PACE_NS: f64 = 218.0;

pub(super) struct ReaderSetup {
    scheduler: Scheduler,
    /// The writer's processor.
    there: usize,
    /// The turns of work that, together with a row, take as long as a message of the thesis.
    pace: Pace,
}

impl ReaderSetup {
    /// A setup whose writer runs on this processor.
    pub(super) fn new(there: usize) -> Result<ReaderSetup, Reason> {
        let pace = Pace::Turns(loops::calibrate(Work::Latency, THESIS_PACE_NS));
        Ok(ReaderSetup { scheduler: Scheduler::begin()?, there, pace })
    }

    /// Measures one reader with one size under one load for this time.
    pub(super) fn result(
        &mut self,
        scheme: Scheme,
        load: Load,
        bytes: u64,
        time: Duration,
    ) -> Result<ReaderResult, Reason> {
        let rows = (bytes / ROW_BYTES) as u32;
        let spec = FileSpec { entries: Entries::CORRESPONDENT, stamp: Stamp::Hardware, add: false, rows };
        let (file, control) = self.scheduler.replace_files(spec)?;
        self.scheduler.set_file(file)?;
        // The file must be full, so that every analysis finds a whole file, as in the thesis.
        fill(self.there, rows)?;
        // After filling: only rows of the measured time count.
        let before = self.written(file);
        let writer = match load {
            Load::NoWriter => None,
            Load::ThesisPace => Some(Writer::begin(self.there, self.pace)?),
            Load::FullSpeed => Some(Writer::begin(self.there, Pace::FullSpeed)?),
        };
        let mut result = ReaderResult::empty(scheme, load, bytes);
        self.analyse(&mut result, (file, control), time)?;
        let occurrences = writer.map_or(0, Writer::end);
        result.written = self.written(file) - before;
        result.unlogged = occurrences.saturating_sub(result.written);
        Ok(result)
    }

    /// The number of rows that the file has had. The index counts rows forever.
    fn written(&self, file: FileId) -> u64 {
        ring::written(&self.scheduler.area(self.there).register(file).index)
    }

    /// Waits until every row of the file is new. Then all readers have the same work, and the writer surely
    /// runs.
    fn wait_for_a_file(&self, file: FileId, control: Control) -> Result<(), Reason> {
        let from = self.written(file);
        let end = Instant::now() + PATIENCE;
        while self.written(file) - from < control.rows() {
            if Instant::now() > end {
                return Err(Reason::new("the writer does not get a processor"));
            }
            std::hint::spin_loop();
        }
        wait_a_little();
        Ok(())
    }

    fn analyse(
        &self,
        result: &mut ReaderResult,
        (file, control): (FileId, Control),
        time: Duration,
    ) -> Result<(), Reason> {
        let mut reader = Reader::new(self.scheduler.area(self.there), result.scheme, file, control);
        let end = Instant::now() + time;
        // Three analyses at least, also where one takes longer than the whole time.
        while result.trials.len() < ANALYSES && (Instant::now() < end || result.trials.len() < 3) {
            if result.load != Load::NoWriter {
                self.wait_for_a_file(file, control)?;
            }
            let begin = Instant::now();
            let analysis = reader.analyse()?;
            result.ns.push(begin.elapsed().as_nanos() as f64);
            result.trials.push(f64::from(analysis.trials));
            result.starved += usize::from(!analysis.is_complete);
            result.read += analysis.rows;
            // Without a writer, the readers read the same rows again and again.
            if result.load == Load::NoWriter {
                reader.begin_anew();
            }
        }
        Ok(())
    }
}

/// Spins for up to the time of a row at the thesis' pace, each time for another time. Without that, an
/// analysis would always begin just after a row.
fn wait_a_little() {
    let ticks = clock::ticks().get();
    // A hash of the clock: uniform enough, and up to 511 ns.
    let wait_ns = (ticks ^ ticks >> 7).wrapping_mul(0x9e37_79b9) >> 8 & 511;
    let begin = Instant::now();
    while begin.elapsed().as_nanos() < u128::from(wait_ns) {
        std::hint::spin_loop();
    }
}

/// Fills a log file with rows.
fn fill(processor: usize, rows: u32) -> Result<(), Reason> {
    std::thread::spawn(move || {
        // Where the thread may not run on this processor, the file is not filled, which shows in the rows
        // that are read.
        let _ = processor::pin(processor);
        loops::row(u64::from(rows));
    })
    .join()
    .map_err(|_| Reason::new("the thread that fills the log ended early"))
}
