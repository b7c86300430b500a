//! What a row costs on the path of a message between two tasks (thesis §5.2.1).

mod line;
mod processors;
mod setting;
mod setup;

use mete_base::progress::Progress;
use mete_bench::traffic::Partner;
use mete_bench::user::scheduler::Logging;
use mete_measure::Report;
use mete_plot::{self as plot, Axis};
use serde_json::{Value, json};

use self::line::{CostLine, find};
use self::processors::PerProcessor;
use self::setting::{PARTNERS, Setting, Source, line_name, partner_name};
use self::setup::LogCostSetup;
use crate::study::{Finding, Findings, KeptRows, Study, StudyFile, StudyOptions, about};

/// The thesis' figure 5.2, in cycles of a 2.2 GHz Xeon: the native time, then what the other settings add. It
/// has no column for events that are routed to no file.
const THESIS: [(Partner, [Option<f64>; 7]); 2] = [
    (
        Partner::OtherAddressSpace,
        [Some(1053.0), Some(2.0), None, Some(80.0), Some(161.0), Some(157.0), Some(275.0)],
    ),
    (
        Partner::SameAddressSpace,
        [Some(480.0), Some(-1.0), None, Some(26.0), Some(59.0), Some(72.0), Some(264.0)],
    ),
];

pub(crate) struct LogCost;

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct LogCosts {
    lines: Vec<CostLine>,
    processors: Vec<PerProcessor>,
}

impl Study for LogCost {
    about!("log-cost", "what a log operation costs on the path of a message (figures 5.1 to 5.3)");
    type Found = LogCosts;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> LogCosts {
        let mut found = LogCosts::default();
        for source in Source::ALL {
            if progress.is_cancelled() {
                break;
            }
            let mut setup = LogCostSetup::new(source);
            for partner in PARTNERS {
                found.lines.push(CostLine::measure(report, &mut setup, partner, options, progress));
                found.processors.extend(processors::measure(report, &mut setup, partner, options, progress));
            }
        }
        found
    }

    fn findings(found: &LogCosts) -> Findings {
        // Figure 5.2 is about messages across address spaces, with rows from the kernel.
        let [probes, kernel] =
            Source::ALL.map(|source| find(&found.lines, source, Partner::OtherAddressSpace));
        vec![("disabled", probes.and_then(disabled)), ("stamp", kernel.and_then(stamp))]
    }

    fn facts(LogCosts { lines, processors }: &LogCosts) -> Value {
        let [probes, kernel] = Source::ALL.map(|source| find(lines, source, Partner::OtherAddressSpace));
        let probe_ns = |setting| probes?.ns(setting);
        let kernel_ns = |setting| kernel?.ns(setting);
        // A row with all five entries, in percent of the native time.
        let percent = |line: &CostLine| percents(&line.ns)[Setting::ALL.len() - 1];
        let rows = kernel_ns(Setting::FIVE).zip(kernel_ns(Setting::On(Logging::Four)));
        json!({
            "native_ns": probe_ns(Setting::Native),
            "disabled_ns": probe_ns(Setting::Disabled),
            "probe_ns": probe_ns(Setting::FIVE),
            "kernel_ns": kernel_ns(Setting::FIVE),
            "probe_percent": probes.and_then(percent),
            "kernel_percent": kernel.and_then(percent),
            "stamp_ns": rows.map(|(five, four)| five - four),
            "busy": processors.first().and_then(|figure| busy(figure, lines)),
            "settings": Setting::ALL.map(Setting::name),
            "lines": table(lines),
        })
    }

    fn pictures(found: &LogCosts) -> Vec<StudyFile> {
        std::iter::once(added(&found.lines)).chain(found.processors.iter().map(all_busy)).collect()
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        let lines =
            Source::ALL.iter().flat_map(|&source| PARTNERS.map(|of| CostLine::kept(kept, source, of)));
        vec![added(&lines.collect::<Vec<_>>())]
    }
}

