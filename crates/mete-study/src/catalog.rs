//! All studies by name.

use crate::simulated::Simulated;
use crate::study::StudyEntry;
use crate::{klogger, live, log, tavs, vtrr};

/// The studies of each paper, in the order of the documentation.
static STUDIES: [StudyEntry; 28] = [
    StudyEntry::of::<log::cost::LogCost>(),
    StudyEntry::of::<log::readers::Readers>(),
    StudyEntry::of::<vtrr::error::ServiceErrors>(),
    StudyEntry::of::<vtrr::cost::VtrrCost>(),
    StudyEntry::of::<vtrr::micro::Micro>(),
    StudyEntry::of::<vtrr::workloads::Workloads>(),
    StudyEntry::of::<live::shares::LiveShares>(),
    StudyEntry::of::<live::latency::LiveLatency>(),
    StudyEntry::of::<live::micro::LiveMicro>(),
    StudyEntry::of::<live::ext::LiveExt>(),
    StudyEntry::of::<live::groups::LiveGroups>(),
    StudyEntry::of::<live::processors::LiveProcessors>(),
    StudyEntry::of::<live::cost::LiveCost>(),
    StudyEntry::of::<live::worlds::LiveWorlds>(),
    StudyEntry::of::<Simulated<tavs::response::Response>>(),
    StudyEntry::of::<Simulated<tavs::starvation::Starvation>>(),
    StudyEntry::of::<Simulated<tavs::keep::Keep>>(),
    StudyEntry::of::<Simulated<tavs::ratio::Ratio>>(),
    StudyEntry::of::<Simulated<tavs::correlation::Correlation>>(),
    StudyEntry::of::<Simulated<tavs::belief::Belief>>(),
    StudyEntry::of::<Simulated<tavs::overhead::Overhead>>(),
    StudyEntry::of::<klogger::loggers::Loggers>(),
    StudyEntry::of::<klogger::locks::Locks>().with_trace(klogger::locks::of_trace),
    StudyEntry::of::<klogger::quanta::Quanta>().with_trace(klogger::quanta::of_trace),
    StudyEntry::of::<klogger::migrations::Migrations>().with_trace(klogger::migrations::of_trace),
    StudyEntry::of::<klogger::switch_cost::SwitchCost>().with_trace(klogger::switch_cost::of_trace),
    StudyEntry::of::<klogger::noise::Noise>().with_trace(klogger::noise::of_trace),
    StudyEntry::of::<klogger::timer::Timer>().with_trace(klogger::timer::of_trace),
];

/// Every study, in the order of the documentation.
pub fn studies() -> impl Iterator<Item = &'static StudyEntry> {
    STUDIES.iter()
}

/// The study of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static StudyEntry> {
    studies().find(|entry| entry.name == name)
}
