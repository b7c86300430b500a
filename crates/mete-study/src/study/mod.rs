//! The papers' figures, measured again (LOG-17, VTRR-4 to VTRR-6, TAVS-8, KLOG-9). Each study is one function that
//! measures, and one folder of results: data as CSV, plots as SVG, and a page that compares them with the paper.
//! [`Study::figures`] has the paper's statements beside the results.

mod catalog;
mod cost;
mod cost_page;
mod klogger;
mod processors;
mod readers;
mod readers_page;
mod redraw;
mod restart;
mod tavs;
mod vtrr_cost;
mod vtrr_cost_page;
mod vtrr_error;
mod vtrr_error_page;
mod vtrr_micro;
mod vtrr_micro_page;
mod vtrr_workloads;
mod vtrr_workloads_page;

use std::path::Path;
use std::{fs, io};

use crate::figure::Figure;
use crate::progress::Progress;
use crate::report::Report;

pub use catalog::{Entry, OfTrace, STUDIES, by_name};
pub use redraw::redraw;
pub use restart::{Analysis, Restart};

/// How thoroughly a study measures.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyOptions {
    /// Makes only a fraction of the repetitions, which is enough to see that the study works.
    pub is_quick: bool,
}

/// The results of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The study's folder under `studies/`.
    pub folder: &'static str,
    /// The results in rows.
    pub report: Report,
    /// The statements of the paper, each with the result here.
    pub figures: Vec<Figure>,
    /// Plots, further data and the page, by file name.
    pub files: Vec<(String, String)>,
}

impl Study {
    /// All files of the study's folder, by name: the rows, and [`Study::files`].
    #[must_use]
    pub fn contents(&self) -> Vec<(String, String)> {
        let rows = (format!("{}.csv", self.folder), self.report.csv());
        std::iter::once(rows).chain(self.files.iter().cloned()).collect()
    }

    /// Writes all files to `studies/FOLDER`. Creates the directory if it does not exist.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn write_to(&self, studies: &Path) -> io::Result<()> {
        let directory = studies.join(self.folder);
        fs::create_dir_all(&directory)?;
        self.contents().into_iter().try_for_each(|(name, text)| fs::write(directory.join(name), text))
    }
}

/// Why a figure has no result. A measurement that was not possible here has a row that says why.
fn missing(is_complete: bool) -> &'static str {
    if is_complete {
        "not measured on this machine: see the rows' notes"
    } else {
        "not measured: the run was stopped before"
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

/// How far VTRR, WRR and WFQ are from perfect fairness, over the number of clients and the sum of shares; the same
/// for the other policies at some points (VTRR paper, §5.1). Takes about two minutes; stops when `progress` says so.
pub fn vtrr_error(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    vtrr_error::study(options, progress)
}

/// What a decision costs with 1 to 1,000,000 clients, for every policy (VTRR paper, §5.2). Takes about a
/// minute; stops when `progress` says so.
pub fn vtrr_cost(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    vtrr_cost::study(options, progress)
}

/// Which client ran when under Linux 2.2's scheduler, WFQ and VTRR (VTRR paper, §5.3). Takes a moment.
pub fn vtrr_micro(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    vtrr_micro::study(options, progress)
}

/// How much work audio encoders and virtual machines do under Linux 2.2's scheduler, WFQ and VTRR, on the
/// simulated machine (VTRR paper, §5.4). Takes a moment.
pub fn vtrr_workloads(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    vtrr_workloads::study(options, progress)
}

/// How fast a server answers that shares its domain with a task that computes, with and without TAVS
/// (TAVS paper, figures 1 and 10, table 1). Takes some seconds; stops when `progress` says so.
pub fn tavs_response(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::response(options, progress)
}

/// How a domain that receives a stream starves beside domains that compute, and how priority inheritance
/// helps (TAVS paper, figures 7 and 14). Takes some seconds; stops when `progress` says so.
pub fn tavs_starvation(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::starvation(options, progress)
}

/// How much computation a domain that receives a stream loses to the driver, and how KeepOnRunQ helps (TAVS
/// paper, figures 9 and 15, table 2). Takes some seconds; stops when `progress` says so.
pub fn tavs_keep(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::keep(options, progress)
}

/// What a mixed domain gains, and other domains lose, for each limit of the time that it may spend boosted (TAVS
/// paper, figures 11 and 20). Takes some seconds; stops when `progress` says so.
pub fn tavs_ratio(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::ratio(options, progress)
}

/// How many boosts serve the task that they are for, by inspection window and by the width of portmap counters (TAVS
/// paper, figures 12 and 13). Takes some seconds; stops when `progress` says so.
pub fn tavs_correlation(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::correlation(options, progress)
}

/// What the tracking of tasks and ports costs guests (TAVS paper, §5.5). Takes some seconds; stops
/// when `progress` says so.
pub fn tavs_overhead(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::overhead(options, progress)
}

/// What programs like those of a desktop gain, the degrees of belief in them, and what they gain by inheritance (TAVS
/// paper, figures 16 to 19). Takes some seconds; stops when `progress` says so.
pub fn tavs_belief(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    tavs::belief(options, progress)
}
