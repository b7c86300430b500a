//! The page and the plots of the study `log-cost`. The numbers in its text are those of the run.

use std::fmt::Write as _;

use super::cost::{CostLine, PARTNERS, Setting, Source, partner_name};
use super::processors::PerProcessor;
use crate::study::KeptRows;
use crate::study::figure::{self, Figure};
use crate::study::missing;
use mete_bench::traffic::Partner;
use mete_bench::user::scheduler::Logging;
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, short};

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

pub(super) fn files(
    report: &Report,
    lines: &[CostLine],
    figures: &[PerProcessor],
    compared: &[Figure],
) -> Vec<(String, String)> {
    let mut files = vec![
        ("README.md".to_owned(), page(report, lines, figures, compared)),
        ("figure-5.1.svg".to_owned(), added(lines)),
    ];
    for figure in figures {
        files.push((figure_name(figure), processors(figure)));
    }
    files
}

fn figure_name(figure: &PerProcessor) -> String {
    let part = |text: &str| text.replace(' ', "-").to_lowercase();
    format!("figure-5.3-{}-{}.svg", part(figure.source.name()), part(partner_name(figure.partner)))
}

fn added(lines: &[CostLine]) -> String {
    let groups: Vec<_> = Setting::ALL[1..].iter().map(|setting| setting.name().to_owned()).collect();
    let series: Vec<_> = lines
        .iter()
        .map(|line| {
            let name = format!("{}, {}", line.source.name(), partner_name(line.partner));
            // A cost that was not measured has a bar without height.
            (name, line.ns.iter().skip(1).map(|ns| ns.unwrap_or(0.0)).collect())
        })
        .collect();
    let axis =
        Axis { label: "added to a message, ns (dashed: not above zero)".into(), is_logarithmic: false };
    plot::bars(
        "A log operation on the path of a message (thesis, figures 5.1 and 5.2)",
        &axis,
        &groups,
        &series,
    )
}

/// The plot from the rows as they are kept in the study's folder.
pub(super) fn added_of(rows: &KeptRows) -> String {
    let lines = Source::ALL.iter().flat_map(|&source| PARTNERS.map(|partner| kept(rows, source, partner)));
    added(&lines.collect::<Vec<_>>())
}

/// A line of the table from the rows as they are kept. They do not say which times were noisy.
fn kept(rows: &KeptRows, source: Source, partner: Partner) -> CostLine {
    let ns = Setting::ALL.iter().map(|setting| {
        let name = format!("{}, {}: {}", source.name(), partner_name(partner), setting.name());
        rows.find(&name).map(|[median, ..]| median)
    });
    CostLine { source, partner, ns: ns.collect(), is_noisy: Vec::new() }
}

fn processors(figure: &PerProcessor) -> String {
    let groups: Vec<_> = figure.processors.iter().map(|number| format!("processor {number}")).collect();
    let series: Vec<_> =
        figure.ns.iter().map(|(setting, ns)| (setting.name().to_owned(), ns.clone())).collect();
    let title = format!(
        "All processors busy (thesis, figure 5.3): {}, {}",
        figure.source.name(),
        partner_name(figure.partner)
    );
    plot::bars(&title, &Axis { label: "a message, ns".into(), is_logarithmic: false }, &groups, &series)
}

fn page(report: &Report, lines: &[CostLine], figures: &[PerProcessor], in_short: &[Figure]) -> String {
    let mut page = String::from("# What a log operation costs on the path of a message\n\n");
    let _ = writeln!(page, "Taken with `mete study log-cost` on: {}.\n", report.machine.line());
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not measured.\n\n");
    }
    page.push_str(&figure::markdown(in_short));
    page.push_str(&table(lines));
    page.push_str(&ours(lines));
    page.push_str(&compared(lines, figures));
    page.push_str("![](figure-5.1.svg)\n\n");
    for figure in figures {
        let _ = writeln!(page, "![]({})\n", figure_name(figure));
    }
    page.push_str("All samples' medians and quartiles: `log-cost.csv`.\n");
    page
}

