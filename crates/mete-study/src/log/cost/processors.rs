//! Messages on all processors at once, a pair of tasks on each (thesis §5.2.1, figure 5.3).

use std::sync::Barrier;
use std::thread;

use mete_base::progress::Progress;
use mete_bench::traffic::{Echo, Partner};
use mete_measure::interleave::interleave;
use mete_measure::processor::{self, Batch};
use mete_measure::statistics::median;
use mete_measure::{Reason, Report, Row};

use super::line::ns_a_message;
use super::setting::{Setting, Source, line_name};
use super::setup::LogCostSetup;
use crate::study::StudyOptions;

/// One of the figure's plots: nanoseconds for a message, by setting and processor.
pub(crate) struct PerProcessor {
    pub source: Source,
    pub partner: Partner,
    pub processors: Vec<usize>,
    pub ns: Vec<(Setting, Vec<f64>)>,
}

/// The samples of one setting, by processor.
type Samples = Vec<Vec<f64>>;

/// Measures one plot and reports its rows. The answer is `None` if not even the native path could be
/// measured.
pub(super) fn measure(
    report: &mut Report,
    setup: &mut LogCostSetup,
    partner: Partner,
    options: StudyOptions,
    progress: &mut dyn Progress,
) -> Option<PerProcessor> {
    let (source, processors) = (setup.source, processor::allowed());
    let name = format!("{}, all processors", line_name(source, partner));
    let mut all: Vec<(Setting, Samples)> =
        Setting::ALL.iter().map(|&setting| (setting, vec![Vec::new(); processors.len()])).collect();
    let rounds = if options.is_quick { 3 } else { 25 };
    // Rows are those of each processor. The means only decide whether there is anything to show.
    let means = interleave(&name, rounds, &Setting::ALL, progress, |setting| {
        let _on = setup.set(setting)?;
        let costs = on_all(&processors, partner, source, setting)?;
        note(&mut all, setting, &costs);
        Ok(costs.iter().sum::<f64>() / costs.len() as f64)
    });
    // All other settings are compared with the native path.
    means.of(Setting::Native).ok()?;
    for (setting, samples) in &mut all {
        report.rows.extend(rows(&name, *setting, &processors, samples));
    }
    let medians = |samples: Samples| samples.iter().filter_map(|samples| median(samples)).collect();
    let ns = all.into_iter().map(|(setting, samples)| (setting, medians(samples))).collect();
    Some(PerProcessor { source, partner, processors, ns })
}

impl PerProcessor {
    /// What this setting adds to a message on each processor.
    pub(super) fn added_ns(&self, setting: Setting) -> Option<Vec<f64>> {
        let of = |wanted| self.ns.iter().find(|(known, _)| *known == wanted).map(|(_, ns)| ns);
        let (native, logged) = (of(Setting::Native)?, of(setting)?);
        Some(native.iter().zip(logged).map(|(native, logged)| logged - native).collect())
    }
}

fn note(all: &mut [(Setting, Samples)], setting: Setting, costs: &[f64]) {
    let samples = all.iter_mut().filter(|(known, _)| *known == setting).flat_map(|(_, samples)| samples);
    samples.zip(costs).for_each(|(samples, cost)| samples.push(*cost));
}

/// Nanoseconds for a message of a pair on this processor, once all processors' pairs are warm.
fn on_one(
    processor: usize,
    partner: Partner,
    (source, setting): (Source, Setting),
    barrier: &Barrier,
) -> Result<f64, Reason> {
    // Where the thread may not run on this processor it runs elsewhere, which shows in the numbers.
    let _ = processor::pin(processor);
    let _batch = Batch::begin();
    let warm = Echo::start(partner, processor)
        .and_then(|mut echo| ns_a_message(&mut echo, source, setting).map(|_| echo));
    // A thread whose pair failed must come here, too: the others would wait for it forever.
    barrier.wait();
    ns_a_message(&mut warm?, source, setting)
}

fn rows(name: &str, setting: Setting, processors: &[usize], samples: &mut Samples) -> Vec<Row> {
    let rows = processors.iter().zip(samples).map(|(processor, samples)| {
        // The first round does not count, as for all other samples.
        if !samples.is_empty() {
            samples.remove(0);
        }
        let name = format!("{name}: {}, processor {processor}", setting.name());
        Row::new(name, "ns", Ok(samples.clone())).note("a message, one way")
    });
    rows.collect()
}

/// Nanoseconds for a message on each of the processors, while each is busy with a pair of its own.
fn on_all(
    processors: &[usize],
    partner: Partner,
    source: Source,
    setting: Setting,
) -> Result<Vec<f64>, Reason> {
    // Each thread waits for all others, so it counts exactly those that are started below.
    let barrier = &Barrier::new(processors.len());
    thread::scope(|scope| {
        let threads: Vec<_> = processors
            .iter()
            .map(|&processor| scope.spawn(move || on_one(processor, partner, (source, setting), barrier)))
            .collect();
        let ended_early = || Err(Reason::new("a measuring thread ended early"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| ended_early())).collect()
    })
}
