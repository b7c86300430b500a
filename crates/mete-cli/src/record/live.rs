//! What is said while recording.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use mete_base::size;
use mete_record::Session;
use mete_trace::Report;

use super::Options;
use crate::failure;
use crate::progress::Progress;
use crate::trace::garbled_buffer;

/// Beside a command, how it goes is said so often.
const BESIDE_COMMAND: Duration = Duration::from_secs(5);

/// What is said meanwhile.
pub struct Live {
    progress: Progress,
    begin: Instant,
    /// When a line of its own says next how it goes, beside a command on a terminal.
    line_at: Option<Duration>,
    has_told: bool,
    has_told_garbled: bool,
}

impl Live {
    /// Beside a command, which writes on the terminal, too, nothing is drawn over: now and then there is a line.
    pub fn new(options: &Options, begin: Instant) -> Live {
        let (progress, line_at) = match options.command.is_empty() {
            true => (Progress::of_time("recording", options.time), None),
            false => (Progress::none(), io::stderr().is_terminal().then_some(BESIDE_COMMAND)),
        };
        Live { progress, begin, line_at, has_told: false, has_told_garbled: false }
    }

    /// How it goes.
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
        if let Some(why) =
            reports.iter().find_map(|report| report.write_error.as_ref()).filter(|_| !self.has_told)
        {
            self.has_told = true;
            self.say(&format!("the trace cannot be written at the moment: {why}"));
        }
        if let Some(why) =
            reports.iter().find_map(|report| report.garbled.as_ref()).filter(|_| !self.has_told_garbled)
        {
            self.has_told_garbled = true;
            self.say(&garbled_buffer(why));
        }
    }

    /// Something that people should know.
    pub fn say(&self, text: &str) {
        self.progress.aside(|| failure::say(text));
    }
}
