//! What it costs to read a log while it is written (thesis §5.2.2): the papers' reader, which begins again when a
//! writer has disturbed it, beside ours, which does not.

use std::hint::black_box;
use std::time::{Duration, Instant};

use mete_log::{Control, Cursor, Entries, FileId, FileSpec, Stamp, ring};

use super::readers_page;
use super::restart::{Analysis, Restart};
use crate::study::{StudyOptions, StudyResults};
use mete_base::progress::Progress;
use mete_bench::user::loops::{self, Work};
use mete_bench::user::scheduler::Scheduler;
use mete_bench::user::writer::{Pace, Writer};
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_measure::statistics::{Summary, quantile};

/// The row of the thesis: correspondent and time stamp.
const ROW_BYTES: u64 = 16;
/// The number of trials after which the papers' reader gives up. Without a limit it could go on forever.
const TRIALS: u32 = 200;
/// Analyses of one size by one reader. The thesis has 100,000, for which large files would take too long.
const ANALYSES: usize = 20_000;
/// The longest time for the writer to fill a file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time of a message in the thesis' ping-pong: 480 cycles at 2.2 GHz.
const THESIS_PACE_NS: f64 = 218.0;

/// The readers that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scheme {
    /// Our reader: one pass, and losses are counted.
    Ours,
    /// The papers' reader, which clears the flags after a failure (figure 5.4).
    RestartClearing,
    /// The papers' reader, which only tries again (figure 5.5).
    Restart,
}

impl Scheme {
    pub(super) const ALL: [Scheme; 3] = [Scheme::Ours, Scheme::RestartClearing, Scheme::Restart];

    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::Ours => "one pass",
            Scheme::RestartClearing => "restart, clearing flags",
            Scheme::Restart => "restart",
        }
    }
}

/// The writers under which readers are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// No writer, as on the reader's own processor in the thesis, whose kernel is not preempted.
    NoWriter,
    /// A writer of one row in each [`THESIS_PACE_NS`].
    ThesisPace,
    /// A writer that is as fast as the probe allows.
    FullSpeed,
}

impl Load {
    pub(super) const ALL: [Load; 3] = [Load::NoWriter, Load::ThesisPace, Load::FullSpeed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Load::NoWriter => "no writer",
            Load::ThesisPace => "writer at the thesis' pace",
            Load::FullSpeed => "writer at full speed",
        }
    }
}

/// The results of one reader with one size under one load.
pub(super) struct ReaderResult {
    pub scheme: Scheme,
    pub load: Load,
    pub bytes: u64,
    pub trials: Vec<f64>,
    pub ns: Vec<f64>,
    /// The number of analyses that gave up.
    pub starved: usize,
    /// The number of rows that were handed out.
    pub read: u64,
    /// The number of rows that were written, and of occurrences that became no row because the flags were cleared.
    pub written: u64,
    pub unlogged: u64,
}

pub(super) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study log-readers");
    let mut points = Vec::new();
    match measure(options, progress, &mut points) {
        Ok(()) => {}
        Err(reason) => report.rows.push(Row::new("readers: all rows", "trials", Err(reason))),
    }
    points.iter().for_each(|point| report.rows.extend(rows(point)));
    report.is_complete = !progress.is_cancelled();
    let files = readers_page::files(&report, &points);
    let figures = readers_page::compared_figures(&points, report.is_complete);
    StudyResults { folder: "log-readers", report, figures, files }
}

fn rows(point: &ReaderResult) -> [Row; 2] {
    let name = format!("{}, {}, {} B", point.scheme.name(), point.load.name(), point.bytes);
    let fate = format!(
        "{} analyses, {} gave up after {TRIALS} trials; {} rows written, {} read, {} occurrences without a row",
        point.trials.len(),
        point.starved,
        point.written,
        point.read,
        point.unlogged
    );
    [
        Row::new(format!("{name}: trials"), "trials", Ok(point.trials.clone())).note(fate),
        Row::new(format!("{name}: time"), "ns", Ok(point.ns.clone())),
    ]
}

fn measure(
    options: StudyOptions,
    progress: &mut dyn Progress,
    points: &mut Vec<ReaderResult>,
) -> Result<(), Reason> {
    let here = processor::quietest();
    let there = processor::other_than(here);
    let mut stage = Stage { scheduler: Scheduler::begin()?, there, pace: thesis_pace() };
    let _pinned = Pinned::to(here)?;
    let sizes: Vec<u64> = (5..=20).map(|log2| 1 << log2).collect();
    let time = Duration::from_millis(if options.is_quick { 8 } else { 80 });
    for load in Load::ALL {
        if load != Load::NoWriter && here == there {
            return Err(Reason::new(
                "this machine has one processor: no thread can write while another one reads",
            ));
        }
        progress.begin(load.name(), sizes.len() as u64);
        for &bytes in &sizes {
            for scheme in Scheme::ALL {
                if progress.is_cancelled() {
                    return Ok(());
                }
                points.push(stage.point(scheme, load, bytes, time)?);
            }
            progress.step();
        }
    }
    Ok(())
}

/// The number of turns of work that, together with a row, take as long as a message of the thesis.
fn thesis_pace() -> Pace {
    Pace::Turns(loops::calibrate(Work::Latency, THESIS_PACE_NS))
}

struct Stage {
    scheduler: Scheduler,
    there: usize,
    pace: Pace,
}

