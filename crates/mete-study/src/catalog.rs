//! All studies by name.

use crate::study::StudyEntry;
use crate::{klogger, log, tavs, vtrr};

/// The studies of each paper, in the order of the documentation.
const PAPERS: [&[StudyEntry]; 4] = [log::STUDIES, vtrr::STUDIES, tavs::STUDIES, klogger::STUDIES];

/// Every study, in the order of the documentation.
pub fn studies() -> impl Iterator<Item = &'static StudyEntry> {
    PAPERS.into_iter().flatten()
}

/// The study of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static StudyEntry> {
    studies().find(|entry| entry.name == name)
}
