//! Response times of a server that shares its domain with a task that computes: figures 1(a) and 10, and
//! table 1 (TAVS paper, §3.1, §5.1).

use mete_plot::{self as plot, Axis};
use mete_policy::ClientId;
use mete_sim::metrics::Estimate;
use serde_json::json;

use super::{BASELINE, TAVS, hog_percent, mean_ms, mean_response, median_response, own_percent, quantile_ms};
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, average, interval, mean_of, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

const NATIVE: &str = "native";
const IO_ONLY: &str = "I/O only, baseline";
const AGGRESSIVE: &str = "stream, aggressive boosting";
const DOMAINS_BASELINE: &str = "table 1, baseline";
const DOMAINS_TAVS: &str = "table 1, TAVS";

const MEAN: Measure = Measure::new("mean response", "ms", mean_response);
const SETTLED: Measure =
    Measure::new("mean response after 10 s", "ms", |outcome| mean_ms(&outcome.probe.settled));
const MEDIAN: Measure = Measure::new("median response", "ms", median_response);
const LONGEST: Measure =
    Measure::new("longest latency of an event", "ms", |outcome| quantile_ms(&outcome.probe.latencies, 1.0));
const MOST: Measure =
    Measure::new("95 % of latencies up to", "ms", |outcome| quantile_ms(&outcome.probe.latencies, 0.95));
const MIXED: Measure =
    Measure::new("mean response, mixed domains", "ms", |outcome| of_all(outcome, "mixed-"));
const ECHO: Measure = Measure::new("mean response, I/O domains", "ms", |outcome| of_all(outcome, "echo-"));
const OWN: Measure = Measure::new("processor time of its domain", "%", own_percent);
const HOGS: Measure = Measure::new("processor time of a domain that computes", "%", hog_percent);

pub(crate) struct Response;

impl Plan for Response {
    about!(
        "tavs-response",
        "how fast a server answers beside a hog in its domain, without and with TAVS (figures 1 and 10)"
    );
    const SEEDS: u64 = 20;
    const MEASURES: &'static [Measure] = &[MEAN, SETTLED, MEDIAN, MOST, LONGEST, MIXED, ECHO, OWN, HOGS];
    type Besides = ();

    fn cases() -> Vec<Case> {
        let [native, io_only] = [scenario!("tavs-response", "native"), scenario!("tavs-response", "io-only")];
        let [mixed, domains] = [scenario!("tavs-response", "mixed"), scenario!("tavs-response", "domains")];
        let server = ("mixed", "server");
        vec![
            Case::new(NATIVE, native, "rr", server),
            Case::new(IO_ONLY, io_only, "credit", server),
            Case::new(BASELINE, mixed, "credit", server),
            Case::new(TAVS, mixed, "credit-tavs", server),
            aggressive(),
            Case::new(DOMAINS_BASELINE, domains, "credit", ("mixed-1", "server")),
            Case::new(DOMAINS_TAVS, domains, "credit-tavs", ("mixed-1", "server")),
        ]
    }

    fn findings(found: &Ran) -> Findings {
        vec![
            ("boosting", boosting_alone(found)),
            ("aggression", aggression(found)),
            ("fraction", fraction(found)),
            ("latencies", latencies(found)),
            ("evenness", evenness(found)),
            ("domains-baseline", domains_baseline(found)),
            ("domains-faster", domains_faster(found)),
            ("domains-alike", domains_alike(found)),
        ]
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        let both = [BASELINE, TAVS];
        let responses = |title, lines: &[&str]| {
            let axes = ["response time, ms", "responses, %"];
            found.distributions(title, axes, lines, |outcome| &outcome.probe.responses)
        };
        let three = responses("Figure 1(a): response time for three cases", &[NATIVE, IO_ONLY, BASELINE]);
        let stream =
            usage(found, "Figure 1(b): CPU usage, a stream to a domain that computes", &[AGGRESSIVE]);
        let axes = ["latency of an event, ms", "events, %"];
        let title = "Figure 10(b): scheduling latency";
        let latencies = found.distributions(title, axes, &both, |outcome| &outcome.probe.latencies);
        vec![
            ("figure-1a.svg".into(), three),
            ("figure-1b.svg".into(), stream),
            ("figure-10a.svg".into(), responses("Figure 10(a): response time", &both)),
            ("figure-10b.svg".into(), latencies),
            ("figure-10c.svg".into(), usage(found, "Figure 10(c): CPU usage", &both)),
        ]
    }
}

/// Section 3.1 shows the scheduler without the changes of section 5.
fn aggressive() -> Case {
    Case::new(AGGRESSIVE, scenario!("tavs-ratio", "network"), "credit", ("mixed", "reader")).with([
        "policy.credit.aggressive_boosting=true",
        "policy.credit.precise_accounting=false",
        "policy.credit.keep_on_run_queue=false",
    ])
}

/// The mean over the responses of all clients whose names begin with `prefix`.
fn of_all(outcome: &Outcome, prefix: &str) -> Option<f64> {
    let means = outcome.named(prefix).map(|client| client.response.as_ref().and_then(mean_ms));
    average(means.collect::<Option<_>>()?)
}

fn boosting_alone(found: &Ran) -> Option<Finding> {
    let median = |line| found.mean(line, &MEDIAN);
    let (native, io, mixed) = (median(NATIVE)?, median(IO_ONLY)?, median(BASELINE)?);
    // Close to native, compared with what a hog in the same domain costs.
    let holds = (io - native).abs() < (mixed - native) / 20.0;
    Some(Finding::new(json!({ "native": native, "io": io, "mixed": mixed }), holds))
}

