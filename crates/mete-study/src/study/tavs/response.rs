//! Response times of a server that shares its domain with a task that computes: figures 1(a) and 10, and table 1
//! (TAVS paper, §3.1, §5.1).

use mete_policy::ClientId;
use mete_sim::metrics::Estimate;

use super::case::{Case, Outcome};
use super::plan::{Measure, Plan, RanCases, claim, interval, mean_of};
use super::{BASELINE, TAVS, axis, mean_ms, quantile_ms, scenario};
use crate::figure::Figure;
use mete_plot::short;
use mete_plot::{self as plot, Axis};

const NATIVE: &str = "native";
const IO_ONLY: &str = "I/O only, baseline";
const AGGRESSIVE: &str = "stream, aggressive boosting";
const DOMAINS_BASELINE: &str = "table 1, baseline";
const DOMAINS_TAVS: &str = "table 1, TAVS";

const MEAN: Measure =
    Measure { name: "mean response", unit: "ms", of: |outcome| mean_ms(&outcome.probe.responses) };
const SETTLED: Measure =
    Measure { name: "mean response after 10 s", unit: "ms", of: |outcome| mean_ms(&outcome.probe.settled) };
const MEDIAN: Measure =
    Measure { name: "median response", unit: "ms", of: |outcome| quantile_ms(&outcome.probe.responses, 0.5) };
const LONGEST: Measure = Measure {
    name: "longest latency of an event",
    unit: "ms",
    of: |outcome| quantile_ms(&outcome.probe.latencies, 1.0),
};
const MOST: Measure = Measure {
    name: "95 % of latencies up to",
    unit: "ms",
    of: |outcome| quantile_ms(&outcome.probe.latencies, 0.95),
};
const MIXED: Measure =
    Measure { name: "mean response, mixed domains", unit: "ms", of: |outcome| of_all(outcome, "mixed-") };
const ECHO: Measure =
    Measure { name: "mean response, I/O domains", unit: "ms", of: |outcome| of_all(outcome, "echo-") };
const OWN: Measure = Measure {
    name: "processor time of its domain",
    unit: "%",
    of: |outcome| outcome.got_percent(outcome.client),
};
const HOGS: Measure = Measure {
    name: "processor time of a domain that computes",
    unit: "%",
    of: |outcome| outcome.got_by_each("hog"),
};

pub(super) fn plan() -> Plan {
    Plan {
        folder: "tavs-response",
        title: "Response times of a mixed domain",
        cases: cases(),
        seeds: 20,
        measures: &[MEAN, SETTLED, MEDIAN, MOST, LONGEST, MIXED, ECHO, OWN, HOGS],
        figures,
        plots,
        prose: PROSE,
    }
}

fn cases() -> Vec<Case> {
    let case = |line, scenario, policy, client| Case {
        line,
        x: None,
        scenario,
        policy,
        settings: Vec::new(),
        watched: (client, "server"),
    };
    vec![
        case(NATIVE, scenario!("tavs-response", "native"), "rr", "mixed"),
        case(IO_ONLY, scenario!("tavs-response", "io-only"), "credit", "mixed"),
        case(BASELINE, scenario!("tavs-response", "mixed"), "credit", "mixed"),
        case(TAVS, scenario!("tavs-response", "mixed"), "credit-tavs", "mixed"),
        Case {
            // Section 3.1 shows the scheduler without the changes of section 5.
            settings: [
                "policy.credit.aggressive_boosting=true",
                "policy.credit.precise_accounting=false",
                "policy.credit.keep_on_run_queue=false",
            ]
            .map(str::to_owned)
            .to_vec(),
            watched: ("mixed", "reader"),
            ..case(AGGRESSIVE, scenario!("tavs-ratio", "network"), "credit", "mixed")
        },
        case(DOMAINS_BASELINE, scenario!("tavs-response", "domains"), "credit", "mixed-1"),
        case(DOMAINS_TAVS, scenario!("tavs-response", "domains"), "credit-tavs", "mixed-1"),
    ]
}

/// The mean over the responses of all clients whose names begin with `prefix`.
fn of_all(outcome: &Outcome, prefix: &str) -> Option<f64> {
    let clients = outcome.report.clients.iter().filter(|client| client.name.starts_with(prefix));
    let means: Option<Vec<f64>> = clients.map(|client| client.response.as_ref().and_then(mean_ms)).collect();
    means.filter(|means| !means.is_empty()).map(|means| means.iter().sum::<f64>() / means.len() as f64)
}

fn figures(found: &RanCases) -> Vec<Figure> {
    let single =
        [boosting_alone(found), aggression(found), fraction(found), latencies(found), evenness(found)];
    single.into_iter().chain(table_1(found)).collect()
}

