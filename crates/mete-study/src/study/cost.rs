//! What a row costs on the path of a message between two tasks (thesis §5.2.1).

use std::sync::Barrier;
use std::thread;

use mete_kernel::bench::{Bench, BenchPoint, BenchProgram, EVENT, Running};
use mete_log::{Control, Plan, Shape};
use mete_probe::probe;

use super::{Study, StudyOptions, cost_page};
use crate::interleave::{Samples, interleave};
use crate::processor::{self, Batch, Pinned};
use crate::progress::Progress;
use crate::reason::Reason;
use crate::report::{Report, Row};
use crate::statistics::median;
use crate::traffic::{Echo, Partner};
use crate::user::loops::ROW;
use crate::user::scheduler::{Logging, Scheduler};
use crate::user::timed;

/// Round trips of one piece, and pieces of one repetition, of which the median counts.
const TRIPS: u64 = 100;
const PIECES: usize = 9;
/// Round trips for figure 5.3, on all processors at once.
const PARALLEL_TRIPS: u64 = 1_000;
/// The thesis' log file for these measurements: 512 bytes, 16 rows of five entries.
const ROWS: u32 = 16;

/// The thesis' configurations, and one of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Setting {
    /// No probe in the code, no program attached.
    Native,
    /// A probe that is off; a program that is not attached.
    Disabled,
    /// On, but the pair is routed to no file.
    RoutedNowhere,
    /// On, with so many entries.
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

/// Who logs.
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
pub(super) struct Line {
    pub source: Source,
    pub partner: Partner,
    /// Of [`Setting::Native`] all of it, of the others what they add.
    pub ns: Vec<Option<f64>>,
}

/// Figure 5.3: nanoseconds a message, by setting and processor.
pub(super) struct PerProcessor {
    pub source: Source,
    pub partner: Partner,
    pub processors: Vec<usize>,
    pub ns: Vec<(Setting, Vec<f64>)>,
}

pub(super) fn study(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    let mut report = Report::new("mete study log-cost");
    let (mut lines, mut figures) = (Vec::new(), Vec::new());
    for source in Source::ALL {
        let mut stage = Stage::new(source);
        for partner in PARTNERS.into_iter().filter(|_| !progress.is_cancelled()).collect::<Vec<_>>() {
            lines.push(table_line(&mut report, &mut stage, partner, options, progress));
            figures.extend(per_processor(&mut report, &mut stage, partner, options, progress));
        }
    }
    report.is_complete = !progress.is_cancelled();
    let files = cost_page::files(&report, &lines, &figures);
    Study { folder: "log-cost", report, files }
}

fn table_line(
    report: &mut Report,
    stage: &mut Stage,
    partner: Partner,
    options: StudyOptions,
    progress: &mut dyn Progress,
) -> Line {
    let source = stage.source;
    let name = format!("{}, {}", source.name(), partner_name(partner));
    let samples = match Pair::new(partner) {
        Ok(mut pair) => {
            let rounds = if options.is_quick { 7 } else { 60 };
            interleave(&name, rounds, &Setting::ALL, progress, |setting| {
                let _on = stage.set(setting)?;
                pair.ns_a_message(source, setting)
            })
        }
        Err(reason) => interleave(&name, 0, &Setting::ALL, progress, |_| Err(reason.clone())),
    };
    report.rows.extend(line_rows(&name, &samples));
    let net = |setting| match setting {
        Setting::Native => samples.of(setting),
        other => samples.net(other, Setting::Native),
    };
    let ns = Setting::ALL.iter().map(|&setting| net(setting).ok().and_then(|ns| median(&ns))).collect();
    Line { source, partner, ns }
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

/// What logs, as one of the settings asks; ends with the value.
enum On<'a> {
    Nothing,
    Program { _running: Running, _bench: &'a Bench },
}

struct Stage {
    source: Source,
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

    fn set(&mut self, setting: Setting) -> Result<On<'_>, Reason> {
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
    (0..bench.processors()).for_each(|processor| plan.apply(bench.area(processor)));
    let running = bench.attach(BenchPoint::Switch, BenchProgram::Row)?;
    Ok(On::Program { _running: running, _bench: bench })
}

/// Two tasks on one processor that pass a message to and fro.
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

    /// The median of some short pieces, of which most are undisturbed.
    fn ns_a_message(&mut self, source: Source, setting: Setting) -> Result<f64, Reason> {
        let pieces = (0..PIECES).map(|_| ns_a_message(&mut self.echo, TRIPS, is_probed(source, setting)));
        let pieces: Result<Vec<f64>, Reason> = pieces.collect();
        median(&pieces?).ok_or_else(|| Reason::new("no piece was measured"))
    }
}

