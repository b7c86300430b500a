//! The demo's report: one HTML file that needs nothing else.

use std::fmt::Write;

use mete_measure::pairs::in_pairs;
use mete_measure::statistics::Interval;
use mete_plot::{Matrix, Strip, escape, grouped};

use crate::crowds::SecondAct;
use crate::observe::Moved;
use crate::share_show;
use crate::summary::{Spread, Stretch, StretchKind, change, spread};

/// What the report shows in addition to the stretches.
pub struct Story<'a> {
    /// The command line of the demo.
    pub command: &'a str,
    /// The machine, in words.
    pub machine: &'a str,
    /// The sources of the logs, in words.
    pub sources: &'a str,
    /// How long a stretch took, in seconds.
    pub stretch_s: f64,
    /// Names of the clients: the rows of the matrix.
    pub clients: &'a [String],
    /// Names of the drivers: the columns of the matrix.
    pub drivers: &'a [String],
    /// Transactions, client by client.
    pub matrix: &'a [Vec<u64>],
    /// The date of the report.
    pub date: &'a str,
    /// The scheduler's moves, in their order.
    pub moves: &'a [Moved],
    /// Requests with logging divided by requests without, pair by pair.
    pub quotients: &'a [f64],
    /// What came of the second act.
    pub second_act: &'a SecondAct,
}

const STYLE: &str = "
:root{--ink:#1b1f24;--dim:#667;--paper:#fff;--line:#d8dbe0}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#99a;--paper:#16181c;--line:#333840}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:760px;margin:2.5rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child{text-align:left}.wide{overflow-x:auto}
code{font-size:.9em}.dim{color:var(--dim)}
";

/// The title of a plot, its unit, and its figure of a stretch.
type Plot = (&'static str, &'static str, fn(&Stretch) -> f64);

/// The report's text.
pub fn html(story: &Story<'_>, stretches: &[Stretch]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>mete demo</title><style>{STYLE}</style><h1>Measured, and acted upon</h1>"
    );
    introduce(&mut page, story, stretches);
    const PLOTS: [Plot; 4] = [
        ("Requests answered in a second", "requests per second", |it| it.throughput),
        ("Time from request to answer, half of them", "microseconds", |it| it.latency_us[0]),
        ("Time from request to answer, 99 of 100", "microseconds", |it| it.latency_us[1]),
        ("Requests that crossed between processors", "percent", |it| 100.0 * it.crossings),
    ];
    for (title, unit, figure) in PLOTS {
        plot(&mut page, title, stretches, unit, figure);
    }
    if !story.matrix.is_empty() {
        matrix(&mut page, story);
    }
    decisions(&mut page, story);
    table(&mut page, stretches);
    page.push_str(&share_show::html(story.second_act));
    let _ = write!(
        page,
        "<h2>Where and when it was made</h2><p>{}, {}<br><code>{}</code></p></html>",
        escape(story.machine),
        escape(story.date),
        escape(story.command)
    );
    page
}

fn introduce(page: &mut String, story: &Story<'_>, stretches: &[Stretch]) {
    let _ = write!(
        page,
        "<p>{} clients talk to {} drivers over Unix sockets: each sends nine requests in ten to its favourite driver. \
         Other processes only compute. Each driver stays on its own processor. Each round has three stretches of {} s: \
         one without logging and one with logging, in pieces that alternate, and one in which the scheduler also moves \
         clients to the processor of the driver that they talk to most. The clients are fresh each time. {}</p>",
        story.clients.len(),
        story.drivers.len(),
        story.stretch_s,
        escape(story.sources)
    );
    if let Some(sentence) = verdict(stretches, story.quotients) {
        let _ = write!(page, "<p><strong>{}</strong></p>", escape(&sentence));
    }
}

/// The result in one sentence.
pub fn verdict(stretches: &[Stretch], quotients: &[f64]) -> Option<String> {
    let crossings =
        |kind| spread(stretches, kind, |stretch| 100.0 * stretch.crossings).map(|spread| spread.median);
    Some(format!(
        "Logging changed the throughput by {}; acting on it, within a round, by {}; crossings went from {:.0} % to \
         {:.0} % of requests.",
        of_pairs(quotients)?,
        in_words(change(stretches, StretchKind::Act)?),
        crossings(StretchKind::Off)?,
        crossings(StretchKind::Act)?
    ))
}

/// The median of pairs, and its confidence interval of 95 %.
fn of_pairs(quotients: &[f64]) -> Option<String> {
    let percent = |quotient: f64| 100.0 * (quotient - 1.0);
    let median = percent(mete_measure::statistics::median(quotients)?);
    let pairs = in_pairs(quotients.len());
    Some(match Interval::of_median(quotients) {
        Some(Interval { low, high }) => {
            let noise = if low < 1.0 && high > 1.0 { ", within the noise" } else { "" };
            format!("{median:+.1} % (95 %: {:+.1} to {:+.1}, {pairs}{noise})", percent(low), percent(high))
        }
        None => format!("{median:+.1} % ({pairs}, too few for an interval)"),
    })
}