fn boosting_alone(found: &RanCases) -> Figure {
    let paper =
        "beside a hog in its domain, a server never gains by boosting; alone in it, it is close to native";
    claim("TAVS fig. 1(a)", paper, judge_boosting_alone(found))
}

fn judge_boosting_alone(found: &RanCases) -> Option<(String, bool)> {
    let median = |line| found.mean(line, None, &MEDIAN);
    let (native, io, mixed) = (median(NATIVE)?, median(IO_ONLY)?, median(BASELINE)?);
    let [n, i, m] = [native, io, mixed].map(short);
    let ours = format!("median: native {n} ms, I/O only {i} ms, mixed {m} ms");
    Some((ours, (io - native).abs() < (mixed - native) / 20.0))
}

fn aggression(found: &RanCases) -> Figure {
    claim("TAVS fig. 1(b)", "boosting for every packet starves the other domains", judge_aggression(found))
}

fn judge_aggression(found: &RanCases) -> Option<(String, bool)> {
    let mean = |measure| found.mean(AGGRESSIVE, None, measure);
    let (own, others) = (mean(&OWN)?, mean(&HOGS)?);
    Some((format!("{} % against {} % each", short(own), short(others)), own > 2.0 * others))
}

fn fraction(found: &RanCases) -> Figure {
    claim("TAVS fig. 10(a)", "TAVS answers in a fraction of the baseline's time", judge_fraction(found))
}

fn judge_fraction(found: &RanCases) -> Option<(String, bool)> {
    let mean = |line, measure| found.mean(line, None, measure);
    let (baseline, tavs) = (mean(BASELINE, &MEAN)?, mean(TAVS, &MEAN)?);
    let settled = short(mean(TAVS, &SETTLED)?);
    let (b, t) = (short(baseline), short(tavs));
    let ours = format!("mean {b} ms, TAVS {t} ms (after 10 s of inferring {settled} ms)");
    Some((ours, baseline > 10.0 * tavs))
}

fn latencies(found: &RanCases) -> Figure {
    let paper =
        "latencies up to about 150 ms, five slices of 30; with TAVS close to nought but for the beginning";
    claim("TAVS fig. 10(b)", paper, judge_latencies(found))
}

fn judge_latencies(found: &RanCases) -> Option<(String, bool)> {
    let mean = |line, measure| found.mean(line, None, measure);
    let (longest, most) = (mean(BASELINE, &LONGEST)?, mean(TAVS, &MOST)?);
    let ours = format!(
        "95 % within {} ms, up to {} ms; with TAVS 95 % within {} ms, the longest takes {} ms",
        short(mean(BASELINE, &MOST)?),
        short(longest),
        short(most),
        short(mean(TAVS, &LONGEST)?)
    );
    Some((ours, (120.0..=180.0).contains(&longest) && most < 1.0))
}

fn evenness(found: &RanCases) -> Figure {
    let paper = "all domains have the same processor time, with and without TAVS";
    claim("TAVS fig. 10(c)", paper, judge_evenness(found))
}

fn judge_evenness(found: &RanCases) -> Option<(String, bool)> {
    let both = |line| Some((found.mean(line, None, &OWN)?, found.mean(line, None, &HOGS)?));
    let said = |(own, others)| format!("{} % and {} %", short(own), short(others));
    let even = |(own, others): (f64, f64)| (own / others - 1.0).abs() < 0.05;
    let (base, tavs) = (both(BASELINE)?, both(TAVS)?);
    let ours = format!("mixed domain and others: {}; with TAVS {}", said(base), said(tavs));
    Some((ours, even(base) && even(tavs)))
}

fn table_1(found: &RanCases) -> [Figure; 3] {
    let mean = |line, measure: &Measure| found.mean(line, None, measure);
    [
        claim(
            "TAVS table 1, baseline",
            "mixed domains answer in about 70 ms, ten times as long as I/O domains (4 to 5 ms) and more",
            (|| {
                let (mixed, echo) = (mean(DOMAINS_BASELINE, &MIXED)?, mean(DOMAINS_BASELINE, &ECHO)?);
                let ours = format!("{} ms and {} ms", short(mixed), short(echo));
                Some((ours, (50.0..=100.0).contains(&mixed) && mixed > 10.0 * echo))
            })(),
        ),
        claim(
            "TAVS table 1, TAVS",
            "mixed domains answer in 5.1 to 5.7 ms: 13 times faster",
            (|| {
                let (before, after) = (mean(DOMAINS_BASELINE, &MIXED)?, mean(DOMAINS_TAVS, &MIXED)?);
                let ours = format!("{} ms: {} times faster", short(after), short(before / after));
                Some((ours, before > 10.0 * after))
            })(),
        ),
        claim(
            "TAVS table 1, TAVS",
            "mixed domains answer nearly as fast as I/O domains (5.5 ms and 4.6 ms)",
            (|| {
                let (mixed, echo) = (mean(DOMAINS_TAVS, &MIXED)?, mean(DOMAINS_TAVS, &ECHO)?);
                let baseline = mean(DOMAINS_BASELINE, &MIXED)?;
                let ours = format!("{} ms and {} ms", short(mixed), short(echo));
                Some((ours, mixed - echo < baseline / 10.0))
            })(),
        ),
    ]
}

