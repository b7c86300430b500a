//! The studies of the thesis on event logging (LOG-17): what a log operation costs, and what it costs to read a log.

mod cost;
mod readers;
pub(crate) mod restart;

use crate::study::StudyEntry;

pub(crate) const STUDIES: &[StudyEntry] =
    &[StudyEntry::of::<cost::Cost>(), StudyEntry::of::<readers::Readers>()];
