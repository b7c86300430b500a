//! The papers' figures, measured again (LOG-17). Each study is one function that measures and one
//! folder of results: data as CSV, plots as SVG, and a page that compares with the thesis.

mod cost;
mod cost_page;
mod processors;
mod readers;
mod readers_page;
mod restart;

use std::path::Path;
use std::{fs, io};

use crate::progress::Progress;
use crate::report::Report;

pub use restart::{Analysis, Restart};

/// How thoroughly a study measures.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyOptions {
    /// A fraction of the repetitions: enough to see that it works.
    pub is_quick: bool,
}

/// What a study found.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The folder under `studies/` that it belongs in.
    pub folder: &'static str,
    /// The results in rows.
    pub report: Report,
    /// Plots, further data and the page, by file name.
    pub files: Vec<(String, String)>,
}

impl Study {
    /// Writes everything to `studies/FOLDER`, making the directory if need be.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn write_to(&self, studies: &Path) -> io::Result<()> {
        let directory = studies.join(self.folder);
        self.report.write_csv(&directory, &format!("{}.csv", self.folder))?;
        self.files.iter().try_for_each(|(name, text)| fs::write(directory.join(name), text))
    }
}

/// What a log operation costs on the path of a message: the thesis' figures 5.1 to 5.3. Takes about
/// a minute; stops when `progress` says so.
pub fn log_cost(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    cost::study(options, progress)
}

/// What it costs to read a log that is being written: the thesis' figures 5.4 to 5.6. Takes about
/// twenty seconds; stops when `progress` says so.
pub fn log_readers(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    readers::study(options, progress)
}