/// Median and range of a change. A change whose sign is uncertain is within the noise.
fn in_words(change: Spread) -> String {
    let Spread { median, least, most } = change;
    if least == most {
        return format!("{median:+.1} % (one round, too few for a range)");
    }
    let noise = if least < 0.0 && most > 0.0 { ", within the noise" } else { "" };
    format!("{median:+.1} % ({least:+.1} to {most:+.1}{noise})")
}

fn plot(page: &mut String, title: &str, stretches: &[Stretch], unit: &str, figure: fn(&Stretch) -> f64) {
    let strips = StretchKind::ALL.into_iter().filter_map(|kind| strip(stretches, kind, figure));
    let strips: Vec<_> = strips.collect();
    let _ = write!(
        page,
        "<h2>{}</h2>{}<p class=\"dim\">One point a stretch; the thick mark is the median.</p>",
        escape(title),
        mete_plot::strips(title, &strips, unit)
    );
}

/// A figure of all stretches of a kind; `None` if it is known of none of them.
fn strip(stretches: &[Stretch], kind: StretchKind, figure: fn(&Stretch) -> f64) -> Option<Strip<'static>> {
    let figures = stretches.iter().filter(|stretch| stretch.kind == kind).map(figure);
    // A quantile of no requests is not a number.
    let points: Vec<_> = figures.filter(|figure| figure.is_finite()).collect();
    let Spread { median, .. } = Spread::of(points.iter().copied())?;
    Some(Strip { label: kind.name(), points, median })
}

fn matrix(page: &mut String, story: &Story<'_>) {
    const TITLE: &str = "Which client talked to which driver, as logged";
    let matrix = Matrix { rows: story.clients, columns: story.drivers, counts: story.matrix };
    let _ = write!(
        page,
        "<h2>{TITLE}</h2>{}<p class=\"dim\">Transactions of each client with each driver in the last stretch that was logged.</p>",
        mete_plot::matrix(TITLE, &matrix)
    );
}

fn decisions(page: &mut String, story: &Story<'_>) {
    page.push_str("<h2>What the scheduler did</h2>");
    if story.moves.is_empty() {
        page.push_str("<p>Nothing: it saw no reason to move a client.</p>");
        return;
    }
    let at: Vec<_> = story.moves.iter().map(|moved| (moved.at_s, moved.client.as_str(), moved.to)).collect();
    page.push_str(&mete_plot::moves("What was moved when", story.clients, &at));
    page.push_str(
        "<p class=\"dim\">In the last stretch in which it acted, from the beginning of logging.</p><ol>",
    );
    for moved in story.moves {
        let _ = write!(page, "<li>after {:.2} s {}</li>", moved.at_s, escape(&moved.in_words));
    }
    page.push_str("</ol>");
}

fn table(page: &mut String, stretches: &[Stretch]) {
    page.push_str(
        "<h2>Every stretch</h2><div class=\"wide\"><table><tr><th>stretch</th><th>requests/s</th><th>half within</th><th>99 % within</th><th>crossings</th><th>moves</th>\
         <th>log rows</th><th>lost</th></tr>",
    );
    for stretch in stretches {
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{:.1} µs</td><td>{:.0} µs</td><td>{:.1} %</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            stretch.kind.name(),
            grouped(stretch.throughput.round() as u64),
            stretch.latency_us[0],
            stretch.latency_us[1],
            100.0 * stretch.crossings,
            stretch.moves,
            grouped(stretch.rows),
            grouped(stretch.lost)
        );
    }
    page.push_str("</table></div>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_needs_nothing_from_elsewhere_and_shows_every_stretch() {
        let stretch = |kind, throughput| Stretch {
            kind,
            throughput,
            crossings: 0.5,
            latency_us: [12.3, 4567.8],
            moves: 1,
            rows: 10,
            lost: 0,
        };
        let stretches = [
            stretch(StretchKind::Off, 100.0),
            stretch(StretchKind::Log, 99.0),
            stretch(StretchKind::Act, 1500.0),
        ];
        let names = ["a".to_owned()];
        let story = Story {
            command: "mete demo",
            machine: "a <machine>",
            sources: "",
            stretch_s: 1.0,
            clients: &names,
            drivers: &names,
            matrix: &[vec![7]],
            date: "2026-01-02T03:04:05Z",
            moves: &[Moved {
                at_s: 0.62,
                client: "a".to_owned(),
                to: 1,
                in_words: "a to processor 1".to_owned(),
            }],
            quotients: &[0.99; 6],
            second_act: &SecondAct::Impossible("it is not asked for".into()),
        };
        let page = html(&story, &stretches);
        assert!(!page.contains("http") && !page.contains("src="));
        assert_eq!(page.matches("<tr><td>").count(), stretches.len());
        assert!(page.contains("a &lt;machine&gt;") && page.contains("+1400.0 %"));
        assert!(
            page.contains("<td>1,500</td>") && page.contains("2026-01-02") && page.contains("after 0.62 s")
        );
        assert!(page.contains("<td>12.3 µs</td><td>4568 µs</td>") && page.contains("99 of 100</h2>"));
        let described = page.matches("<svg").count();
        assert_eq!(
            (page.matches("<title>").count(), page.matches("<desc>").count()),
            (described + 1, described)
        );
        assert!(page.contains("-1.0 % (95 %: -1.0 to -1.0, 6 pairs)"), "{page}");
    }
}
