//! What a run showed of each client, as numbers: figures by name, for estimates, tables and plots.

use std::fmt::Write as _;

use mete_base::csv;
use mete_policy::Nanoseconds;

use crate::client_report::ClientReport;
use crate::metrics::Latencies;
use crate::scenario::Setting;
use crate::sweep::Cell;

/// A figure of a client.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name for scripts.
    pub name: &'static str,
    /// The head of its column in a table, in a few letters.
    pub head: &'static str,
    /// What it is, with its unit.
    pub words: &'static str,
    /// Its value in one run; `None` if the client has no such figure.
    pub value: fn(&ClientReport) -> Option<f64>,
}

const fn figure(
    name: &'static str,
    head: &'static str,
    words: &'static str,
    value: fn(&ClientReport) -> Option<f64>,
) -> Figure {
    Figure { name, head, words, value }
}

/// All of them. Those that a client does not have are left out where it is shown.
pub const FIGURES: [Figure; 11] = [
    figure("got_percent", "got %", "processor time received (%)", |it| Some(100.0 * it.got)),
    figure("wake_to_run_median_ms", "woken ms", "from waking to running, median (ms)", |it| woken(it, 0.5)),
    figure("wake_to_run_99_ms", "99 % ms", "from waking to running, 99th percentile (ms)", |it| {
        woken(it, 0.99)
    }),
    figure("longest_wait_ms", "wait ms", "longest time ready without running (ms)", |it| {
        Some(it.longest_wait_ns.as_millis_f64())
    }),
    figure("response_median_ms", "answer ms", "from asking to being answered, median (ms)", |it| {
        answered(it, 0.5)
    }),
    figure("response_99_ms", "99 % ms", "from asking to being answered, 99th percentile (ms)", |it| {
        answered(it, 0.99)
    }),
    figure("done", "done", "pieces of work done", |it| (it.done > 0).then_some(it.done as f64)),
    figure("error_lowest_ms", "lowest ms", "lowest service-time error (ms)", |it| {
        Some(it.error.lowest_ns as f64 / 1e6)
    }),
    figure("error_highest_ms", "highest ms", "highest service-time error (ms)", |it| {
        Some(it.error.highest_ns as f64 / 1e6)
    }),
    figure("starved", "starved", "how often starved beyond the limit", |it| {
        (it.starved > 0).then_some(it.starved as f64)
    }),
    figure("spun_ms", "spun ms", "time spinning for spin locks (ms)", |it| {
        (!it.spun_ns.is_zero()).then_some(it.spun_ns.as_millis_f64())
    }),
];

fn woken(client: &ClientReport, part: f64) -> Option<f64> {
    quantile(client.wake_to_run.as_ref()?, part)
}

fn answered(client: &ClientReport, part: f64) -> Option<f64> {
    quantile(client.response.as_ref()?, part)
}

fn quantile(times: &Latencies, part: f64) -> Option<f64> {
    times.quantile_ns(part).map(Nanoseconds::as_millis_f64)
}

impl Cell {
    /// Its clients, each with its figures, in the order of [`FIGURES`]: one number for each run that has it.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Vec<Vec<f64>>)> {
        let names = self.reports.first().map_or(&[][..], |report| report.clients.as_slice());
        names.iter().enumerate().map(|(nth, client)| {
            let values = FIGURES.iter().map(|figure| {
                let runs = self.reports.iter().filter_map(|report| report.clients.get(nth));
                runs.filter_map(figure.value).collect()
            });
            (client.name.as_str(), values.collect())
        })
    }
}

/// All figures as comma-separated values: a line for each client in each run.
#[must_use]
pub fn csv(cells: &[Cell]) -> String {
    let mut text = String::from("values,policy,seed,client");
    FIGURES.iter().for_each(|Figure { name, .. }| text.push_str(&format!(",{name}")));
    text.push('\n');
    for cell in cells {
        let values = cell.values.iter().map(Setting::to_string).collect::<Vec<_>>().join(" ");
        for report in &cell.reports {
            for client in &report.clients {
                let [values, name] = [&values, &client.name].map(|text| csv::quoted(text));
                // Writing to a string cannot fail.
                let _ = write!(text, "{values},{},{},{name}", cell.policy, report.seed);
                for Figure { value, .. } in &FIGURES {
                    let _ =
                        write!(text, ",{}", value(client).map(|it| format!("{it:.6}")).unwrap_or_default());
                }
                text.push('\n');
            }
        }
    }
    text
}
