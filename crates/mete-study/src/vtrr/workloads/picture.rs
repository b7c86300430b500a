//! The paper's figures: the work that each client has done, over time.

use mete_plot::{self as plot, Axis, Series};

use super::workload::{Client, RanWorkload};
use crate::study::StudyFile;

/// The time that the pictures show, from the beginning.
const SHOWN_MS: f64 = 1500.0;

/// The picture of one workload under one policy.
pub(super) fn done(ran: &RanWorkload) -> StudyFile {
    let series: Vec<_> = ran.clients.iter().map(line).collect();
    let [x, y] =
        ["time, ms", ran.workload.unit].map(|label| Axis { label: label.into(), is_logarithmic: false });
    let title = format!("{} under {}", ran.workload.name, ran.policy);
    (format!("{}-{}.svg", ran.workload.name, ran.policy), plot::lines(&title, &x, &y, &series))
}

fn line(client: &Client) -> Series {
    let ends = client.done_ms().take_while(|ms| *ms <= SHOWN_MS);
    let points = std::iter::once(0.0).chain(ends).zip(0u32..).map(|(ms, units)| (ms, f64::from(units)));
    Series { name: client.name.clone(), points: points.collect() }
}
