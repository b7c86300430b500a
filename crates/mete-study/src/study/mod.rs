//! The model of a study: what all studies have in common.
//!
//! ```text
//!            measure                  findings, facts            page.md, claims.toml
//!   options ────────▶ rows, Found ──────┬───────────▶ results.json ──────┬─────▶ README.md
//!                       │               └─ what came out of each claim   └─ all prose, beside the data
//!                       └─ pictures, data ─▶ *.svg, *.csv
//! ```
//!
//! A `Study` is code that measures, and a folder under `studies/`. No prose is in the code. What the paper
//! says, and the sentence that tells what came out here, stand in the folder's `claims.toml`. The page is a
//! template, `page.md`. Both take numbers from what the code found. Those numbers are kept in `results.json`,
//! so a page can be made again, after its text was changed, without measuring again: see
//! [`StudyEntry::page_of`].
//!
//! | module | what it has |
//! |---|---|
//! | `claims` | what a paper says, beside what came out here, as it is shown |
//! | `finding` | what came out of a claim, and when there is no verdict |
//! | `kept` | what `results.json` holds |
//! | `page` | pages from templates |
//! | `rows` | rows that are read back from CSV, to draw pictures again |

mod claims;
mod finding;
mod kept;
mod page;
mod rows;

use std::path::Path;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use serde_json::Value;

pub use finding::ClaimResult;
#[cfg(test)]
pub(crate) use finding::verdicts;
pub(crate) use finding::{Finding, Findings, is_noisy};
pub(crate) use kept::Kept;
pub(crate) use rows::KeptRows;

/// How thoroughly a study measures.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyOptions {
    /// Makes only a fraction of the repetitions, which is enough to see that the study works.
    pub is_quick: bool,
}

/// A file of a study's folder: its name and its text.
pub type StudyFile = (String, String);

/// The texts of a study's folder that the program is built with.
#[derive(Clone, Copy, Debug)]
pub struct StudyTexts {
    /// `page.md`, the template of the page.
    pub page: &'static str,
    /// `claims.toml`, what the paper says.
    pub claims: &'static str,
}

/// The text of a file in `studies/$name`.
macro_rules! text {
    ($name:literal, $file:expr) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/", $name, "/", $file))
    };
}
pub(crate) use text;

/// The constants of a study: its name, what it shows in one line, and the texts in `studies/$name`.
macro_rules! about {
    ($name:literal, $shows:literal) => {
        const NAME: &'static str = $name;
        const SHOWS: &'static str = $shows;
        const TEXTS: $crate::study::StudyTexts = $crate::study::StudyTexts {
            page: $crate::study::text!($name, "page.md"),
            claims: $crate::study::text!($name, "claims.toml"),
        };
    };
}
pub(crate) use about;

/// One study: how it measures, and what it makes of what it found.
pub(crate) trait Study {
    /// The study's name, which is that of its folder under `studies/`.
    const NAME: &'static str;
    /// What the study shows, in one line.
    const SHOWS: &'static str;
    /// The texts of the folder.
    const TEXTS: StudyTexts;
    /// Whether the results are simulated, so that they do not depend on the machine.
    const IS_SIMULATED: bool = false;
    /// Everything that was measured. Empty where the study was stopped or the machine cannot do it.
    type Found;

    /// Measures or simulates, and adds the rows to the report. A value that could not be measured has a row
    /// that says why. Stops early when `progress` says so.
    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found;

    /// What came out of each claim in `claims.toml`, by its id. A claim without a finding is shown as not
    /// measured.
    fn findings(found: &Self::Found) -> Findings;

    /// The values that the page's text needs besides the findings, under the names by which `page.md` calls
    /// them.
    fn facts(found: &Self::Found) -> Value;

    /// The pictures.
    fn pictures(found: &Self::Found) -> Vec<StudyFile>;

    /// Data beside the rows, as comma-separated values with [`head`] on top.
    fn data(_found: &Self::Found, _report: &Report) -> Vec<StudyFile> {
        Vec::new()
    }

    /// The pictures that can be drawn again from the data that the folder keeps, of which there is some.
    fn redrawn(_kept: &KeptRows) -> Vec<StudyFile> {
        Vec::new()
    }
}

/// The comment at the top of a file of data: what was run, where and when.
pub(crate) fn head(report: &Report) -> String {
    format!("# {}\n# {}\n", report.title, report.machine.line())
}

/// Measures one item after the other until the study is stopped. The answer has the results of those that
/// could be measured.
pub(crate) fn measure_each<I, T>(
    what: &str,
    items: impl ExactSizeIterator<Item = I>,
    report: &mut Report,
    progress: &mut dyn Progress,
    mut measure: impl FnMut(I, &dyn Progress) -> (Vec<Row>, Option<T>),
) -> Vec<T> {
    let all = measure_until_failure(what, items, report, progress, |item, progress| {
        let (rows, found) = measure(item, progress);
        // What is missing for one item is no reason to leave out the next one.
        (rows, Some(found))
    });
    all.into_iter().flatten().collect()
}