impl Stage {
    fn point(
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
        let index = || ring::written(&self.scheduler.area(self.there).register(file).index);
        // After filling: only rows of the measured time count.
        let before = index();
        let writer = match load {
            Load::NoWriter => None,
            Load::ThesisPace => Some(Writer::begin(self.there, self.pace)?),
            Load::FullSpeed => Some(Writer::begin(self.there, Pace::FullSpeed)?),
        };
        let mut point = self.analyse(scheme, load, bytes, (file, control), time)?;
        let occurrences = writer.map_or(0, Writer::end);
        point.written = index() - before;
        point.unlogged = occurrences.saturating_sub(point.written);
        Ok(point)
    }

    /// Waits until every row of the file is new. Then all readers have the same work, and the writer surely runs. The
    /// answer is false if that takes too long.
    fn wait_for_a_file(&self, file: FileId, control: Control) -> bool {
        let register = self.scheduler.area(self.there).register(file);
        let from = ring::written(&register.index);
        let end = Instant::now() + PATIENCE;
        // The index counts rows forever, so the difference is the number of new rows.
        while ring::written(&register.index) - from < control.rows() {
            if Instant::now() > end {
                return false;
            }
            std::hint::spin_loop();
        }
        wait_a_little();
        true
    }

    fn analyse(
        &self,
        scheme: Scheme,
        load: Load,
        bytes: u64,
        (file, control): (FileId, Control),
        time: Duration,
    ) -> Result<ReaderResult, Reason> {
        let mut reader = Reader::new(self, scheme, file, control);
        let (mut trials, mut ns, mut starved, mut read) = (Vec::new(), Vec::new(), 0, 0);
        let end = Instant::now() + time;
        // Three analyses at least, also where one takes longer than the whole time.
        while trials.len() < ANALYSES && (Instant::now() < end || trials.len() < 3) {
            if load != Load::NoWriter && !self.wait_for_a_file(file, control) {
                return Err(Reason::new("the writer does not get a processor"));
            }
            let begin = Instant::now();
            let analysis = reader.analyse()?;
            ns.push(begin.elapsed().as_nanos() as f64);
            trials.push(f64::from(analysis.trials));
            starved += usize::from(!analysis.is_complete);
            read += analysis.rows;
            reader.begin_anew_if_idle(load);
        }
        Ok(ReaderResult { scheme, load, bytes, trials, ns, starved, read, written: 0, unlogged: 0 })
    }
}

/// Spins for up to the time of a row at the thesis' pace, each time for another time. Without that, an analysis would
/// always begin just after a row.
fn wait_a_little() {
    let ticks = mete_log::clock::ticks();
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
        // Where the thread may not run on this processor, the file is not filled, which shows in the rows that are
        // read.
        let _ = processor::pin(processor);
        loops::row(u64::from(rows));
    })
    .join()
    .map_err(|_| Reason::new("the thread that fills the log ended early"))
}

/// The analysis of a scheduler: it counts how often each correspondent occurs (thesis §4.5.3).
struct Counts([u64; 256]);

impl Counts {
    #[inline(always)]
    fn add(&mut self, correspondent: u16) {
        self.0[usize::from(correspondent) & 255] += 1;
    }
}

enum Reader<'a> {
    Ours { stage: &'a Stage, start: Cursor, cursor: Cursor, counts: Counts },
    Restart { reader: Restart<'a>, start: Box<dyn Fn() -> Restart<'a> + 'a>, counts: Counts },
}

impl<'a> Reader<'a> {
    fn new(stage: &'a Stage, scheme: Scheme, file: FileId, control: Control) -> Reader<'a> {
        let area = stage.scheduler.area(stage.there);
        let counts = Counts([0; 256]);
        if scheme == Scheme::Ours {
            let start = Cursor::from_oldest(area, file, control);
            return Reader::Ours { stage, cursor: start.clone(), start, counts };
        }
        let clears = scheme == Scheme::RestartClearing;
        let start = Box::new(move || Restart::new(area, file, control, clears));
        Reader::Restart { reader: start(), start, counts }
    }

    fn analyse(&mut self) -> Result<Analysis, Reason> {
        match self {
            Reader::Ours { stage, cursor, counts, .. } => {
                let area = stage.scheduler.area(stage.there);
                let poll = cursor.poll_rows(area, |rows| {
                    let words = rows.words().as_chunks::<{ ROW_BYTES as usize / 8 }>().0;
                    words.iter().for_each(|words| counts.add((words[0] >> 32) as u16));
                })?;
                black_box(&mut *counts);
                Ok(Analysis { trials: 1, rows: poll.rows, is_complete: true })
            }
            Reader::Restart { reader, counts, .. } => {
                let analysis = reader.analyse(
                    TRIALS,
                    || (),
                    |words| {
                        // The correspondent is in the upper half of a row's first word.
                        counts.add((words.first().copied().unwrap_or(0) >> 32) as u16);
                    },
                );
                black_box(&mut *counts);
                Ok(analysis)
            }
        }
    }

    /// Without a writer, the readers read the same rows again and again.
    fn begin_anew_if_idle(&mut self, load: Load) {
        if load != Load::NoWriter {
            return;
        }
        match self {
            Reader::Ours { start, cursor, .. } => *cursor = start.clone(),
            Reader::Restart { reader, start, .. } => *reader = start(),
        }
    }
}

impl ReaderResult {
    /// The number of trials of the 95th of a hundred analyses, in order of trials.
    pub(super) fn trials_95(&self) -> f64 {
        let mut sorted = self.trials.clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() { 0.0 } else { quantile(&sorted, 0.95) }
    }

    pub(super) fn mean_trials(&self) -> f64 {
        self.trials.iter().sum::<f64>() / self.trials.len().max(1) as f64
    }

    pub(super) fn median_ns(&self) -> f64 {
        Summary::of(&self.ns).map_or(0.0, |summary| summary.median)
    }
}