fn aggression(found: &Ran) -> Option<Finding> {
    let (own, others) = (found.mean(AGGRESSIVE, &OWN)?, found.mean(AGGRESSIVE, &HOGS)?);
    Some(Finding::new(json!({ "own": own, "others": others }), own > 2.0 * others))
}

fn fraction(found: &Ran) -> Option<Finding> {
    let (baseline, tavs) = (found.mean(BASELINE, &MEAN)?, found.mean(TAVS, &MEAN)?);
    let settled = found.mean(TAVS, &SETTLED)?;
    let values = json!({ "baseline": baseline, "tavs": tavs, "settled": settled });
    Some(Finding::new(values, baseline > 10.0 * tavs))
}

fn latencies(found: &Ran) -> Option<Finding> {
    let (longest, most) = (found.mean(BASELINE, &LONGEST)?, found.mean(BASELINE, &MOST)?);
    let (tavs_longest, tavs_most) = (found.mean(TAVS, &LONGEST)?, found.mean(TAVS, &MOST)?);
    let values = json!({
        "longest": longest, "most": most, "tavs_longest": tavs_longest, "tavs_most": tavs_most,
    });
    // The paper's five slices of 30 ms, and one slice more or less.
    Some(Finding::new(values, (120.0..=180.0).contains(&longest) && tavs_most < 1.0))
}

fn evenness(found: &Ran) -> Option<Finding> {
    let both = |line| Some([found.mean(line, &OWN)?, found.mean(line, &HOGS)?]);
    let even = |[own, others]: [f64; 2]| (own / others - 1.0).abs() < 0.05;
    let (baseline, tavs) = (both(BASELINE)?, both(TAVS)?);
    Some(Finding::new(json!({ "baseline": baseline, "tavs": tavs }), even(baseline) && even(tavs)))
}

fn domains_baseline(found: &Ran) -> Option<Finding> {
    let (mixed, echo) = (found.mean(DOMAINS_BASELINE, &MIXED)?, found.mean(DOMAINS_BASELINE, &ECHO)?);
    let holds = (50.0..=100.0).contains(&mixed) && mixed > 10.0 * echo;
    Some(Finding::new(json!({ "mixed": mixed, "echo": echo }), holds))
}

fn domains_faster(found: &Ran) -> Option<Finding> {
    let (before, after) = (found.mean(DOMAINS_BASELINE, &MIXED)?, found.mean(DOMAINS_TAVS, &MIXED)?);
    Some(Finding::new(json!({ "after": after, "times": before / after }), before > 10.0 * after))
}

fn domains_alike(found: &Ran) -> Option<Finding> {
    let (mixed, echo) = (found.mean(DOMAINS_TAVS, &MIXED)?, found.mean(DOMAINS_TAVS, &ECHO)?);
    let baseline = found.mean(DOMAINS_BASELINE, &MIXED)?;
    Some(Finding::new(json!({ "mixed": mixed, "echo": echo }), mixed - echo < baseline / 10.0))
}

/// The processor time of each client, in each of these lines.
fn usage(found: &Ran, title: &str, lines: &[&str]) -> String {
    let outcomes = |line: &str| found.at(line).map_or(&[][..], |ran| &ran.outcomes);
    // All runs of these lines have the same clients.
    let clients = outcomes(lines[0]).iter().take(1).flat_map(|outcome| &outcome.report.clients);
    let names: Vec<String> = clients.map(|client| client.name.clone()).collect();
    let series = lines.iter().map(|&line| {
        let clients = (0..names.len()).map(ClientId::at);
        let got: Vec<Estimate> =
            clients.filter_map(|client| client_percent(outcomes(line), client)).collect();
        let means = got.iter().map(|got| got.mean).collect();
        ((line.to_owned(), means), got.into_iter().map(interval).collect())
    });
    let (series, intervals): (Vec<_>, Vec<_>) = series.unzip();
    plot::bars_with_intervals(title, &Axis::linear(mean_of("processor time, %")), &names, &series, &intervals)
}

fn client_percent(outcomes: &[Outcome], client: ClientId) -> Option<Estimate> {
    let got: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.got_percent(client)).collect();
    Estimate::of(&got?)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::simulated::run;

    #[test]
    fn tavs_8_pictures_show_how_sure_their_means_are() {
        let beams = |seeds| {
            let cases = run(Response::cases(), seeds, NonZeroUsize::MIN, &mut ()).expect("it runs");
            let plots = Response::pictures(&Ran { cases, besides: () });
            let (_, plot) =
                plots.into_iter().find(|(name, _)| name == "figure-10c.svg").expect("there is one");
            assert!(plot.contains("processor time, % (mean, 95 %)"), "{plot}");
            plot.matches("h6M").count()
        };
        assert_eq!(beams(1), 0, "one run says nothing of its spread");
        assert!(beams(2) > 0);
    }

    #[test]
    fn tavs_8_results_are_the_same_whatever_the_number_of_threads() {
        let run = |threads| {
            run(Response::cases(), 2, NonZeroUsize::new(threads).expect("some"), &mut ()).expect("it runs")
        };
        let [one, many] = [1, 3].map(run);
        assert_eq!(one.len(), Response::cases().len());
        for (one, many) in one.iter().zip(&many) {
            assert_eq!(one.outcomes, many.outcomes, "{:?}", one.case);
        }
        let [first, second] = &one[0].outcomes[..] else { panic!("two seeds") };
        assert_ne!(first.probe, second.probe, "seeds differ");
    }
}
