//! All studies by name.

use std::path::Path;

use super::{
    Study, StudyOptions, klogger, log_cost, log_readers, tavs_belief, tavs_correlation, tavs_keep,
    tavs_overhead, tavs_ratio, tavs_response, tavs_starvation, vtrr_cost, vtrr_error, vtrr_micro,
    vtrr_workloads,
};
use crate::progress::Progress;
use crate::reason::Reason;

/// A study with the name by which `mete study` runs it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The argument of `mete study`, and the name of the study's folder under `studies/`.
    pub name: &'static str,
    /// What the study shows, in one line.
    pub shows: &'static str,
    /// Measures or simulates the study.
    pub run: fn(StudyOptions, &mut dyn Progress) -> Study,
    /// Runs the study on a trace that was recorded before. `None` if it cannot.
    pub of_trace: Option<OfTrace>,
}

/// A study of the trace in this directory.
pub type OfTrace = fn(&Path) -> Result<Study, Reason>;

/// Every study, in the order of the documentation.
pub const STUDIES: &[Entry] = &[
    Entry {
        name: "log-cost",
        shows: "what a log operation costs on the path of a message (figures 5.1 to 5.3)",
        run: log_cost,
        of_trace: None,
    },
    Entry {
        name: "log-readers",
        shows: "what it costs to read a log that is being written (figures 5.4 to 5.6)",
        run: log_readers,
        of_trace: None,
    },
    Entry {
        name: "vtrr-error",
        shows: "how far VTRR, WRR and WFQ are from perfect fairness, over clients and shares",
        run: vtrr_error,
        of_trace: None,
    },
    Entry {
        name: "vtrr-cost",
        shows: "what a decision costs over the number of clients, for every policy",
        run: vtrr_cost,
        of_trace: None,
    },
    Entry {
        name: "vtrr-micro",
        shows: "who runs when under Linux 2.2's scheduler, WFQ and VTRR",
        run: vtrr_micro,
        of_trace: None,
    },
    Entry {
        name: "vtrr-workloads",
        shows: "what audio encoders and virtual machines get done under the same three",
        run: vtrr_workloads,
        of_trace: None,
    },
    Entry {
        name: "tavs-response",
        shows: "how fast a server answers beside a hog in its domain, without and with TAVS (figures 1 and 10)",
        run: tavs_response,
        of_trace: None,
    },
    Entry {
        name: "tavs-starvation",
        shows: "how a stream starves beside domains that compute, without and with inheritance (figures 7 and 14)",
        run: tavs_starvation,
        of_trace: None,
    },
    Entry {
        name: "tavs-keep",
        shows: "how much a domain with a stream computes, without and with KeepOnRunQ (figures 9 and 15, table 2)",
        run: tavs_keep,
        of_trace: None,
    },
    Entry {
        name: "tavs-ratio",
        shows: "what a mixed domain gains by how much it may be boosted (figures 11 and 20)",
        run: tavs_ratio,
        of_trace: None,
    },
    Entry {
        name: "tavs-correlation",
        shows: "how many boosts go to whom they are for, by window and counter width (figures 12 and 13)",
        run: tavs_correlation,
        of_trace: None,
    },
    Entry {
        name: "tavs-belief",
        shows: "what realistic mixes gain, and what is believed of their tasks (figures 16 to 19)",
        run: tavs_belief,
        of_trace: None,
    },
    Entry {
        name: "tavs-overhead",
        shows: "what it costs that tasks and ports are tracked (section 5.5)",
        run: tavs_overhead,
        of_trace: None,
    },
    Entry {
        name: "loggers",
        shows: "what an event costs with several loggers, side by side (KLogger table 1)",
        run: klogger::loggers,
        of_trace: None,
    },
    Entry {
        name: "locks",
        shows: "what waiting for the kernel's locks costs, lock by lock, against parallelism (KLogger figures 2 to 4)",
        run: klogger::locks,
        of_trace: Some(klogger::locks_of_trace),
    },
    Entry {
        name: "quanta",
        shows: "how long programs really keep the processor: effective quanta (KLogger figure 5)",
        run: klogger::quanta,
        of_trace: Some(klogger::quanta_of_trace),
    },
    Entry {
        name: "migrations",
        shows: "what a player has of the processors beside a growing number of hogs (KLogger figure 6)",
        run: klogger::migrations,
        of_trace: Some(klogger::migrations_of_trace),
    },
    Entry {
        name: "switch-cost",
        shows: "what scheduling costs against the number of processes (KLogger figure 7)",
        run: klogger::switch_cost,
        of_trace: Some(klogger::switch_cost_of_trace),
    },
    Entry {
        name: "noise",
        shows: "how long a loop of 1 ms takes, raw and with interrupts subtracted (KLogger figures 8 to 10)",
        run: klogger::noise,
        of_trace: Some(klogger::noise_of_trace),
    },
    Entry {
        name: "timer",
        shows: "what the timer interrupt costs, and takes from a program (KLogger figure 11)",
        run: klogger::timer,
        of_trace: Some(klogger::timer_of_trace),
    },
];

/// The study of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Entry> {
    STUDIES.iter().find(|entry| entry.name == name)
}
