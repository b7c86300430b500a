//! All studies by name.

use super::{
    Study, StudyOptions, log_cost, log_readers, tavs_response, vtrr_cost, vtrr_error, vtrr_micro,
    vtrr_workloads,
};
use crate::progress::Progress;

/// A study that can be asked for by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What `mete study` takes, and its folder under `studies/`.
    pub name: &'static str,
    /// What it shows, in one line.
    pub shows: &'static str,
    /// Measures or simulates it.
    pub run: fn(StudyOptions, &mut dyn Progress) -> Study,
}

/// Every study, in the order of the documentation.
pub const STUDIES: &[Entry] = &[
    Entry {
        name: "log-cost",
        shows: "what a log operation costs on the path of a message (figures 5.1 to 5.3)",
        run: log_cost,
    },
    Entry {
        name: "log-readers",
        shows: "what it costs to read a log that is being written (figures 5.4 to 5.6)",
        run: log_readers,
    },
    Entry {
        name: "vtrr-error",
        shows: "how far VTRR, WRR and WFQ are from perfect fairness, over clients and shares",
        run: vtrr_error,
    },
    Entry {
        name: "vtrr-cost",
        shows: "what a decision costs over the number of clients, for every policy",
        run: vtrr_cost,
    },
    Entry {
        name: "vtrr-micro",
        shows: "who runs when under Linux 2.2's scheduler, WFQ and VTRR",
        run: vtrr_micro,
    },
    Entry {
        name: "vtrr-workloads",
        shows: "what audio encoders and virtual machines get done under the same three",
        run: vtrr_workloads,
    },
    Entry {
        name: "tavs-response",
        shows: "how fast a server answers beside a hog in its domain, without and with TAVS (figures 1 and 10)",
        run: tavs_response,
    },
];

/// The study of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Entry> {
    STUDIES.iter().find(|entry| entry.name == name)
}
