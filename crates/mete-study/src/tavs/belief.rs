//! Programs like those of a desktop: what they gain by boosting and by inheritance (figures 16, 17(a) and 19), and
//! the degrees of belief in their tasks (figures 17(b) and 18; TAVS paper, §5.4).

use mete_sim::scenario::Shipped;

use super::case::{Case, Outcome};
use super::curve::{Curve, beliefs};
use super::plan::{Measure, Plan, RanCases, claim};
use super::{BASELINE, TAVS, axis, mean_ms, quantile_ms, scenario};
use crate::study::figure::Figure;
use mete_plot::short;
use mete_plot::{self as plot, Series};

/// A program beside one that computes, with the names of its cases.
struct Pair {
    scenario: Shipped,
    io: &'static str,
    cpu: &'static str,
    baseline: &'static str,
    tavs: &'static str,
    alone: &'static str,
    inherits: &'static str,
}

macro_rules! pair {
    ($io:literal, $cpu:literal) => {
        Pair {
            scenario: scenario!("tavs-belief", $io),
            io: $io,
            cpu: $cpu,
            baseline: concat!($io, " + ", $cpu, ", baseline"),
            tavs: concat!($io, " + ", $cpu, ", TAVS"),
            alone: concat!($io, ", baseline"),
            inherits: concat!($io, ", priority inheritance"),
        }
    };
}

const PAIRS: [Pair; 6] = [
    pair!("grep", "cc1"),
    pair!("find", "bzip2"),
    pair!("wget", "bzip2"),
    pair!("smb", "cc1"),
    pair!("acrobat", "mencoder"),
    pair!("svn", "mencoder"),
];
const COMPILE: [&str; 2] = ["editor + cc1, baseline", "editor + cc1, TAVS"];
const BROWSE: [&str; 2] = ["editor + browser, baseline", "editor + browser, TAVS"];
/// A browser that pauses after each picture, as if it had the time.
const PAUSES: [&str; 2] = ["editor + browser that pauses, baseline", "editor + browser that pauses, TAVS"];
const PAUSING: &str =
    "guest.mixed.task.browser.program=[{ compute_ms = { uniform = [10, 30] } }, { sleep_ms = 30 }, \"done\"]";
/// The same in a guest whose kernel prefers the task that has used the processor least.
const PREFERS: [&str; 2] = [
    "editor + browser that pauses, fair kernel, baseline",
    "editor + browser that pauses, fair kernel, TAVS",
];
const FAIR: &str = "guest.mixed.scheduler={ fair = { latency_ms = 20, least_ms = 4 } }";
/// The degree of belief above which a task counts as I/O-bound (§5).
const THRESHOLD: f64 = 20.0;
/// The time after which beliefs have settled.
const SETTLED_S: f64 = 20.0;

const RATE: Measure = Measure {
    name: "work of the I/O-bound program",
    unit: "units/s",
    of: |outcome| (!edits(outcome)).then(|| outcome.a_second(outcome.probe.done)),
};
const RESPONSE: Measure =
    Measure { name: "mean response", unit: "ms", of: |outcome| mean_ms(&outcome.probe.responses) };
const MEDIAN: Measure =
    Measure { name: "median response", unit: "ms", of: |outcome| quantile_ms(&outcome.probe.responses, 0.5) };
const OWN: Measure = Measure {
    name: "processor time of the mixed domain",
    unit: "%",
    of: |outcome| outcome.got_percent(outcome.client),
};
const OTHERS: Measure =
    Measure { name: "of a domain that computes", unit: "%", of: |outcome| outcome.got_by_each("hog") };

fn edits(outcome: &Outcome) -> bool {
    COMPILE.iter().chain(&BROWSE).chain(&PAUSES).chain(&PREFERS).any(|line| *line == outcome.line)
}

