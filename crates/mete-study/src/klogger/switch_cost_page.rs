//! The page and the plots of the study `switch-cost`.

use std::fmt::Write as _;

use super::cdf::Distribution;
use super::page;
use super::switch_cost::Costs;
use crate::study::figure::{Figure, is_noisy};
use crate::study::{StudyResults, missing};
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

const FIGURE: &str = "KLogger fig. 7";

pub(super) fn study(report: Report, all: &[Costs]) -> StudyResults {
    let figures = figures(all, report.is_complete);
    let text = format!("{MEASURED}{}", compared(all));
    let plots = ["a-second.svg", "a-switch.svg"];
    let page = page::of("What scheduling costs", &report, &figures, &text, &plots) + &table(all);
    let files = vec![
        ("README.md".to_owned(), page),
        ("a-second.svg".to_owned(), a_second(all)),
        ("a-switch.svg".to_owned(), a_switch(all)),
    ];
    StudyResults { folder: "switch-cost", report, figures, files }
}

pub(super) fn of_trace(report: Report) -> StudyResults {
    StudyResults { folder: "switch-cost", report, figures: Vec::new(), files: Vec::new() }
}

fn axis(label: &str, is_logarithmic: bool) -> Axis {
    Axis { label: label.into(), is_logarithmic }
}

/// The paper's plot: the time spent in a second, by its two parts.
fn a_second(all: &[Costs]) -> String {
    let of = |part: fn(&Costs) -> f64, name: &str| Series {
        name: name.to_owned(),
        points: all.iter().map(|costs| (costs.processes as f64, part(costs))).collect(),
    };
    let sum = |of: &Distribution| of.values().iter().sum::<f64>();
    let choosing = move |costs: &Costs| {
        let (choosing, switching) = (sum(&costs.choosing), sum(&costs.switching));
        if choosing + switching > 0.0 { costs.ms_a_second * choosing / (choosing + switching) } else { 0.0 }
    };
    let points = |part: &dyn Fn(&Costs) -> f64| -> Vec<(f64, f64)> {
        all.iter().map(|costs| (costs.processes as f64, part(costs))).collect()
    };
    let series = [
        of(|costs| costs.ms_a_second, "both"),
        Series { name: "choosing".into(), points: points(&choosing) },
        Series {
            name: "switching".into(),
            points: points(&|costs: &Costs| costs.ms_a_second - choosing(costs)),
        },
    ];
    plot::lines("Scheduling in a second", &axis("processes", true), &axis("ms", false), &series)
}

fn a_switch(all: &[Costs]) -> String {
    let of = |name: &str, part: fn(&Costs) -> &Distribution| Series {
        name: name.to_owned(),
        points: all
            .iter()
            .filter_map(|costs| Some((costs.processes as f64, part(costs).quantile(0.5)?)))
            .collect(),
    };
    let series = [of("choosing", |costs| &costs.choosing), of("switching", |costs| &costs.switching)];
    plot::lines("A switch", &axis("processes", true), &axis("ns, median", false), &series)
}

fn figures(all: &[Costs], is_complete: bool) -> Vec<Figure> {
    let of = |processes| all.iter().find(|costs: &&Costs| costs.processes == processes);
    vec![total(of(1), of(8), is_complete), growth(of(2), of(128), is_complete)]
}

fn total(single: Option<&Costs>, eight: Option<&Costs>, is_complete: bool) -> Figure {
    let paper = "one process pays more than twice what eight pay together (30.2 and 13.24 ms): the kernel \
                 recalculates all priorities at almost each of its switches";
    let (Some(single), Some(eight)) = (single, eight) else {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    };
    let [one, many] = [single, eight].map(|costs| costs.ms_a_second);
    let ours = format!("{} ms a second with one, {} with eight", short(one), short(many));
    unless_disturbed(Figure::new(FIGURE, paper, ours, one > 2.0 * many), [single, eight])
}

fn growth(few: Option<&Costs>, many: Option<&Costs>, is_complete: bool) -> Figure {
    let paper = "choosing the next process takes longer the more there are: a loop goes over all of them";
    let half = |costs: &Costs| costs.choosing.quantile(0.5);
    let halves = few.zip(many).and_then(|(few, many)| Some((half(few)?, half(many)?, [few, many])));
    let Some((few, many, of)) = halves else {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    };
    let ours = format!("{} ns of two, {} ns of 128", short(few), short(many));
    unless_disturbed(Figure::new(FIGURE, paper, ours, many > 2.0 * few), of)
}

/// The figure, without a verdict if one of its measurements was disturbed. Both statements depend on the time of
/// choosing, switch by switch.
fn unless_disturbed(figure: Figure, of: [&Costs; 2]) -> Figure {
    // Other processes must not have disturbed either of the two numbers that are compared.
    let others = of.iter().map(|costs| costs.others).fold(0.0, f64::max);
    let is_noisy = of.iter().any(|costs| is_noisy(costs.choosing.values()));
    page::unless_busy(figure, others).unless_noisy(is_noisy)
}

