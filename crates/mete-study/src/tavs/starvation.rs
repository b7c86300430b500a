//! A domain that receives a stream starves beside domains that compute, unless the driver inherits its
//! priority: figures 7 and 14 (TAVS paper, §4.1.1, §5.3).

use super::case::{Case, Outcome};
use super::plan::{Measure, Plan, RanCases, claim};
use super::{BASELINE, SEGMENT_BITS, scenario};
use crate::study::figure::Figure;
use mete_plot::short;

const INHERITANCE: &str = "priority inheritance";
/// The same with a driver that hands on each packet by itself. This is one reading of the paper's words that the
/// driver is preempted "whenever delivering received I/O events to the requesting domain" (§4.1.1). By default the
/// driver hands on all packets that it finds, as that of Linux does.
const ALONE: &str = "baseline, each packet by itself";
const ALONE_INHERITANCE: &str = "priority inheritance, each packet by itself";
const BY_ITSELF: &str = "driver.batch=1";

/// Other assumptions about what the paper leaves open: what a packet costs the driver and the domain, whether the
/// host sees events for packets that were sent, how use is charged, and the parameters of TCP.
struct Variant {
    /// The names of the lines: with the driver's default, and with each packet by itself.
    line: &'static str,
    alone: &'static str,
    name: &'static str,
    settings: &'static [&'static str],
}

/// A variant, with its lines named after it.
macro_rules! variant {
    ($name:literal, $($setting:expr),+) => {
        Variant {
            line: concat!("baseline, ", $name),
            alone: concat!("each packet by itself, ", $name),
            name: $name,
            settings: &[$($setting),+],
        }
    };
}

const VARIANTS: [Variant; 12] = [
    variant!("5 us a packet", "driver.receive_us=5", "driver.transmit_us=5"),
    variant!("8 us", "driver.receive_us=8", "driver.transmit_us=8"),
    variant!("15 us", "driver.receive_us=15", "driver.transmit_us=15"),
    variant!("20 us", "driver.receive_us=20", "driver.transmit_us=20"),
    variant!("40 us", "driver.receive_us=40", "driver.transmit_us=40"),
    variant!("20 us for the domain", SLOW_READER),
    variant!("no events for what was sent", "driver.tell_sent=false"),
    variant!("charged by ticks", "policy.credit.precise_accounting=false"),
    variant!("1 s at least until TCP sends again", "remote.sender.sends.patience_ms=1000"),
    variant!("1 MB under way", "remote.sender.sends.window=700"),
    variant!("a card for 16 packets", "driver.receive_ring=16"),
    variant!("1 MB under way, a card for 256", "remote.sender.sends.window=700", "driver.receive_ring=256"),
];
const SLOW_READER: &str = "guest.stream.task.reader.program=\
     [{ receive = { port = 7 } }, { compute_us = { uniform = [18, 22] } }, \"done\"]";
/// The greatest number of domains that compute.
const HOGS: u32 = 8;
/// The number of domains from which on the stream starves in the paper; then the number in its other figures.
const THIRD: f64 = 3.0;
const FIVE: usize = 5;

pub(super) const THROUGHPUT: Measure = Measure { name: "throughput", unit: "Mbit/s", of: mbit_per_s };
const DRIVER: Measure =
    Measure { name: "processor time of the driver", unit: "%", of: |outcome| outcome.got_by_each("driver") };
const OWN: Measure =
    Measure { name: "of the domain", unit: "%", of: |outcome| outcome.got_percent(outcome.client) };
const PREEMPTIONS: Measure = Measure {
    name: "preemptions a second",
    unit: "1/s",
    of: |outcome| Some(outcome.counter("preemptions")? / outcome.seconds()),
};

const LOST: Measure = Measure {
    name: "packets lost",
    unit: "1/s",
    of: |outcome| Some(outcome.report.network.lost as f64 / outcome.seconds()),
};
const TIMERS: Measure = Measure {
    name: "timers that ran out",
    unit: "1/min",
    of: |outcome| Some(60.0 * outcome.report.network.senders.ran_out as f64 / outcome.seconds()),
};

/// The throughput of the stream: the bytes that the watched task has taken.
fn mbit_per_s(outcome: &Outcome) -> Option<f64> {
    Some(outcome.probe.done as f64 * SEGMENT_BITS / 1e6 / outcome.seconds())
}

pub(super) fn plan() -> Plan {
    Plan {
        folder: "tavs-starvation",
        title: "Starvation of a domain that receives a stream",
        cases: cases(),
        seeds: 20,
        measures: &[THROUGHPUT, DRIVER, OWN, PREEMPTIONS, LOST, TIMERS],
        figures,
        plots,
        prose: PROSE,
    }
}