fn table(lines: &[CostLine]) -> String {
    let names = Setting::ALL.map(Setting::name).join(" | ");
    let mut text = format!("| | {names} |\n|---|");
    text.push_str(&"---:|".repeat(Setting::ALL.len()));
    text.push('\n');
    for line in lines {
        let name = format!("{}, {}", partner_name(line.partner), line.source.name());
        row(&mut text, &format!("{name}, ns"), &line.ns);
        row(&mut text, &format!("{name}, %"), &percents(&line.ns));
    }
    for (partner, cycles) in &THESIS {
        row(&mut text, &format!("{}, thesis, cycles", partner_name(*partner)), cycles);
        row(&mut text, &format!("{}, thesis, %", partner_name(*partner)), &percents(cycles));
    }
    text + "\nNative in full, the others as what they add to it; medians.\n\n"
}

fn row(text: &mut String, name: &str, values: &[Option<f64>]) {
    let cells: Vec<_> = values.iter().map(|value| value.map(short).unwrap_or_default()).collect();
    let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
}

/// Each value in percent of the first one; the first column stays empty.
fn percents(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let whole = values.first().copied().flatten();
    std::iter::once(None).chain(values.iter().skip(1).map(|value| Some(100.0 * (*value)? / whole?))).collect()
}

fn value(lines: &[CostLine], source: Source, partner: Partner, setting: Setting) -> Option<f64> {
    let line = lines.iter().find(|line| line.source == source && line.partner == partner)?;
    line.ns.get(place(setting)?).copied().flatten()
}

/// Whether one of these times across address spaces is noisy.
fn are_noisy(lines: &[CostLine], source: Source, settings: &[Setting]) -> bool {
    let mut own =
        lines.iter().filter(|line| line.source == source && line.partner == Partner::OtherAddressSpace);
    own.any(|line| settings.iter().any(|&setting| is_noisy(line, setting)))
}

fn is_noisy(line: &CostLine, setting: Setting) -> bool {
    place(setting).and_then(|place| line.is_noisy.get(place)).is_some_and(|&is_noisy| is_noisy)
}

fn place(setting: Setting) -> Option<usize> {
    Setting::ALL.iter().position(|known| *known == setting)
}

/// The two statements of figure 5.2, across address spaces, with rows from the kernel as in the thesis. The cost of a
/// disabled event is less than the noise, so up to a fiftieth of a message's time counts as nothing.
pub(super) fn compared_figures(lines: &[CostLine], is_complete: bool) -> Vec<Figure> {
    const OFF: (&str, &str) =
        ("LOG thesis, figure 5.2, disabled", "an event that is off costs 2 and -1 cycles");
    const STAMP: (&str, &str) =
        ("LOG thesis, figure 5.2, five entries", "the time stamp is 118 of the row's 275 cycles");
    let of = |source, setting| value(lines, source, Partner::OtherAddressSpace, setting);
    let five = of(Source::Kernel, Setting::On(Logging::Five));
    let stamp = five.zip(of(Source::Kernel, Setting::On(Logging::Four)));
    let native = of(Source::Probes, Setting::Native);
    let why = missing(is_complete);
    vec![
        match of(Source::Probes, Setting::Disabled).zip(native) {
            Some((ns, native)) => {
                let ours = format!("{} ns beside {} ns of a message", short(ns), short(native));
                Figure::new(OFF.0, OFF.1, ours, ns <= native / 50.0).unless_noisy(are_noisy(
                    lines,
                    Source::Probes,
                    &[Setting::Disabled],
                ))
            }
            None => Figure::missing(OFF.0, OFF.1, why),
        },
        match stamp {
            Some((five, four)) => {
                let ours = format!("{} of {} ns", short(five - four), short(five));
                Figure::new(STAMP.0, STAMP.1, ours, five - four >= five / 4.0).unless_noisy(are_noisy(
                    lines,
                    Source::Kernel,
                    &[Logging::Five, Logging::Four].map(Setting::On),
                ))
            }
            None => Figure::missing(STAMP.0, STAMP.1, why),
        },
    ]
}

