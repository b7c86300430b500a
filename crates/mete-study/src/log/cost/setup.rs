//! Logging by one source, which is switched from one setting to another.

use mete_bench::user::scheduler::{Logging, Scheduler};
use mete_kernel::bench::{Bench, BenchPoint, BenchProgram, EVENT, Running};
use mete_log::{Control, FileId, Plan, Shape};
use mete_measure::Reason;
use mete_measure::reason::made;

use super::setting::{Setting, Source};

/// The thesis' log file for these measurements: 512 bytes, 16 rows of five entries.
const ROWS: u32 = 16;

/// The logging of one setting, which ends when this is dropped.
pub(super) enum On<'a> {
    Nothing,
    Program { _running: Running, _bench: &'a Bench },
}

pub(super) struct LogCostSetup {
    pub(super) source: Source,
    scheduler: Result<Scheduler, Reason>,
    bench: Result<Bench, Reason>,
}

impl LogCostSetup {
    pub(super) fn new(source: Source) -> LogCostSetup {
        let other = || Reason::new("not used by this source");
        match source {
            Source::Probes => LogCostSetup { source, scheduler: Scheduler::begin(), bench: Err(other()) },
            Source::Kernel => {
                LogCostSetup { source, scheduler: Err(other()), bench: Bench::load().map_err(Reason::from) }
            }
        }
    }

    /// Switches logging to a setting, until the returned value is dropped or another setting is chosen.
    pub(super) fn set(&mut self, setting: Setting) -> Result<On<'_>, Reason> {
        match self.source {
            Source::Probes => {
                let scheduler = made(&mut self.scheduler)?;
                set_probe(scheduler, setting)?;
                Ok(On::Nothing)
            }
            Source::Kernel => attach(self.bench.as_ref().map_err(Clone::clone)?, setting),
        }
    }
}

fn set_probe(scheduler: &mut Scheduler, setting: Setting) -> Result<(), Reason> {
    match setting {
        Setting::Native | Setting::Disabled => scheduler.set(Logging::Disabled),
        // File 0 is no file.
        Setting::RoutedNowhere => scheduler.set_file(FileId::default()),
        Setting::On(logging) => scheduler.set(logging),
    }
}

fn attach(bench: &Bench, setting: Setting) -> Result<On<'_>, Reason> {
    let mut plan = Plan::new(Shape::KERNEL);
    match setting {
        Setting::Native | Setting::Disabled => return Ok(On::Nothing),
        Setting::RoutedNowhere => {}
        Setting::On(logging) => {
            let file = plan.file(logging.file(ROWS))?;
            plan.route_event(EVENT, file)?;
            debug_assert_ne!(plan.control(file), Control::OFF);
        }
    }
    // Without a route in the plan, the program finds no file for its event: that is `RoutedNowhere`.
    (0..bench.processors()).for_each(|processor| plan.apply(bench.area(processor)));
    let running = bench.attach(BenchPoint::Switch, BenchProgram::Row)?;
    Ok(On::Program { _running: running, _bench: bench })
}
