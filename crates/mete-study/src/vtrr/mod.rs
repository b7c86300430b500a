//! The studies of the VTRR paper (VTRR-4 to VTRR-6): how fair proportional-share policies are, and what they cost.

mod cost;
mod cost_page;
mod error;
mod error_page;
mod micro;
mod workloads;

use crate::study::StudyEntry;

pub(crate) const STUDIES: &[StudyEntry] = &[
    StudyEntry::old(
        "vtrr-error",
        "how far VTRR, WRR and WFQ are from perfect fairness, over clients and shares",
        error::study,
    ),
    StudyEntry::old(
        "vtrr-cost",
        "what a decision costs over the number of clients, for every policy",
        cost::study,
    ),
    StudyEntry::of::<micro::Micro>(),
    StudyEntry::of::<workloads::Workloads>(),
];
