//! What a row costs on the path of a message between two tasks (thesis §5.2.1).

use mete_kernel::bench::{Bench, BenchPoint, BenchProgram, EVENT, Running};
use mete_log::{Control, Plan, Shape};
use mete_probe::probe;

use super::{cost_page, processors};
use crate::study::figure::is_noisy;
use crate::study::{StudyOptions, StudyResults};
use mete_base::progress::Progress;
use mete_bench::traffic::{Echo, Partner};
use mete_bench::user::loops::ROW;
use mete_bench::user::scheduler::{Logging, Scheduler};
use mete_bench::user::timed;
use mete_measure::interleave::{Samples, interleave};
use mete_measure::processor::{self, Batch, Pinned};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_measure::statistics::median;

/// Round trips of one piece; then the pieces of one repetition, whose median counts.
const TRIPS: u64 = 100;
const PIECES: usize = 9;
/// The thesis' log file for these measurements: 512 bytes, 16 rows of five entries.
const ROWS: u32 = 16;

/// The thesis' configurations, and one of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Setting {
    /// There is no probe in the code, and no program is attached.
    Native,
    /// The probe in the code is off; or the program is loaded, but not attached.
    Disabled,
    /// Logging is on, but the pair of domain and event is routed to no file.
    RoutedNowhere,
    /// Logging is on, with this number of entries.
    On(Logging),
}

impl Setting {
    pub(super) const ALL: [Setting; 7] = [
        Setting::Native,
        Setting::Disabled,
        Setting::RoutedNowhere,
        Setting::On(Logging::NoEntry),
        Setting::On(Logging::One),
        Setting::On(Logging::Four),
        Setting::On(Logging::Five),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::Native => "native",
            Setting::Disabled | Setting::On(Logging::Disabled) => "disabled",
            Setting::RoutedNowhere => "routed nowhere",
            Setting::On(Logging::NoEntry) => "0 entries",
            Setting::On(Logging::One) => "1 entry",
            Setting::On(Logging::Four) => "4 entries",
            Setting::On(Logging::Five) => "5 entries",
        }
    }
}

/// What logs the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    /// A probe in the program, around the system calls that pass the message.
    Probes,
    /// The kernel component, at the switch that the message causes.
    Kernel,
}

impl Source {
    pub(super) const ALL: [Source; 2] = [Source::Probes, Source::Kernel];

    pub(super) fn name(self) -> &'static str {
        match self {
            Source::Probes => "user probes",
            Source::Kernel => "kernel rows",
        }
    }
}

pub(super) fn partner_name(partner: Partner) -> &'static str {
    match partner {
        Partner::OtherAddressSpace => "cross AS",
        Partner::SameAddressSpace => "intra AS",
    }
}

pub(super) const PARTNERS: [Partner; 2] = [Partner::OtherAddressSpace, Partner::SameAddressSpace];

/// One line of the thesis' figure 5.2: medians in nanoseconds a message, by [`Setting::ALL`].
pub(super) struct CostLine {
    pub source: Source,
    pub partner: Partner,
    /// The whole time for [`Setting::Native`]; for the others the time that they add.
    pub ns: Vec<Option<f64>>,
    /// Whether the times are noisy. An added time is noisy if one of the two times behind it is.
    pub is_noisy: Vec<bool>,
}

pub(super) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study log-cost");
    let (mut lines, mut figures) = (Vec::new(), Vec::new());
    for source in Source::ALL {
        let mut stage = Stage::new(source);
        for partner in PARTNERS.into_iter().filter(|_| !progress.is_cancelled()).collect::<Vec<_>>() {
            lines.push(table_line(&mut report, &mut stage, partner, options, progress));
            figures.extend(processors::measure(&mut report, &mut stage, partner, options, progress));
        }
    }
    report.is_complete = !progress.is_cancelled();
    let compared = cost_page::compared_figures(&lines, report.is_complete);
    let files = cost_page::files(&report, &lines, &figures, &compared);
    StudyResults { folder: "log-cost", report, figures: compared, files }
}