pub(super) fn plan() -> Plan {
    let browser = scenario!("tavs-belief", "edit-browse");
    let cases = editing(COMPILE, scenario!("tavs-belief", "edit-compile"), &[])
        .into_iter()
        .chain(editing(BROWSE, browser, &[]))
        .chain(editing(PAUSES, browser, &[PAUSING]))
        .chain(editing(PREFERS, browser, &[PAUSING, FAIR]))
        .chain(PAIRS.iter().flat_map(Pair::cases));
    Plan {
        folder: "tavs-belief",
        title: "Programs of a desktop, and what is believed of them",
        cases: cases.collect(),
        seeds: 20,
        measures: &[RATE, RESPONSE, MEDIAN, OWN, OTHERS],
        figures,
        plots,
        prose: PROSE,
    }
}

fn editing([baseline, tavs]: [&'static str; 2], scenario: Shipped, settings: &[&str]) -> [Case; 2] {
    let case = |line, policy| Case {
        line,
        x: None,
        scenario,
        policy,
        settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
        watched: ("mixed", "editor"),
    };
    [case(baseline, "credit"), case(tavs, "credit-tavs")]
}

impl Pair {
    fn cases(&self) -> [Case; 4] {
        // The program that computes does only one round, which ends within about a second.
        let alone = format!("guest.mixed.task.{}.times=1", self.cpu);
        let inherits = |on: bool| vec![alone.clone(), format!("policy.credit.priority_inheritance={on}")];
        [
            self.case(self.baseline, "credit", Vec::new()),
            self.case(self.tavs, "credit-tavs", Vec::new()),
            self.case(self.alone, "credit", inherits(false)),
            self.case(self.inherits, "credit", inherits(true)),
        ]
    }

    fn case(&self, line: &'static str, policy: &'static str, settings: Vec<String>) -> Case {
        Case { line, x: None, scenario: self.scenario, policy, settings, watched: ("mixed", self.io) }
    }

    /// The degrees of belief in the pair's tasks, with IOthreshold as in the scenario.
    fn beliefs(&self) -> Option<Vec<Curve>> {
        beliefs(&self.case(self.tavs, "credit-tavs", Vec::new()), &[]).ok()
    }

    /// How much less time the program takes for the same work, in percent.
    fn gain(&self, found: &RanCases, [before, after]: [&str; 2]) -> Option<f64> {
        let (before, after) = (found.mean(before, None, &RATE)?, found.mean(after, None, &RATE)?);
        Some(100.0 * (1.0 - before / after))
    }
}

fn figures(found: &RanCases) -> Vec<Figure> {
    let mut figures = vec![
        edit(found, "TAVS fig. 16(a)", "compilation", COMPILE),
        edit(found, "TAVS fig. 16(b)", "web browsing", BROWSE),
        edit(found, "TAVS fig. 16(b)", "web browsing with a pause after each picture", PAUSES),
        edit(
            found,
            "TAVS fig. 16(b)",
            "such browsing, in a guest that prefers who used least, as 3.3 assumes",
            PREFERS,
        ),
    ];
    figures.extend(mixes(found));
    figures.push(believed(found));
    figures.extend(CHANGES.iter().map(|change| change.figure(found)));
    figures.extend(wget_by_packet().map(|change| change.figure(found)));
    figures.push(inheritance(found));
    figures
}

fn edit(found: &RanCases, figure: &str, beside: &str, lines: [&str; 2]) -> Figure {
    let paper = format!("TAVS improves the response time of editing beside {beside}");
    let means = lines.map(|line| found.mean(line, None, &RESPONSE));
    let medians = lines.map(|line| found.mean(line, None, &MEDIAN));
    let ours = match (means, medians) {
        ([Some(before), Some(after)], [Some(_), Some(median)]) => {
            let (b, a, m) = (short(before), short(after), short(median));
            Some((format!("mean {b} ms, with TAVS {a} ms (median {m} ms)"), after < before / 2.0))
        }
        _ => None,
    };
    claim(figure, &paper, ours)
}

fn mixes(found: &RanCases) -> [Figure; 2] {
    let gains = PAIRS.iter().map(|pair| pair.gain(found, [pair.baseline, pair.tavs]));
    let gains = gains.collect::<Option<Vec<f64>>>();
    let uneven = PAIRS.iter().map(|pair| {
        let (own, others) = (found.mean(pair.tavs, None, &OWN)?, found.mean(pair.tavs, None, &OTHERS)?);
        Some(100.0 * (own / others - 1.0).abs())
    });
    let most = uneven.collect::<Option<Vec<f64>>>().map(|off| off.into_iter().fold(0.0, f64::max));
    [
        claim(
            "TAVS fig. 17(a)",
            "each I/O-bound program takes less time beside one that computes",
            gains.map(|gains| (format!("{} less", listed(&gains)), gains.iter().all(|gain| *gain > CHANCE))),
        ),
        claim(
            "TAVS fig. 17(a)",
            "the processor is still divided evenly",
            most.map(|most| {
                let ours = format!("mixed domains are off by at most {} % of what others have", short(most));
                (ours, most < 5.0)
            }),
        ),
    ]
}

/// The values of all pairs as text, in percent.
fn listed(values: &[f64]) -> String {
    let each = PAIRS.iter().zip(values).map(|(pair, value)| format!("{} {} %", pair.io, short(*value)));
    each.collect::<Vec<_>>().join(", ")
}

fn believed(found: &RanCases) -> Figure {
    let paper = "beliefs tell I/O-bound tasks from others in each mix";
    if found.0.is_empty() {
        return claim("TAVS fig. 17(b)", paper, None);
    }
    let rights: Option<Vec<f64>> = PAIRS.iter().map(|pair| Some(rightly(pair, &pair.beliefs()?))).collect();
    let ours = rights.map(|rights| {
        let ours = format!("right after 20 s: {} of the time", listed(&rights));
        (ours, rights.iter().all(|right| *right > 95.0))
    });
    claim("TAVS fig. 17(b)", paper, ours)
}

/// The percentage of the time for which the tasks of a pair are classified rightly; of the two tasks, the smaller
/// value.
fn rightly(pair: &Pair, curves: &[Curve]) -> f64 {
    let right = |curve: &Curve| curve.part_above(THRESHOLD, SETTLED_S..f64::INFINITY);
    let parts =
        curves.iter().map(|curve| if curve.task == pair.io { right(curve) } else { 1.0 - right(curve) });
    100.0 * parts.fold(1.0, f64::min)
}

/// A case in which IOthreshold is raised after 20 s (figure 18).
struct Change {
    pair: Pair,
    from_ms: &'static str,
    to_ms: f64,
    /// Another setting and its name, if there is one.
    setting: Option<(&'static str, &'static str)>,
}

const CHANGES: [Change; 2] = [
    Change { pair: pair!("wget", "bzip2"), from_ms: "0.1", to_ms: 0.5, setting: None },
    Change { pair: pair!("svn", "mencoder"), from_ms: "0.5", to_ms: 2.0, setting: None },
];

/// The time that a packet takes wget. The paper does not give it; these values range from only copying a packet to
/// writing it to a file.
const WGET_TAKES: [(&str, &str); 4] = [
    ("program=[{ receive = { port = 7 } }, { compute_us = 20 }, \"done\"]", "20 us a packet"),
    ("program=[{ receive = { port = 7 } }, { compute_us = 30 }, \"done\"]", "30 us a packet"),
    ("program=[{ receive = { port = 7 } }, { compute_us = 40 }, \"done\"]", "40 us a packet"),
    ("program=[{ receive = { port = 7 } }, { compute_us = 80 }, \"done\"]", "80 us a packet"),
];

fn wget_by_packet() -> impl Iterator<Item = Change> {
    WGET_TAKES.into_iter().map(|setting| Change {
        pair: pair!("wget", "bzip2"),
        from_ms: "0.1",
        to_ms: 0.5,
        setting: Some(setting),
    })
}

impl Change {
    fn beliefs(&self) -> Option<Vec<Curve>> {
        let threshold = format!("guest.mixed.io_threshold_ms={}", self.from_ms);
        let settings = [threshold]
            .into_iter()
            .chain(self.setting.map(|(setting, _)| format!("guest.mixed.task.{}.{setting}", self.pair.io)))
            .collect();
        let case = self.pair.case(self.pair.tavs, "credit-tavs", settings);
        beliefs(&case, &[(SETTLED_S, self.to_ms)]).ok()
    }

    fn figure(&self, found: &RanCases) -> Figure {
        let Change { pair, from_ms, to_ms, setting } = self;
        let (io, cpu) = (pair.io, pair.cpu);
        let where_so = setting.map_or(String::new(), |(_, called)| format!(" ({called})"));
        let paper = format!("{io} is not told from {cpu} at {from_ms} ms, and is at {to_ms} ms{where_so}");
        if found.0.is_empty() {
            return claim("TAVS fig. 18", &paper, None);
        }
        claim("TAVS fig. 18", &paper, self.beliefs().and_then(|curves| told(pair, &curves)))
    }

    fn plot(&self) -> (String, String) {
        let Change { pair, from_ms, to_ms, .. } = self;
        let title = format!("Figure 18: {} and {}, {from_ms} ms, from 20 s on {to_ms} ms", pair.io, pair.cpu);
        (format!("figure-18-{}.svg", pair.io), plot(&title, self.beliefs()))
    }
}

/// Whether a change of IOthreshold after 20 s tells the tasks apart.
fn told(pair: &Pair, curves: &[Curve]) -> Option<(String, bool)> {
    let io = curves.iter().find(|curve| curve.task == pair.io)?;
    let cpu = curves.iter().find(|curve| curve.task == pair.cpu)?;
    let before = io.part_above(THRESHOLD, 0.0..SETTLED_S);
    let after = io.part_above(THRESHOLD, 2.0 * SETTLED_S..f64::INFINITY);
    let wrong = cpu.part_above(THRESHOLD, 2.0 * SETTLED_S..f64::INFINITY);
    let lasting = io
        .above_from(THRESHOLD, SETTLED_S)
        .map_or("never".to_owned(), |at_s| format!("{} s after the change", short(at_s - SETTLED_S)));
    let ours = format!(
        "above {THRESHOLD} for {} % of the time before and {} % from 40 s on, first {lasting}",
        short(100.0 * before),
        short(100.0 * after)
    );
    Some((ours, before < 0.2 && after > 0.8 && wrong < 0.05))
}

/// A difference below this percentage may be due to chance.
const CHANCE: f64 = 5.0;
/// A gain below this percentage is a small one.
const LITTLE: f64 = 20.0;

fn inheritance(found: &RanCases) -> Figure {
    let gains = PAIRS.iter().map(|pair| pair.gain(found, [pair.alone, pair.inherits]));
    let ours = gains.collect::<Option<Vec<f64>>>().map(|gains| {
        let network = gains[2].min(gains[3]);
        let windows = gains[4].max(gains[5]);
        (format!("{} less", listed(&gains)), network > 10.0 && windows < LITTLE)
    });
    let paper = "inheritance helps network-intensive programs most, and Windows' programs little";
    claim("TAVS fig. 19", paper, ours)
}

fn plots(found: &RanCases) -> Vec<(String, String)> {
    if found.0.is_empty() {
        return Vec::new();
    }
    let mut plots = vec![gains(found), inherited(found)];
    for (lines, name) in [(COMPILE, "figure-16a"), (BROWSE, "figure-16b")] {
        let mut curves = found.curves(|outcome| &outcome.probe.responses);
        curves.retain(|curve| lines.contains(&curve.name.as_str()));
        let title = format!("Figure 16: text editing, {}", lines[0].trim_end_matches(", baseline"));
        let (x, y) = (axis("response time, ms"), axis("responses, %"));
        plots.push((format!("{name}.svg"), plot::lines(&title, &x, &y, &curves)));
    }
    plots.extend(PAIRS.iter().map(|pair| {
        let title = format!("Figure 17(b): {} and {}", pair.io, pair.cpu);
        (format!("figure-17b-{}.svg", pair.io), plot(&title, pair.beliefs()))
    }));
    plots.extend(CHANGES.iter().map(Change::plot));
    plots
}

fn plot(title: &str, curves: Option<Vec<Curve>>) -> String {
    let mut series: Vec<Series> = curves.unwrap_or_default().into_iter().map(Series::from).collect();
    let end = series.iter().flat_map(|series| &series.points).map(|point| point.0).fold(0.0, f64::max);
    series.push(Series { name: "BelThreshold".into(), points: vec![(0.0, THRESHOLD), (end, THRESHOLD)] });
    plot::lines(title, &axis("time, s"), &axis("degree of belief"), &series)
}

fn gains(found: &RanCases) -> (String, String) {
    let title = "Figure 17(a): work of I/O-bound programs, of that under the baseline";
    let series = vec![
        relative(found, BASELINE, |pair| [pair.baseline, pair.baseline]),
        relative(found, TAVS, |pair| [pair.baseline, pair.tavs]),
    ];
    ("figure-17a.svg".into(), compared(title, &series))
}

fn inherited(found: &RanCases) -> (String, String) {
    let title = "Figure 19: work of I/O-bound programs, of that under the baseline";
    let series = vec![
        relative(found, BASELINE, |pair| [pair.alone, pair.alone]),
        relative(found, "priority inheritance", |pair| [pair.alone, pair.inherits]),
    ];
    ("figure-19.svg".into(), compared(title, &series))
}

fn relative(found: &RanCases, name: &str, lines: fn(&Pair) -> [&'static str; 2]) -> (String, Vec<f64>) {
    let values = PAIRS.iter().filter_map(|pair| {
        let [before, after] = lines(pair);
        Some(100.0 * found.mean(after, None, &RATE)? / found.mean(before, None, &RATE)?)
    });
    (name.to_owned(), values.collect())
}

fn compared(title: &str, series: &[(String, Vec<f64>)]) -> String {
    plot::bars(title, &axis("work, %"), &PAIRS.map(|pair| pair.io.to_owned()), series)
}

const PROSE: [&str; 2] = [
    "Programs of a desktop, each beside one that computes, and five domains that compute. All are stand- \
     ins, a few lines in the scenario files, for how such programs take turns with a device: grep and \
     find read and compute shortly, wget and the copy from a file server take a stream, the document \
     reader and the graphical client of a repository also draw for up to two milliseconds; a compiler, a \
     compressor and an encoder read and compute for long. The editor's keys come over the network. TAVS \
     helps each but the graphical client, whose gain is within its spread, and holds each task for what \
     it is. Beside domains that compute, without anything in their own, inheritance helps what is \
     network-intensive (figure 19).",
    "Figure 18 comes out for wget where a packet takes it 30 or 40 us: a turn counts as short if it is \
     within IOthreshold, so wget is not told at 0.1 ms and is at 0.5 ms only where its turns are between. \
     What a packet takes it is not in the paper; the stand-in takes 5 us, and most turns are one or two \
     packets long. With 80 us a turn of a few packets is too long for 0.5 ms as well. The graphical \
     client is told at 2 ms, as in the paper, and at 0.5 ms for a part of the time, too: it draws after \
     sixteen packets, and a turn in which fewer come is a short one. In figure 16(b) the animations are \
     always late with their next picture. If they pause after each (the third pair of cases) TAVS gains \
     little, for the reason that figure 13 has, too: when a key and the browser's timer are pending \
     together, the priority kernel, in which both have the same bonus, resumes the browser, whose address \
     space is still loaded, and the host sees no switch by which to revoke the boost, which ends after 10 \
     ms. In a guest that prefers who has used least (the fourth pair) TAVS gains as in the paper. The \
     graphical client gains much from inheritance here, which the paper's Windows programs do not: its \
     guest is not emulated, so that it takes less of the processor. What is written to disks, graphics \
     and hardware-assisted guests are not simulated. Beliefs are those of seed 1.",
];
