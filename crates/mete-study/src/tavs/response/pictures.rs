//! Figures 1 and 10.

use mete_plot as plot;
use mete_policy::ClientId;
use mete_sim::metrics::Estimate;

use super::{AGGRESSIVE, BASELINE, IO_ONLY, NATIVE, TAVS};
use crate::simulated::{Outcome, Ran, axis, interval, mean_of};
use crate::study::StudyFile;

const RESPONSES: [&str; 2] = ["response time, ms", "responses, %"];
const LATENCIES: [&str; 2] = ["latency of an event, ms", "events, %"];

pub(super) fn of(found: &Ran) -> Vec<StudyFile> {
    let responses = |title, lines: &[&str]| {
        found.distributions(title, RESPONSES, lines, |outcome| &outcome.probe.responses)
    };
    let latencies =
        found.distributions("Figure 10(b): scheduling latency", LATENCIES, &[BASELINE, TAVS], |outcome| {
            &outcome.probe.latencies
        });
    let stream = usage(found, "Figure 1(b): CPU usage, a stream to a domain that computes", &[AGGRESSIVE]);
    vec![
        (
            "figure-1a.svg".into(),
            responses("Figure 1(a): response time for three cases", &[NATIVE, IO_ONLY, BASELINE]),
        ),
        ("figure-1b.svg".into(), stream),
        ("figure-10a.svg".into(), responses("Figure 10(a): response time", &[BASELINE, TAVS])),
        ("figure-10b.svg".into(), latencies),
        ("figure-10c.svg".into(), usage(found, "Figure 10(c): CPU usage", &[BASELINE, TAVS])),
    ]
}

/// The processor time of each client, in each of these lines.
fn usage(found: &Ran, title: &str, lines: &[&str]) -> String {
    let outcomes = |line: &str| found.at(line).map_or(&[][..], |ran| &ran.outcomes);
    let first = outcomes(lines[0]).first();
    let names: Vec<String> =
        first.iter().flat_map(|outcome| &outcome.report.clients).map(|client| client.name.clone()).collect();
    let series = lines.iter().map(|&line| {
        let clients = (0..names.len()).map(ClientId::at);
        let got: Vec<Estimate> =
            clients.filter_map(|client| client_percent(outcomes(line), client)).collect();
        let means = got.iter().map(|got| got.mean).collect();
        ((line.to_owned(), means), got.into_iter().map(interval).collect())
    });
    let (series, intervals): (Vec<_>, Vec<_>) = series.unzip();
    plot::bars_with_intervals(title, &axis(&mean_of("processor time, %")), &names, &series, &intervals)
}

fn client_percent(outcomes: &[Outcome], client: ClientId) -> Option<Estimate> {
    let got: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.got_percent(client)).collect();
    Estimate::of(&got?)
}
