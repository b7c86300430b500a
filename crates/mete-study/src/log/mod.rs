//! The studies of the thesis on event logging (LOG-17): what a log operation costs, and what it costs to read a log.

mod cost;
mod cost_page;
mod processors;
mod readers;
pub(crate) mod restart;

use crate::study::StudyEntry;

pub(crate) const STUDIES: &[StudyEntry] = &[
    StudyEntry::old(
        "log-cost",
        "what a log operation costs on the path of a message (figures 5.1 to 5.3)",
        cost::study,
    ),
    StudyEntry::of::<readers::Readers>(),
];
