//! A domain that receives a stream loses computation, because the driver that it wakes preempts it, unless the domain
//! keeps its place in the run queue: figures 8, 9 and 15 (TAVS paper, §4.1.2, §5.3).

use super::case::{Case, Outcome};
use super::plan::{Measure, Plan, RanCases, claim, mean_of};
use super::starvation::THROUGHPUT;
use super::{BASELINE, axis, mean_ms, scenario};
use crate::study::figure::Figure;
use mete_plot as plot;
use mete_plot::short;

const KEEP: &str = "KeepOnRunQ";

/// Without and with KeepOnRunQ.
const TEXT: [&str; 2] = ["text, baseline", "text, KeepOnRunQ"];
const IMAGE: [&str; 2] = ["image, baseline", "image, KeepOnRunQ"];
/// The pages with their sizes in KiB: the paper's 8.6 and 300 KB.
const PAGES: [([&str; 2], &str); 2] = [(TEXT, "8.4"), (IMAGE, "293")];

const OWN: Measure = Measure {
    name: "processor time of the domain with the stream",
    unit: "%",
    of: |outcome| outcome.got_percent(outcome.client),
};
const OTHERS: Measure =
    Measure { name: "of a domain without", unit: "%", of: |outcome| outcome.got_by_each("hog") };
const DRIVER: Measure =
    Measure { name: "of the driver", unit: "%", of: |outcome| outcome.got_by_each("driver") };
/// A unit of computation is 10 ms long.
const COMPUTED: Measure = Measure {
    name: "computation beside the stream",
    unit: "units/s",
    of: |outcome| streams(outcome).then(|| outcome.a_second(outcome.probe.done_beside)),
};
const COMPUTED_ELSEWHERE: Measure = Measure {
    name: "computation of a domain without",
    unit: "units/s",
    of: |outcome| outcome.done_by_each("hog"),
};

const FETCH: Measure = Measure {
    name: "mean time to fetch a page",
    unit: "ms",
    of: |outcome| mean_ms(&outcome.probe.responses),
};
const STREAM: Measure = Measure {
    name: "throughput",
    unit: "Mbit/s",
    of: |outcome| if streams(outcome) { (THROUGHPUT.of)(outcome) } else { None },
};

fn streams(outcome: &Outcome) -> bool {
    [BASELINE, KEEP].contains(&outcome.line)
}

pub(super) fn plan() -> Plan {
    let stream = [(BASELINE, false), (KEEP, true)].map(|(line, keeps)| case(line, keeps));
    let web =
        PAGES.iter().flat_map(|&([baseline, keep], kib)| [web(baseline, kib, false), web(keep, kib, true)]);
    let cases = stream.into_iter().chain(web).collect();
    Plan {
        folder: "tavs-keep",
        title: "Computation lost to the driver",
        cases,
        seeds: 40,
        measures: &[OWN, OTHERS, DRIVER, COMPUTED, COMPUTED_ELSEWHERE, STREAM, FETCH],
        figures,
        plots,
        prose: PROSE,
    }
}

fn case(line: &'static str, keeps: bool) -> Case {
    Case {
        line,
        x: None,
        scenario: scenario!("tavs-keep", "stream"),
        policy: "credit",
        settings: vec![format!("policy.credit.keep_on_run_queue={keeps}")],
        watched: ("mixed", "reader"),
    }
}

/// A case in which a page of `kib` KiB is fetched.
fn web(line: &'static str, kib: &str, keeps: bool) -> Case {
    let case = case(line, keeps);
    let size = format!("remote.web.serves.kib={kib}");
    Case {
        scenario: scenario!("tavs-keep", "web"),
        settings: case.settings.iter().cloned().chain([size]).collect(),
        watched: ("browser", "browser"),
        ..case
    }
}

fn figures(found: &RanCases) -> Vec<Figure> {
    let mut figures = usage(found).to_vec();
    figures.extend(losses(found));
    figures.push(pages(found));
    figures
}

/// Figures 9(a) and 15(a).
fn usage(found: &RanCases) -> [Figure; 2] {
    let judge = |line, holds: fn(f64) -> bool| {
        let (own, others) = (found.mean(line, None, &OWN)?, found.mean(line, None, &OTHERS)?);
        Some((format!("{} % against {} %", short(own), short(others)), holds(own / others)))
    };
    [
        claim(
            "TAVS fig. 9(a)",
            "a domain with a stream gets less processor time than domains that only compute",
            judge(BASELINE, |part| part < 0.9),
        ),
        claim(
            "TAVS fig. 15(a)",
            "with KeepOnRunQ all domains have the same processor time",
            judge(KEEP, |part| (part - 1.0).abs() < 0.05),
        ),
    ]
}

