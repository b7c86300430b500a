//! The page, the plots and the data of the study `vtrr-micro`.

use std::fmt::Write as _;

use mete_sim::quanta::QUANTUM_NS;

use super::vtrr_micro::{POLICIES, SHARES, WatchedSchedule, milliseconds};
use crate::figure::{self, Figure};
use crate::report::Report;
use mete_plot::{self as plot, Lane, Span, short};

/// The time that the pictures show, from the beginning of the schedule.
const SHOWN_MS: f64 = 450.0;
const CYCLE: u64 = sum(SHARES) as u64;

const fn sum(shares: [u32; 5]) -> u32 {
    let [a, b, c, d, e] = shares;
    a + b + c + d + e
}

pub(super) fn files(
    report: &Report,
    figures: &[Figure],
    schedules: &[WatchedSchedule],
) -> Vec<(String, String)> {
    vec![
        ("README.md".to_owned(), page(report, figures, schedules)),
        ("schedules.csv".to_owned(), csv(report, schedules)),
        ("schedules.svg".to_owned(), timeline(schedules)),
    ]
}

fn csv(report: &Report, schedules: &[WatchedSchedule]) -> String {
    let mut text = format!("# {}\n# {}\n", report.title, report.machine.line());
    text.push_str("policy,share,from_ms,to_ms\n");
    for seen in schedules {
        for (client, share) in SHARES.iter().enumerate() {
            for (from, to) in seen.stretches(client) {
                let (from, to) = (milliseconds(from), milliseconds(to));
                let _ = writeln!(text, "{},{share},{from},{to}", seen.policy);
            }
        }
    }
    text
}

fn timeline(schedules: &[WatchedSchedule]) -> String {
    let lanes: Vec<_> = schedules.iter().map(lane).collect();
    plot::timeline("Who ran when: shares 1 to 5, quanta of 10 ms", "time, ms", &lanes)
}

fn lane(seen: &WatchedSchedule) -> Lane {
    Lane {
        name: seen.policy.into(),
        rows: SHARES.iter().map(|share| format!("share {share}")).collect(),
        spans: (0..SHARES.len())
            .flat_map(|row| {
                let stretches = seen.stretches(row).into_iter();
                let spans = stretches.map(move |(from, to)| Span {
                    row,
                    from: milliseconds(from),
                    to: milliseconds(to).min(SHOWN_MS),
                });
                spans.filter(|span| span.from < SHOWN_MS)
            })
            .collect(),
    }
}

fn find<'a>(schedules: &'a [WatchedSchedule], policy: &str) -> Option<&'a WatchedSchedule> {
    schedules.iter().find(|seen| seen.policy == policy)
}

pub(super) fn figures(schedules: &[WatchedSchedule]) -> Vec<Figure> {
    const COARSE: (&str, &str) =
        ("VTRR §5.3, coarse", "over long times all three give the clients what their shares say");
    const PATTERN: (&str, &str) =
        ("VTRR §5.3, WFQ and VTRR scheduling behavior", "the order of clients repeats after one cycle");
    const LINUX: (&str, &str) =
        ("VTRR §5.3, Linux scheduling behavior", "Linux schedules least evenly, WFQ and VTRR do better");
    let [Some(linux), Some(wfq), Some(vtrr)] = POLICIES.map(|policy| find(schedules, policy)) else {
        let why = "stopped before it was simulated";
        return [COARSE, PATTERN, LINUX].map(|(name, paper)| Figure::missing(name, paper, why)).into();
    };
    vec![
        coarse(COARSE, schedules),
        pattern(PATTERN, [wfq, vtrr]),
        evenness(LINUX, [linux, wfq, vtrr], "width of the errors' range, TU", |seen| {
            seen.outcome.errors.highest_tu() - seen.outcome.errors.lowest_tu()
        }),
    ]
}

fn coarse((name, paper): (&str, &str), schedules: &[WatchedSchedule]) -> Figure {
    let off = |seen: &WatchedSchedule| {
        let all: u64 = (0..SHARES.len()).map(|client| seen.received_ns(client)).sum();
        let each = SHARES.iter().enumerate().map(|(client, &share)| {
            let (part, due) = (seen.received_ns(client) as f64 / all as f64, f64::from(share) / CYCLE as f64);
            (part / due - 1.0).abs()
        });
        each.fold(0.0, f64::max)
    };
    let worst = schedules.iter().map(off).fold(0.0, f64::max);
    Figure::new(name, paper, format!("nobody is off by more than {} %", short(100.0 * worst)), worst < 0.01)
}