const MEASURED: &str = "\
So many processes compete for one processor; each does nothing but read the clock, and keeps the two readings between \
which it was away. The scheduler's SCHEDOUT and SCHEDIN lie in that gap, on the same clock: what lies before SCHEDOUT is the \
interrupt, the kernel's accounting and choosing who is next; what lies behind SCHEDIN is switching to it, and the way back. \
Both include what recording two events at each switch costs. (The paper added up the time from each SCHEDOUT to the \
SCHEDIN that follows; its events stood before and after the choice. Today's kernel has one place for both, at which the \
choice is made already, so the programs' own clock tells the rest.)\n\n";

fn compared(all: &[Costs]) -> String {
    let of = |processes, part: fn(&Costs) -> &Distribution| {
        let costs = all.iter().find(|costs| costs.processes == processes);
        let ns = costs.and_then(|costs| part(costs).quantile(0.5));
        ns.map_or_else(|| "(not measured)".to_owned(), |ns| format!("{} ns", short(ns)))
    };
    format!(
        "The paper's kernel, 2.4.29, went over all runnable processes at each choice, and over all processes of the \
         machine where none had time left, which a single process brings about at almost each of its switches: hence a \
         curve like a U with its lowest point at eight. The paper says itself that both loops were gone in 2.6. Today the \
         runnable processes are in a tree: choosing takes {few} with two and {many} with 128, switching {few_back} and \
         {many_back}. A process that is alone is not switched at all but for somebody else's wake-ups, so that what one pays \
         in a second is no point of the same curve; and how many switches there are in a second follows from the kernel's \
         slice and tick, not from the number of processes. Where the median of choosing lies more than a tenth above its \
         least, most of it is something else, as interrupts, the hypervisor or cold caches, and the figures allow no \
         verdict.\n\n",
        few = of(2, |costs| &costs.choosing),
        many = of(128, |costs| &costs.choosing),
        few_back = of(2, |costs| &costs.switching),
        many_back = of(128, |costs| &costs.switching),
    )
}

fn table(all: &[Costs]) -> String {
    let mut text = String::from(
        "\n| processes | switches seen | choosing, ns | its least | switching, ns | both, ms a second | others, % |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for costs in all {
        let half = |of: &Distribution| of.quantile(0.5).map(short).unwrap_or_default();
        let (choosing, switching) = (half(&costs.choosing), half(&costs.switching));
        let least = costs.choosing.quantile(0.0).map(short).unwrap_or_default();
        let (processes, seen) = (costs.processes, costs.choosing.values().len());
        let (both, others) = (short(costs.ms_a_second), short(costs.others));
        let _ = writeln!(
            text,
            "| {processes} | {seen} | {choosing} | {least} | {switching} | {both} | {others} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::figure::Verdict;

    fn costs(processes: usize, choosing: f64, ms_a_second: f64) -> Costs {
        let of = |ns| Distribution::of(vec![ns]);
        Costs { processes, choosing: of(choosing), switching: of(500.0), ms_a_second, others: 0.0, lost: 0 }
    }

    fn verdicts(all: &[Costs]) -> Vec<Verdict> {
        figures(all, true).iter().map(|figure| figure.verdict).collect()
    }

    fn papers() -> [Costs; 4] {
        [costs(1, 900.0, 30.2), costs(2, 200.0, 20.0), costs(8, 400.0, 13.2), costs(128, 9e3, 90.0)]
    }

    #[test]
    fn klog_9_scheduling_as_in_the_paper_agrees_and_others_differ() {
        assert_eq!(verdicts(&papers()), [Verdict::Agrees; 2]);
        let ours = [costs(1, 900.0, 0.1), costs(2, 900.0, 1.0), costs(8, 900.0, 1.0), costs(128, 1e3, 1.0)];
        assert_eq!(verdicts(&ours), [Verdict::Differs; 2]);
        assert_eq!(verdicts(&ours[..1]), [Verdict::NotMeasured; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_switches_most_of_which_take_far_longer_than_the_least() {
        let mut all = papers();
        all[3].choosing = Distribution::of(vec![3_000.0, 9_000.0, 9_100.0]);
        assert_eq!(verdicts(&all), [Verdict::Agrees, Verdict::TooNoisy]);
        all[0].choosing = Distribution::of(vec![800.0, 881.0, 900.0]);
        assert_eq!(verdicts(&all), [Verdict::TooNoisy; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_switches_beside_others() {
        let mut all = papers();
        all[2].others = 10.5;
        assert_eq!(verdicts(&all), [Verdict::TooNoisy, Verdict::Agrees]);
        assert!(figures(&all, true)[0].ours.contains("others used up to 10.5 % of the processors"));
    }
}