/// Figures 9(b) and 15(b).
fn losses(found: &RanCases) -> [Figure; 2] {
    let mean = |line, measure: &Measure| found.mean(line, None, measure);
    let lost = |line| Some(100.0 * (1.0 - mean(line, &COMPUTED)? / mean(line, &COMPUTED_ELSEWHERE)?));
    [
        claim(
            "TAVS fig. 9(b)",
            "its task loses up to half of its computation",
            lost(BASELINE).map(|lost| (format!("it loses {} %", short(lost)), (25.0..=75.0).contains(&lost))),
        ),
        claim(
            "TAVS fig. 15(b)",
            "KeepOnRunQ closes the gap: at most half of the loss remains",
            lost(BASELINE).zip(lost(KEEP)).map(|(before, after)| {
                let ours = format!("{} % is lost, without it {} %", short(after), short(before));
                (ours, after < before / 2.0)
            }),
        ),
    ]
}

fn pages(found: &RanCases) -> Figure {
    claim(
        "TAVS table 2",
        "KeepOnRunQ helps images (29 % faster) far more than texts (3 %)",
        judge_pages(found),
    )
}

/// By how many percent the second line fetches faster than the first one, as a number and in words.
fn gain(found: &RanCases, lines: [&str; 2]) -> Option<(f64, String)> {
    let [before, after] = lines.map(|line| found.mean(line, None, &FETCH));
    let (before, after) = (before?, after?);
    let gain = 100.0 * (1.0 - after / before);
    Some((gain, format!("{} % ({} to {} ms)", short(gain), short(before), short(after))))
}

fn judge_pages(found: &RanCases) -> Option<(String, bool)> {
    let ((image, images), (text, texts)) = (gain(found, IMAGE)?, gain(found, TEXT)?);
    Some((format!("images {images}, texts {texts}"), image > 10.0 && (-5.0..image / 2.0).contains(&text)))
}

fn plots(found: &RanCases) -> Vec<(String, String)> {
    let lines = [BASELINE, KEEP].map(str::to_owned);
    let bars = |title: &str, label: &str, measures: [&Measure; 2]| {
        let values = |measure: &Measure| {
            [BASELINE, KEEP].iter().filter_map(|line| found.mean(line, None, measure)).collect()
        };
        let series = [
            ("domain with the stream".to_owned(), values(measures[0])),
            ("domain without".to_owned(), values(measures[1])),
        ];
        plot::bars_with_intervals(
            title,
            &axis(&mean_of(label)),
            &lines,
            &series,
            &measures.map(|measure| {
                [BASELINE, KEEP].iter().map(|line| found.interval(line, None, measure)).collect::<Vec<_>>()
            }),
        )
    };
    vec![
        (
            "figure-9a-15a.svg".into(),
            bars("Figures 9(a) and 15(a): CPU allocation", "processor time, %", [&OWN, &OTHERS]),
        ),
        (
            "figure-9b-15b.svg".into(),
            bars(
                "Figures 9(b) and 15(b): computation",
                "units of 10 ms a second",
                [&COMPUTED, &COMPUTED_ELSEWHERE],
            ),
        ),
    ]
}

const PROSE: [&str; 2] = [
    "One domain receives a stream and computes; five compute only. Each acknowledgement of the stream \
     wakes the driver, which preempts the domain, and by the credit scheduler's rule the preempted domain \
     goes to the tail: what was left of its slice is lost, and with it the computation that would have \
     filled it. KeepOnRunQ puts it back at the head with the rest of its slice. For table 2 a browser \
     fetches pages from a web server beside five domains that compute: an image of 300 KB comes in more \
     than two hundred packets and asks for acknowledgements all the time, a text of 8.6 KB in six.",
    "With KeepOnRunQ the domains are served alike, but the task that computes still has less than its \
     peers elsewhere: the stream's packets are handled in the same share, and the switches back from the \
     driver, which time stamps charge to it, come out of it, too. The paper's page takes two \
     seconds, most of it in a Windows guest whose drawing is not simulated; only fetching is measured \
     here, in milliseconds, and what a page takes the browser besides (100 ms, and 50 us a packet) is a \
     choice of the scenario. So the percentages of table 2 cannot be compared, only that images gain and \
     texts do not. The means of texts are those of a few fetches that had to wait for a turn; their \
     confidence intervals are wide.",
];