/// The same, up to the first item that cannot be measured. It is for items of which each asks for more than
/// the last.
pub(crate) fn measure_until_failure<I, T>(
    what: &str,
    items: impl ExactSizeIterator<Item = I>,
    report: &mut Report,
    progress: &mut dyn Progress,
    mut measure: impl FnMut(I, &dyn Progress) -> (Vec<Row>, Option<T>),
) -> Vec<T> {
    let mut all = Vec::new();
    progress.begin(what, items.len() as u64);
    for item in items {
        if progress.is_cancelled() {
            break;
        }
        let (rows, found) = measure(item, progress);
        report.rows.extend(rows);
        // What is missing for one item is missing for those after it, and would be said once more for each.
        let Some(found) = found else { break };
        all.push(found);
        progress.step();
    }
    all
}

/// A study in the list of all studies.
#[derive(Clone, Copy, Debug)]
pub struct StudyEntry {
    /// The argument of `mete study`, and the name of the study's folder under `studies/`.
    pub name: &'static str,
    /// What the study shows, in one line.
    pub shows: &'static str,
    /// Measures or simulates the study.
    pub run: fn(StudyOptions, &mut dyn Progress) -> StudyResults,
    /// Runs the study on a trace that was recorded before. `None` if it cannot.
    pub of_trace: Option<StudyOfTrace>,
    texts: StudyTexts,
    redrawn: fn(&KeptRows) -> Vec<StudyFile>,
}

/// A study of the trace in this directory.
pub type StudyOfTrace = fn(&Path) -> Result<StudyResults, Reason>;

impl StudyEntry {
    pub(crate) const fn of<S: Study>() -> StudyEntry {
        StudyEntry {
            name: S::NAME,
            shows: S::SHOWS,
            run: run::<S>,
            of_trace: None,
            texts: S::TEXTS,
            redrawn: S::redrawn,
        }
    }

    /// The same study, which can also be made of a recorded trace.
    pub(crate) const fn with_trace(self, of_trace: StudyOfTrace) -> StudyEntry {
        StudyEntry { of_trace: Some(of_trace), ..self }
    }

    /// The page from what a folder keeps of an earlier run.
    ///
    /// # Errors
    ///
    /// The text of `results.json` or a template is not what it should be.
    pub fn page_of(&self, results_json: &str) -> Result<String, Reason> {
        let kept = Kept::read(results_json)?;
        let claim_results = claims::results(self.texts.claims, &kept)?;
        page::render(self.texts.page, &kept, &claim_results)
    }

    /// The pictures that can be drawn again from the folder's data, because measuring again would give
    /// another result. `file` gives the text of a file of the folder.
    pub fn redraw(&self, file: &dyn Fn(&str) -> Option<String>) -> Vec<StudyFile> {
        let kept = KeptRows::of(self.name, file);
        if kept.is_empty() { Vec::new() } else { (self.redrawn)(&kept) }
    }
}

/// The results of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyResults {
    /// The study's folder under `studies/`.
    pub folder: &'static str,
    /// The results in rows.
    pub report: Report,
    /// The claims of the paper, each with the result here.
    pub claim_results: Vec<ClaimResult>,
    /// Pictures, further data and the page.
    pub files: Vec<StudyFile>,
}

impl StudyResults {
    /// All files of the study's folder, by name: the rows, and [`StudyResults::files`].
    #[must_use]
    pub fn contents(&self) -> Vec<StudyFile> {
        let rows = (format!("{}.csv", self.folder), self.report.csv());
        std::iter::once(rows).chain(self.files.iter().cloned()).collect()
    }
}

/// Measures or simulates a study, and makes all of its files.
fn run<S: Study>(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new(format!("mete study {}", S::NAME));
    let found = S::measure(options, &mut report, progress);
    report.is_complete = !progress.is_cancelled();
    let pictures = S::pictures(&found);
    let kept = Kept::of::<S>(&report, &found, &pictures);
    let mut files = pictures;
    files.extend(S::data(&found, &report));
    let claim_results = match claims_and_page(S::TEXTS, &kept) {
        Ok((claim_results, page)) => {
            files.extend([("README.md".to_owned(), page), ("results.json".to_owned(), kept.text())]);
            claim_results
        }
        // The texts are part of the program and every test renders them, so this is a fault of the program.
        Err(reason) => {
            report.rows.push(Row::new("the study's page", "", Err(reason)).failed());
            Vec::new()
        }
    };
    StudyResults { folder: S::NAME, report, claim_results, files }
}

/// The claims with their results, and the page.
fn claims_and_page(texts: StudyTexts, kept: &Kept) -> Result<(Vec<ClaimResult>, String), Reason> {
    let claim_results = claims::results(texts.claims, kept)?;
    let page = page::render(texts.page, kept, &claim_results)?;
    Ok((claim_results, page))
}
