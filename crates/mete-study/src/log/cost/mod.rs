//! What a row costs on the path of a message between two tasks (thesis §5.2.1).

mod findings;
mod line;
mod message;
mod pictures;
mod processors;
mod setting;
mod stage;

use mete_base::progress::Progress;
use mete_bench::traffic::Partner;
use mete_bench::user::scheduler::Logging;
use mete_measure::report::Report;
use serde::Serialize;
use serde_json::{Value, json};

use self::line::{CostLine, find};
use self::processors::PerProcessor;
use self::setting::{PARTNERS, Setting, Source, partner_name};
use self::stage::Stage;
use crate::study::{Findings, KeptRows, Study, StudyFile, StudyOptions, StudyTexts, texts};

/// The thesis' figure 5.2, in cycles of a 2.2 GHz Xeon: the native time, then what the other settings add. It has no
/// column for events that are routed to no file.
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

pub(crate) struct Cost;

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct LogCosts {
    lines: Vec<CostLine>,
    processors: Vec<PerProcessor>,
}

impl Study for Cost {
    const NAME: &'static str = "log-cost";
    const SHOWS: &'static str = "what a log operation costs on the path of a message (figures 5.1 to 5.3)";
    const TEXTS: StudyTexts = texts!("log-cost");
    const IS_SIMULATED: bool = false;
    type Found = LogCosts;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> LogCosts {
        let mut found = LogCosts::default();
        for source in Source::ALL {
            if progress.is_cancelled() {
                break;
            }
            let mut stage = Stage::new(source);
            for partner in PARTNERS {
                found.lines.push(CostLine::measure(report, &mut stage, partner, options, progress));
                found.processors.extend(processors::measure(report, &mut stage, partner, options, progress));
            }
        }
        found
    }

    fn findings(found: &LogCosts) -> Findings {
        findings::of(&found.lines)
    }

    fn facts(LogCosts { lines, processors }: &LogCosts) -> impl Serialize {
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
        let processors = found.processors.iter().map(pictures::processors);
        std::iter::once(pictures::added(&found.lines)).chain(processors).collect()
    }

    fn data(_: &LogCosts, _: &Report) -> Vec<StudyFile> {
        Vec::new()
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        if kept.is_empty() {
            return Vec::new();
        }
        let lines =
            Source::ALL.iter().flat_map(|&source| PARTNERS.map(|of| CostLine::kept(kept, source, of)));
        vec![pictures::added(&lines.collect::<Vec<_>>())]
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

/// The lines that were measured and those of the thesis, by [`Setting::ALL`]: the native time in full, the others as
/// what they add.
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
