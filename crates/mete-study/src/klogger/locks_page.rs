//! The page and the plots of the study `locks`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::locks::{Curve, Waited, most};
use super::page;
use crate::study::figure::{Figure, Verdict};
use crate::study::{StudyResults, missing};
use mete_measure::report::{Report, quoted};
use mete_measure::statistics::Interval;
use mete_plot::{self as plot, Axis, Series, short};

pub(super) fn study(report: Report, curves: &[Curve]) -> StudyResults {
    let figures = figures(curves, report.is_complete);
    let text = format!("{MEASURED}{}", compared(curves));
    let measured: Vec<_> = curves.iter().filter(|curve| !curve.points.is_empty()).collect();
    let plots: Vec<_> = measured.iter().map(|curve| plot_name(curve.load)).collect();
    let names: Vec<&str> = std::iter::once("spinning.svg").chain(plots.iter().map(String::as_str)).collect();
    let page = page::of("Waiting for the kernel's locks", &report, &figures, &text, &names) + &table(curves);
    let mut files = vec![
        ("README.md".to_owned(), page),
        ("spinning.svg".to_owned(), spinning(curves)),
        ("by-lock.csv".to_owned(), csv(curves)),
    ];
    files.extend(measured.iter().zip(plots.clone()).map(|(curve, name)| (name, by_lock(curve))));
    StudyResults { folder: "locks", report, figures, files }
}

pub(super) fn of_trace(report: Report) -> StudyResults {
    StudyResults { folder: "locks", report, figures: Vec::new(), files: Vec::new() }
}

fn plot_name(load: &str) -> String {
    format!("{}.svg", load.replace(' ', "-"))
}

fn axis(label: &str, is_logarithmic: bool) -> Axis {
    Axis { label: label.into(), is_logarithmic }
}

fn spinning(curves: &[Curve]) -> String {
    let series = |curve: &Curve| Series {
        name: curve.load.to_owned(),
        points: curve.points.iter().map(|(parallel, waited)| (*parallel as f64, waited.spinning)).collect(),
    };
    let series: Vec<_> = curves.iter().map(series).collect();
    let (x, y) = (axis("at once", true), axis("percent of all processors' time", false));
    plot::lines("Spinning on the kernel's locks", &x, &y, &series)
}

fn by_lock(curve: &Curve) -> String {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, percent) in curve.points.iter().flat_map(|(_, waited)| &waited.by_lock) {
        *all.entry(name).or_default() += percent;
    }
    let mut names: Vec<_> = all.into_iter().collect();
    names.sort_by(|one, other| other.1.total_cmp(&one.1));
    let groups: Vec<String> = curve.points.iter().map(|(parallel, _)| parallel.to_string()).collect();
    let of = |name: &str| {
        let values =
            curve.points.iter().map(|(_, waited)| waited.by_lock.get(name).copied().unwrap_or_default());
        (name.to_owned(), values.collect())
    };
    let series: Vec<_> = names.iter().take(6).map(|(name, _)| of(name)).collect();
    let title = format!("Spinning by lock: {}, so many at once", curve.load);
    plot::bars(&title, &axis("percent of all processors' time", false), &groups, &series)
}

fn csv(curves: &[Curve]) -> String {
    let mut text = String::from("load,at_once,lock,percent\n");
    for curve in curves {
        for (parallel, waited) in &curve.points {
            for (lock, percent) in &waited.by_lock {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{},{parallel},{},{percent:.6}", curve.load, quoted(lock));
            }
        }
    }
    text
}

/// The paper's highest degree of parallelism.
const MOST: usize = 32;

fn figures(curves: &[Curve], is_complete: bool) -> Vec<Figure> {
    let of = |load: &str| curves.iter().find(|curve| curve.load == load);
    let others = curves.iter().flat_map(|curve| &curve.points).map(|(_, waited)| waited.others);
    let others = others.fold(0.0, f64::max);
    let all = [
        most_spinning(of("web server"), of("make"), is_complete),
        grows(curves, is_complete),
        network(of("network"), is_complete),
        Figure::missing(
            "KLogger fig. 2",
            "the network load spins for no more because its link of 100 Mb/s is full",
            "the loopback device is no link that could be full",
        ),
        big(of("make"), is_complete),
    ];
    all.map(|figure| page::unless_busy(figure, others)).into()
}

/// The result with the paper's highest degree of parallelism; `None` if the run was stopped before.
fn last(curve: Option<&Curve>) -> Option<&Waited> {
    let (_, waited) = curve?.points.iter().find(|(parallel, _)| *parallel == MOST)?;
    Some(waited)
}

fn most_spinning(web: Option<&Curve>, make: Option<&Curve>, is_complete: bool) -> Figure {
    let (figure, paper) = (
        "KLogger fig. 2",
        "at 32 at once the web server spins for more than 20 % of the time, make for more than 15 %",
    );
    let said: Vec<_> = [("web server", last(web)), ("make", last(make))]
        .into_iter()
        .filter_map(|(name, point)| Some((name, point?.spinning)))
        .collect();
    let [(_, web), (_, make)] = said[..] else {
        return Figure::missing(figure, paper, partly(&said, is_complete));
    };
    let ours = format!("web server {} %, make {} %", short(web), short(make));
    Figure::new(figure, paper, ours, web > 20.0 && make > 15.0)
}