fn plots(found: &RanCases) -> Vec<(String, String)> {
    let axes = [axis("response time, ms"), axis("responses, %")];
    let latency = [axis("latency of an event, ms"), axis("events, %")];
    let only = |lines: &[&str], times: fn(&Outcome) -> &mete_sim::metrics::Latencies| -> Vec<_> {
        found.curves(times).into_iter().filter(|curve| lines.contains(&curve.name.as_str())).collect()
    };
    let draw = |title: &str, [x, y]: &[Axis; 2], series: &[_]| plot::lines(title, x, y, series);
    let three = only(&[NATIVE, IO_ONLY, BASELINE], |outcome| &outcome.probe.responses);
    let two = only(&[BASELINE, TAVS], |outcome| &outcome.probe.responses);
    let waits = only(&[BASELINE, TAVS], |outcome| &outcome.probe.latencies);
    vec![
        ("figure-1a.svg".into(), draw("Figure 1(a): response time for three cases", &axes, &three)),
        (
            "figure-1b.svg".into(),
            usage(found, "Figure 1(b): CPU usage, a stream to a domain that computes", &[AGGRESSIVE]),
        ),
        ("figure-10a.svg".into(), draw("Figure 10(a): response time", &axes, &two)),
        ("figure-10b.svg".into(), draw("Figure 10(b): scheduling latency", &latency, &waits)),
        ("figure-10c.svg".into(), usage(found, "Figure 10(c): CPU usage", &[BASELINE, TAVS])),
    ]
}

/// A plot of the processor time of each client.
fn usage(found: &RanCases, title: &str, lines: &[&str]) -> String {
    let first = found.at(lines[0], None).and_then(|ran| ran.outcomes.first());
    let names: Vec<String> =
        first.iter().flat_map(|outcome| &outcome.report.clients).map(|client| client.name.clone()).collect();
    let series = lines.iter().map(|&line| {
        let got: Vec<Estimate> = (0..names.len())
            .map(ClientId::at)
            .filter_map(|client| {
                let outcomes = found.at(line, None)?.outcomes.iter();
                let got: Option<Vec<f64>> = outcomes.map(|outcome| outcome.got_percent(client)).collect();
                Estimate::of(&got?)
            })
            .collect();
        let means = got.iter().map(|got| got.mean).collect();
        ((line.to_owned(), means), got.into_iter().map(interval).collect())
    });
    let (series, intervals): (Vec<_>, Vec<_>) = series.unzip();
    plot::bars_with_intervals(title, &axis(&mean_of("processor time, %")), &names, &series, &intervals)
}

const PROSE: [&str; 2] = [
    "A remote client asks a server for 40 bytes again and again, thinking 100 to 1000 ms in between. The \
     server shares its domain with a task that only computes, five more domains compute, and a driver \
     domain stands between them and the network. To the credit scheduler the mixed domain never sleeps, \
     so that it is never boosted: a question waits for up to five slices of 30 ms. Where the server has a \
     domain for itself, waking boosts it. To boost for every packet, with a whole slice, is no way out: a \
     stream to the mixed domain then starves all others (figure 1(b), under the scheduler as it was before \
     section 5's changes; with these the driver starves first and the stream with it, and the domain has a \
     fifth of the processor). TAVS infers from outside that one \
     task of the mixed domain is I/O-bound, learns that its port's packets wake it, and boosts the domain \
     for them until another task is switched in. Each domain still has a sixth of the processor.",
    "What is not in the paper was chosen once, in the scenario files: what a packet costs the driver and \
     the server, switches, and that a run lasts 120 s. The servers speak TCP: an answer that the client \
     does not follow with a question within 40 ms (Linux's delay) is acknowledged by a packet that wakes \
     no task. The host cannot know that, boosts for it, and the boost lasts its 10 ms (section 3.4), \
     during which others wait; before, the driver may be found by a tick, loses its boost, and waits for \
     a slice of all that compute. So the means of table 1 are milliseconds, while the median under TAVS \
     is less than half of one; the rest of the mean under TAVS is that of the first questions, asked \
     before there was belief enough, spread over the length of the run, which the paper does not give. \
     Latencies reach six slices (figure 10(b), the paper's about five): processor time is charged by time \
     stamp, switches included, so that all that is used is paid for, and now and then one of the domains \
     that compute is under its credit twice before the mixed one is.",
];
