//! One line of the thesis' figure 5.2: what each setting costs on one processor.

use std::io;

use mete_base::progress::Progress;
use mete_bench::traffic::{Echo, Partner};
use mete_bench::user::loops::{CORRESPONDENT, ROW};
use mete_bench::user::timed;
use mete_measure::interleave::{Samples, interleave};
use mete_measure::processor::{self, Batch, Pinned};
use mete_measure::statistics::median;
use mete_measure::{Reason, Report, Row};
use mete_probe::probe;

use super::setting::{Setting, Source, line_name};
use super::setup::LogCostSetup;
use crate::study::{KeptRows, StudyOptions, is_noisy};

/// Round trips of one piece; then the pieces of one repetition, whose median counts.
const TRIPS: u64 = 100;
const PIECES: usize = 9;

/// One line of the thesis' figure 5.2.
pub(crate) struct CostLine {
    pub source: Source,
    pub partner: Partner,
    /// Medians in nanoseconds a message, by [`Setting::ALL`]: the whole time for [`Setting::Native`]; for the
    /// others the time that they add.
    pub ns: [Option<f64>; 7],
    /// Whether the times are noisy. An added time is noisy if one of the two times behind it is.
    is_noisy: [bool; 7],
}

impl CostLine {
    /// Measures one line and reports its rows.
    pub(super) fn measure(
        report: &mut Report,
        setup: &mut LogCostSetup,
        partner: Partner,
        options: StudyOptions,
        progress: &mut dyn Progress,
    ) -> CostLine {
        let source = setup.source;
        let name = line_name(source, partner);
        let samples = match Pair::new(partner) {
            Ok(mut pair) => {
                let rounds = if options.is_quick { 7 } else { 60 };
                interleave(&name, rounds, &Setting::ALL, progress, |setting| {
                    // Held while messages are timed: dropping it detaches the program.
                    let _on = setup.set(setting)?;
                    ns_a_message(&mut pair.echo, source, setting)
                })
            }
            Err(reason) => interleave(&name, 0, &Setting::ALL, progress, |_| Err(reason.clone())),
        };
        report.rows.extend(rows(&name, &samples));
        CostLine::of(source, partner, &samples)
    }

    fn of(source: Source, partner: Partner, samples: &Samples<Setting>) -> CostLine {
        let ns = Setting::ALL.map(|setting| {
            let costs = match setting {
                Setting::Native => samples.of(setting),
                other => samples.net(other, Setting::Native),
            };
            median(&costs.ok()?)
        });
        let noise = |setting| samples.of(setting).is_ok_and(|samples| is_noisy(&samples));
        let is_noisy = Setting::ALL.map(|setting| noise(setting) || noise(Setting::Native));
        CostLine { source, partner, ns, is_noisy }
    }

    /// A line from the rows as they are kept. They do not say which times were noisy.
    pub(super) fn kept(rows: &KeptRows, source: Source, partner: Partner) -> CostLine {
        let name = line_name(source, partner);
        let ns = Setting::ALL.map(|setting| {
            let [median, ..] = rows.find(&format!("{name}: {}", setting.name()))?;
            Some(median)
        });
        CostLine { source, partner, ns, is_noisy: [false; 7] }
    }

    pub(super) fn ns(&self, setting: Setting) -> Option<f64> {
        self.ns[place(setting)?]
    }

    pub(super) fn is_noisy(&self, setting: Setting) -> bool {
        place(setting).is_some_and(|place| self.is_noisy[place])
    }
}

fn place(setting: Setting) -> Option<usize> {
    Setting::ALL.iter().position(|known| *known == setting)
}

pub(super) fn find(lines: &[CostLine], source: Source, partner: Partner) -> Option<&CostLine> {
    lines.iter().find(|line| line.source == source && line.partner == partner)
}

fn rows(name: &str, samples: &Samples<Setting>) -> Vec<Row> {
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

/// The median of some short pieces, most of which are undisturbed. A round trip consists of two messages,
/// with one row each.
pub(super) fn ns_a_message(echo: &mut Echo, source: Source, setting: Setting) -> Result<f64, Reason> {
    let is_probed = source == Source::Probes && setting != Setting::Native;
    // Without a probe in the loop, the native path has not even the disabled instructions.
    let run = if is_probed { probed_trips } else { trips_without_probe };
    let pieces: Result<Vec<f64>, _> = (0..PIECES).map(|_| piece(echo, run)).collect();
    median(&pieces?).ok_or_else(|| Reason::new("no piece was measured"))
}

fn piece(echo: &mut Echo, run: fn(&mut Echo, u64) -> io::Result<()>) -> io::Result<f64> {
    let mut done = Ok(());
    let cost = timed(2 * TRIPS, |_| done = run(echo, TRIPS));
    done.map(|()| cost)
}

#[inline(never)]
fn trips_without_probe(echo: &mut Echo, trips: u64) -> io::Result<()> {
    (0..trips).try_for_each(|_| echo.round_trip())
}

#[inline(never)]
fn probed_trips(echo: &mut Echo, trips: u64) -> io::Result<()> {
    for _ in 0..trips {
        probe!(ROW, CORRESPONDENT);
        echo.send()?;
        echo.receive()?;
        probe!(ROW, CORRESPONDENT);
    }
    Ok(())
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
