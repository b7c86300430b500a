//! What is printed while recording.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use mete_base::size;
use mete_command::failure;
use mete_command::progress::Progress;
use mete_record::Session;
use mete_trace::Report;

use super::RecordOptions;
use crate::trace::garbled_buffer;

/// How often a line of progress is printed while a command runs.
const BESIDE_COMMAND: Duration = Duration::from_secs(5);

/// The progress of a recording, and its warnings.
pub struct Live {
    progress: Progress,
    begin: Instant,
    /// When the next line of progress is printed; only on a terminal, and only while a command runs.
    line_at: Option<Duration>,
    /// Whether each of the troubles that are told once was told.
    has_told_trouble: [bool; 2],
}

impl Live {
    /// A command writes on the same terminal. So there is no progress bar while it runs, only a line now and
    /// then.
    pub fn new(options: &RecordOptions, begin: Instant) -> Live {
        let (progress, line_at) = match options.command.is_empty() {
            true => (Progress::of_time("recording", options.time), None),
            false => (Progress::none(), io::stderr().is_terminal().then_some(BESIDE_COMMAND)),
        };
        Live { progress, begin, line_at, has_told_trouble: [false; 2] }
    }

    /// Shows the progress, and says once if the trace cannot be written or a buffer was garbled.
    pub fn show(&mut self, session: &Session) {
        let reports = session.reports();
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
        let (records, lost) = (sum(|report| report.account.records), sum(|report| report.account.lost));
        let passed = self.begin.elapsed();
        let seconds = passed.as_secs_f64();
        let written = size::decimal(sum(|report| report.bytes));
        let so_far = format!("{seconds:.0} s, {records} records, {lost} lost, {written}");
        if self.line_at.is_some_and(|line_at| line_at <= passed) {
            self.line_at = Some(passed + BESIDE_COMMAND);
            self.say(&format!("recording: {so_far}"));
        }
        self.progress.show(passed, so_far);
        let first = |of: fn(&Report) -> Option<&String>| reports.iter().find_map(of);
        let troubles = [
            first(|report| report.write_error.as_ref())
                .map(|why| format!("the trace cannot be written at the moment: {why}")),
            first(|report| report.garbled.as_ref()).map(|why| garbled_buffer(why)),
        ];
        for (nth, trouble) in troubles.into_iter().enumerate() {
            if let Some(trouble) = trouble.filter(|_| !self.has_told_trouble[nth]) {
                self.has_told_trouble[nth] = true;
                self.say(&trouble);
            }
        }
    }

    /// Says something that the user should know.
    pub fn say(&self, text: &str) {
        self.progress.aside(|| failure::say(text));
    }
}