/// What five entries add while all processors are busy, and while one is.
fn busy(figure: &PerProcessor, lines: &[CostLine]) -> Option<Value> {
    let alone = find(lines, figure.source, figure.partner);
    Some(json!({
        "source": figure.source.name(),
        "added_ns": figure.added_ns(Setting::FIVE)?,
        "alone_ns": alone.and_then(|line| line.ns(Setting::FIVE)),
    }))
}

/// The lines that were measured and those of the thesis, by [`Setting::ALL`]: the native time in full, the
/// others as what they add.
fn table(lines: &[CostLine]) -> Vec<Value> {
    let measured = lines.iter().map(|line| (line.partner, line.source.name(), "ns", line.ns));
    let thesis = THESIS.into_iter().map(|(partner, cycles)| (partner, "thesis", "cycles", cycles));
    let all = measured.chain(thesis).flat_map(|(partner, source, unit, values)| {
        [(unit, values), ("%", percents(&values))].map(|(unit, values)| {
            json!({ "partner": partner_name(partner), "source": source, "unit": unit, "values": values })
        })
    });
    all.collect()
}

/// Each value in percent of the first one, which is left out.
fn percents(values: &[Option<f64>; 7]) -> [Option<f64>; 7] {
    let [native, ..] = *values;
    let mut percents = values.map(|value| Some(100.0 * value? / native?));
    percents[0] = None;
    percents
}

/// The cost of a disabled event is less than the noise, so up to a fiftieth of a message's time counts as
/// nothing.
fn disabled(probes: &CostLine) -> Option<Finding> {
    let (added, native) = (probes.ns(Setting::Disabled)?, probes.ns(Setting::Native)?);
    let finding = Finding::new(json!({ "added_ns": added, "native_ns": native }), added <= native / 50.0);
    Some(finding.unless_noisy(probes.is_noisy(Setting::Disabled)))
}

fn stamp(kernel: &CostLine) -> Option<Finding> {
    const FOUR: Setting = Setting::On(Logging::Four);
    let (five, four) = (kernel.ns(Setting::FIVE)?, kernel.ns(FOUR)?);
    let finding = Finding::new(json!({ "stamp_ns": five - four, "row_ns": five }), five - four >= five / 4.0);
    Some(finding.unless_noisy([Setting::FIVE, FOUR].into_iter().any(|setting| kernel.is_noisy(setting))))
}

/// What each setting adds to a message.
fn added(lines: &[CostLine]) -> StudyFile {
    let groups: Vec<_> = Setting::ALL[1..].iter().map(|setting| setting.name().to_owned()).collect();
    // A cost that was not measured has a bar without height.
    let bars = |line: &CostLine| line.ns[1..].iter().map(|ns| ns.unwrap_or(0.0)).collect();
    let series: Vec<_> =
        lines.iter().map(|line| (line_name(line.source, line.partner), bars(line))).collect();
    let title = "A log operation on the path of a message (thesis, figures 5.1 and 5.2)";
    let axis = Axis::linear("added to a message, ns (dashed: not above zero)");
    ("figure-5.1.svg".to_owned(), plot::bars(title, &axis, &groups, &series))
}

/// What a message takes on each processor while all are busy.
fn all_busy(figure: &PerProcessor) -> StudyFile {
    let groups: Vec<_> = figure.processors.iter().map(|number| format!("processor {number}")).collect();
    let series: Vec<_> =
        figure.ns.iter().map(|(setting, ns)| (setting.name().to_owned(), ns.clone())).collect();
    let name = line_name(figure.source, figure.partner);
    let title = format!("All processors busy (thesis, figure 5.3): {name}");
    let file = format!("figure-5.3-{}.svg", name.replace(", ", "-").replace(' ', "-").to_lowercase());
    (file, plot::bars(&title, &Axis::linear("a message, ns"), &groups, &series))
}