fn said(value: Option<f64>) -> String {
    value.map_or_else(|| "(not measured)".to_owned(), |ns| format!("{} ns", short(ns)))
}

fn ours(lines: &[CostLine]) -> String {
    let of = |source, setting| said(value(lines, source, Partner::OtherAddressSpace, setting));
    let five = Setting::On(Logging::Five);
    format!(
        "Two tasks on one processor pass a byte to and fro through pipes; one row is logged for each message. \
         \"User probes\" are two probes around the system calls, \"kernel rows\" the whole handler in eBPF at the \
         context switch that the message causes, with the monotonic clock in the fifth entry. Across address \
         spaces a message takes {native} natively; a disabled probe adds {disabled}, a row with all five entries \
         {five_user} from a probe and {five_kernel} from the kernel. A disabled kernel characteristic is not \
         attached at all, so its column shows nothing but the noise of this run, and every other number \
         should be read with that much doubt. \"Routed nowhere\" is what it would cost to switch off by a flag \
         instead of detaching.\n\n",
        native = of(Source::Probes, Setting::Native),
        disabled = of(Source::Probes, Setting::Disabled),
        five_user = of(Source::Probes, five),
        five_kernel = of(Source::Kernel, five),
    )
}

fn compared(lines: &[CostLine], figures: &[PerProcessor]) -> String {
    let five = Setting::On(Logging::Five);
    let share = |source| {
        let (row, native) = (
            value(lines, source, Partner::OtherAddressSpace, five),
            value(lines, source, Partner::OtherAddressSpace, Setting::Native),
        );
        let percent = row.zip(native).map(|(row, native)| 100.0 * row / native);
        percent.map_or_else(|| "(not measured)".to_owned(), |percent| format!("{} %", short(percent)))
    };
    let kernel_row = |entries| value(lines, Source::Kernel, Partner::OtherAddressSpace, Setting::On(entries));
    let stamp = kernel_row(Logging::Five).zip(kernel_row(Logging::Four)).map(|(five, four)| five - four);
    format!(
        "The thesis logs inside the kernel's IPC path, which takes 1053 cycles across address spaces and 480 \
         within one (0.48 and 0.22 µs at 2.2 GHz); its most expensive row adds 275 and 264 cycles, 26 % and \
         55 %, most of it the time-stamp counter. Here the same row adds {user} from a probe and {kernel} from \
         the kernel. The percentages are not comparable as they stand: a message through a Linux pipe, with a \
         wake-up and two system calls, takes several times as long as one of L4, which makes everything that is \
         added look smaller; the absolute numbers are the ones to compare. For a disabled \
         event the thesis measured 2 cycles and -1; here a probe that is off adds {disabled}. Of the thesis' row \
         with a time stamp 118 and 192 cycles are the time stamp; here the fifth entry makes {stamp} of the \
         kernel's row.{scaling}\n\n",
        disabled = said(value(lines, Source::Probes, Partner::OtherAddressSpace, Setting::Disabled)),
        stamp = said(stamp),
        user = share(Source::Probes),
        kernel = share(Source::Kernel),
        scaling = scaling(lines, figures),
    )
}

/// Figure 5.3 in a sentence: what five entries add on each processor while all processors are busy.
fn scaling(lines: &[CostLine], figures: &[PerProcessor]) -> String {
    let Some(figure) = figures.first() else { return String::new() };
    let of = |wanted| figure.ns.iter().find(|(setting, _)| *setting == wanted).map(|(_, ns)| ns);
    let five = Setting::On(Logging::Five);
    let (Some(native), Some(logged)) = (of(Setting::Native), of(five)) else { return String::new() };
    let added = native.iter().zip(logged).map(|(native, logged)| format!("{} ns", short(logged - native)));
    format!(
        " With all processors busy at once (figure 5.3), five entries from {} add {}; with one busy, {}. The \
         thesis' curves for its processors lie on one another.",
        figure.source.name(),
        added.collect::<Vec<_>>().join(" and "),
        said(value(lines, figure.source, figure.partner, five))
    )
}