fn cases() -> Vec<Case> {
    let lines = [
        (BASELINE, false, &[][..]),
        (INHERITANCE, true, &[]),
        (ALONE, false, &[BY_ITSELF]),
        (ALONE_INHERITANCE, true, &[BY_ITSELF]),
    ];
    let lines = lines
        .into_iter()
        .flat_map(|(line, inherits, others)| (0..=HOGS).map(move |hogs| case(line, inherits, hogs, others)));
    lines.chain(VARIANTS.iter().flat_map(variant)).collect()
}

fn case(line: &'static str, inherits: bool, hogs: u32, others: &[&str]) -> Case {
    let mut settings = vec![format!("policy.credit.priority_inheritance={inherits}")];
    if hogs > 0 {
        settings.push(format!("guest.hog.count={hogs}"));
    }
    settings.extend(others.iter().map(|&setting| setting.to_owned()));
    Case {
        line,
        x: Some(f64::from(hogs)),
        scenario: if hogs == 0 {
            scenario!("tavs-starvation", "alone")
        } else {
            scenario!("tavs-starvation", "stream")
        },
        policy: "credit",
        settings,
        watched: ("stream", "reader"),
    }
}

/// The cases of a variant: without inheritance, beside three and five domains that compute.
fn variant(variant: &'static Variant) -> impl Iterator<Item = Case> {
    let by_itself: Vec<_> = variant.settings.iter().copied().chain([BY_ITSELF]).collect();
    let lines = [(variant.line, variant.settings.to_vec()), (variant.alone, by_itself)];
    lines.into_iter().flat_map(|(line, settings)| {
        [THIRD as u32, FIVE as u32].map(move |hogs| case(line, false, hogs, &settings))
    })
}

fn figures(found: &RanCases) -> Vec<Figure> {
    vec![
        starves("TAVS fig. 7(a)", found, BASELINE),
        starves("TAVS fig. 7(a), if each packet is handed on by itself", found, ALONE),
        starves_anyway("TAVS fig. 7(a), under other assumptions", found, |variant| variant.line),
        starves_anyway("TAVS fig. 7(a), by itself and under other assumptions", found, |variant| {
            variant.alone
        }),
        does_not_starve("TAVS fig. 14", found, BASELINE, INHERITANCE),
        does_not_starve(
            "TAVS fig. 14, if each packet is handed on by itself",
            found,
            ALONE,
            ALONE_INHERITANCE,
        ),
        drops_gradually("TAVS fig. 14", found, INHERITANCE),
        drops_gradually("TAVS fig. 14, if each packet is handed on by itself", found, ALONE_INHERITANCE),
    ]
}

fn at(found: &RanCases, line: &str, hogs: f64) -> Option<f64> {
    found.mean(line, Some(hogs), &THROUGHPUT)
}

const STARVES: &str = "throughput falls with each domain that computes; with more than two it almost starves";
/// The part of the throughput without other domains below which a stream almost starves.
const ALMOST: f64 = 0.2;

fn starves(figure: &str, found: &RanCases, line: &str) -> Figure {
    claim(figure, STARVES, judge_starves(found, line))
}

fn judge_starves(found: &RanCases, line: &str) -> Option<(String, bool)> {
    let of = |hogs| at(found, line, hogs);
    let (none, one, two) = (of(0.0)?, of(1.0)?, of(2.0)?);
    let (third, four, five) = (of(THIRD)?, of(4.0)?, of(5.0)?);
    let [a, b, c, d, e, f] = [none, one, two, third, four, five].map(short);
    let ours = format!("alone {a}, with one {b}, two {c}, three {d}, four {e}, five {f} Mbit/s");
    let falls = [none, one, two, third, four, five].windows(2).all(|pair| pair[1] < pair[0]);
    Some((ours, falls && third < ALMOST * none && five < ALMOST * none))
}

/// The statement on starvation under each assumption about what the paper leaves open.
fn starves_anyway(figure: &str, found: &RanCases, line: fn(&Variant) -> &'static str) -> Figure {
    claim(figure, STARVES, judge_starves_anyway(found, line))
}

fn judge_starves_anyway(found: &RanCases, line: fn(&Variant) -> &'static str) -> Option<(String, bool)> {
    let none = at(found, BASELINE, 0.0)?;
    let of = |hogs| -> Option<Vec<f64>> {
        VARIANTS.iter().map(|variant| at(found, line(variant), hogs)).collect()
    };
    let (thirds, fives) = (of(THIRD)?, of(FIVE as f64)?);
    let pairs = VARIANTS.iter().zip(thirds.iter().zip(&fives));
    let said = pairs
        .map(|(variant, (&third, &five))| format!("{}: {} and {}", variant.name, short(third), short(five)));
    let ours = format!("with three and five, Mbit/s: {}", said.collect::<Vec<_>>().join("; "));
    Some((ours, thirds.iter().all(|&third| third < ALMOST * none)))
}

