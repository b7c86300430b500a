//! All studies by name.

use super::{
    Study, StudyOptions, log_cost, log_readers, tavs_belief, tavs_correlation, tavs_keep, tavs_overhead,
    tavs_ratio, tavs_response, tavs_starvation, vtrr_cost, vtrr_error, vtrr_micro, vtrr_workloads,
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
    Entry {
        name: "tavs-starvation",
        shows: "how a stream starves beside domains that compute, without and with inheritance (figures 7 and 14)",
        run: tavs_starvation,
    },
    Entry {
        name: "tavs-keep",
        shows: "how much a domain with a stream computes, without and with KeepOnRunQ (figures 9 and 15, table 2)",
        run: tavs_keep,
    },
    Entry {
        name: "tavs-ratio",
        shows: "what a mixed domain gains by how much it may be boosted (figures 11 and 20)",
        run: tavs_ratio,
    },
    Entry {
        name: "tavs-correlation",
        shows: "how many boosts go to whom they are for, by window and counter width (figures 12 and 13)",
        run: tavs_correlation,
    },
    Entry {
        name: "tavs-belief",
        shows: "what realistic mixes gain, and what is believed of their tasks (figures 16 to 19)",
        run: tavs_belief,
    },
    Entry {
        name: "tavs-overhead",
        shows: "what it costs that tasks and ports are tracked (section 5.5)",
        run: tavs_overhead,
    },
];

/// The study of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Entry> {
    STUDIES.iter().find(|entry| entry.name == name)
}
