//! The studies of the VTRR paper (VTRR-4 to VTRR-6): how fair proportional-share policies are, and what they cost.

mod cost;
mod error;
mod micro;
mod workloads;

use crate::study::StudyEntry;

pub(crate) const STUDIES: &[StudyEntry] = &[
    StudyEntry::of::<error::ServiceErrors>(),
    StudyEntry::of::<cost::Cost>(),
    StudyEntry::of::<micro::Micro>(),
    StudyEntry::of::<workloads::Workloads>(),
];