fn does_not_starve(figure: &str, found: &RanCases, without: &str, with: &str) -> Figure {
    claim(
        figure,
        "with inheritance it does not starve beside more than two",
        judge_does_not_starve(found, without, with),
    )
}

fn judge_does_not_starve(found: &RanCases, without: &str, with: &str) -> Option<(String, bool)> {
    let of = |line, hogs| at(found, line, hogs);
    let (none, before, after) = (of(with, 0.0)?, of(without, 5.0)?, of(with, 5.0)?);
    let ours = format!("with five {} Mbit/s, without inheritance {}", short(after), short(before));
    Some((ours, after > ALMOST * none && after > 3.0 * before))
}

fn drops_gradually(figure: &str, found: &RanCases, line: &str) -> Figure {
    claim(
        figure,
        "with inheritance throughput drops gradually (up to five, each more than half of the one before)",
        judge_drops_gradually(found, line),
    )
}

fn judge_drops_gradually(found: &RanCases, line: &str) -> Option<(String, bool)> {
    let all = (0..=HOGS).map(|hogs| at(found, line, f64::from(hogs)));
    let all = all.collect::<Option<Vec<f64>>>()?;
    let said: Vec<String> = all.iter().copied().map(short).collect();
    let ours = format!("{} Mbit/s with 0 to {HOGS}", said.join(", "));

    let is_gradual = all[..=FIVE].windows(2).all(|pair| pair[1] > 0.5 * pair[0] && pair[1] < 1.02 * pair[0]);
    Some((ours, is_gradual))
}

fn plots(found: &RanCases) -> Vec<(String, String)> {
    let plot = found.drawn(
        "Figures 7(a) and 14: throughput of a stream",
        ["domains that compute", "throughput, Mbit/s"],
        &THROUGHPUT,
        &[BASELINE, INHERITANCE, ALONE, ALONE_INHERITANCE],
    );
    vec![("figure-7-14.svg".into(), plot)]
}

const PROSE: [&str; 2] = [
    "A remote machine sends a stream to one domain as fast as TCP lets it; up to eight domains compute \
     beside it. Domain and driver wake each other and are boosted for it. But a tick takes the driver's \
     boost away while it works; then the domain, boosted by the packets that the driver hands on, \
     preempts the driver, which waits at the tail for a slice of every domain that computes and has \
     credit, and so does the stream. As long as something comes while the driver waits it never blocks, \
     so that it is not boosted again (figure 7(b)). With priority inheritance the domain's next \
     acknowledgement lifts the driver to the domain's own priority. Where the driver hands on what it \
     finds together, four fifths of the throughput remain then beside four domains and two thirds beside \
     five; beside seven and eight little does, though several times what there is without. Why it falls \
     so much faster there than the share that each has of the processor is not known. If each packet \
     is handed on by itself it falls one domain earlier: two thirds remain beside four, a quarter beside \
     five.",
    "With more than two domains that compute the paper's stream almost starves. Whether that comes out \
     turns on how much the driver hands on before the domain preempts it. The paper says that it is \
     preempted whenever it delivers received I/O events (section 4.1.1), and not how many packets make an \
     event. If each is delivered by itself, the stream has a sixth of its throughput beside three (less \
     than a fifth is held to be almost starving) and less than a thirtieth beside four. If the driver \
     hands on together all that it finds, as the backend of the paper's Linux does, half is left beside \
     three and a tenth beside four: the fall comes one domain later. Both readings are shown, each under \
     what else the paper leaves open. By itself three domains bring the stream below a fifth for a packet \
     that costs the driver 5, 8, 10, 20 or 40 us, close to it for 15, when use is charged by ticks and \
     when TCP waits for 1 s before it sends again; not where a packet costs the domain four times as \
     much, where it does not hear of what it has sent, where 1 MB is under way instead of 64 KiB (unless \
     the card has room for 256 packets of it only, and loses others), or where the card has room for 16 \
     packets. Handed on together, none of these brings it there. The driver answers the packets \
     that the domain has sent one by one, and the domain, which asks to hear of the one in the \
     middle, preempts it in the midst of that: so does the backend's code, and where there are no \
     such events more of the stream remains. Packets are lost only where the card is small; timers \
     run out up to twenty-five times a minute. Who is active in the accounting is left to ticks, \
     as in Xen's own accounting by time stamp, which is younger than the paper. What a packet \
     takes the reader varies a little in the scenario, so that nothing runs in lockstep.",
];
