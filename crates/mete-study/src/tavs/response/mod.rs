//! Response times of a server that shares its domain with a task that computes: figures 1(a) and 10, and table 1
//! (TAVS paper, §3.1, §5.1).

mod findings;
mod pictures;

use super::measures::{hog_percent, mean_ms, mean_response, median_response, own_percent, quantile_ms};
use super::{BASELINE, TAVS};
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, average, scenario};
use crate::study::{Findings, StudyFile, StudyTexts, texts};

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
    const NAME: &'static str = "tavs-response";
    const SHOWS: &'static str =
        "how fast a server answers beside a hog in its domain, without and with TAVS (figures 1 and 10)";
    const TEXTS: StudyTexts = texts!("tavs-response");
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
        findings::of(found)
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        pictures::of(found)
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