/// What the other loads show, where one of several loads is missing.
fn partly(said: &[(&str, f64)], is_complete: bool) -> String {
    let parts = said.iter().map(|(name, percent)| format!("{name} {} %; ", short(*percent)));
    parts.collect::<String>() + missing(is_complete)
}

/// The factor by which spinning has to grow from 1 to 32 at once. In the paper it more than doubles from four on.
const GROWS: f64 = 2.0;

fn grows(curves: &[Curve], is_complete: bool) -> Figure {
    let (figure, paper) = ("KLogger fig. 2", "spinning grows with the number of processes");
    let ends =
        curves.iter().filter_map(|curve| Some((curve.load, &curve.points.first()?.1, last(Some(curve))?)));
    let ends: Vec<_> = ends.collect();
    if ends.is_empty() {
        return Figure::missing(figure, paper, missing(is_complete));
    }
    let ours = ends
        .iter()
        .map(|(load, few, many)| format!("{load} {} to {} %", short(few.spinning), short(many.spinning)));
    let verdict =
        ends.iter().map(|(_, few, many)| has_grown(few, many)).max_by_key(|verdict| match verdict {
            Verdict::Agrees => 0,
            Verdict::TooNoisy => 1,
            Verdict::Differs | Verdict::NotMeasured => 2,
        });
    let ours = ours.collect::<Vec<_>>().join(", ");
    Figure { verdict: verdict.unwrap_or(Verdict::NotMeasured), ..Figure::new(figure, paper, ours, true) }
}

/// The verdict on growth, by the intervals of the medians over the parts of the time.
fn has_grown(few: &Waited, many: &Waited) -> Verdict {
    let [few, many] = [few, many].map(|waited| Interval::of_median(&waited.parts));
    match (few, many) {
        (Some(few), Some(many)) if many.low > GROWS * few.high => Verdict::Agrees,
        (Some(few), Some(many)) if many.high <= GROWS * few.low => Verdict::Differs,
        _ => Verdict::TooNoisy,
    }
}

fn big(make: Option<&Curve>, is_complete: bool) -> Figure {
    let (figure, paper) =
        ("KLogger fig. 3", "nearly all of make's spinning is on one lock, the big kernel lock");
    let found = last(make)
        .filter(|waited| waited.spinning > 0.0)
        .and_then(|waited| Some((waited, most(waited).into_iter().next()?)));
    let Some((waited, (lock, percent))) = found else {
        return Figure::missing(figure, paper, missing(is_complete));
    };
    let part = 100.0 * percent / waited.spinning;
    let ours = format!("there is no such lock any more; at {MOST} at once {} % is on {lock}", short(part));
    Figure::new(figure, paper, ours, false)
}

/// The paper's “little more than 6 %” (§8.1); then the factor by which our value may be more or less.
const NETWORK_PERCENT: f64 = 6.0;
const NETWORK_FACTOR: f64 = 2.0;

fn network(network: Option<&Curve>, is_complete: bool) -> Figure {
    let (figure, paper) =
        ("KLogger fig. 2", "at 32 at once the network load spins for little more than 6 % of the time");
    let Some(Waited { spinning, .. }) = last(network) else {
        return Figure::missing(figure, paper, missing(is_complete));
    };
    let alike = NETWORK_PERCENT / NETWORK_FACTOR..=NETWORK_PERCENT * NETWORK_FACTOR;
    let ours = format!("{} % (half to twice as much would agree)", short(*spinning));
    Figure::new(figure, paper, ours, alike.contains(spinning))
}

const MEASURED: &str = "\
Three loads run with 1 to 32 at once while the locking schema records each wait for a lock of the kernel on all processors: \
`make -jN`, which compiles this project's own handler in C again and again; N pairs of sockperf's that send 100 bytes \
there and back over TCP on the loopback device, as Netperf did between machines with 200 back; and nginx, which serves one C file to N clients of \
ab on this machine (the paper's Apache ran a Perl script for each request). What spins uses a processor for nothing and is \
what the paper counts; who sleeps for a lock leaves the processor to others and is counted as a wait only. A lock that is \
free costs nothing to watch and is not seen, so these are waits, not the cost of locking. What others use of the processors \
is looked at for a fifth of a second before each load starts, not beside it.\n\n";

