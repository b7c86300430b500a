//! What is said while recording.

use std::time::Instant;

use mete_trace::Report;

use super::Options;
use super::session::Session;
use super::summary::size;
use crate::failure;
use crate::progress::Progress;
use crate::trace::garbled_buffer;

/// What is said meanwhile.
pub struct Live {
    progress: Progress,
    begin: Instant,
    has_told: bool,
    has_told_garbled: bool,
}

impl Live {
    /// A command has the terminal for itself.
    pub fn new(options: &Options, begin: Instant) -> Live {
        let progress = match options.command.is_empty() {
            true => Progress::of_time("recording", options.time),
            false => Progress::none(),
        };
        Live { progress, begin, has_told: false, has_told_garbled: false }
    }

    /// How it goes.
    pub fn show(&mut self, session: &Session) {
        let reports = session.reports();
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
        let (records, lost) = (sum(|report| report.account.records), sum(|report| report.account.lost));
        let passed = self.begin.elapsed();
        let seconds = passed.as_secs_f64();
        let written = size(sum(|report| report.bytes));
        self.progress.show(passed, format!("{seconds:.0} s, {records} records, {lost} lost, {written}"));
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