fn pattern((name, paper): (&str, &str), schedules: [&WatchedSchedule; 2]) -> Figure {
    let holds = schedules.iter().all(|seen| seen.period() == Some(CYCLE as usize));
    Figure::new(
        name,
        paper,
        schedules
            .map(|seen| match seen.period() {
                Some(quanta) => {
                    format!("{} after {} ms", seen.policy, quanta as u64 * QUANTUM_NS / 1_000_000)
                }
                None => format!("{} never", seen.policy),
            })
            .join(", "),
        holds,
    )
}

/// The statement that the value under Linux is larger than the values of both others, which differ less from each
/// other.
fn evenness(
    (name, paper): (&str, &str),
    schedules: [&WatchedSchedule; 3],
    what: &str,
    value: impl Fn(&WatchedSchedule) -> f64,
) -> Figure {
    let said = schedules.map(|seen| format!("{} {}", seen.policy, short(value(seen))));
    let [linux, wfq, vtrr] = schedules.map(value);
    let holds = linux > wfq.max(vtrr) && (wfq - vtrr).abs() < linux - wfq.max(vtrr);
    Figure::new(name, paper, format!("{what}: {}", said.join(", ")), holds)
}

fn page(report: &Report, figures: &[Figure], schedules: &[WatchedSchedule]) -> String {
    let mut page = String::from("# Schedules seen from near\n\n");
    let _ = writeln!(page, "Taken with `mete study vtrr-micro`, {}.\n", report.machine.date);
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not simulated.\n\n");
    }
    page.push_str(&figure::markdown(figures));
    page.push_str(&simulated());
    page.push_str(&compared(schedules));
    page.push_str("![](schedules.svg)\n\n");
    page.push_str(&table(schedules));
    page.push_str("Every stretch of every client: `schedules.csv`.\n");
    page
}

fn simulated() -> String {
    format!(
        "Five clients that only compute, with shares 1 to 5, on one simulated processor in quanta of 10 ms under \
         the scheduler of Linux 2.2 (`goodness`), WFQ and VTRR: {CYCLE} quanta or {} ms are one scheduling cycle. \
         For `goodness` the shares are priorities, which gives the clients 10 to 50 ms between two recharges, as in the \
         paper.\n\n",
        CYCLE * QUANTUM_NS / 1_000_000,
    )
}

fn compared(schedules: &[WatchedSchedule]) -> String {
    let said = |policy, share: usize| {
        let seen = find(schedules, policy);
        let wait = seen.map(|seen| seen.longest_wait_ns(share - 1));
        wait.map_or_else(|| "(not simulated)".to_owned(), |ns| format!("{} ms", short(milliseconds(ns))))
    };
    format!(
        "Over whole cycles nobody can tell the three apart. Within a cycle `goodness` gives each client all its \
         time in one stretch, so that the largest waits {} before it runs again; under WFQ that is {} and under \
         VTRR {}. The paper's Linux shows no repeating order, because interrupts called its scheduler at odd \
         moments; nothing interrupts the simulated clients, so that here all three repeat. The difference \
         between WFQ and VTRR is the order at the beginning of a cycle, where VTRR serves all of its queue once \
         from the largest share to the smallest.\n\n",
        said("goodness", 5),
        said("wfq", 5),
        said("vtrr", 5),
    )
}

/// The errors of each client under each policy.
fn table(schedules: &[WatchedSchedule]) -> String {
    let heads: Vec<_> = schedules.iter().map(|seen| seen.policy).collect();
    let mut text = format!("| lowest to highest error, TU | {} |\n|---|", heads.join(" | "));
    schedules.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for (client, share) in SHARES.iter().enumerate() {
        let cells: Vec<_> = schedules
            .iter()
            .map(|seen| {
                let errors = &seen.outcome.clients[client];
                format!("{} to {}", short(errors.lowest_tu()), short(errors.highest_tu()))
            })
            .collect();
        let _ = writeln!(text, "| share {share} | {} |", cells.join(" | "));
    }
    text + "\n"
}