fn table_line(
    report: &mut Report,
    stage: &mut Stage,
    partner: Partner,
    options: StudyOptions,
    progress: &mut dyn Progress,
) -> CostLine {
    let source = stage.source;
    let name = format!("{}, {}", source.name(), partner_name(partner));
    let samples = match Pair::new(partner) {
        Ok(mut pair) => {
            let rounds = if options.is_quick { 7 } else { 60 };
            interleave(&name, rounds, &Setting::ALL, progress, |setting| {
                // Held while messages are timed: dropping it detaches the program.
                let _on = stage.set(setting)?;
                ns_a_message(&mut pair.echo, source, setting)
            })
        }
        Err(reason) => interleave(&name, 0, &Setting::ALL, progress, |_| Err(reason.clone())),
    };
    report.rows.extend(line_rows(&name, &samples));
    let ns = Setting::ALL.iter().map(|&setting| {
        let costs = match setting {
            Setting::Native => samples.of(setting),
            other => samples.net(other, Setting::Native),
        };
        costs.ok().and_then(|ns| median(&ns))
    });
    let noise = |setting| samples.of(setting).is_ok_and(|samples| is_noisy(&samples));
    let is_noisy = Setting::ALL.iter().map(|&setting| noise(setting) || noise(Setting::Native)).collect();
    CostLine { source, partner, ns: ns.collect(), is_noisy }
}

fn line_rows(name: &str, samples: &Samples<Setting>) -> Vec<Row> {
    let native =
        Row::new(format!("{name}: native"), "ns", samples.of(Setting::Native)).note("a message, one way");
    let added = Setting::ALL[1..].iter().flat_map(|&setting| {
        let net = samples.net(setting, Setting::Native);
        let percent = net.clone().and_then(|net| {
            let native = samples.of(Setting::Native)?;
            Ok(net.iter().zip(native).map(|(net, native)| 100.0 * net / native).collect())
        });
        let name = format!("{name}: {}", setting.name());
        [
            Row::new(name.clone(), "ns", net).note("added to a message"),
            Row::new(format!("{name}, share"), "percent", percent).note("added, of native"),
        ]
    });
    std::iter::once(native).chain(added).collect()
}

/// The logging of one setting, which ends when this is dropped.
pub(super) enum On<'a> {
    Nothing,
    Program { _running: Running, _bench: &'a Bench },
}

pub(super) struct Stage {
    pub(super) source: Source,
    scheduler: Result<Scheduler, Reason>,
    bench: Result<Bench, Reason>,
}

impl Stage {
    fn new(source: Source) -> Stage {
        let other = || Reason::new("not used by this source");
        match source {
            Source::Probes => Stage { source, scheduler: Scheduler::begin(), bench: Err(other()) },
            Source::Kernel => {
                Stage { source, scheduler: Err(other()), bench: Bench::load().map_err(Reason::from) }
            }
        }
    }

    /// Switches logging to a setting, until the returned value is dropped or another setting is chosen.
    pub(super) fn set(&mut self, setting: Setting) -> Result<On<'_>, Reason> {
        match self.source {
            Source::Probes => {
                let scheduler = self.scheduler.as_mut().map_err(|reason| reason.clone())?;
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
        Setting::RoutedNowhere => scheduler.set_file(0),
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

/// Two tasks on one processor that send a message back and forth.
struct Pair {
    echo: Echo,
    _batch: Batch,
    _pinned: Pinned,
}

impl Pair {
    fn new(partner: Partner) -> Result<Pair, Reason> {
        let processor = processor::quietest();
        let pinned = Pinned::to(processor)?;
        Ok(Pair { echo: Echo::start(partner, processor)?, _batch: Batch::begin(), _pinned: pinned })
    }
}

/// The median of some short pieces, most of which are undisturbed. A round trip consists of two messages, with one
/// row each.
pub(super) fn ns_a_message(echo: &mut Echo, source: Source, setting: Setting) -> Result<f64, Reason> {
    let is_probed = source == Source::Probes && setting != Setting::Native;
    // Without a probe in the loop, the native path has not even the disabled instructions.
    let run = if is_probed { probed_trips } else { trips_without_probe };
    let mut piece = || {
        let mut done = Ok(());
        let cost = timed(2 * TRIPS, |_| done = run(echo, TRIPS));
        done.map(|()| cost)
    };
    let pieces: Result<Vec<f64>, _> = (0..PIECES).map(|_| piece()).collect();
    median(&pieces?).ok_or_else(|| Reason::new("no piece was measured"))
}

#[inline(never)]
fn trips_without_probe(echo: &mut Echo, trips: u64) -> std::io::Result<()> {
    (0..trips).try_for_each(|_| echo.round_trip())
}

#[inline(never)]
fn probed_trips(echo: &mut Echo, trips: u64) -> std::io::Result<()> {
    for _ in 0..trips {
        probe!(ROW, 2);
        echo.send()?;
        echo.receive()?;
        probe!(ROW, 2);
    }
    Ok(())
}