fn is_probed(source: Source, setting: Setting) -> bool {
    source == Source::Probes && setting != Setting::Native
}

/// A round trip is two messages, and one row each.
fn ns_a_message(echo: &mut Echo, trips: u64, is_probed: bool) -> Result<f64, Reason> {
    let mut done = Ok(());
    let run = if is_probed { probed_trips } else { trips_without_probe };
    let cost = timed(2 * trips, |_| done = run(echo, trips));
    done?;
    Ok(cost)
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

/// All processors at once, a pair on each.
fn per_processor(
    report: &mut Report,
    stage: &mut Stage,
    partner: Partner,
    options: StudyOptions,
    progress: &mut dyn Progress,
) -> Option<PerProcessor> {
    let source = stage.source;
    let processors = processor::allowed();
    let name = format!("{}, {}, all processors", source.name(), partner_name(partner));
    let mut rounds: Vec<(Setting, Vec<Vec<f64>>)> =
        Setting::ALL.map(|setting| (setting, Vec::new())).to_vec();
    let samples =
        interleave(&name, if options.is_quick { 3 } else { 25 }, &Setting::ALL, progress, |setting| {
            let _on = stage.set(setting)?;
            let costs = on_all(&processors, partner, is_probed(source, setting))?;
            let mean = costs.iter().sum::<f64>() / costs.len() as f64;
            rounds
                .iter_mut()
                .filter(|(known, _)| *known == setting)
                .for_each(|(_, all)| all.push(costs.clone()));
            Ok(mean)
        });
    samples.of(Setting::Native).ok()?;
    let middle = |rounds: &[Vec<f64>], nth: usize| {
        // The first round does not count, as with all other samples.
        median(&rounds.iter().skip(1).filter_map(|costs| costs.get(nth).copied()).collect::<Vec<_>>())
    };
    let ns: Vec<_> = rounds
        .iter()
        .map(|(setting, rounds)| {
            (*setting, (0..processors.len()).filter_map(|nth| middle(rounds, nth)).collect())
        })
        .collect();
    for (setting, rounds) in &rounds {
        for (nth, processor) in processors.iter().enumerate() {
            let all: Vec<f64> = rounds.iter().skip(1).filter_map(|costs| costs.get(nth).copied()).collect();
            let row = Row::new(format!("{name}: {}, processor {processor}", setting.name()), "ns", Ok(all));
            report.rows.push(row.note("a message, one way"));
        }
    }
    Some(PerProcessor { source, partner, processors, ns })
}

/// Nanoseconds a message on each of the processors, all busy with pairs of their own.
fn on_all(processors: &[usize], partner: Partner, is_probed: bool) -> Result<Vec<f64>, Reason> {
    let barrier = Barrier::new(processors.len());
    let run = |processor| -> Result<f64, Reason> {
        // Where it may not run there it runs elsewhere, which shows in the numbers.
        let _ = processor::pin(processor);
        let echo = Echo::start(partner, processor);
        let _batch = Batch::begin();
        // Nobody may be missed at the barrier, whatever fails.
        let warm = echo.and_then(|mut echo| ns_a_message(&mut echo, TRIPS, is_probed).map(|_| echo));
        barrier.wait();
        ns_a_message(&mut warm?, PARALLEL_TRIPS, is_probed)
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            processors.iter().map(|&processor| scope.spawn(move || run(processor))).collect();
        let gone = |_| Err(Reason::new("a measuring thread ended early"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(gone)).collect()
    })
}