fn compared(curves: &[Curve]) -> String {
    let said = |load: &str, parallel: usize| {
        let curve = curves.iter().find(|curve| curve.load == load);
        let point = curve.and_then(|curve| curve.points.iter().find(|(at_once, _)| *at_once == parallel));
        point.map_or_else(
            || "(not measured)".to_owned(),
            |(_, waited)| format!("{} %", short(waited.spinning)),
        )
    };
    format!(
        "The paper's kernel had one big lock that nearly every call into a file system took: on four processors make spun \
         for 1 to 3 % of the time with four jobs and for more than 15 % with 32, the web server for 9 and 20 %. That lock is \
         gone, and what is left is spread over locks of single files, sockets, run queues and memory: here make spins for \
         {make_few} with four jobs and {make_many} with 32, the network load for {net_few} and {net_many}, the web server for \
         {web_few} and {web_many}. (The paper's network load stayed at a little more than 6 % with 32 because its link was full; there is \
         no such limit here.) How often two processors meet at a lock depends on how many processors there are: with \
         few of them there is little to wait for, whatever the kernel. On a virtual machine a wait may be far longer than \
         any lock is held, where the hypervisor takes the processor away from its holder. Locks have the kernel's names where it \
         tells them; this needs a kernel with all its symbols, and where it has them not, and for locks in memory that is given \
         out while it runs, there is the kind of lock alone.\n\n",
        make_few = said("make", 4),
        make_many = said("make", 32),
        net_few = said("network", 4),
        net_many = said("network", 32),
        web_few = said("web server", 4),
        web_many = said("web server", 32),
    )
}

fn table(curves: &[Curve]) -> String {
    let mut text = String::from(
        "\n| load | at once | spinning, % | waits a second | spun on most |\n|---|---:|---:|---:|---|\n",
    );
    for curve in curves {
        for (parallel, waited) in &curve.points {
            let locks = most(waited)
                .into_iter()
                .take(3)
                .map(|(lock, percent)| format!("{lock} {} %", short(percent)));
            let locks = locks.collect::<Vec<_>>().join(", ");
            let (spinning, waits) = (short(waited.spinning), short(waited.waits));
            let _ = writeln!(text, "| {} | {parallel} | {spinning} | {waits} | {locks} |", curve.load);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::figure::Verdict::{self, Agrees, Differs, NotMeasured, TooNoisy};

    fn curve(load: &'static str, percents: [f64; 2]) -> Curve {
        let waited = |spinning| Waited {
            spinning,
            parts: vec![spinning; 10],
            by_lock: BTreeMap::from([("spinlocks".to_owned(), spinning)]),
            ..Waited::default()
        };
        Curve { load, points: vec![(1, waited(percents[0])), (32, waited(percents[1]))] }
    }

    fn verdicts(curves: &[Curve]) -> Vec<Verdict> {
        figures(curves, true).iter().map(|figure| figure.verdict).collect()
    }

    fn papers() -> [Curve; 3] {
        [curve("make", [0.1, 16.0]), curve("network", [0.1, 6.2]), curve("web server", [1.0, 21.0])]
    }

    #[test]
    fn klog_9_locks_as_in_the_paper_agree_but_for_the_lock_that_is_gone() {
        assert_eq!(verdicts(&papers()), [Agrees, Agrees, Agrees, NotMeasured, Differs]);
        let ours = [curve("make", [0.2, 0.1]), curve("network", [0.1, 13.0])];
        assert_eq!(verdicts(&ours), [NotMeasured, Differs, Differs, NotMeasured, Differs]);
        assert_eq!(verdicts(&[]), [NotMeasured; 5]);
    }

    #[test]
    fn klog_9_a_network_load_that_spins_for_far_less_than_the_papers_differs_as_well() {
        let of = |percent| verdicts(&[curve("network", [0.01, percent])])[2];
        assert_eq!(
            [1.12, 2.9, 3.0, 6.0, 12.0, 12.1].map(of),
            [Differs, Differs, Agrees, Agrees, Agrees, Differs]
        );
    }

    #[test]
    fn klog_9_spinning_grows_only_where_it_doubles_under_every_load() {
        let of = |make: [f64; 2]| verdicts(&[curve("make", make), curve("network", [0.1, 6.0])])[1];
        assert_eq!(
            [[1.0, 2.1], [1.0, 2.0], [1.0, 1.0], [0.0, 0.0]].map(of),
            [Agrees, Differs, Differs, Differs]
        );
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_growth_where_parts_of_the_time_differ_by_more() {
        let mut curves = papers();
        let noisy = [0.1, 9.0].into_iter().cycle().take(10).collect();
        curves[0].points[0].1.parts = noisy;
        assert_eq!(verdicts(&curves)[1], TooNoisy);
        curves[1].points[1].1.parts = vec![0.1; 10];
        assert_eq!(verdicts(&curves)[1], Differs, "what is sure of one load counts");
    }

    #[test]
    fn klog_9_a_run_that_ended_before_32_at_once_has_no_verdict_on_it() {
        let mut curves = papers();
        for curve in &mut curves {
            curve.points.truncate(1);
        }
        assert_eq!(verdicts(&curves), [NotMeasured; 5]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_spinning_beside_others() {
        let mut curves = papers();
        curves[1].points[0].1.others = 10.5;
        assert_eq!(verdicts(&curves), [TooNoisy, TooNoisy, TooNoisy, NotMeasured, TooNoisy]);
    }
}
