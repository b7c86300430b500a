//! The demo's report: one HTML file that needs nothing else.

use std::fmt::Write;

use super::summary::{Kind, Spread, Stretch, change, spread};
use super::svg::{self, Strip, escape};

/// What the report tells beside the stretches.
pub struct Story<'a> {
    /// The command line that made it.
    pub command: &'a str,
    /// The machine, in words.
    pub machine: &'a str,
    /// Where the logs came from, in words.
    pub sources: &'a str,
    /// How long a stretch took, in seconds.
    pub stretch_s: f64,
    /// Names of the clients, the matrix's rows.
    pub clients: &'a [String],
    /// Names of the drivers, its columns.
    pub drivers: &'a [String],
    /// Transactions, client by client.
    pub matrix: &'a [Vec<u64>],
    /// What the scheduler did, in words, in the order in which it did it.
    pub moves: &'a [String],
}

const STYLE: &str = "
:root{--ink:#1b1f24;--dim:#667;--paper:#fff;--line:#d8dbe0;--k0:#8a8f98;--k1:#2f6fb0;--k2:#c4601c;--cell:#2f6fb0}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#99a;--paper:#16181c;--line:#333840;--k0:#8a8f98;--k1:#6aa9e9;--k2:#f09050;--cell:#6aa9e9}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:760px;margin:2.5rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}
text{font:12px system-ui,sans-serif;fill:var(--ink)}.tick{text-anchor:middle;fill:var(--dim)}.label{text-anchor:end}.value{text-anchor:middle}
.grid{stroke:var(--line)}.median{stroke-width:4}.k0{fill:var(--k0);stroke:var(--k0)}.k1{fill:var(--k1);stroke:var(--k1)}.k2{fill:var(--k2);stroke:var(--k2)}
circle{fill-opacity:.55;stroke:none!important}.cell{fill:var(--cell)}code{font-size:.9em}.dim{color:var(--dim)}
";

/// The report's text.
pub fn html(story: &Story<'_>, stretches: &[Stretch]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>mete demo</title><style>{STYLE}</style><h1>Measured, and acted upon</h1>"
    );
    introduce(&mut page, story, stretches);
    plot(&mut page, "Requests answered in a second", stretches, "requests per second", |stretch| {
        stretch.throughput
    });
    plot(&mut page, "Requests that crossed between processors", stretches, "percent", |stretch| {
        100.0 * stretch.crossings
    });
    if !story.matrix.is_empty() {
        matrix(&mut page, story);
    }
    decisions(&mut page, story);
    table(&mut page, stretches);
    let _ = write!(
        page,
        "<h2>Where it was made</h2><p>{}<br><code>{}</code></p></html>",
        escape(story.machine),
        escape(story.command)
    );
    page
}

fn introduce(page: &mut String, story: &Story<'_>, stretches: &[Stretch]) {
    let _ = write!(
        page,
        "<p>{} clients talk to {} drivers over Unix sockets, nine requests in ten to a favourite, beside processes that \
         only compute. Each driver stays on its own processor. A stretch of {} s without logging, one with logging, and \
         one in which the scheduler also moves clients to the processor of the driver they talk to most, were run in \
         turn, with fresh clients each time. {}</p>",
        story.clients.len(),
        story.drivers.len(),
        story.stretch_s,
        escape(story.sources)
    );
    if let Some(sentence) = verdict(stretches) {
        let _ = write!(page, "<p><strong>{}</strong></p>", escape(&sentence));
    }
}

/// The result in one sentence.
pub fn verdict(stretches: &[Stretch]) -> Option<String> {
    let crossings =
        |kind| spread(stretches, kind, |stretch| 100.0 * stretch.crossings).map(|spread| spread.median);
    Some(format!(
        "Within a round, logging changed the throughput by {}, acting on it by {}; crossings went from {:.0} % to {:.0} % of requests.",
        in_words(change(stretches, Kind::Log)?),
        in_words(change(stretches, Kind::Act)?),
        crossings(Kind::Off)?,
        crossings(Kind::Act)?
    ))
}

/// Median and range of a change; one whose sign is not sure is no result.
fn in_words(change: Spread) -> String {
    let Spread { median, least, most } = change;
    let noise = if least < 0.0 && most > 0.0 { ", within the noise" } else { "" };
    format!("{median:+.1} % ({least:+.1} to {most:+.1}{noise})")
}

fn plot(
    page: &mut String,
    title: &str,
    stretches: &[Stretch],
    unit: &str,
    figure: impl Fn(&Stretch) -> f64 + Copy,
) {
    let strip = |kind: Kind| {
        let points: Vec<_> = stretches.iter().filter(|stretch| stretch.kind == kind).map(figure).collect();
        Spread::of(points.iter().copied()).map(|spread| Strip {
            label: kind.name(),
            points,
            median: spread.median,
        })
    };
    let strips: Vec<_> = Kind::ALL.into_iter().filter_map(strip).collect();
    let _ = write!(
        page,
        "<h2>{}</h2>{}<p class=\"dim\">One point a stretch; the thick mark is the median.</p>",
        escape(title),
        svg::strips(&strips, unit)
    );
}

fn matrix(page: &mut String, story: &Story<'_>) {
    let cell = |row: usize, column: usize| {
        story.matrix.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0)
    };
    let _ = write!(
        page,
        "<h2>Who talked to whom, as logged</h2>{}<p class=\"dim\">Transactions of each client with each driver in the last stretch that was logged.</p>",
        svg::matrix(story.clients, story.drivers, cell)
    );
}

fn decisions(page: &mut String, story: &Story<'_>) {
    page.push_str("<h2>What the scheduler did</h2>");
    if story.moves.is_empty() {
        page.push_str("<p>Nothing: it saw no reason to move anybody.</p>");
        return;
    }
    page.push_str("<ol>");
    for sentence in story.moves {
        let _ = write!(page, "<li>{}</li>", escape(sentence));
    }
    page.push_str("</ol>");
}

fn table(page: &mut String, stretches: &[Stretch]) {
    page.push_str(
        "<h2>Every stretch</h2><table><tr><th>stretch</th><th>requests/s</th><th>crossings</th><th>moves</th>\
         <th>log rows</th><th>lost</th></tr>",
    );
    for stretch in stretches {
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{:.0}</td><td>{:.1} %</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            stretch.kind.name(),
            stretch.throughput,
            100.0 * stretch.crossings,
            stretch.moves,
            stretch.rows,
            stretch.lost
        );
    }
    page.push_str("</table>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_needs_nothing_from_elsewhere_and_shows_every_stretch() {
        let stretch =
            |kind, throughput| Stretch { kind, throughput, crossings: 0.5, moves: 1, rows: 10, lost: 0 };
        let stretches = [stretch(Kind::Off, 100.0), stretch(Kind::Log, 99.0), stretch(Kind::Act, 150.0)];
        let names = ["a".to_owned()];
        let story = Story {
            command: "mete demo",
            machine: "a <machine>",
            sources: "",
            stretch_s: 1.0,
            clients: &names,
            drivers: &names,
            matrix: &[vec![7]],
            moves: &["a to processor 1".to_owned()],
        };
        let page = html(&story, &stretches);
        assert!(!page.contains("http") && !page.contains("src="));
        assert_eq!(page.matches("<tr><td>").count(), stretches.len());
        assert!(page.contains("a &lt;machine&gt;") && page.contains("+50.0 %"));
    }
}
